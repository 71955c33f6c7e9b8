//! Facts about a machine → what stands in the way of entc there, each with its fix.
//!
//! [`collect`] looks, [`examine`] judges: the second is a function of the facts alone. Looking changes
//! nothing and needs no rights; with rights more is seen (other people's processes).

use crate::driver::{Driver, Rights};
use crate::error::{DeviceError, OpenError};
use crate::holders::{self, KernelModule, Process};
use crate::observed::{Observed, ObservedGpu};
use crate::preflight::drivers;

pub use crate::preflight::drivers::{is_older, least_for_mig as least_driver};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Nothing stands in the way.
    Ok,
    /// Something to know before `entc apply`.
    Warning,
    /// `entc apply` will be refused or fail.
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What: `library`, `rights`, `mig mode of gpu 0`.
    pub name: String,
    /// How it came out.
    pub verdict: Verdict,
    /// What was found, one line.
    pub message: String,
    /// What to do about it; `None` when there is nothing to do.
    pub fix: Option<String>,
}

/// All that is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// What the driver answered.
    pub machine: Machine,
    /// The NVIDIA driver's kernel modules.
    pub modules: Vec<KernelModule>,
    /// Daemons that are known to hold GPUs, now running.
    pub daemons: Vec<Process>,
}

/// What the driver answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Machine {
    /// There was no driver to ask.
    NoDriver(OpenError),
    /// It could not be read.
    NotReadable {
        /// The library that answered.
        library: String,
        /// Why not.
        error: DeviceError,
    },
    /// What it is, and what this process may change.
    Readable(Box<Observed>, Rights),
}

/// What stops a daemon from holding GPUs, and that it may go on afterwards.
const DAEMONS: [(&str, &str); 5] = [
    ("nv-hostengine", "systemctl stop nvidia-dcgm"),
    ("dcgm-exporter", "stop dcgm-exporter (its container or service)"),
    ("nvsm", "systemctl stop nvsm"),
    ("Xorg", "stop the display manager: systemctl isolate multi-user.target"),
    ("gnome-shell", "stop the display manager: systemctl isolate multi-user.target"),
];

/// Looks at the machine of a driver, or at the machine without one.
#[must_use]
pub fn collect(driver: Result<&Driver, &OpenError>) -> Facts {
    let machine = match driver {
        Err(error) => Machine::NoDriver(error.clone()),
        Ok(driver) => match driver.observe() {
            Ok(observed) => Machine::Readable(Box::new(observed), driver.rights()),
            Err(error) => Machine::NotReadable { library: driver.library_name().to_owned(), error },
        },
    };
    // A simulated machine has neither; the host's own would be about other GPUs.
    if driver.is_ok_and(Driver::is_simulated) {
        return Facts { machine, modules: Vec::new(), daemons: Vec::new() };
    }
    let names: Vec<&str> =
        DAEMONS.iter().map(|(name, _)| *name).chain([holders::PERSISTENCE_DAEMON]).collect();
    Facts { machine, modules: holders::kernel_modules(), daemons: holders::running(&names) }
}

/// Judges the facts, in the order in which one would mend them.
#[must_use]
pub fn examine(facts: &Facts) -> Vec<Check> {
    match &facts.machine {
        Machine::NoDriver(error) => vec![library_check(error)],
        Machine::NotReadable { library, error } => vec![
            ok("library", format!("`{library}` answers")),
            Check {
                name: "machine".to_owned(),
                verdict: Verdict::Problem,
                message: format!("it cannot be read: {error} (in {})", error.call),
                fix: Some("look at the kernel's log: dmesg | grep -i nvrm".to_owned()),
            },
        ],
        Machine::Readable(observed, rights) => {
            let kind = if observed.is_simulated { "entc's simulated library" } else { "NVML" };
            let mut checks = vec![
                ok(
                    "library",
                    format!("`{}` answers: {kind}, driver {}", observed.library, observed.driver_version),
                ),
                rights_check(observed, *rights),
            ];
            checks.extend(gpus_checks(observed));
            for gpu in &observed.gpus {
                checks.extend(gpu_checks(gpu, observed));
            }
            checks.extend(daemon_checks(&facts.daemons));
            checks.extend(module_checks(&facts.modules));
            checks
        }
    }
}

fn ok(name: impl Into<String>, message: impl Into<String>) -> Check {
    Check { name: name.into(), verdict: Verdict::Ok, message: message.into(), fix: None }
}

