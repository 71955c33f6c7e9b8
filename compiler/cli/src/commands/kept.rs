//! The plans that were applied, kept beside the state, so that the last one can be applied again after a
//! boot.
//!
//! Two are kept: the one that was applied last, and the one before it, which a rollback makes the last one
//! again. Which of them holds is what the state says; a file alone means nothing.

use super::show;
use crate::exit::{Stop, Trouble};
use crate::machine;
use ent_machine::state::State;
use ent_machine::store::{Locked, Store};
use ent_plan::plan::CheckedPlan;
use std::path::PathBuf;

/// Keeps a plan that is about to be applied, and the one that holds until then.
///
/// # Errors
/// When they cannot be written; nothing may be begun then.
pub(super) fn keep(store: &Locked, state: &State, plan: &CheckedPlan) -> Result<(), Stop> {
    let path = store.plan_path();
    if checksum_of(&path).is_some_and(|checksum| Some(checksum) == state.plan)
        && state.plan != plan.plan().checksum
    {
        std::fs::rename(&path, previous(store)).map_err(|source| cannot_keep(&path, &source))?;
    }
    let text = crate::report::plan_file(plan.plan())?;
    let help = "make room, or name a folder that you may write with `--state DIR`";
    crate::write::atomically(&path, &text).map_err(|stop| match stop {
        Stop::Refused { code, message, .. } => Trouble::new(code, message, help).into(),
        Stop::Diagnostics { .. } | Stop::World(_) | Stop::Output(_) => stop,
    })
}

/// The plan that holds on this machine, and its node.
///
/// # Errors
/// When none was applied, or it is not there or not as it was.
pub(super) fn last(store: &Store) -> Result<(CheckedPlan, String), Stop> {
    let state = store.state().map_err(|error| machine::store(&error))?;
    let (Some(checksum), Some(node)) = (&state.plan, state.node) else {
        return Err(Trouble::new(
            "nothing-applied",
            format!("no plan is applied to this machine, says `{}`", store.folder().display()),
            "apply one with `entc apply plan.json`",
        )
        .into());
    };
    let found = [store.plan_path(), previous(store)]
        .into_iter()
        .find(|path| checksum_of(path).as_ref() == Some(checksum));
    let Some(path) = found else {
        return Err(Trouble::new(
            "plan-not-kept",
            format!("the plan that was applied, {checksum}, is not in `{}`", store.folder().display()),
            "apply its file again with `entc apply plan.json`",
        )
        .into());
    };
    Ok((show::read(&path.display().to_string())?.sealed()?, node))
}

/// Mean and base power of each board (W), by index, as the plan that holds predicts; nothing where none does. It
/// is looked at often, and not checked.
pub(super) fn predicted_watts(folder: &std::path::Path) -> std::collections::BTreeMap<u32, [Option<f64>; 2]> {
    let store = Store::at(folder);
    let Some(node) = store.state().ok().and_then(|state| state.node) else { return Default::default() };
    let read = std::fs::read(store.plan_path()).ok();
    let plan: Option<serde_json::Value> = read.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let gpus = plan.as_ref().and_then(|plan| plan.get("gpus")?.as_array());
    let watts = |gpu: &serde_json::Value| {
        let is_here = gpu.get("node")?.as_str()? == node;
        let index = u32::try_from(gpu.get("index")?.as_u64()?).ok()?;
        let power = |key: &str| gpu.get(key).and_then(serde_json::Value::as_f64);
        Some((index, [power("mean_power_w"), power("base_power_w")])).filter(|_| is_here)
    };
    gpus.into_iter().flatten().filter_map(watts).collect()
}

fn previous(store: &Store) -> PathBuf {
    store.folder().join("plan.previous.json")
}

/// What a kept file says its checksum is. Whether it is true is seen when it is read.
fn checksum_of(path: &std::path::Path) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    value.get("checksum")?.as_str().map(str::to_owned)
}

fn cannot_keep(path: &std::path::Path, error: &std::io::Error) -> Stop {
    let why = crate::write::reason(error);
    let help = "make room, or name a folder that you may write with `--state DIR`";
    Trouble::new("cannot-write", format!("cannot keep `{}`: {why}", path.display()), help).into()
}
