//! Plan → the hash of everything in it but the hash: whether a file is still what a planner wrote.
//!
//! It guards against editing and damage, not against an enemy: whoever may write the file may seal it
//! again. It is SHA-256 over the canonical JSON of RFC 8785 (keys sorted, no spaces, one way to write a
//! number), so that a file which was only laid out anew still holds, and any language can compute it.

use super::Plan;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The field that the hash is kept in, and the only one it is not over.
const FIELD: &str = "checksum";

/// The one plan format that was written without a checksum.
const WITHOUT: &str = "1.0";

/// What is wrong with a plan's checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChecksumFault {
    /// It has none, and is of the format that had none.
    Older,
    /// It has none, although its format has one.
    Absent,
    /// It is not the hash of the rest: something was changed after the plan was made.
    Wrong {
        /// What the plan says.
        stated: String,
        /// What its contents give.
        computed: String,
    },
}

/// Writes the plan's checksum into it. Any change after this makes it wrong.
pub fn seal(plan: &mut Plan) {
    plan.checksum = serde_json::to_value(&*plan).ok().and_then(|value| checksum(&value));
}

/// What is wrong with a plan's checksum; `None` when it is right.
#[must_use]
pub fn checksum_fault(plan: &Plan) -> Option<ChecksumFault> {
    serde_json::to_value(plan).map_or(Some(ChecksumFault::Absent), |value| checksum_fault_in(&value))
}

/// The same for a plan as it stands in a file: a later minor version may have fields that are not ours, and
/// they are hashed too.
#[must_use]
pub fn checksum_fault_in(plan: &Value) -> Option<ChecksumFault> {
    let Some(stated) = plan.get(FIELD).and_then(Value::as_str) else {
        let is_older = plan.get("format_version").and_then(Value::as_str) == Some(WITHOUT);
        return Some(if is_older { ChecksumFault::Older } else { ChecksumFault::Absent });
    };
    let computed = checksum(plan).unwrap_or_default();
    (stated != computed)
        .then(|| ChecksumFault::Wrong { stated: stated.chars().take(LONGEST).collect(), computed })
}

/// No checksum is longer; more of a wrong one is not worth repeating.
const LONGEST: usize = 80;

/// `sha256:` and 64 digits; `None` when the value is no object, or holds what JSON cannot.
fn checksum(plan: &Value) -> Option<String> {
    let mut rest = plan.as_object()?.clone();
    rest.remove(FIELD);
    let bytes = serde_json_canonicalizer::to_vec(&rest).ok()?;
    let mut text = String::from("sha256:");
    for byte in Sha256::digest(&bytes) {
        write!(text, "{byte:02x}").ok()?;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::sample;

    #[test]
    fn a_sealed_plan_holds_however_its_file_is_laid_out() {
        let mut plan = sample::plan();
        assert_eq!(checksum_fault(&plan), Some(ChecksumFault::Absent));
        seal(&mut plan);
        assert_eq!(checksum_fault(&plan), None);
        let again = plan.checksum.clone();
        seal(&mut plan);
        assert_eq!(plan.checksum, again, "the hash is not over itself");
        // Laid out anew, keys the other way round, whole numbers without their `.0`.
        let value = serde_json::to_value(&plan).unwrap();
        let turned: serde_json::Map<String, Value> =
            value.as_object().unwrap().clone().into_iter().rev().collect();
        let text = serde_json::to_string_pretty(&turned).unwrap().replace(".0,", ",").replace(".0\n", "\n");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(checksum_fault_in(&read), None);
        let read: Plan = serde_json::from_str(&text).unwrap();
        assert_eq!(checksum_fault(&read), None);
    }

    #[test]
    fn the_hash_is_that_of_the_canonical_json() {
        // Computed by other means: printf '{"a":1,"b":[true,0.5]}' | sha256sum
        let value = serde_json::json!({ "b": [true, 0.5], "checksum": "whatever", "a": 1.0 });
        let expected = "sha256:daf45e2b79817496526641087cb70db3e010be7aaedd3b9ee9ce7ed959900df9";
        assert_eq!(checksum(&value).as_deref(), Some(expected));
    }

    #[test]
    fn every_change_is_noticed() {
        let mut plan = sample::plan();
        seal(&mut plan);
        let sealed = serde_json::to_value(&plan).unwrap();
        for place in ["/gpus/0/sm_clock_mhz", "/gpus/0/instances/1/start", "/services/0/rate_rps", "/planner"]
        {
            let mut edited = sealed.clone();
            *edited.pointer_mut(place).unwrap() = 7.into();
            assert!(matches!(checksum_fault_in(&edited), Some(ChecksumFault::Wrong { .. })), "{place}");
        }
        let mut more = sealed.clone();
        more["later"] = true.into();
        assert!(matches!(checksum_fault_in(&more), Some(ChecksumFault::Wrong { .. })), "a field added");
        let mut without = sealed.clone();
        without["checksum"] = Value::Null;
        assert_eq!(checksum_fault_in(&without), Some(ChecksumFault::Absent));
        without["format_version"] = "1.0".into();
        assert_eq!(checksum_fault_in(&without), Some(ChecksumFault::Older));
        assert_eq!(checksum_fault_in(&Value::Null), Some(ChecksumFault::Absent));
    }
}
