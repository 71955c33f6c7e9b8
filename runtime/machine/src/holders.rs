//! Who is at work on this machine's GPUs, as /proc tells it: names of processes, open device files,
//! kernel modules.
//!
//! NVML lists the processes with a context on a GPU. What keeps a mode from changing is more: a daemon
//! that has the device file open without a context (DCGM, nvsm), and kernel modules (nvidia_drm). What may
//! not be read is left out: nothing here needs rights, and with rights more is seen.

use std::collections::BTreeMap;
use std::path::Path;

/// The daemon that keeps the driver loaded (persistence mode). It has every GPU open for good, and the
/// driver takes GPUs from it when they are reset; so it stands in nobody's way.
pub const PERSISTENCE_DAEMON: &str = "nvidia-persistenced";

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

/// A loaded kernel module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelModule {
    /// `nvidia_drm`.
    pub name: String,
    /// How much uses it now: programs and other modules.
    pub n_uses: u32,
    /// Modules that use it.
    pub used_by: Vec<String>,
}

/// The name of a process; `None` when it is gone or hidden.
#[must_use]
pub fn process_name(pid: u32) -> Option<String> {
    name_of(&procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?)
}

/// A process's name as its own: the kernel's, which is cut after 15 bytes (proc(5), `comm`), completed
/// from the command where it was cut.
fn name_of(process: &procfs::process::Process) -> Option<String> {
    let short = process.stat().ok()?.comm;
    let command = process.cmdline().unwrap_or_default();
    Some(full_name(&short, command.first().map(String::as_str)))
}

fn full_name(short: &str, command: Option<&str>) -> String {
    let file = command.and_then(|c| Path::new(c).file_name()).and_then(|f| f.to_str()).unwrap_or_default();
    if short.len() >= 15 && file.starts_with(short) { file.to_owned() } else { short.to_owned() }
}

/// Processes that have a GPU's device file open, by the file's minor number; this one left out.
#[must_use]
pub fn device_files() -> BTreeMap<u32, Vec<Process>> {
    let mut holders: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
    let me = std::process::id();
    let all = procfs::process::all_processes().into_iter().flatten().flatten();
    for process in all.filter(|process| u32::try_from(process.pid()) != Ok(me)) {
        let Ok(files) = process.fd() else { continue };
        let mut minors: Vec<u32> = files.flatten().filter_map(|file| minor_of(&file.target)).collect();
        minors.sort_unstable();
        minors.dedup();
        if minors.is_empty() {
            continue;
        }
        let Ok(pid) = u32::try_from(process.pid()) else { continue };
        let name = name_of(&process).unwrap_or_default();
        for minor in minors {
            holders.entry(minor).or_default().push(Process { pid, name: name.clone() });
        }
    }
    holders
}

/// `/dev/nvidia3` → 3. `/dev/nvidiactl` and `/dev/nvidia-uvm` are no GPU's.
fn minor_of(target: &procfs::process::FDTarget) -> Option<u32> {
    let procfs::process::FDTarget::Path(path) = target else { return None };
    path.to_str()?.strip_prefix("/dev/nvidia")?.parse().ok()
}

/// Running processes whose name is one of these or begins with one of these and a `-` or `_`.
#[must_use]
pub fn running(names: &[&str]) -> Vec<Process> {
    let all = procfs::process::all_processes().into_iter().flatten().flatten();
    let mut found: Vec<Process> = all
        .filter_map(|process| {
            Some(Process { pid: u32::try_from(process.pid()).ok()?, name: name_of(&process)? })
        })
        .filter(|process| names.iter().any(|name| is_called(&process.name, name)))
        .collect();
    found.sort();
    found
}

fn is_called(process: &str, name: &str) -> bool {
    process.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
}

/// The NVIDIA driver's loaded kernel modules, by name.
#[must_use]
pub fn kernel_modules() -> Vec<KernelModule> {
    let Ok(modules) = procfs::modules() else { return Vec::new() };
    let ours: BTreeMap<String, procfs::KernelModule> =
        modules.into_iter().filter(|(name, _)| name.starts_with("nvidia")).collect();
    ours.into_values()
        .map(|module| KernelModule {
            name: module.name,
            n_uses: u32::try_from(module.refcount).unwrap_or(0),
            used_by: module.used_by,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_the_kernel_cut_is_completed() {
        assert_eq!(full_name("nvidia-persiste", Some("/usr/bin/nvidia-persistenced")), "nvidia-persistenced");
        assert_eq!(full_name("python3", Some("/usr/bin/python3")), "python3");
        assert_eq!(full_name("worker-thread-1", Some("/usr/bin/server")), "worker-thread-1");
        assert_eq!(full_name("dcgm-exporter", None), "dcgm-exporter");
    }

    #[test]
    fn only_device_files_of_gpus_count() {
        let minor = |path: &str| minor_of(&procfs::process::FDTarget::Path(path.into()));
        assert_eq!(minor("/dev/nvidia3"), Some(3));
        assert_eq!(minor("/dev/nvidiactl"), None);
        assert_eq!(minor("/dev/nvidia-uvm"), None);
        assert_eq!(minor("/dev/null"), None);
    }

    #[test]
    fn families_of_daemons_are_found_by_their_first_word() {
        assert!(is_called("nvsm-core", "nvsm"));
        assert!(is_called("nvsm_core", "nvsm"));
        assert!(is_called("Xorg", "Xorg"));
        assert!(!is_called("Xorganizer", "Xorg"));
    }

    #[test]
    fn this_process_has_a_name() {
        assert!(process_name(std::process::id()).is_some_and(|name| !name.is_empty()));
        assert_eq!(process_name(u32::MAX), None);
    }
}
