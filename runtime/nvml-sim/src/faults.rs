//! `faults.json`: what is to go wrong, and when.
//!
//! ```json
//! [
//!   { "call": "nvmlDeviceCreateGpuInstanceWithPlacement", "occurrence": 2, "when": "before",
//!     "what": { "error": "insufficient-resources" } },
//!   { "call": "mutating", "occurrence": 5, "when": "after", "what": "kill" },
//!   { "call": "*", "occurrence": 30, "when": "before", "what": "reboot" },
//!   { "call": "*", "occurrence": 12, "when": "before", "what": { "lost": 0 } }
//! ]
//! ```
//!
//! `call` is an exported function's name, `*` for every one, or `mutating` for those that change the
//! machine. entc's own `entcSim…` functions are meant only by name. Each entry counts the calls it means, in
//! all processes together, and happens once: at its `occurrence`-th, counted from 1. How many it has seen is
//! written back as `seen`. `after` means that the call has had its effect, and the caller is told otherwise,
//! or nothing.
//!
//! `what` is `{"error": CODE}`, with one of [`Return`]'s words; `"kill"`: the calling process ends as by
//! `SIGKILL`; `"reboot"`: the machine is turned off and on, and the calling process ends; `{"lost": INDEX}`:
//! that GPU falls off the bus until the next boot.

use crate::returns::Return;
use crate::store::Store;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;

/// The name of the file.
pub const FILE: &str = "faults.json";

/// Which side of a call's effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Nothing was done yet.
    Before,
    /// It was done; the caller is not told so.
    After,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// The call returns this.
    Error(Return),
    /// The calling process ends, as by `SIGKILL`.
    Kill,
    /// The machine is turned off and on; the calling process ends.
    Reboot,
    /// The GPU with this index falls off the bus.
    Lost(usize),
}

/// One thing that is to go wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Which calls.
    pub call: String,
    /// At which of them, from 1.
    #[serde(default = "first")]
    pub occurrence: u64,
    /// Before or after its effect.
    pub when: When,
    /// What happens.
    pub what: What,
    /// How many of them there were so far.
    #[serde(default)]
    pub seen: u64,
}

fn first() -> u64 {
    1
}

/// Why the file is not understood.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultsError {
    /// Not JSON, or not these keys.
    #[error("{FILE}: {0}")]
    Malformed(#[from] serde_json::Error),
    /// `call` is neither a function of NVML nor a word that is known.
    #[error("{FILE}: `{0}` is no call; write an `nvml…` function, `*` or `mutating`")]
    UnknownCall(String),
    /// Occurrences are counted from 1.
    #[error("{FILE}: `occurrence` is at least 1")]
    NoOccurrence,
}

/// All that is to go wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Faults(pub Vec<Fault>);

impl Faults {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// When it is not understood.
    pub fn parse(text: &str) -> Result<Self, FaultsError> {
        let faults: Self = serde_json::from_str(text)?;
        for fault in &faults.0 {
            let call = fault.call.as_str();
            if !(matches!(call, "*" | "mutating") || call.starts_with("nvml") || call.starts_with("entcSim"))
            {
                return Err(FaultsError::UnknownCall(fault.call.clone()));
            }
            if fault.occurrence == 0 {
                return Err(FaultsError::NoOccurrence);
            }
        }
        Ok(faults)
    }

    /// The text of its file.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Counts a call; what is to happen at it, in the order of the list.
    fn count(&mut self, function: &str) -> Vec<(When, What)> {
        let mut due = Vec::new();
        for fault in self.0.iter_mut().filter(|f| f.seen < f.occurrence && means(&f.call, function)) {
            fault.seen += 1;
            if fault.seen == fault.occurrence {
                due.push((fault.when, fault.what));
            }
        }
        due
    }
}

/// Whether a word of `call` means a function.
fn means(call: &str, function: &str) -> bool {
    match call {
        "*" => !function.starts_with("entcSim"),
        "mutating" => is_mutating(function),
        name => name == function,
    }
}

