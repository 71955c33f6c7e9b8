//! `machine.toml`: what machine is simulated.
//!
//! ```toml
//! driver_version = "575.57.08"
//! privileged = true            # whether callers may change things
//! seed = 7                     # UUIDs, serials and sensor noise follow from it
//! persistenced = false         # whether persistence mode is turned on at every boot
//!
//! [sensor]                     # without it power is read as it is
//! window_ms = 100              # a reading is the mean of the last whole window
//! noise_w = 2.0                # and off by at most this much
//!
//! [[gpu]]
//! board = "a100-80gb-pcie"     # a board of the catalogue
//! count = 2
//! mig = true                   # MIG mode at first boot
//! vm = false                   # passed through to a VM: no reset, mode changes wait for a reboot
//! idle_power_w = 50            # for boards whose base power nobody captured
//! instances = [{ profile = "1g.10gb", start = 6 }]
//! processes = [{ name = "nv-hostengine", pid = 4242 }]
//! ```

use ent_plan::device::{board, board_ids};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The name of the file.
pub const FILE: &str = "machine.toml";

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The driver's version.
    pub driver_version: String,
    /// Whether callers may change things (root).
    #[serde(default = "yes")]
    pub privileged: bool,
    /// What UUIDs, serials and noise follow from.
    #[serde(default)]
    pub seed: u64,
    /// Whether a persistence daemon turns persistence mode on at every boot.
    #[serde(default)]
    pub persistenced: bool,
    /// The power sensor; `None`: power is read as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensor: Option<Sensor>,
    /// Its GPUs, in the order of their indices.
    pub gpu: Vec<DescribedGpu>,
}

/// How a board measures its power.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sensor {
    /// A reading is the mean power of the last whole window of this many milliseconds. 0: as it is.
    #[serde(default)]
    pub window_ms: u32,
    /// A reading is off by at most this much (W), the same for all readings of a window.
    #[serde(default)]
    pub noise_w: f64,
}

/// Some equal GPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribedGpu {
    /// A board of the catalogue.
    pub board: String,
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
    /// MIG mode at first boot.
    #[serde(default)]
    pub mig: bool,
    /// Passed through to a virtual machine: it cannot be reset, and on Ampere a change of MIG mode waits
    /// for a reboot.
    #[serde(default)]
    pub vm: bool,
    /// What it draws when nothing runs (W), for boards whose base power nobody captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_power_w: Option<f64>,
    /// Its UUID, `GPU-…`; only for one GPU. Else one follows from the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// GPU instances that somebody made before the first look. They do not survive a reboot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<DescribedInstance>,
    /// Processes that hold it open from the first boot until a reboot. They need not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<DescribedProcess>,
}

/// A GPU instance at first boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribedInstance {
    /// Its profile, `1g.10gb`.
    pub profile: String,
    /// Its first memory slice; `None`: as the driver places it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u32>,
    /// Whether it has a compute instance as wide as itself.
    #[serde(default = "yes")]
    pub compute: bool,
}

/// A process at first boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribedProcess {
    /// Its name.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// Which of `instances` it sits on, by index; `None`: the whole GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<usize>,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

