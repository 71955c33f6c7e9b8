//! One step → the machine changed by it, and read back.
//!
//! Each step first looks whether it is already done, because after a crash nobody knows. An instance that is
//! there before it is created is somebody else's: a resumed transaction finds its steps anew. Devices are
//! opened by UUID for each step, and again after a change of mode: it may reset the GPU, and handles and
//! minor numbers die with that. Ids of profiles are those of this GPU.

use super::observe::{gpu_instances, mig_devices, mig_mode, observed_instance};
use super::profiles::{self, Entry};
use super::raw::{Answer, Extent, GpuInstance, GpuInstanceInfo, RawDevice, Refused, kind_of, wrapped};
use super::{Driver, refusal};
use crate::changes::{Operation, Step};
use crate::error::{DeviceError, DeviceErrorKind};
use crate::observed::ObservedInstance;
use ent_plan::device::Board;
use nvml_wrapper::Device;
use nvml_wrapper::enums::device::GpuLockedClocksSetting;

/// Why a step did not come about: what the driver said, and what else there is to say.
struct Failure {
    refused: Refused,
    /// What became of it, when the operation alone does not tell.
    note: Option<String>,
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self { refused, note: None }
    }
}

/// A call that reported success and did not do it.
fn not_verified(call: &'static str) -> Failure {
    Refused { call, kind: DeviceErrorKind::NotVerified }.into()
}

pub(super) fn step(driver: &Driver, step: &Step) -> Result<(), DeviceError> {
    let done = match &step.operation {
        Operation::SetMigMode { enabled, .. } => set_mig_mode(driver, step, *enabled),
        Operation::SetPersistence { enabled } => set_persistence(driver, step, *enabled),
        Operation::DestroyInstance { profile, start, .. } => destroy(driver, step, profile, *start),
        Operation::CreateInstance { profile, start, size } => {
            create(driver, step, profile, Extent { start: *start, size: *size })
        }
        Operation::LockClocks { min, max } => lock_clocks(driver, step, *min, *max),
        Operation::UnlockClocks => unlock_clocks(driver, step),
        Operation::SetPowerLimit { milliwatts } => set_power_limit(driver, step, *milliwatts),
    };
    done.map_err(|failure| {
        let operation = match failure.note {
            Some(note) => format!("{} ({note})", step.operation),
            None => step.operation.to_string(),
        };
        refusal(Some(&step.gpu), operation, failure.refused)
    })
}

/// Opens the GPU of a step anew.
fn open<'a>(driver: &'a Driver, step: &Step) -> Answer<Device<'a>> {
    wrapped("nvmlDeviceGetHandleByUUID", driver.nvml.device_by_uuid(step.gpu.0.as_str()))
}

/// What is needed to work on the instances of a GPU.
struct Instances<'a> {
    device: Device<'a>,
    raw: RawDevice<'a>,
    board: Option<&'a Board>,
    menu: Vec<Entry>,
}

impl<'a> Instances<'a> {
    fn of(driver: &'a Driver, step: &Step) -> Answer<Self> {
        let device = open(driver, step)?;
        let raw = RawDevice::of(&driver.nvml, &device);
        let pci = wrapped("nvmlDeviceGetPciInfo_v3", device.pci_info())?;
        let board = driver.board(&format!("0x{:08X}", pci.pci_device_id));
        let menu = profiles::menu(&raw, board)?;
        Ok(Self { device, raw, board, menu })
    }

    /// The instance of a profile at a place, and its handle. The id decides, or, where the driver names
    /// no such profile, its name among what is there.
    fn at(&self, profile: &str, start: u32) -> Answer<Option<(GpuInstanceInfo, GpuInstance<'a>)>> {
        let id = profiles::resolve(&self.menu, self.board, profile).map(|entry| entry.profile.id);
        let by_id = profile.strip_prefix("id ").and_then(|id| id.parse().ok());
        let all = gpu_instances(&self.raw, &self.menu)?;
        let is_it =
            |info: &GpuInstanceInfo| info.placement.start == start && id.or(by_id) == Some(info.profile_id);
        Ok(all.into_iter().find(|(info, _)| is_it(info)))
    }