fn library_check(error: &OpenError) -> Check {
    let fix = match error {
        OpenError::NoLibrary(_) => {
            "install the NVIDIA driver, or try entc without a GPU: --nvml simulated".to_owned()
        }
        OpenError::NotLoadable { .. } => {
            "name the driver's own libnvidia-ml.so.1 with --nvml PATH, or use --nvml simulated".to_owned()
        }
        OpenError::NoDriver { .. } => {
            "load the driver (modprobe nvidia); after an update of the driver, reboot".to_owned()
        }
        OpenError::NoSimulatedMachine(folder) => {
            format!("describe a machine in {}", folder.join("machine.toml").display())
        }
    };
    Check {
        name: "library".to_owned(),
        verdict: Verdict::Problem,
        message: error.to_string(),
        fix: Some(fix),
    }
}

fn rights_check(observed: &Observed, rights: Rights) -> Check {
    let lacks: Vec<&str> = [
        (rights.modes, "turn modes on and off"),
        (rights.instances, "create and destroy instances"),
        (rights.clocks, "lock clocks and set power limits"),
    ]
    .into_iter()
    .filter_map(|(may, what)| (!may).then_some(what))
    .collect();
    if lacks.is_empty() {
        return ok("rights", "this process may change everything that a plan needs");
    }
    let fix = if observed.is_simulated {
        "set `privileged = true` in the machine's machine.toml".to_owned()
    } else if rights.instances {
        "run entc apply as root; observing and planning need no rights".to_owned()
    } else {
        "run entc apply as root, or with CAP_SYS_ADMIN; instances alone need only read access to \
         /proc/driver/nvidia/capabilities/mig/config"
            .to_owned()
    };
    let message = format!("this process may not {}", lacks.join(", nor "));
    Check { name: "rights".to_owned(), verdict: Verdict::Problem, message, fix: Some(fix) }
}

fn gpus_checks(observed: &Observed) -> Vec<Check> {
    let mut checks = Vec::new();
    if observed.gpus.is_empty() && observed.unreadable.is_empty() {
        checks.push(Check {
            name: "gpus".to_owned(),
            verdict: Verdict::Problem,
            message: "the driver sees no GPU".to_owned(),
            fix: Some("see whether the machine does: lspci -d 10de:".to_owned()),
        });
    }
    for gpu in &observed.unreadable {
        checks.push(Check {
            name: format!("gpu {}", gpu.index),
            verdict: Verdict::Problem,
            message: gpu.reason.clone(),
            fix: Some("reboot; if it stays away, look at the kernel's log: dmesg | grep -i xid".to_owned()),
        });
    }
    checks
}

