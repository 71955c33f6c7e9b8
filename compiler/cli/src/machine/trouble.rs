//! What the driver, the disk and the engine refuse → what is said of it, and what to do.

use crate::exit::{Stop, Trouble};
use ent_machine::Library;
use ent_machine::changes::Step;
use ent_machine::error::{ApplyError, DeviceError, DeviceErrorKind, OpenError, Refusal, Stale, StoreError};
use ent_machine::persist::PersistError;
use ent_nvml_sim::description::{DescriptionError, FILE};
use ent_nvml_sim::store::{Store as Simulated, StoreError as SimulationError};

/// Why a library cannot be opened.
pub(super) fn not_open(library: &Library, error: &OpenError) -> Stop {
    if let Some(trouble) = wrong_simulation(library, error) {
        return trouble.into();
    }
    let elsewhere = "try it on a simulated machine with `--nvml simulated`";
    let (code, help) = match (error, library) {
        (OpenError::NoLibrary(_), Library::System) => (
            "no-library",
            format!("install the NVIDIA driver, name its library with `--nvml PATH`, or {elsewhere}"),
        ),
        (OpenError::NoLibrary(_), _) => {
            ("no-library", format!("name a library that is there, or {elsewhere}"))
        }
        (OpenError::NotLoadable { .. }, _) => (
            "library-not-loadable",
            format!("name an NVML library of this system's architecture with `--nvml PATH`, or {elsewhere}"),
        ),
        (OpenError::NoDriver { .. }, Library::Simulated { state, .. }) => (
            "no-driver",
            format!("look at the files in `{}`; an empty folder becomes a new machine", state.display()),
        ),
        (OpenError::NoDriver { .. }, _) => (
            "no-driver",
            format!("load the NVIDIA kernel driver (`nvidia-smi` says whether it runs), or {elsewhere}"),
        ),
        (OpenError::NoSimulatedMachine(_), _) => (
            "no-simulated-machine",
            "make one with the boards of a spec: `entc plan FILE --nvml simulated`; \
             or name its folder with `--sim-state DIR`"
                .to_owned(),
        ),
    };
    Trouble::new(code, error.to_string(), help).into()
}

/// What is wrong with the files of a simulated machine, which its library can only say in NVML's words.
pub(crate) fn wrong_simulation(library: &Library, error: &OpenError) -> Option<Trouble> {
    let (Library::Simulated { state, .. }, OpenError::NoDriver { .. }) = (library, error) else {
        return None;
    };
    let file = state.join(FILE);
    let error = Simulated::open(state).err()?;
    let path = file.display();
    let malformed = |error: &SimulationError| {
        let SimulationError::Description(DescriptionError::Malformed { line, message }) = error else {
            return None;
        };
        Some(format!("{path}:{line}: {message}"))
    };
    let mut message =
        malformed(&error).unwrap_or_else(|| error.to_string().replacen(FILE, &path.to_string(), 1));
    if let Some(source) = std::error::Error::source(&error) {
        message.push_str(&format!(": {source}"));
    }
    Some(Trouble::new(
        "wrong-simulated-machine",
        message,
        "mend that file, or name another folder with `--sim-state DIR`; an empty one becomes a new machine",
    ))
}

/// What the driver refused.
pub(crate) fn device(error: &DeviceError) -> Trouble {
    let call = if error.call.is_empty() { String::new() } else { format!(" ({})", error.call) };
    Trouble::new(error.kind.word(), format!("{error}{call}"), advice(error.kind))
}

fn advice(kind: DeviceErrorKind) -> &'static str {
    match kind {
        DeviceErrorKind::NoPermission => {
            "run it as root, for example with `sudo`; `entc doctor` says what is missing"
        }
        DeviceErrorKind::InUse => "see who has it open with `entc doctor`, stop that, and try again",
        DeviceErrorKind::NotSupported | DeviceErrorKind::MissingSymbol => {
            "see what board and driver can do with `entc doctor`"
        }
        DeviceErrorKind::InsufficientResources => "see what is on the board with `entc observe`",
        DeviceErrorKind::ResetRequired => {
            "reset the board when nothing runs on it, or reboot. A board that is passed through to a VM changes \
             its mode only with a reboot of the VM: set it with `nvidia-smi -mig 1` (or `-mig 0`), reboot, then \
             apply"
        }
        DeviceErrorKind::Lost => "reboot the machine; a board that is lost again is broken",
        DeviceErrorKind::NotFound => "see what is there now with `entc observe`",
        DeviceErrorKind::Timeout => "try again; a driver that stays silent needs a reboot",
        DeviceErrorKind::AlreadyThere => {
            "see who else works on the machine, and try again when they are done"
        }
        DeviceErrorKind::NotVerified => "see what is there now with `entc observe`, and report it",
        DeviceErrorKind::Other(_) => "see the driver's own log with `dmesg`",
    }
}

