//! The parser of requests against any bytes, and tensors written and read again.

use bytes::Bytes;
use ent_serve::protocol::{
    Answer, InferRequest, RequestedOutput, Share, TensorData, check, default_outputs, parse, write,
};
use ent_wire::{Datatype, Executor};
use proptest::prelude::*;
use std::sync::Arc;

fn bytes_of(datatype: Datatype, elements: usize, seed: &[u8]) -> Vec<u8> {
    let mut seed = seed.iter().copied().cycle();
    let mut next = move || seed.next().unwrap_or(0);
    let mut data = Vec::new();
    for _ in 0..elements {
        match datatype {
            Datatype::Bool => data.push(next() & 1),
            Datatype::Bytes => {
                let length = u32::from(next() % 6);
                data.extend(length.to_le_bytes());
                data.extend((0..length).map(|_| next() % 128));
            }
            // Bits that are no number have no JSON.
            Datatype::Fp32 => {
                let x = f32::from_bits(u32::from_le_bytes([next(), next(), next(), next()]));
                data.extend((if x.is_finite() { x } else { 1.5 }).to_le_bytes());
            }
            Datatype::Fp64 => {
                let x = f64::from_bits(u64::from_le_bytes(std::array::from_fn(|_| next())));
                data.extend((if x.is_finite() { x } else { 1.5 }).to_le_bytes());
            }
            Datatype::Uint8
            | Datatype::Uint16
            | Datatype::Uint32
            | Datatype::Uint64
            | Datatype::Int8
            | Datatype::Int16
            | Datatype::Int32
            | Datatype::Int64
            | Datatype::Fp16
            | Datatype::Bf16 => data.extend((0..datatype.size().unwrap()).map(|_| next())),
        }
    }
    data
}

fn tensor() -> impl Strategy<Value = TensorData> {
    let shape = prop::collection::vec(1..4_i64, 0..3);
    let seed = prop::collection::vec(any::<u8>(), 1..64);
    ("[a-z\"\\\\é]{1,8}", 0..Datatype::ALL.len(), shape, seed).prop_map(|(name, datatype, rest, seed)| {
        let datatype = Datatype::ALL[datatype];
        let shape: Vec<i64> = std::iter::once(2).chain(rest).collect();
        let elements = usize::try_from(shape.iter().product::<i64>()).unwrap();
        TensorData { name, datatype, shape, data: bytes_of(datatype, elements, &seed).into() }
    })
}