/// Whether an NVML function changes the machine, by its name.
fn is_mutating(function: &str) -> bool {
    let starts = [
        "nvmlDeviceSet",
        "nvmlDeviceReset",
        "nvmlDeviceCreate",
        "nvmlGpuInstanceCreate",
        "nvmlGpuInstanceDestroy",
        "nvmlComputeInstanceDestroy",
    ];
    starts.iter().any(|start| function.starts_with(start))
}

thread_local! {
    /// What is to happen after the call that this thread is in.
    static AFTER: RefCell<Vec<What>> = const { RefCell::new(Vec::new()) };
}

/// Called on both sides of every exported function, in this order and on one thread. `Some`: return this
/// (for `Before`: do nothing else, and do not ask for `After`). May end the process.
pub fn check(store: &Store, function: &str, when: When) -> Option<Return> {
    let due = match when {
        When::Before => {
            let due = match store.with_faults(|faults| faults.count(function)) {
                Ok(due) => due.unwrap_or_default(),
                Err(error) => return Some(Return::from(&error)),
            };
            let after = due.iter().filter(|(when, _)| *when == When::After).map(|(_, what)| *what);
            AFTER.with_borrow_mut(|rest| *rest = after.collect());
            due.into_iter().filter(|(when, _)| *when == When::Before).map(|(_, what)| what).collect()
        }
        When::After => AFTER.with_borrow_mut(std::mem::take),
    };
    let mut answer = None;
    for what in due {
        match what {
            What::Error(code) => answer = answer.or(Some(code)),
            What::Lost(gpu) => {
                // Of a GPU that there is not, nothing is lost.
                let _lost = store.with_mut(|silicon| silicon.lose(gpu));
            }
            What::Reboot => {
                let _rebooted = store.with_mut(crate::silicon::Silicon::reboot);
                kill();
            }
            What::Kill => kill(),
        }
    }
    answer
}