/// Why a folder holds no machine that could be simulated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// There is no such file.
    #[error("there is no machine in `{}`: it has no {FILE}", .0.display())]
    Missing(PathBuf),
    /// The file cannot be read or written.
    #[error("cannot {operation} `{}`", path.display())]
    File {
        /// `read` or `write`.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not TOML, or not these keys.
    #[error("{FILE}, line {line}: {message}")]
    Malformed {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// The catalogue has no such board.
    #[error("{FILE}: `{board}` is no board of the catalogue; it has {known}")]
    UnknownBoard {
        /// As written.
        board: String,
        /// The boards there are.
        known: String,
    },
    /// Some value cannot be.
    #[error("{FILE}: {0}")]
    Impossible(String),
}

impl Description {
    /// A privileged machine with these boards and counts, and nothing special about it.
    #[must_use]
    pub fn of(driver_version: &str, boards: &[(&str, u32)]) -> Self {
        let gpu = |(board, count): &(&str, u32)| DescribedGpu {
            board: (*board).to_owned(),
            count: *count,
            ..DescribedGpu::default()
        };
        Self {
            driver_version: driver_version.to_owned(),
            privileged: true,
            seed: 0,
            persistenced: false,
            sensor: None,
            gpu: boards.iter().map(gpu).collect(),
        }
    }

    /// Reads the machine of a folder.
    ///
    /// # Errors
    /// When there is none, or it is none that could be.
    pub fn read(folder: &Path) -> Result<Self, DescriptionError> {
        let path = folder.join(FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(DescriptionError::Missing(folder.to_owned()))
            }
            Err(source) => Err(DescriptionError::File { operation: "read", path, source }),
        }
    }

    /// Reads a machine from the text of its file.
    ///
    /// # Errors
    /// When it is not TOML, has other keys, or describes what cannot be.
    pub fn parse(text: &str) -> Result<Self, DescriptionError> {
        let description: Self = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
            DescriptionError::Malformed {
                line: before.matches('\n').count() + 1,
                message: error.message().replace('\n', " "),
            }
        })?;
        description.check()?;
        Ok(description)
    }

    /// Puts the machine into a folder, which is made if need be. A state that is already there is of
    /// another machine unless the boards are the same.
    ///
    /// # Errors
    /// When the machine cannot be, or the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), DescriptionError> {
        self.check()?;
        let path = folder.join(FILE);
        let text = toml::to_string(self).map_err(|e| DescriptionError::Impossible(e.to_string()))?;
        let new = folder.join(format!("{FILE}.{}", std::process::id()));
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&new, text))
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(|source| DescriptionError::File { operation: "write", path, source })
    }

    /// What the types cannot say. Whether instances fit is seen at first boot, by the same rules as later.
    fn check(&self) -> Result<(), DescriptionError> {
        let impossible = |text: String| Err(DescriptionError::Impossible(text));
        let is_version = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !self.driver_version.split('.').all(is_version) || self.driver_version.len() > 64 {
            return impossible(format!(
                "`{}` is no driver version, such as `575.57.08`",
                self.driver_version
            ));
        }
        if self.gpu.is_empty() {
            return impossible("no `[[gpu]]`: a machine has at least one".to_owned());
        }
        if self.sensor.is_some_and(|s| !s.noise_w.is_finite() || s.noise_w < 0.0) {
            return impossible("`noise_w` is at least 0".to_owned());
        }
        let mut uuids = std::collections::BTreeSet::new();
        let mut n_gpus = 0_u64;
        for gpu in &self.gpu {
            let Some(known) = board(&gpu.board) else {
                let known = board_ids().collect::<Vec<_>>().join(", ");
                return Err(DescriptionError::UnknownBoard { board: gpu.board.clone(), known });
            };
            n_gpus += u64::from(gpu.count);
            if gpu.count == 0 || n_gpus > 4096 {
                return impossible("`count` is at least 1, and a machine has at most 4096 GPUs".to_owned());
            }
            if gpu.idle_power_w.is_some_and(|w| !w.is_finite() || w < 0.0) {
                return impossible("`idle_power_w` is at least 0".to_owned());
            }
            if let Some(uuid) = &gpu.uuid {
                let is_uuid = uuid.starts_with("GPU-") && (5..80).contains(&uuid.len()) && uuid.is_ascii();
                if !is_uuid || gpu.count != 1 || !uuids.insert(uuid) {
                    return impossible(format!("`{uuid}`: a UUID is `GPU-…`, of one GPU and used once"));
                }
            }
            for instance in &gpu.instances {
                if known.profile(&instance.profile).is_none() {
                    return impossible(format!("`{}` has no profile `{}`", gpu.board, instance.profile));
                }
            }
            if !gpu.instances.is_empty() && !gpu.mig {
                return impossible("`instances` need `mig = true`".to_owned());
            }
            for process in &gpu.processes {
                let has_compute = |index: usize| gpu.instances.get(index).is_some_and(|i| i.compute);
                if process.instance.is_some_and(|index| !has_compute(index)) {
                    return impossible(format!("`{}` sits on no compute instance", process.name));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"
driver_version = "575.57.08"
privileged = false
seed = 7
persistenced = true
sensor = { window_ms = 100, noise_w = 2.0 }

[[gpu]]
board = "a100-80gb-pcie"
count = 2
mig = true
instances = [{ profile = "1g.10gb", start = 6 }, { profile = "3g.40gb", compute = false }]
processes = [{ name = "python", pid = 12, instance = 0 }]

[[gpu]]
board = "h100-nvl-94gb"
vm = true
uuid = "GPU-1"
idle_power_w = 61.6
"#;

    #[test]
    fn a_description_is_read_written_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let description = Description::parse(FULL).unwrap();
        assert_eq!(description.gpu[1].count, 1);
        assert!(description.gpu[0].instances[0].compute && !description.gpu[0].instances[1].compute);
        description.write(&folder.path().join("deep/er")).unwrap();
        assert_eq!(Description::read(&folder.path().join("deep/er")).unwrap(), description);
        let plain = Description::of("550.90.07", &[("h200-141gb", 8)]);
        plain.write(folder.path()).unwrap();
        assert_eq!(Description::read(folder.path()).unwrap(), plain);
    }

    #[test]
    fn a_folder_without_a_machine_says_so() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Description::read(folder.path()), Err(DescriptionError::Missing(_))));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = Description::parse("driver_version = \"1\"\n\nprivleged = true\n").unwrap_err();
        let DescriptionError::Malformed { line, message } = &error else { panic!("{error}") };
        assert_eq!(*line, 3);
        assert!(message.contains("privleged"), "{message}");
        assert!(matches!(Description::parse("= 3"), Err(DescriptionError::Malformed { line: 1, .. })));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let with = |from: &str, to: &str| {
            assert!(FULL.contains(from), "{from}");
            Description::parse(&FULL.replace(from, to)).unwrap_err().to_string()
        };
        assert!(with("h100-nvl-94gb", "h100").contains("a100-40gb, "));
        assert!(with("575.57.08", "new").contains("driver version"));
        assert!(with("count = 2", "count = 0").contains("at least 1"));
        assert!(with("count = 2", "count = 5000").contains("4096"));
        assert!(with("GPU-1", "1").contains("UUID"));
        assert!(with("vm = true", "vm = true\ncount = 2").contains("UUID"));
        assert!(with("61.6", "-1").contains("idle_power_w"));
        assert!(with("noise_w = 2.0", "noise_w = nan").contains("noise_w"));
        assert!(with("3g.40gb", "3g.41gb").contains("3g.41gb"));
        assert!(with("mig = true", "mig = false").contains("mig = true"));
        assert!(with("instance = 0", "instance = 1").contains("python"));
    }
}
