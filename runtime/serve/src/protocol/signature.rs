//! A request's tensors against a model's signature → its rows, or what is wrong.

use super::{InferRequest, Refusal, elements, strings_length};
use ent_wire::Signature;

/// Inputs or outputs of the largest request: far above any network's.
const MOST: usize = 1024;

/// Checks a request against what its model takes and gives, and returns its rows: the first dimension
/// that all inputs share. Without a signature any tensors are taken, and `outputs` says what is given.
///
/// # Errors
/// The first fault, in words.
pub fn check(
    request: &InferRequest,
    signature: Option<&Signature>,
    outputs: &Signature,
    batch: u32,
) -> Result<u32, Refusal> {
    let invalid = |message: String| Err(Refusal::Invalid(message));
    for (what, n) in [("inputs", request.inputs.len()), ("outputs", request.outputs.len())] {
        if n > MOST {
            return invalid(format!("the request has {n} {what}; at most {MOST} are taken"));
        }
    }
    let Some(first) = request.inputs.first() else {
        return invalid("the request has no inputs".to_owned());
    };
    let mut rows = None;
    for (i, input) in request.inputs.iter().enumerate() {
        let name = &input.name;
        let shape = &input.shape;
        if request.inputs.iter().take(i).any(|other| other.name == *name) {
            return invalid(format!("input `{name}` is there twice"));
        }
        let Some(count) = elements(shape) else {
            return invalid(format!("input `{name}` has an impossible shape {shape:?}"));
        };
        let present = input.data.len();
        match input.datatype.size() {
            Some(size) if count * size != present => {
                return invalid(format!(
                    "input `{name}` has {present} bytes; {} of shape {shape:?} is {} bytes",
                    input.datatype,
                    count * size,
                ));
            }
            None if strings_length(&input.data, count) != Some(present) => {
                return invalid(format!(
                    "input `{name}` of shape {shape:?} has to be {count} strings, each with its length before it"
                ));
            }
            Some(_) | None => {}
        }
        let Some(of) = shape.first().copied() else {
            return invalid(format!("input `{name}` has no dimensions; the first has to be the batch"));
        };
        if of < 1 {
            return invalid(format!("input `{name}` of shape {shape:?} has no rows"));
        }
        if *rows.get_or_insert(of) != of {
            return invalid(format!(
                "inputs `{}` and `{name}` have different first dimensions, {} and {of}; it is the batch",
                first.name,
                rows.unwrap_or(of)
            ));
        }
    }
    let rows = rows.unwrap_or(1);
    let Some(rows) = u32::try_from(rows).ok().filter(|rows| *rows <= batch) else {
        return invalid(format!("a batch of {rows} is over the model's largest of {batch}"));
    };
    // A worker may know what comes out and not what goes in.
    if let Some(signature) = signature.filter(|s| !s.inputs.is_empty()) {
        against(request, signature)?;
    }
    for wanted in &request.outputs {
        if !outputs.outputs.iter().any(|o| o.name == wanted.name) {
            let has: Vec<&str> = outputs.outputs.iter().map(|o| o.name.as_str()).collect();
            return invalid(format!(
                "there is no output `{}`; the model has `{}`",
                wanted.name,
                has.join("`, `")
            ));
        }
    }
    Ok(rows)
}

fn against(request: &InferRequest, signature: &Signature) -> Result<(), Refusal> {
    for input in &request.inputs {
        let name = &input.name;
        let Some(spec) = signature.inputs.iter().find(|s| s.name == *name) else {
            let has: Vec<&str> = signature.inputs.iter().map(|s| s.name.as_str()).collect();
            return Err(Refusal::Invalid(format!(
                "there is no input `{name}`; the model has `{}`",
                has.join("`, `")
            )));
        };
        if spec.datatype != input.datatype {
            return Err(Refusal::Invalid(format!(
                "input `{name}` is {}; the model takes {}",
                input.datatype, spec.datatype
            )));
        }
        let fits = spec.shape.len() == input.shape.len()
            && spec.shape.iter().zip(&input.shape).skip(1).all(|(spec, has)| *spec < 0 || spec == has);
        if !fits {
            return Err(Refusal::Invalid(format!(
                "input `{name}` has shape {:?}; the model takes {:?}, where -1 is any",
                input.shape, spec.shape
            )));
        }
    }
    match signature.inputs.iter().find(|s| !request.inputs.iter().any(|i| i.name == s.name)) {
        Some(missing) => Err(Refusal::Invalid(format!("input `{}` is missing", missing.name))),
        None => Ok(()),
    }
}