    /// The same with what it holds.
    fn observed_at(&self, profile: &str, start: u32) -> Answer<Option<ObservedInstance>> {
        let Some((info, instance)) = self.at(profile, start)? else { return Ok(None) };
        let mig_devices = mig_devices(&self.device)?;
        observed_instance(info, &instance, &self.menu, &mig_devices).map(Some)
    }
}

/// Turns MIG mode on or off. What stays pending is taken back: a request that is left behind would come
/// true at the next reset or reboot, when nobody expects it.
fn set_mig_mode(driver: &Driver, step: &Step, enabled: bool) -> Result<(), Failure> {
    const CALL: &str = "nvmlDeviceSetMigMode";
    let device = open(driver, step)?;
    let absent = Refused { call: "nvmlDeviceGetMigMode", kind: DeviceErrorKind::NotSupported };
    let before = mig_mode(&device)?.ok_or(absent)?;
    if before.current == enabled && !before.is_pending() {
        return Ok(());
    }
    let status = wrapped(CALL, device.set_mig_mode(enabled))?;
    let device = open(driver, step)?;
    let after = mig_mode(&device)?.ok_or(absent)?;
    if status == 0 && after.current == enabled && !after.is_pending() {
        return Ok(());
    }
    // The status says why the mode is only pending (nvml.h, `nvmlDeviceSetMigMode`); some drivers report
    // success and leave it pending all the same.
    let kind = match status {
        0 if after.is_pending() => DeviceErrorKind::ResetRequired,
        0 => DeviceErrorKind::NotVerified,
        code => kind_of(code),
    };
    let note = if after.is_pending() { Some(take_back(driver, step, after.current)) } else { None };
    Err(Failure { refused: Refused { call: CALL, kind }, note })
}

/// Asks for the mode that the GPU already has, and says how that went.
fn take_back(driver: &Driver, step: &Step, mode: bool) -> String {
    let device = match open(driver, step) {
        Ok(device) => device,
        Err(refused) => return format!("the request stays pending: {}", refused.kind.words()),
    };
    let asked = wrapped("nvmlDeviceSetMigMode", device.set_mig_mode(mode));
    let now = open(driver, step).and_then(|device| mig_mode(&device));
    match (asked, now) {
        (_, Ok(Some(now))) if !now.is_pending() => "the request was taken back".to_owned(),
        (Err(refused), _) => format!("the request stays pending: {}", refused.kind.words()),
        _ => "the request stays pending".to_owned(),
    }
}

fn set_persistence(driver: &Driver, step: &Step, enabled: bool) -> Result<(), Failure> {
    const CALL: &str = "nvmlDeviceSetPersistenceMode";
    let mut device = open(driver, step)?;
    let is_on = |device: &Device<'_>| wrapped("nvmlDeviceGetPersistenceMode", device.is_in_persistent_mode());
    if is_on(&device)? == enabled {
        return Ok(());
    }
    wrapped(CALL, device.set_persistent(enabled))?;
    if is_on(&device)? == enabled { Ok(()) } else { Err(not_verified(CALL)) }
}

/// Destroys the compute instances of a GPU instance, then itself.
fn destroy(driver: &Driver, step: &Step, profile: &str, start: u32) -> Result<(), Failure> {
    let on = Instances::of(driver, step)?;
    let Some((_, instance)) = on.at(profile, start)? else { return Ok(()) };
    let mut n_destroyed = 0;
    let emptied = empty(&instance, &mut n_destroyed);
    emptied.and_then(|()| instance.destroy()).map_err(|refused| {
        let note = match n_destroyed {
            0 => None,
            1 => Some("it is left without a compute instance that was destroyed".to_owned()),
            n => Some(format!("it is left without {n} compute instances that were destroyed")),
        };
        Failure { refused, note }
    })?;
    match on.at(profile, start)? {
        None => Ok(()),
        Some(_) => Err(not_verified("nvmlGpuInstanceDestroy")),
    }
}

/// Destroys the compute instances of a GPU instance, and counts them.
fn empty(instance: &GpuInstance<'_>, n_destroyed: &mut usize) -> Answer<()> {
    for offered in profiles::compute_menu(instance)? {
        let listed = match instance.compute_instances(offered.id) {
            Err(refused) if refused.kind == DeviceErrorKind::NotSupported => continue,
            answer => answer?,
        };
        for compute in listed {
            compute.destroy()?;
            *n_destroyed += 1;
        }
    }
    Ok(())
}

