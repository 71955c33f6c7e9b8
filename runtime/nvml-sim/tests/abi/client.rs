//! A client of one simulated machine: nvml-wrapper for what it wraps, raw C for the rest.

#![expect(unsafe_code, reason = "the library is C")]

use ent_nvml_sim::description::Description;
use ent_nvml_sim::machine::SimulatedMachine;
use libloading::{Library, Symbol};
use nvml_wrapper::Nvml;
use nvml_wrapper_sys::bindings::{
    NvmlLib, nvmlComputeInstance_t, nvmlComputeInstanceInfo_t, nvmlComputeInstancePlacement_t,
    nvmlComputeInstanceProfileInfo_v2_t, nvmlDevice_t, nvmlGpuInstance_t, nvmlGpuInstanceInfo_t,
    nvmlGpuInstancePlacement_t, nvmlGpuInstanceProfileInfo_t, nvmlGpuInstanceProfileInfo_v2_t,
};
use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr::null_mut;

pub(crate) const SUCCESS: u32 = 0;
pub(crate) const UNINITIALIZED: u32 = 1;
pub(crate) const INVALID_ARGUMENT: u32 = 2;
pub(crate) const NOT_SUPPORTED: u32 = 3;
pub(crate) const NO_PERMISSION: u32 = 4;
pub(crate) const NOT_FOUND: u32 = 6;
pub(crate) const INSUFFICIENT_SIZE: u32 = 7;
pub(crate) const DRIVER_NOT_LOADED: u32 = 9;
pub(crate) const IN_USE: u32 = 19;
pub(crate) const INSUFFICIENT_RESOURCES: u32 = 23;
pub(crate) const VERSION_MISMATCH: u32 = 25;
pub(crate) const INVALID_STATE: u32 = 29;

/// Tells a library which machine's folder to use.
pub(crate) fn use_folder(library: &Path, folder: &Path) -> u32 {
    let folder = CString::new(folder.to_str().unwrap()).unwrap();
    let library = unsafe { Library::new(library) }.unwrap();
    let function: Symbol<'_, unsafe extern "C" fn(*const c_char) -> u32> =
        unsafe { library.get(b"entcSimUse") }.unwrap();
    let code = unsafe { function(folder.as_ptr()) };
    // Unloading it would forget the folder.
    std::mem::forget(library);
    code
}

/// A machine with a client that has initialised NVML.
pub(crate) struct Client {
    pub(crate) nvml: Nvml,
    pub(crate) library: Library,
    pub(crate) machine: SimulatedMachine,
}

/// An answer: the return code when it is not success.
pub(crate) type Answer<T> = Result<T, u32>;

fn answer<T>(code: u32, value: T) -> Answer<T> {
    if code == SUCCESS { Ok(value) } else { Err(code) }
}

/// Calls a raw function with a handle and room for one result.
macro_rules! one {
    ($lib:expr, $function:ident($($argument:expr),*) -> $value:expr) => {{
        let mut value = $value;
        let function = $lib.$function.as_ref().unwrap();
        let code = unsafe { function($($argument,)* &mut value) };
        answer(code, value)
    }};
}

impl Client {
    /// Boots a machine and initialises NVML in it.
    pub(crate) fn of(description: &Description) -> Self {
        let machine = SimulatedMachine::new(description).unwrap();
        assert_eq!(use_folder(&machine.library(), machine.state()), SUCCESS);
        let nvml = Nvml::builder().lib_path(machine.library().as_os_str()).init().unwrap();
        let library = unsafe { Library::new(machine.library()) }.unwrap();
        Self { nvml, library, machine }
    }

    /// One board, MIG mode on.
    pub(crate) fn with_mig(board: &str) -> Self {
        let mut description = Description::of("575.57.08", &[(board, 1)]);
        description.gpu[0].mig = true;
        Self::of(&description)
    }

    pub(crate) fn lib(&self) -> &NvmlLib {
        self.nvml.lib()
    }

    /// The raw handle of a GPU.
    pub(crate) fn gpu(&self, index: u32) -> nvmlDevice_t {
        unsafe { self.nvml.device_by_index(index).unwrap().handle() }
    }

    /// A function by its name, for what the bindings lack. `F` is its C signature.
    pub(crate) fn function<F: Copy>(&self, name: &str) -> F {
        let symbol: Symbol<'_, F> = unsafe { self.library.get(name.as_bytes()) }.unwrap();
        *symbol
    }

