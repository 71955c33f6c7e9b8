//! What no real driver has: `entcSim…`, by which entc and its tests make a simulated machine do things.
//!
//! All return NVML's codes, except `entcSimIsSimulated`. None of them needs `nvmlInit`.
//!
//! | function | what it does |
//! |---|---|
//! | `unsigned entcSimIsSimulated(void)` | 1; that it exists says that nothing here is real |
//! | `entcSimUse(const char *folder)` | the folder with `machine.toml`; before `nvmlInit` (else `INVALID_STATE`). Without it: `ENTC_SIM_STATE`, then `$XDG_STATE_HOME/entc/simulated`, then `~/.local/state/entc/simulated` |
//! | `entcSimBootId(char *id, unsigned length)` | a text that differs at each boot |
//! | `entcSimReboot(void)` | turns the machine off and on; who has NVML initialised must do so again |
//! | `entcSimAttach(const char *uuid, unsigned pid, const char *name)` | the process begins to use the device, as creating a CUDA context does |
//! | `entcSimDetach(const char *uuid, unsigned pid)` | it ends that |
//! | `entcSimLoad(const char *uuid, unsigned pid, double watts)` | from now on it draws this much beyond the base power; 0: it idles |
//! | `entcSimSpend(const char *uuid, unsigned pid, double joules)` | it drew this much, at once, beyond what its load says |
//!
//! A device is named by its UUID, `GPU-…` or `MIG-…`.

use super::boundary::{Room, Text, export_plain, exports};
use super::process::{Answer, machine, use_folder};
use crate::returns::Return;
use crate::silicon::{Device, Silicon};
use std::ffi::c_uint;
use std::path::PathBuf;

fn change<T>(request: impl FnOnce(&mut Silicon) -> Answer<T>) -> Answer<T> {
    machine()?.with_mut(request).map_err(|error| Return::from(&error))?
}

fn on(uuid: Text, request: impl FnOnce(&mut Silicon, Device) -> Answer<()>) -> Answer<()> {
    let uuid = uuid.get()?;
    change(|machine| {
        let device = machine.device_by_uuid(&uuid)?;
        request(machine, device)
    })
}

/// A number that can be drawn or spent.
fn amount(number: f64) -> Answer<f64> {
    if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(Return::InvalidArgument) }
}

export_plain! {
    fn entcSimIsSimulated() -> c_uint {
        1
    }
}

exports! {
    fn entcSimUse(folder: Text) { use_folder(PathBuf::from(folder.get()?)) }

    fn entcSimBootId(id: Room, length: c_uint) {
        id.set(length, &machine()?.with(Silicon::boot_id).map_err(|error| Return::from(&error))?)
    }

    fn entcSimReboot() {
        change(|machine| {
            machine.reboot();
            Ok(())
        })
    }

    fn entcSimAttach(uuid: Text, pid: c_uint, name: Text) {
        let name = name.get()?;
        on(uuid, |machine, device| machine.attach(device, pid, &name))
    }

    fn entcSimDetach(uuid: Text, pid: c_uint) { on(uuid, |machine, device| machine.detach(device, pid)) }

    fn entcSimLoad(uuid: Text, pid: c_uint, watts: f64) {
        let watts = amount(watts)?;
        on(uuid, |machine, device| machine.load(device, pid, watts))
    }

    fn entcSimSpend(uuid: Text, pid: c_uint, joules: f64) {
        let joules = amount(joules)?;
        on(uuid, |machine, device| machine.spend(device, pid, joules))
    }
}