/// Creates a GPU instance at its place with a compute instance as wide as itself. Where the GPU instance
/// is there, only what it lacks. A GPU instance that was made here and could not be filled is destroyed
/// again: without a compute instance nobody can use it, and it takes the room of one that could be.
fn create(driver: &Driver, step: &Step, profile: &str, at: Extent) -> Result<(), Failure> {
    let on = Instances::of(driver, step)?;
    let Some(entry) = profiles::resolve(&on.menu, on.board, profile) else {
        let refused =
            Refused { call: "nvmlDeviceGetGpuInstanceProfileInfo", kind: DeviceErrorKind::NotFound };
        return Err(Failure { refused, note: Some(unknown_profile(profile, &on.menu)) });
    };
    match on.observed_at(profile, at.start)? {
        // What is there now was not when the steps were found, or they would not create it.
        Some(there) if there.mig_device().is_some() => {
            let call = "nvmlDeviceGetGpuInstances";
            return Err(Refused { call, kind: DeviceErrorKind::AlreadyThere }.into());
        }
        Some(_) => {
            // It is there and not whole: what it lacks is made, or the driver says why it cannot be.
            if let Some((_, instance)) = on.at(profile, at.start)? {
                fill(&instance)?;
            }
        }
        None => {
            let instance = on.raw.create_gpu_instance(entry.profile.id, at)?;
            if let Err(refused) = fill(&instance) {
                let note = match instance.destroy() {
                    Ok(()) => "its compute instance could not be made; the GPU instance was removed again"
                        .to_owned(),
                    Err(left) => format!(
                        "its compute instance could not be made, and the GPU instance is left without one: {}",
                        left.kind.words()
                    ),
                };
                return Err(Failure { refused, note: Some(note) });
            }
        }
    }
    match on.observed_at(profile, at.start)? {
        Some(made) if made.size == at.size && made.mig_device().is_some() => Ok(()),
        Some(_) => Err(not_verified("nvmlGpuInstanceCreateComputeInstance")),
        None => Err(not_verified("nvmlDeviceCreateGpuInstanceWithPlacement")),
    }
}

/// Makes the compute instance that is as wide as its GPU instance.
fn fill(instance: &GpuInstance<'_>) -> Answer<()> {
    let call = "nvmlGpuInstanceGetComputeInstanceProfileInfo";
    let offered = profiles::compute_menu(instance)?;
    let whole = profiles::whole(&offered).ok_or(Refused { call, kind: DeviceErrorKind::NotSupported })?;
    instance.create_compute_instance(whole.id)
}

fn unknown_profile(profile: &str, menu: &[Entry]) -> String {
    if menu.is_empty() {
        return format!("the driver offers no profiles on this GPU, so no `{profile}`; is MIG mode on?");
    }
    let names: Vec<&str> = menu.iter().map(|entry| entry.name.as_str()).collect();
    format!("the driver knows no `{profile}` on this GPU, but {}", names.join(", "))
}

fn lock_clocks(driver: &Driver, step: &Step, min: u32, max: u32) -> Result<(), Failure> {
    let mut device = open(driver, step)?;
    let range = GpuLockedClocksSetting::Numeric { min_clock_mhz: min, max_clock_mhz: max };
    Ok(wrapped("nvmlDeviceSetGpuLockedClocks", device.set_gpu_locked_clocks(range))?)
}

fn unlock_clocks(driver: &Driver, step: &Step) -> Result<(), Failure> {
    let mut device = open(driver, step)?;
    Ok(wrapped("nvmlDeviceResetGpuLockedClocks", device.reset_gpu_locked_clocks())?)
}

fn set_power_limit(driver: &Driver, step: &Step, milliwatts: u32) -> Result<(), Failure> {
    const CALL: &str = "nvmlDeviceSetPowerManagementLimit";
    let mut device = open(driver, step)?;
    let limit =
        |device: &Device<'_>| wrapped("nvmlDeviceGetPowerManagementLimit", device.power_management_limit());
    if limit(&device)? == milliwatts {
        return Ok(());
    }
    wrapped(CALL, device.set_power_management_limit(milliwatts))?;
    if limit(&device)? == milliwatts { Ok(()) } else { Err(not_verified(CALL)) }
}
