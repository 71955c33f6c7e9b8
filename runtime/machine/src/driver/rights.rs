//! What this process may change, asked without changing anything.
//!
//! The driver decides, so the driver is asked: listing possible placements needs the same right as
//! creating instances (nvml.h: privileged user) and changes nothing. Modes and clocks have no such
//! harmless call; for them the kernel's own test is repeated (`NV_IS_SUSER`, which is
//! `capable(CAP_SYS_ADMIN)`: NVIDIA open-gpu-kernel-modules, kernel-open/common/inc/nv-linux.h). On a
//! simulated machine one right is all rights.

use super::Driver;
use super::raw::RawDevice;
use crate::error::DeviceErrorKind;

/// Kinds of change, and whether this process may make them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Turning MIG mode and persistence mode on and off.
    pub modes: bool,
    /// Creating and destroying instances.
    pub instances: bool,
    /// Locking clocks and setting the power limit.
    pub clocks: bool,
}

/// capabilities(7): CAP_SYS_ADMIN is number 21.
const SYS_ADMIN: u64 = 1 << 21;

/// Reading it is the right to create instances, which root may hand on (MIG User Guide, "Device Nodes
/// and Capabilities").
const MIG_CONFIG: &str = "/proc/driver/nvidia/capabilities/mig/config";

pub(super) fn of(driver: &Driver) -> Rights {
    let asked = asked(driver);
    if driver.is_simulated() {
        let all = asked.unwrap_or(true);
        return Rights { modes: all, instances: all, clocks: all };
    }
    let admin = is_admin();
    let instances = asked.unwrap_or_else(|| admin || std::fs::File::open(MIG_CONFIG).is_ok());
    Rights { modes: admin, instances, clocks: admin }
}

/// What the driver says, if any GPU has a menu to ask about.
fn asked(driver: &Driver) -> Option<bool> {
    let n_gpus = driver.nvml.device_count().unwrap_or_default();
    for index in 0..n_gpus {
        let Ok(device) = driver.nvml.device_by_index(index) else { continue };
        let raw = RawDevice::of(&driver.nvml, &device);
        let Ok(menu) = super::profiles::menu(&raw, None) else { continue };
        for entry in menu {
            match raw.placements(entry.profile.id) {
                Ok(_) => return Some(true),
                Err(refused) if refused.kind == DeviceErrorKind::NoPermission => return Some(false),
                Err(_) => {}
            }
        }
    }
    None
}

/// Whether the kernel lets this process administrate the driver.
fn is_admin() -> bool {
    let status = procfs::process::Process::myself().and_then(|me| me.status());
    status.is_ok_and(|status| status.capeff & SYS_ADMIN != 0)
}
