//! A folder with two specs and a simulated machine of its own, and `entc` talking to it.

use crate::run::{SPEC, told};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A simulated machine with two A100 boards, made by the first command that plans for it.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

/// Plans at once, always the same.
pub(crate) const QUICK: [&str; 4] = ["--planner", "greedy", "--latency-rule", "execution"];

impl Bench {
    /// A machine that does not exist yet, and two specs for it: `a.ent` and the busier `b.ent`.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.ent"), SPEC).unwrap();
        std::fs::write(folder.path().join("b.ent"), SPEC.replace("400 req/s", "1500 req/s")).unwrap();
        Self { folder }
    }

    /// With a machine, and `a.json`, the plan of `a.ent` for it.
    pub(crate) fn planned() -> Self {
        let bench = Self::new();
        bench.plan("a");
        bench
    }

    /// With `a.json` applied.
    pub(crate) fn applied() -> Self {
        let bench = Self::planned();
        let (code, _, err) = bench.entc(&["apply", "a.json", "--allow-reset"]);
        assert_eq!(code, 0, "{err}");
        bench
    }

    /// Plans `NAME.ent` into `NAME.json`, for the machine as it is.
    pub(crate) fn plan(&self, name: &str) {
        let (spec, plan) = (format!("{name}.ent"), format!("{name}.json"));
        let (code, _, err) = self.entc(&[&["plan", &spec, "-o", &plan], &QUICK[..]].concat());
        assert_eq!(code, 0, "{err}");
    }

    /// The working folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the simulated machine.
    pub(crate) fn sim(&self) -> PathBuf {
        self.path().join("sim")
    }

    /// The folder of entc's state and journal.
    pub(crate) fn state(&self) -> PathBuf {
        self.sim().join("entc")
    }

    /// The command, not yet run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = crate::run::entc(self.path(), arguments);
        // The library that was built with this very test.
        let libraries = Path::new(env!("CARGO_BIN_EXE_entc")).parent().unwrap().join("deps");
        command.env("ENTC_NVML", "simulated").env("ENTC_LIBDIR", libraries).env("ENTC_SIM_STATE", self.sim());
        command
    }

    /// Exit code, standard output, standard error.
    pub(crate) fn entc(&self, arguments: &[&str]) -> (i32, String, String) {
        told(&self.command(arguments).output().unwrap())
    }

    /// The JSON that a command prints, and its exit code.
    pub(crate) fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let (code, out, err) = self.entc(&[arguments, &["--format", "json"]].concat());
        let value = serde_json::from_str(&out);
        assert!(value.is_ok(), "{arguments:?}: {out}\n{err}");
        (code, value.unwrap())
    }

    /// The lines of JSON that a command prints, and its exit code.
    pub(crate) fn events(&self, arguments: &[&str]) -> (i32, Vec<Value>) {
        let (code, out, _) = self.entc(&[arguments, &["--format", "json-lines"]].concat());
        (code, out.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    /// What the machine is: mode, clock and instances of each GPU, without what changes by itself.
    pub(crate) fn machine(&self) -> Vec<(Value, Value, Vec<String>)> {
        let (code, seen) = self.json(&["observe"]);
        assert_eq!(code, 0);
        let place = |i: &Value| format!("{}@{}", i["profile"].as_str().unwrap(), i["start"]);
        let gpu = |gpu: &Value| {
            let instances = gpu["instances"].as_array().unwrap().iter().map(place).collect();
            (gpu["mig"].clone(), gpu["sm_clock_mhz"].clone(), instances)
        };
        seen["observed"]["gpus"].as_array().unwrap().iter().map(gpu).collect()
    }

    /// Tells the simulated machine what is to go wrong.
    pub(crate) fn fault(&self, call: &str, occurrence: u32, when: &str, what: Value) {
        let fault =
            serde_json::json!([{ "call": call, "occurrence": occurrence, "when": when, "what": what }]);
        std::fs::write(self.sim().join("faults.json"), fault.to_string()).unwrap();
    }

    /// Lets everything go right again.
    pub(crate) fn no_faults(&self) {
        std::fs::remove_file(self.sim().join("faults.json")).unwrap();
    }

    /// Turns the machine off and on.
    pub(crate) fn reboot(&self) {
        self.store().with_mut(ent_nvml_sim::silicon::Silicon::reboot).unwrap();
    }

    /// The simulated machine itself, past NVML.
    pub(crate) fn store(&self) -> ent_nvml_sim::store::Store {
        ent_nvml_sim::store::Store::open(&self.sim()).unwrap()
    }
}