/// What the disk or another entc refused.
pub(crate) fn store(error: &StoreError) -> Trouble {
    let (code, help) = match error {
        StoreError::Io { what: "read", .. } => {
            ("cannot-read", "run it as root, or name a folder that you may read with `--state DIR`")
        }
        StoreError::Io { .. } => (
            "cannot-write",
            "make room, run it as root, or name a folder that you may write with `--state DIR`",
        ),
        StoreError::Damaged { .. } => (
            "damaged-state",
            "put back a copy of the file; or move it away: what is on the machine is then foreign, and \
             `entc import` takes it over",
        ),
        StoreError::Newer { .. } => ("newer-state", "use the entc that wrote it, or a newer one"),
        StoreError::Missing { .. } => return Trouble::new("state-missing", error.to_string(), error.help()),
        StoreError::Locked { .. } => ("locked", "wait for it, for example with `--lock-timeout 5m`"),
    };
    Trouble::new(code, error.to_string(), help)
}

/// What step failed and why, in one sentence. The driver's error names the step again, with what became of
/// it behind, in brackets.
pub(crate) fn failed_step(step: &Step, error: &DeviceError) -> String {
    let operation = step.operation.to_string();
    let then = match error.operation.strip_prefix(&operation).map(str::trim) {
        Some("") => String::new(),
        Some(more) => {
            let more = more.strip_prefix('(').and_then(|more| more.strip_suffix(')')).unwrap_or(more);
            format!("; {more}")
        }
        None => format!("; {}", error.operation),
    };
    format!("gpu {}: {operation}: {}{then}", step.index, error.kind.words())
}

/// Why a transaction goes back, in one sentence.
pub(crate) fn going_back(error: &ApplyError) -> String {
    if let ApplyError::Step { step, source } = error { failed_step(step, source) } else { error.to_string() }
}

/// What preflight or the diff refused. Their messages name the GPU.
pub(crate) fn refusals(refusals: &[Refusal]) -> Vec<Trouble> {
    let trouble = |refusal: &Refusal| Trouble::new(refusal.code, &refusal.message, &refusal.help);
    refusals.iter().map(trouble).collect()
}

/// In what a plan is not for this machine, field by field.
pub(crate) fn stale(fields: &[Stale]) -> Trouble {
    let fields: Vec<String> = fields
        .iter()
        .map(|f| format!("{}: planned {}, observed {}", f.field, f.planned, f.observed))
        .collect();
    Trouble::new(
        "stale-plan",
        format!("the plan was made for another state of the machine: {}", fields.join("; ")),
        "plan again for the machine as it is: `entc plan FILE --nvml … -o plan.json`",
    )
}

/// Why a transaction did not end as asked.
pub(crate) fn failed(error: &ApplyError) -> Vec<Trouble> {
    match error {
        ApplyError::Refused(all) => refusals(all),
        ApplyError::Step { step, source } => {
            let mut trouble = device(source);
            trouble.message = format!("{} ({})", failed_step(step, source), source.call);
            vec![trouble]
        }
        ApplyError::Device(error) => vec![device(error)],
        ApplyError::Store(error) => vec![store(error)],
        ApplyError::NotVerified(_) => vec![Trouble::new(
            DeviceErrorKind::NotVerified.word(),
            error.to_string(),
            advice(DeviceErrorKind::NotVerified),
        )],
        ApplyError::NotRolledBack { first, then } => failed(first).into_iter().chain(failed(then)).collect(),
        ApplyError::Interrupted => {
            vec![Trouble::new(
                "interrupted",
                "stopped by Ctrl-C between two steps",
                "go on or back when you are ready",
            )]
        }
    }
}

/// Why the unit that applies the plan after a boot is not there.
pub(crate) fn persistence(error: &PersistError) -> Trouble {
    Trouble::new(
        "not-persistent",
        format!("the plan will not be applied again after a boot: {error}"),
        "run `entc apply --reassert` at every boot by other means, or mend that and apply again with `--persist`",
    )
}