fn gpu_checks(gpu: &ObservedGpu, observed: &Observed) -> Vec<Check> {
    vec![
        board_check(gpu),
        driver_check(gpu, observed),
        mode_check(gpu),
        instances_check(gpu),
        holders_check(gpu),
        persistence_check(gpu),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn board_check(gpu: &ObservedGpu) -> Option<Check> {
    let name = format!("board of gpu {}", gpu.index);
    Some(match &gpu.board {
        Some(board) => ok(name, format!("{} is {board}", gpu.name)),
        None => Check {
            name,
            verdict: Verdict::Warning,
            message: format!("{} ({}) is not in the catalogue", gpu.name, gpu.pci_device_id),
            fix: Some(
                "describe the board in the program; the driver's own menu is used on the machine".to_owned(),
            ),
        },
    })
}

fn driver_check(gpu: &ObservedGpu, observed: &Observed) -> Option<Check> {
    let least = gpu.board.as_deref().and_then(drivers::least_for_mig)?;
    let name = format!("driver for gpu {}", gpu.index);
    let version = &observed.driver_version;
    if drivers::is_older(version, least) {
        return Some(Check {
            name,
            verdict: Verdict::Problem,
            message: format!("driver {version} is too old for MIG on this board, which needs {least}"),
            fix: Some(format!("install driver {least} or later")),
        });
    }
    Some(ok(name, format!("driver {version}; MIG needs {least}")))
}

fn mode_check(gpu: &ObservedGpu) -> Option<Check> {
    let name = format!("mig mode of gpu {}", gpu.index);
    let on = |is_on: bool| if is_on { "on" } else { "off" };
    Some(match gpu.mig {
        None => Check {
            name,
            verdict: Verdict::Warning,
            message: "this GPU has no MIG mode; it can only serve whole".to_owned(),
            fix: None,
        },
        Some(mode) if mode.is_pending() => Check {
            name,
            verdict: Verdict::Problem,
            message: format!(
                "{} now, and {} after the next reset or reboot",
                on(mode.current),
                on(mode.pending)
            ),
            fix: Some(format!(
                "let go of the GPU and reset it: nvidia-smi --gpu-reset -i {0}; or take the request back: \
                 nvidia-smi -i {0} -mig {1}",
                gpu.index,
                u8::from(mode.current)
            )),
        },
        Some(mode) => ok(name, on(mode.current)),
    })
}

fn instances_check(gpu: &ObservedGpu) -> Option<Check> {
    let name = format!("instances of gpu {}", gpu.index);
    if !gpu.unplaced.is_empty() {
        return Some(Check {
            name,
            verdict: Verdict::Warning,
            message: format!("{} that this process may not look at", counted(gpu.unplaced.len())),
            fix: Some("run entc as root to see where they sit".to_owned()),
        });
    }
    let empty = gpu.instances.iter().filter(|instance| instance.compute_instances.is_empty());
    let empty: Vec<String> = empty.map(|i| format!("{} at slice {}", i.profile, i.start)).collect();
    if !empty.is_empty() {
        return Some(Check {
            name,
            verdict: Verdict::Warning,
            message: format!("without a compute instance, so that nobody can use it: {}", empty.join(", ")),
            fix: Some("remove what nobody needs: nvidia-smi mig -dgi, or entc import to adopt it".to_owned()),
        });
    }
    gpu.mig.filter(|mode| mode.current).map(|_| ok(name, counted(gpu.instances.len())))
}

fn counted(n_instances: usize) -> String {
    if n_instances == 1 { "1 instance".to_owned() } else { format!("{n_instances} instances") }
}

fn holders_check(gpu: &ObservedGpu) -> Option<Check> {
    let name = format!("holders of gpu {}", gpu.index);
    if gpu.holders.is_empty() {
        return Some(ok(name, "nobody has it open"));
    }
    let shown: Vec<String> = gpu
        .holders
        .iter()
        .map(|holder| {
            let what = holder.name.as_deref().unwrap_or("a process");
            match holder.gpu_instance_id {
                Some(id) => format!("{what} (pid {}) on GPU instance {id}", holder.pid),
                None => format!("{what} (pid {})", holder.pid),
            }
        })
        .collect();
    Some(Check {
        name,
        verdict: Verdict::Warning,
        message: format!("open by {}", shown.join(", ")),
        fix: Some("stop them before a change of MIG mode, or of the instance they are on".to_owned()),
    })
}

fn persistence_check(gpu: &ObservedGpu) -> Option<Check> {
    let name = format!("persistence mode of gpu {}", gpu.index);
    Some(if gpu.is_persistent? {
        ok(name, "on")
    } else {
        Check {
            name,
            verdict: Verdict::Warning,
            message: "off: locked clocks are lost when the last program lets go of the GPU".to_owned(),
            fix: Some(format!("turn it on: nvidia-smi -i {} -pm 1; entc apply does so itself", gpu.index)),
        }
    })
}

fn daemon_checks(daemons: &[Process]) -> Vec<Check> {
    let check = |process: &Process| {
        let name = process.name.clone();
        if name == holders::PERSISTENCE_DAEMON {
            return ok(name, format!("runs (pid {}); it lets go of a GPU that is reset", process.pid));
        }
        let stop = DAEMONS.iter().find(|(known, _)| name.starts_with(known)).map(|(_, stop)| *stop);
        Check {
            message: format!("runs (pid {}); it holds GPUs and blocks changes of MIG mode", process.pid),
            verdict: Verdict::Warning,
            fix: stop.map(|stop| format!("before a change of MIG mode: {stop}")),
            name,
        }
    };
    daemons.iter().map(check).collect()
}

fn module_checks(modules: &[KernelModule]) -> Vec<Check> {
    let holding = |module: &&KernelModule| {
        ["nvidia_drm", "nvidia_modeset", "nvidia_uvm"].contains(&module.name.as_str()) && module.n_uses > 0
    };
    let check = |module: &KernelModule| {
        let by = if module.used_by.is_empty() {
            String::new()
        } else {
            format!(" ({})", module.used_by.join(", "))
        };
        // The compute programs themselves use nvidia_uvm: only the others keep a GPU from being reset.
        let is_display = module.name != "nvidia_uvm";
        Check {
            name: format!("kernel module {}", module.name),
            verdict: if is_display { Verdict::Warning } else { Verdict::Ok },
            message: format!("in use {} times{by}", module.n_uses),
            fix: is_display.then(|| "stop what displays on the GPU before a change of MIG mode".to_owned()),
        }
    };
    modules.iter().filter(holding).map(check).collect()
}