proptest! {
    #[test]
    fn tensors_that_are_written_are_read_again(tensors in prop::collection::vec(tensor(), 1..4), raw: bool) {
        let raw_only = |t: &TensorData| matches!(t.datatype, Datatype::Fp16 | Datatype::Bf16);
        let answer = Answer::new(Executor::Torch, 2, tensors.clone()).unwrap();
        let share = Share { answer: Arc::new(answer), first: 0, rows: 2 };
        let wanted = |t: &TensorData| RequestedOutput { name: t.name.clone(), is_binary: Some(raw || raw_only(t)) };
        let mut tensors = tensors;
        let mut seen = std::collections::BTreeSet::new();
        tensors.retain(|t| seen.insert(t.name.clone()));
        prop_assume!(tensors.len() == share.outputs().count());
        let request = InferRequest { outputs: tensors.iter().map(wanted).collect(), ..InferRequest::default() };
        let written = write("net", &request, &share).unwrap();
        // An answer's outputs have the form of a request's inputs.
        let json = String::from_utf8(written.json).unwrap().replacen("\"outputs\":", "\"inputs\":", 1);
        let mut body = json.clone().into_bytes();
        written.raw.iter().for_each(|raw| body.extend_from_slice(raw));
        let read = parse(&Bytes::from(body), Some(json.len())).unwrap();
        prop_assert_eq!(&read.inputs, &tensors);
        prop_assert_eq!(check(&read, None, &default_outputs(), 2), Ok(2));
    }

    #[test]
    fn each_row_of_a_batch_is_cut_out_whole(tensor in tensor()) {
        let all = tensor.data.clone();
        let answer = Arc::new(Answer::new(Executor::Torch, 2, vec![tensor]).unwrap());
        let row = |first| Share { answer: Arc::clone(&answer), first, rows: 1 }.outputs().next().unwrap().data;
        prop_assert_eq!([row(0), row(1)].concat(), all.to_vec());
    }

    #[test]
    fn any_bytes_are_a_request_or_an_error(body in prop::collection::vec(any::<u8>(), 0..200), length in prop::option::of(0..300_usize)) {
        let _ = parse(&Bytes::from(body), length);
    }

    #[test]
    fn a_damaged_request_is_a_request_or_an_error(
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"", "\\", "-", "1e999", "-0", "18446744073709551616", "null", "true",
                "\"shape\"", "\"data\"", "\"BYTES\"", "\"INT8\"", "\"\\ud800\"", "é", " ",
            ]),
            0..4,
        ),
    ) {
        let whole = r#"{"id":"1","inputs":[{"name":"x","shape":[2,2],"datatype":"BYTES","data":[["a","b"],["\n","\u00e9"]]},{"name":"y","shape":[2],"datatype":"FP64","parameters":{"binary_data_size":16}}],"outputs":[{"name":"output"}]}0123456789abcdef"#;
        let bounds: Vec<usize> = (0..=whole.len()).filter(|i| whole.is_char_boundary(*i)).collect();
        let (start, end) = (*at.get(&bounds), *cut.get(&bounds));
        let (start, end) = (start.min(end), start.max(end));
        let damaged = format!("{}{}{}", &whole[..start], pieces.concat(), &whole[end..]);
        let json = damaged.len().saturating_sub(16);
        if let Ok(request) = parse(&Bytes::from(damaged.into_bytes()), Some(json)) {
            let _ = check(&request, None, &default_outputs(), 4);
        }
    }
}

#[test]
fn a_request_says_how_long_it_waits_and_what_it_wants() {
    let body = r#"{"parameters":{"timeout":2500,"priority":1,"binary_data_output":true,"other":[1]},
        "inputs":[{"name":"x","shape":[1],"datatype":"BOOL","data":[true],"extra":{}}],
        "outputs":[{"name":"a","parameters":{"binary_data":false,"classification":0}},{"name":"b"}]}"#;
    let request = parse(&Bytes::from(body), None).unwrap();
    assert_eq!(request.timeout, Some(std::time::Duration::from_micros(2500)));
    assert!(request.is_binary && request.id.is_none());
    let outputs: Vec<_> = request.outputs.iter().map(|o| (o.name.as_str(), o.is_binary)).collect();
    assert_eq!(outputs, [("a", Some(false)), ("b", None)]);
}

#[test]
fn numbers_are_read_as_they_are_written_by_others() {
    let read = |datatype: &str, data: &str| {
        let body =
            format!(r#"{{"inputs":[{{"name":"x","shape":[1],"datatype":"{datatype}","data":{data}}}]}}"#);
        parse(&Bytes::from(body), None).map(|r| r.inputs[0].data.to_vec())
    };
    assert_eq!(read("FP32", "[16777217]"), Ok(16_777_216_f32.to_le_bytes().to_vec()));
    assert_eq!(read("FP32", "[1e-3]"), Ok(0.001_f32.to_le_bytes().to_vec()));
    assert_eq!(read("FP64", "[[[ -0.0 ]]]"), Ok((-0.0_f64).to_le_bytes().to_vec()));
    assert_eq!(read("UINT64", "[18446744073709551615]"), Ok(u64::MAX.to_le_bytes().to_vec()));
    assert_eq!(read("INT8", "\n[ -128 ]"), Ok(vec![0x80]));
    assert_eq!(read("BYTES", r#"["],[\"\\"]"#), Ok(b"\x05\0\0\0],[\"\\".to_vec()));
    assert_eq!(read("BOOL", "[0]"), Ok(vec![0]));
    assert!(read("INT32", "[1e3]").is_err());
    assert!(read("BYTES", "[5]").is_err());
}