/// Ends this process so that nothing of it runs on.
fn kill() {
    let _sent = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    // The signal is not blockable; if it was not sent, this at least unwinds nothing.
    std::process::abort();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Description;
    use crate::silicon::Device;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::{Command, ExitStatus};
    use tempfile::TempDir;

    const SET: &str = "nvmlDeviceSetPersistenceMode";
    const GET: &str = "nvmlDeviceGetPersistenceMode";
    const CHILD: &str = "ENTC_SIM_FAULTS_CHILD";

    fn boot(faults: &str) -> (TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        Description::of("575.57.08", &[("a100-80gb-pcie", 2)]).write(folder.path()).unwrap();
        std::fs::write(folder.path().join(FILE), faults).unwrap();
        let store = Store::open(folder.path()).unwrap();
        (folder, store)
    }

    /// A call as the library makes it.
    fn call(store: &Store, function: &str) -> Result<(), Return> {
        check(store, function, When::Before).map_or(Ok(()), Err)?;
        let is_on = function == SET;
        if is_on {
            store.with_mut(|s| s.set_persistence_mode(Device::Gpu(0), true)).unwrap()?;
        }
        check(store, function, When::After).map_or(Ok(()), Err)
    }

    fn is_on(store: &Store) -> bool {
        store.with(|s| s.persistence_mode(Device::Gpu(0))).unwrap().unwrap()
    }

    #[test]
    fn an_error_comes_at_its_occurrence_and_once() {
        let (folder, store) = boot(
            r#"[{ "call": "mutating", "occurrence": 2, "when": "before", "what": { "error": "in-use" } },
                { "call": "nvmlDeviceSetPersistenceMode", "occurrence": 4, "when": "after", "what": { "error": "timeout" } }]"#,
        );
        let other = Store::open(folder.path()).unwrap();
        let mut seen = Vec::new();
        for (store, function) in
            [(&store, SET), (&other, GET), (&other, SET), (&store, SET), (&other, SET), (&store, SET)]
        {
            seen.push(call(store, function));
        }
        let (in_use, timeout) = (Err(Return::InUse), Err(Return::Timeout));
        assert_eq!(seen, [Ok(()), Ok(()), in_use, Ok(()), timeout, Ok(())]);
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        let counts: Vec<u64> = Faults::parse(&text).unwrap().0.iter().map(|f| f.seen).collect();
        assert_eq!(counts, [2, 4]);
    }

    #[test]
    fn before_has_no_effect_and_after_has() {
        for (when, expected) in [("before", false), ("after", true)] {
            let fault = r#"[{ "call": "*", "when": "WHEN", "what": { "error": "unknown" } }]"#;
            let (_folder, store) = boot(&fault.replace("WHEN", when));
            assert_eq!(call(&store, "entcSimReboot"), Ok(()), "only NVML's own functions");
            assert_eq!(call(&store, SET), Err(Return::Unknown));
            assert_eq!(is_on(&store), expected);
            assert_eq!(call(&store, SET), Ok(()));
        }
    }

    #[test]
    fn a_gpu_is_lost_in_the_middle() {
        let (_folder, store) =
            boot(r#"[{ "call": "*", "occurrence": 2, "when": "before", "what": { "lost": 0 } }]"#);
        assert_eq!(call(&store, SET), Ok(()));
        assert_eq!(call(&store, SET), Err(Return::GpuIsLost));
        assert!(store.with(|s| s.uuid(Device::Gpu(1)).is_ok()).unwrap());
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let refused = |text: &str| Faults::parse(text).unwrap_err().to_string();
        assert!(refused("[{").contains("line 1"));
        assert!(refused(r#"[{"call":"*","when":"during","what":"kill"}]"#).contains("during"));
        assert!(refused(r#"[{"call":"*","when":"after","what":{"error":"oops"}}]"#).contains("oops"));
        assert!(refused(r#"[{"call":"all","when":"after","what":"kill"}]"#).contains("`all`"));
        assert!(
            refused(r#"[{"call":"*","occurrence":0,"when":"after","what":"kill"}]"#).contains("at least 1")
        );
        let (folder, store) = boot("[]");
        std::fs::write(folder.path().join(FILE), "{}").unwrap();
        assert!(Store::open(folder.path()).is_err());
        assert_eq!(check(&store, GET, When::Before), Some(Return::DriverNotLoaded));
        std::fs::remove_file(folder.path().join(FILE)).unwrap();
        assert_eq!(check(&store, GET, When::Before), None);
    }

    /// Runs one call in a process of its own: this test, with the folder in its environment.
    fn call_in_child(folder: &Path) -> ExitStatus {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "faults::tests::a_process_is_killed_around_a_call"]);
        child.env(CHILD, folder).stdout(std::process::Stdio::null()).status().unwrap()
    }

    #[test]
    fn a_process_is_killed_around_a_call() {
        if let Some(folder) = std::env::var_os(CHILD) {
            let store = Store::open(Path::new(&folder)).unwrap();
            call(&store, SET).unwrap();
            return;
        }
        for (when, what, expected, boots) in [
            ("before", "kill", false, 1),
            ("after", "kill", true, 1),
            ("before", "reboot", false, 2),
            ("after", "reboot", false, 2),
        ] {
            let fault = format!(r#"[{{ "call": "mutating", "when": "{when}", "what": "{what}" }}]"#);
            let (folder, store) = boot(&fault);
            assert_eq!(call_in_child(folder.path()).signal(), Some(9), "{when} {what}");
            assert_eq!(
                (is_on(&store), store.with(|s| s.boot()).unwrap()),
                (expected, boots),
                "{when} {what}"
            );
            assert!(call_in_child(folder.path()).success(), "it happens once");
            assert!(is_on(&store));
        }
    }
}