    /// `entcSim…` with a device and a process.
    pub(crate) fn attach(&self, uuid: &str, pid: u32, name: &str) -> u32 {
        let (uuid, name) = (CString::new(uuid).unwrap(), CString::new(name).unwrap());
        let attach =
            self.function::<unsafe extern "C" fn(*const c_char, u32, *const c_char) -> u32>("entcSimAttach");
        unsafe { attach(uuid.as_ptr(), pid, name.as_ptr()) }
    }

    /// Takes the process off again.
    pub(crate) fn detach(&self, uuid: &str, pid: u32) -> u32 {
        let uuid = CString::new(uuid).unwrap();
        let detach = self.function::<unsafe extern "C" fn(*const c_char, u32) -> u32>("entcSimDetach");
        unsafe { detach(uuid.as_ptr(), pid) }
    }

    /// `entcSimLoad` or `entcSimSpend`.
    pub(crate) fn draw(&self, function: &str, uuid: &str, pid: u32, amount: f64) -> u32 {
        let uuid = CString::new(uuid).unwrap();
        let draw = self.function::<unsafe extern "C" fn(*const c_char, u32, f64) -> u32>(function);
        unsafe { draw(uuid.as_ptr(), pid, amount) }
    }

    pub(crate) fn profile(&self, gpu: nvmlDevice_t, profile: u32) -> Answer<nvmlGpuInstanceProfileInfo_t> {
        let blank = unsafe { std::mem::zeroed() };
        one!(self.lib(), nvmlDeviceGetGpuInstanceProfileInfo(gpu, profile) -> blank)
    }

    /// With the version field as given.
    pub(crate) fn profile_v(
        &self,
        gpu: nvmlDevice_t,
        profile: u32,
        version: u32,
    ) -> Answer<nvmlGpuInstanceProfileInfo_v2_t> {
        let mut blank: nvmlGpuInstanceProfileInfo_v2_t = unsafe { std::mem::zeroed() };
        blank.version = version;
        one!(self.lib(), nvmlDeviceGetGpuInstanceProfileInfoV(gpu, profile) -> blank)
    }

