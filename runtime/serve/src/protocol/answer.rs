//! A batch's outputs → each request's rows of them, without copying.

use super::{TensorData, elements, strings_length};
use bytes::Bytes;
use ent_wire::{Datatype, Executor, Signature};
use std::sync::Arc;

/// What a worker answered for a whole batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What took the batch's time.
    pub executor: Executor,
    /// Its outputs, all rows.
    outputs: Vec<TensorData>,
    /// Bytes from row to row; of strings, where each row begins, and the end.
    rows: Vec<RowBytes>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RowBytes {
    Even(usize),
    At(Vec<usize>),
}

/// A worker's answer that does not fit its batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the worker's output `{name}` of shape {shape:?} does not fit a batch of {rows}")]
pub struct WrongAnswer {
    /// The output.
    pub name: String,
    /// Its shape.
    pub shape: Vec<i64>,
    /// The batch's rows.
    pub rows: u32,
}

impl Answer {
    /// Takes a batch's outputs apart.
    ///
    /// # Errors
    /// When an output has not as many rows as the batch, or not the bytes of its shape.
    pub fn new(executor: Executor, rows: u32, outputs: Vec<TensorData>) -> Result<Self, WrongAnswer> {
        let mut strides = Vec::with_capacity(outputs.len());
        for output in &outputs {
            let stride = match output.shape.split_first() {
                Some((first, rest)) if *first == i64::from(rows) => stride(output, rows, rest),
                Some(_) | None => None,
            };
            let (name, shape) = (&output.name, &output.shape);
            strides.push(stride.ok_or_else(|| WrongAnswer {
                name: name.clone(),
                shape: shape.clone(),
                rows,
            })?);
        }
        Ok(Self { executor, outputs, rows: strides })
    }

    /// What the outputs are, for a model that did not say before.
    #[must_use]
    pub fn signature(&self) -> Signature {
        let spec = |o: &TensorData| ent_wire::TensorSpec {
            name: o.name.clone(),
            datatype: o.datatype,
            shape: std::iter::once(-1).chain(o.shape.iter().skip(1).copied()).collect(),
        };
        Signature { inputs: Vec::new(), outputs: self.outputs.iter().map(spec).collect() }
    }
}

fn stride(output: &TensorData, rows: u32, rest: &[i64]) -> Option<RowBytes> {
    let count = elements(rest)?;
    let rows = rows as usize;
    if let Some(size) = output.datatype.size() {
        let stride = count * size;
        return (stride.checked_mul(rows)? == output.data.len()).then_some(RowBytes::Even(stride));
    }
    let mut starts = vec![0];
    for _ in 0..rows {
        let at = *starts.last()?;
        starts.push(at + strings_length(output.data.get(at..)?, count)?);
    }
    (starts.last() == Some(&output.data.len())).then_some(RowBytes::At(starts))
}

/// One request's rows of a batch's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The batch's answer.
    pub answer: Arc<Answer>,
    /// Its first row of it.
    pub first: u32,
    /// Its rows.
    pub rows: u32,
}

/// One request's rows of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows<'a> {
    /// The output's name.
    pub name: &'a str,
    /// What it holds.
    pub datatype: Datatype,
    /// Rows: the first dimension.
    pub rows: u32,
    /// The other dimensions.
    pub rest: &'a [i64],
    /// The elements, little-endian, row-major.
    pub data: Bytes,
}

impl Rows<'_> {
    /// All dimensions.
    pub fn shape(&self) -> impl Iterator<Item = i64> + '_ {
        std::iter::once(i64::from(self.rows)).chain(self.rest.iter().copied())
    }
}

impl Share {
    /// Its outputs in the worker's order.
    pub fn outputs(&self) -> impl Iterator<Item = Rows<'_>> {
        let (first, last) = (self.first as usize, self.first as usize + self.rows as usize);
        self.answer.outputs.iter().zip(&self.answer.rows).map(move |(output, stride)| {
            let range = match stride {
                RowBytes::Even(stride) => first * stride..last * stride,
                RowBytes::At(starts) => {
                    let at = |row: usize| starts.get(row).copied().unwrap_or(output.data.len());
                    at(first)..at(last)
                }
            };
            Rows {
                name: &output.name,
                datatype: output.datatype,
                rows: self.rows,
                rest: output.shape.get(1..).unwrap_or_default(),
                data: output.data.slice(range),
            }
        })
    }
}
