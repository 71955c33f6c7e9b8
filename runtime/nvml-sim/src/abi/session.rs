//! Begin and end, the system's versions, and words for return codes.

use super::boundary::{Pointer, Room, Words, export_plain, exports};
use super::process::{Answer, initialise, look, shut_down};
use crate::returns::Return;
use nvml_wrapper_sys::bindings::NVML_INIT_FLAG_NO_GPUS;
use std::ffi::{CStr, c_int, c_uint};

/// First driver branch of each CUDA version.
// CUDA Toolkit Release Notes, table "CUDA Toolkit and Corresponding Driver Versions".
const CUDA: &[(u32, c_int)] = &[
    (450, 11000),
    (455, 11010),
    (460, 11020),
    (465, 11030),
    (470, 11040),
    (495, 11050),
    (510, 11060),
    (515, 11070),
    (520, 11080),
    (525, 12000),
    (530, 12010),
    (535, 12020),
    (545, 12030),
    (550, 12040),
    (555, 12050),
    (560, 12060),
    (565, 12070),
    (570, 12080),
    (575, 12090),
    (580, 13000),
];

fn cuda_version(driver_version: &str) -> Answer<c_int> {
    let branch: u32 =
        driver_version.split('.').next().and_then(|b| b.parse().ok()).ok_or(Return::NotSupported)?;
    let known = CUDA.iter().rev().find(|(first, _)| *first <= branch);
    known.map(|(_, version)| *version).ok_or(Return::NotSupported)
}

exports! {
    fn nvmlInit() { initialise(false) }

    fn nvmlInit_v2() { initialise(false) }

    fn nvmlInitWithFlags(flags: c_uint) { initialise(flags & NVML_INIT_FLAG_NO_GPUS != 0) }

    fn nvmlShutdown() { shut_down() }

    fn nvmlSystemGetDriverVersion(version: Room, length: c_uint) {
        version.set(length, &look(|machine| Ok(machine.driver_version().to_owned()))?)
    }

    // The version of NVML is that of CUDA's first part, then the driver's: 12.575.57.08.
    fn nvmlSystemGetNVMLVersion(version: Room, length: c_uint) {
        let driver = super::process::machine()?
            .with(|machine| machine.driver_version().to_owned())
            .map_err(|error| Return::from(&error))?;
        version.set(length, &format!("{}.{driver}", cuda_version(&driver)? / 1000))
    }

    fn nvmlSystemGetCudaDriverVersion(version: Pointer<c_int>) {
        version.set(look(|machine| cuda_version(machine.driver_version()))?)
    }

    fn nvmlSystemGetCudaDriverVersion_v2(version: Pointer<c_int>) {
        version.set(look(|machine| cuda_version(machine.driver_version()))?)
    }

    fn nvmlSystemGetProcessName(pid: c_uint, name: Room, length: c_uint) {
        name.set(length, &look(|machine| machine.process_name(pid))?)
    }
}

export_plain! {
    fn nvmlErrorString(result: c_uint) -> Words {
        Words::new(words(result))
    }
}

fn words(code: c_uint) -> &'static CStr {
    match code {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        4 => c"Insufficient Permissions",
        5 => c"Already Initialized",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        8 => c"Insufficient External Power",
        9 => c"Driver Not Loaded",
        10 => c"Timeout",
        11 => c"Interrupt Request Issue",
        12 => c"NVML Shared Library Not Found",
        13 => c"Function Not Found",
        14 => c"Corrupted infoROM",
        15 => c"GPU is lost",
        16 => c"GPU requires reset",
        17 => c"GPU access blocked by the operating system",
        18 => c"Driver/library version mismatch",
        19 => c"In use by another client",
        20 => c"Insufficient Memory",
        21 => c"No data",
        22 => c"Operation not supported with ECC",
        23 => c"Insufficient Resources",
        24 => c"Requested frequency not supported",
        25 => c"Argument version mismatch",
        26 => c"Deprecated function",
        27 => c"System not ready",
        28 => c"No GPUs found",
        29 => c"Resource not in correct state",
        30 => c"Reset type not supported",
        _ => c"Unknown Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cuda_version_follows_the_driver_branch() {
        assert_eq!(cuda_version("575.57.08"), Ok(12090));
        assert_eq!(cuda_version("525.85.12"), Ok(12000));
        assert_eq!(cuda_version("540.1"), Ok(12020));
        assert!(cuda_version("390.1").is_err());
        assert!(cuda_version("").is_err());
    }
}
