//! Tensors of the wire ↔ tensors of torch.

use ent_wire::{Datatype, Tensor as Head};
use std::borrow::Cow;
use tch::{Device, IValue, Kind, Tensor};

/// Torch's word for a datatype.
pub(crate) fn kind(datatype: Datatype) -> Result<Kind, String> {
    match datatype {
        Datatype::Bool => Ok(Kind::Bool),
        Datatype::Uint8 => Ok(Kind::Uint8),
        Datatype::Int8 => Ok(Kind::Int8),
        Datatype::Int16 => Ok(Kind::Int16),
        Datatype::Int32 => Ok(Kind::Int),
        Datatype::Int64 => Ok(Kind::Int64),
        Datatype::Fp16 => Ok(Kind::Half),
        Datatype::Bf16 => Ok(Kind::BFloat16),
        Datatype::Fp32 => Ok(Kind::Float),
        Datatype::Fp64 => Ok(Kind::Double),
        Datatype::Uint16 | Datatype::Uint32 | Datatype::Uint64 | Datatype::Bytes => {
            Err(format!("torch takes no {datatype}"))
        }
    }
}

fn datatype(kind: Kind) -> Result<Datatype, String> {
    let known = Datatype::ALL.into_iter().find(|d| self::kind(*d) == Ok(kind));
    known.ok_or_else(|| format!("a result of kind {kind:?} has no datatype in the protocol"))
}

/// A tensor on a device from its head and bytes.
pub(crate) fn read(head: &Head<'_>, bytes: &[u8], device: Device) -> Result<Tensor, String> {
    let kind = kind(head.datatype)?;
    let elements = head.shape.iter().try_fold(1_i64, |n, d| n.checked_mul(*d)).unwrap_or(-1);
    let size = i64::try_from(head.datatype.size().unwrap_or(1)).unwrap_or(1);
    if head.shape.iter().any(|d| *d < 0) || elements.checked_mul(size) != i64::try_from(bytes.len()).ok() {
        return Err(format!("input `{}` has {} bytes, which is not its shape", head.name, bytes.len()));
    }
    let tensor = Tensor::f_from_data_size(bytes, &head.shape, kind).map_err(|e| e.to_string())?;
    if device == Device::Cpu { Ok(tensor) } else { tensor.f_to_device(device).map_err(|e| e.to_string()) }
}

/// Head and bytes of a tensor.
pub(crate) fn write(name: &str, tensor: &Tensor) -> Result<(Head<'static>, Vec<u8>), String> {
    let datatype = datatype(tensor.kind())?;
    let on_cpu = tensor
        .f_to_device(Device::Cpu)
        .and_then(|tensor| tensor.f_contiguous())
        .map_err(|error| error.to_string())?;
    let elements = on_cpu.numel();
    let mut bytes = vec![0; elements * datatype.size().unwrap_or(1)];
    on_cpu.f_copy_data_u8(&mut bytes, elements).map_err(|e| e.to_string())?;
    let head = Head {
        name: Cow::Owned(name.to_owned()),
        datatype,
        shape: Cow::Owned(on_cpu.size()),
        bytes: bytes.len() as u64,
    };
    Ok((head, bytes))
}

/// The tensors of a result, whatever they are packed in.
pub(crate) fn flat(value: IValue) -> Result<Vec<Tensor>, String> {
    if let IValue::Tensor(tensor) = value {
        return Ok(vec![tensor]);
    }
    if let IValue::TensorList(tensors) = value {
        return Ok(tensors);
    }
    if let IValue::Tuple(values) | IValue::GenericList(values) = value {
        let tensors: Result<Vec<Vec<Tensor>>, String> = values.into_iter().map(flat).collect();
        return Ok(tensors?.into_iter().flatten().collect());
    }
    Err(format!("the network gives {value:?}, which is no tensor"))
}