    pub(crate) fn remaining(&self, gpu: nvmlDevice_t, profile_id: u32) -> Answer<u32> {
        one!(self.lib(), nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, profile_id) -> 0)
    }

    /// Asks for the count first, as nvml.h says.
    pub(crate) fn placements(&self, gpu: nvmlDevice_t, profile_id: u32) -> Answer<Vec<(u32, u32)>> {
        let function = self.lib().nvmlDeviceGetGpuInstancePossiblePlacements_v2.as_ref().unwrap();
        let mut n = 0;
        answer(unsafe { function(gpu, profile_id, null_mut(), &mut n) }, ())?;
        let mut places = vec![nvmlGpuInstancePlacement_t { start: 0, size: 0 }; n as usize];
        answer(unsafe { function(gpu, profile_id, places.as_mut_ptr(), &mut n) }, ())?;
        assert_eq!(places.len(), n as usize);
        Ok(places.iter().map(|p| (p.start, p.size)).collect())
    }

    pub(crate) fn create(&self, gpu: nvmlDevice_t, profile_id: u32) -> Answer<nvmlGpuInstance_t> {
        one!(self.lib(), nvmlDeviceCreateGpuInstance(gpu, profile_id) -> null_mut())
    }

    pub(crate) fn create_at(
        &self,
        gpu: nvmlDevice_t,
        profile_id: u32,
        (start, size): (u32, u32),
    ) -> Answer<nvmlGpuInstance_t> {
        let placement = nvmlGpuInstancePlacement_t { start, size };
        one!(self.lib(), nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profile_id, &placement) -> null_mut())
    }

    pub(crate) fn gpu_instances(&self, gpu: nvmlDevice_t, profile_id: u32) -> Answer<Vec<nvmlGpuInstance_t>> {
        let function = self.lib().nvmlDeviceGetGpuInstances.as_ref().unwrap();
        let mut instances = vec![null_mut(); 16];
        let mut n = 0;
        answer(unsafe { function(gpu, profile_id, instances.as_mut_ptr(), &mut n) }, ())?;
        instances.truncate(n as usize);
        Ok(instances)
    }

    pub(crate) fn gpu_instance_by_id(&self, gpu: nvmlDevice_t, id: u32) -> Answer<nvmlGpuInstance_t> {
        one!(self.lib(), nvmlDeviceGetGpuInstanceById(gpu, id) -> null_mut())
    }

    pub(crate) fn info(&self, instance: nvmlGpuInstance_t) -> Answer<nvmlGpuInstanceInfo_t> {
        let blank = unsafe { std::mem::zeroed() };
        one!(self.lib(), nvmlGpuInstanceGetInfo(instance) -> blank)
    }

    pub(crate) fn destroy(&self, instance: nvmlGpuInstance_t) -> Answer<()> {
        let destroy = self.lib().nvmlGpuInstanceDestroy.as_ref().unwrap();
        answer(unsafe { destroy(instance) }, ())
    }

    pub(crate) fn compute_profile(
        &self,
        instance: nvmlGpuInstance_t,
        profile: u32,
        version: u32,
    ) -> Answer<nvmlComputeInstanceProfileInfo_v2_t> {
        let mut blank: nvmlComputeInstanceProfileInfo_v2_t = unsafe { std::mem::zeroed() };
        blank.version = version;
        one!(self.lib(), nvmlGpuInstanceGetComputeInstanceProfileInfoV(instance, profile, 0) -> blank)
    }

    pub(crate) fn compute_remaining(&self, instance: nvmlGpuInstance_t, profile_id: u32) -> Answer<u32> {
        one!(self.lib(), nvmlGpuInstanceGetComputeInstanceRemainingCapacity(instance, profile_id) -> 0)
    }

    pub(crate) fn compute_placements(
        &self,
        instance: nvmlGpuInstance_t,
        profile_id: u32,
    ) -> Answer<Vec<(u32, u32)>> {
        let function = self.lib().nvmlGpuInstanceGetComputeInstancePossiblePlacements.as_ref().unwrap();
        let mut n = 0;
        answer(unsafe { function(instance, profile_id, null_mut(), &mut n) }, ())?;
        let mut places = vec![nvmlComputeInstancePlacement_t { start: 0, size: 0 }; n as usize];
        answer(unsafe { function(instance, profile_id, places.as_mut_ptr(), &mut n) }, ())?;
        Ok(places.iter().map(|p| (p.start, p.size)).collect())
    }

    pub(crate) fn create_compute(
        &self,
        instance: nvmlGpuInstance_t,
        profile_id: u32,
    ) -> Answer<nvmlComputeInstance_t> {
        one!(self.lib(), nvmlGpuInstanceCreateComputeInstance(instance, profile_id) -> null_mut())
    }

    pub(crate) fn create_compute_at(
        &self,
        instance: nvmlGpuInstance_t,
        profile_id: u32,
        (start, size): (u32, u32),
    ) -> Answer<nvmlComputeInstance_t> {
        let placement = nvmlComputeInstancePlacement_t { start, size };
        let lib = self.lib();
        one!(lib, nvmlGpuInstanceCreateComputeInstanceWithPlacement(instance, profile_id, &placement) -> null_mut())
    }

    pub(crate) fn compute_instances(
        &self,
        instance: nvmlGpuInstance_t,
        profile_id: u32,
    ) -> Answer<Vec<nvmlComputeInstance_t>> {
        let function = self.lib().nvmlGpuInstanceGetComputeInstances.as_ref().unwrap();
        let mut instances = vec![null_mut(); 16];
        let mut n = 0;
        answer(unsafe { function(instance, profile_id, instances.as_mut_ptr(), &mut n) }, ())?;
        instances.truncate(n as usize);
        Ok(instances)
    }

    pub(crate) fn compute_instance_by_id(
        &self,
        instance: nvmlGpuInstance_t,
        id: u32,
    ) -> Answer<nvmlComputeInstance_t> {
        one!(self.lib(), nvmlGpuInstanceGetComputeInstanceById(instance, id) -> null_mut())
    }

    pub(crate) fn compute_info(&self, instance: nvmlComputeInstance_t) -> Answer<nvmlComputeInstanceInfo_t> {
        let blank = unsafe { std::mem::zeroed() };
        one!(self.lib(), nvmlComputeInstanceGetInfo_v2(instance) -> blank)
    }

    pub(crate) fn destroy_compute(&self, instance: nvmlComputeInstance_t) -> Answer<()> {
        let destroy = self.lib().nvmlComputeInstanceDestroy.as_ref().unwrap();
        answer(unsafe { destroy(instance) }, ())
    }
}

/// Loads a library without calling it.
pub(crate) fn library(path: &Path) -> Library {
    unsafe { Library::new(path) }.unwrap()
}

/// Whether it exports a function.
pub(crate) fn has(library: &Library, name: &str) -> bool {
    unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_ok()
}
