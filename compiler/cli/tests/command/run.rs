//! Running `entc` in a folder of its own, and looking at what it did.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// `entc` with arguments, in a folder, without the surroundings of the person who runs the tests.
pub(crate) fn entc(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entc"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    for name in [
        "NO_COLOR",
        "CLICOLOR_FORCE",
        "ENTC_COLOR",
        "ENTC_TIME_LIMIT",
        "ENTC_NVML",
        "ENTC_SIM_STATE",
        "ENTC_STATE",
        "ENTC_NODE",
        "ENTC_LIBDIR",
        "XDG_STATE_HOME",
        "ENT_DATA",
        "COLUMNS",
        "LC_ALL",
    ] {
        command.env_remove(name);
    }
    command.env("LANG", "C.UTF-8");
    // Tests of what serves say so; all others change machines only.
    command.env("ENTC_NO_SERVE", "true");
    command
}

/// Runs to the end.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Output {
    entc(folder, arguments).output().unwrap()
}

/// Exit code, standard output, standard error.
pub(crate) fn told(output: &Output) -> (i32, String, String) {
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8(output.stdout.clone()).unwrap(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    )
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A small spec without a fault.
pub(crate) const SPEC: &str = r#"import "catalog:nvidia/a100-80gb-pcie"
import "catalog:performance/a100-80gb-pcie"

service classify {
  model   = resnet50
  rate    = 400 req/s
  latency = p99 <= 100 ms
}

model resnet50 {
  performance = a100_80gb_pcie.resnet50
}

hardware {
  node "box" {
    gpu    = a100_80gb_pcie x 2
    unused = off
  }
}

objective {
  minimize energy
}
"#;
