//! NVML as C has it → Rust values: the calls that nvml-wrapper does not wrap, or wraps wrongly.
//!
//! The one file of this crate with `unsafe`. Every symbol is looked up before it is called, because the
//! methods of nvml-wrapper-sys panic when the installed driver lacks one. Handles of instances do not
//! leave the call sequence in which they were got: they die with the instance and with any reset. Sizes
//! of buffers are never taken from the driver alone.

#![expect(unsafe_code, reason = "NVML is a C library; these are its calls and nothing else")]

use crate::error::DeviceErrorKind;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings as c;
use std::ffi::{CStr, CString, OsStr, c_char, c_uint};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// A call that the driver refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// The C function.
    pub(super) call: &'static str,
    /// What kind of refusal.
    pub(super) kind: DeviceErrorKind,
}

/// What a call answers.
pub(super) type Answer<T> = Result<T, Refused>;

/// `NVML_ERROR_INVALID_ARGUMENT`: also how the driver says that an enum goes no further.
pub(super) const INVALID_ARGUMENT: DeviceErrorKind =
    DeviceErrorKind::Other(c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
/// `NVML_ERROR_INVALID_STATE`: what the simulated library says to a second machine in one process.
pub(super) const INVALID_STATE: DeviceErrorKind =
    DeviceErrorKind::Other(c::nvmlReturn_enum_NVML_ERROR_INVALID_STATE);
const VERSION_MISMATCH: DeviceErrorKind =
    DeviceErrorKind::Other(c::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
const INSUFFICIENT_SIZE: DeviceErrorKind =
    DeviceErrorKind::Other(c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE);

/// Room for instances in a list. More than any board has memory slices, and not the profile's own count:
/// NVML is known to report a wrong one on A30 (NVIDIA/mig-parted bd7160f, pkg/mig/discovery), and a
/// buffer that is too small would be written past its end.
const ROOM: usize = 64;

/// A return code of NVML in our words.
pub(super) fn kind_of(code: c_uint) -> DeviceErrorKind {
    match code {
        c::nvmlReturn_enum_NVML_ERROR_NO_PERMISSION => DeviceErrorKind::NoPermission,
        c::nvmlReturn_enum_NVML_ERROR_IN_USE => DeviceErrorKind::InUse,
        c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED => DeviceErrorKind::NotSupported,
        c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES => DeviceErrorKind::InsufficientResources,
        c::nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED => DeviceErrorKind::ResetRequired,
        c::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST => DeviceErrorKind::Lost,
        c::nvmlReturn_enum_NVML_ERROR_NOT_FOUND | c::nvmlReturn_enum_NVML_ERROR_GPU_NOT_FOUND => {
            DeviceErrorKind::NotFound
        }
        c::nvmlReturn_enum_NVML_ERROR_TIMEOUT => DeviceErrorKind::Timeout,
        c::nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND => DeviceErrorKind::MissingSymbol,
        other => DeviceErrorKind::Other(other),
    }
}

/// The answer of a call that nvml-wrapper makes.
pub(super) fn wrapped<T>(call: &'static str, answer: Result<T, NvmlError>) -> Answer<T> {
    answer.map_err(|error| {
        let is_missing = matches!(error, NvmlError::FailedToLoadSymbol(_));
        let kind = if is_missing { DeviceErrorKind::MissingSymbol } else { kind_of(error.into()) };
        Refused { call, kind }
    })
}

/// Looks a symbol up, calls it, and reads the return code.
fn ask<F: Copy>(
    call: &'static str,
    symbol: Result<&F, &libloading::Error>,
    invoke: impl FnOnce(F) -> c::nvmlReturn_t,
) -> Answer<()> {
    let Ok(function) = symbol else {
        return Err(Refused { call, kind: DeviceErrorKind::MissingSymbol });
    };
    match invoke(*function) {
        c::nvmlReturn_enum_NVML_SUCCESS => Ok(()),
        code => Err(Refused { call, kind: kind_of(code) }),
    }
}

/// A structure of plain C numbers, all zero.
fn zeroed<T: Plain>() -> T {
    // SAFETY: `Plain` is implemented for C structures of integers, arrays of them and pointers only,
    // for which all zero is a value.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// C structures for which all zero is a value.
trait Plain: Copy {}
impl Plain for c::nvmlGpuInstanceProfileInfo_t {}
impl Plain for c::nvmlGpuInstanceProfileInfo_v2_t {}
impl Plain for c::nvmlGpuInstanceProfileInfo_v3_t {}
impl Plain for c::nvmlComputeInstanceProfileInfo_t {}
impl Plain for c::nvmlGpuInstanceInfo_t {}
impl Plain for c::nvmlComputeInstanceInfo_t {}
impl Plain for c::nvmlGpuInstancePlacement_t {}

/// nvml.h, `NVML_STRUCT_VERSION`: the size of the structure, and its version in the top byte.
fn version_of<T>(number: c_uint) -> c_uint {
    c_uint::try_from(size_of::<T>()).unwrap_or_default() | (number << 24)
}

/// The text in a fixed C buffer, up to its end or the first zero.
fn text(buffer: &[c_char]) -> Option<String> {
    let bytes: Vec<u8> =
        buffer.iter().take_while(|char| **char != 0).map(|char| char.to_ne_bytes()[0]).collect();
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

/// One entry of the driver's menu of GPU instance profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Profile {
    /// What create, list and placement calls take.
    pub(super) id: u32,
    /// Compute slices.
    pub(super) n_slices: u32,
    /// At most this many on one GPU.
    pub(super) max_instances: u32,
    /// Streaming multiprocessors.
    pub(super) n_sms: u32,
    /// Memory (MiB).
    pub(super) memory_mib: u64,
    /// The driver's name for it, `MIG 1g.10gb`; the oldest form of the call tells none.
    pub(super) name: Option<String>,
}

/// One way to fill a GPU instance with compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ComputeProfile {
    /// What create and list calls take.
    pub(super) id: u32,
    /// Compute slices.
    pub(super) n_slices: u32,
    /// Streaming multiprocessors.
    pub(super) n_sms: u32,
    /// Copy, decode, encode, JPEG and optical flow engines that it shares in.
    pub(super) n_engines: u32,
}

/// Memory slices, or compute slices of a GPU instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// The first.
    pub(super) start: u32,
    /// How many.
    pub(super) size: u32,
}

/// What the driver says of a GPU instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GpuInstanceInfo {
    /// Its id.
    pub(super) id: u32,
    /// Its profile's id.
    pub(super) profile_id: u32,
    /// Its memory slices.
    pub(super) placement: Extent,
}

/// A GPU, or a MIG device, through its bare handle.
pub(super) struct RawDevice<'nvml> {
    lib: &'nvml c::NvmlLib,
    handle: c::nvmlDevice_t,
}

/// A GPU instance, while it lives.
pub(super) struct GpuInstance<'nvml> {
    lib: &'nvml c::NvmlLib,
    handle: c::nvmlGpuInstance_t,
}

/// A compute instance, while it lives.
pub(super) struct ComputeInstance<'nvml> {
    lib: &'nvml c::NvmlLib,
    handle: c::nvmlComputeInstance_t,
}

/// A profile from a structure of any form of the call: they are alike in these fields, and of different types.
macro_rules! profile {
    ($info:expr, $name:expr) => {
        Profile {
            id: $info.id,
            n_slices: $info.sliceCount,
            max_instances: $info.instanceCount,
            n_sms: $info.multiprocessorCount,
            memory_mib: $info.memorySizeMB,
            name: $name,
        }
    };
}

impl<'nvml> RawDevice<'nvml> {
    /// The bare handle of a device of this library.
    pub(super) fn of(nvml: &'nvml Nvml, device: &Device<'nvml>) -> Self {
        // SAFETY: the handle is used only here, only with the library it is from, which outlives it.
        Self { lib: nvml.lib(), handle: unsafe { device.handle() } }
    }

    /// Profile number `number` of `NVML_GPU_INSTANCE_PROFILE_*`. Another number than the profile's id.
    /// The newest form of the call that the driver knows answers. One that does not know a form says
    /// "version mismatch" or, older, "invalid argument" (nvml.h, `…ProfileInfoV`), so the last form
    /// decides whether the number itself is unknown.
    pub(super) fn profile(&self, number: u32) -> Answer<Profile> {
        let third = self.profile_v3(number);
        if !is_unknown_form(&third) {
            return third;
        }
        let second = self.profile_v2(number);
        if !is_unknown_form(&second) {
            return second;
        }
        let mut info: c::nvmlGpuInstanceProfileInfo_t = zeroed();
        ask(
            "nvmlDeviceGetGpuInstanceProfileInfo",
            self.lib.nvmlDeviceGetGpuInstanceProfileInfo.as_ref(),
            // SAFETY: a live handle, and a structure of the type that this form writes.
            |call| unsafe { call(self.handle, number, &raw mut info) },
        )?;
        Ok(profile!(info, None))
    }

    fn profile_v3(&self, number: u32) -> Answer<Profile> {
        let mut info: c::nvmlGpuInstanceProfileInfo_v3_t = zeroed();
        info.version = version_of::<c::nvmlGpuInstanceProfileInfo_v3_t>(3);
        ask(
            "nvmlDeviceGetGpuInstanceProfileInfoV",
            self.lib.nvmlDeviceGetGpuInstanceProfileInfoV.as_ref(),
            // SAFETY: a live handle; the call writes the structure that `version` names, not the one
            // in its C type (nvml.h: "`nvmlGpuInstanceProfileInfo_v2_t` or later").
            |call| unsafe { call(self.handle, number, (&raw mut info).cast()) },
        )?;
        Ok(profile!(info, text(&info.name)))
    }

    fn profile_v2(&self, number: u32) -> Answer<Profile> {
        let mut info: c::nvmlGpuInstanceProfileInfo_v2_t = zeroed();
        info.version = version_of::<c::nvmlGpuInstanceProfileInfo_v2_t>(2);
        ask(
            "nvmlDeviceGetGpuInstanceProfileInfoV",
            self.lib.nvmlDeviceGetGpuInstanceProfileInfoV.as_ref(),
            // SAFETY: a live handle, and a structure of the type that `version` names.
            |call| unsafe { call(self.handle, number, &raw mut info) },
        )?;
        Ok(profile!(info, text(&info.name)))
    }

    /// All legal placements of a profile, whatever is placed now. Needs rights. Asked raw, because
    /// nvml-wrapper 0.13.0 returns an empty list.
    pub(super) fn placements(&self, profile_id: u32) -> Answer<Vec<Extent>> {
        let call = "nvmlDeviceGetGpuInstancePossiblePlacements_v2";
        let symbol = || self.lib.nvmlDeviceGetGpuInstancePossiblePlacements_v2.as_ref();
        let mut count: c_uint = 0;
        // SAFETY: a live handle; without a buffer the call only counts.
        let counted = ask(call, symbol(), |call| unsafe {
            call(self.handle, profile_id, ptr::null_mut(), &raw mut count)
        });
        if let Err(refused) = counted
            && refused.kind != INSUFFICIENT_SIZE
        {
            return Err(refused);
        }
        // The list is fixed for a profile; the room to spare is for a driver that thinks otherwise.
        let room = (count as usize).max(ROOM) + ROOM;
        let mut placements: Vec<c::nvmlGpuInstancePlacement_t> = vec![zeroed(); room];
        let mut count = c_uint::try_from(room).unwrap_or(c_uint::MAX);
        // SAFETY: a live handle, a buffer of `count` entries, and `count` says so.
        ask(call, symbol(), |call| unsafe {
            call(self.handle, profile_id, placements.as_mut_ptr(), &raw mut count)
        })?;
        placements.truncate(count as usize);
        Ok(placements.iter().map(|p| Extent { start: p.start, size: p.size }).collect())
    }

    /// The GPU instances of a profile. Needs rights.
    pub(super) fn gpu_instances(&self, profile_id: u32) -> Answer<Vec<GpuInstance<'nvml>>> {
        let mut handles: [c::nvmlGpuInstance_t; ROOM] = [ptr::null_mut(); ROOM];
        let mut count = ROOM as c_uint;
        ask(
            "nvmlDeviceGetGpuInstances",
            self.lib.nvmlDeviceGetGpuInstances.as_ref(),
            // SAFETY: a live handle, and more room than any board has instances.
            |call| unsafe { call(self.handle, profile_id, handles.as_mut_ptr(), &raw mut count) },
        )?;
        let known = handles.iter().take(count as usize).filter(|handle| !handle.is_null());
        Ok(known.map(|handle| GpuInstance { lib: self.lib, handle: *handle }).collect())
    }

    /// Creates a GPU instance at a place. Needs rights.
    pub(super) fn create_gpu_instance(&self, profile_id: u32, at: Extent) -> Answer<GpuInstance<'nvml>> {
        let placement = c::nvmlGpuInstancePlacement_t { start: at.start, size: at.size };
        let mut handle: c::nvmlGpuInstance_t = ptr::null_mut();
        ask(
            "nvmlDeviceCreateGpuInstanceWithPlacement",
            self.lib.nvmlDeviceCreateGpuInstanceWithPlacement.as_ref(),
            // SAFETY: a live handle, a placement to read and a handle to write.
            |call| unsafe { call(self.handle, profile_id, &raw const placement, &raw mut handle) },
        )?;
        Ok(GpuInstance { lib: self.lib, handle })
    }

    /// The id of the GPU instance of a MIG device.
    pub(super) fn gpu_instance_id(&self) -> Answer<u32> {
        let mut id = 0;
        ask(
            "nvmlDeviceGetGpuInstanceId",
            self.lib.nvmlDeviceGetGpuInstanceId.as_ref(),
            // SAFETY: a live handle and a number to write.
            |call| unsafe { call(self.handle, &raw mut id) },
        )?;
        Ok(id)
    }

    /// The id of the compute instance of a MIG device, within its GPU instance.
    pub(super) fn compute_instance_id(&self) -> Answer<u32> {
        let mut id = 0;
        ask(
            "nvmlDeviceGetComputeInstanceId",
            self.lib.nvmlDeviceGetComputeInstanceId.as_ref(),
            // SAFETY: a live handle and a number to write.
            |call| unsafe { call(self.handle, &raw mut id) },
        )?;
        Ok(id)
    }

    /// SM clocks (MHz) that go with a memory clock (MHz), in the driver's order. Asked raw, because
    /// nvml-wrapper 0.13.0 fills what does not fit its first buffer with nothing.
    pub(super) fn supported_sm_clocks(&self, memory_clock_mhz: u32) -> Answer<Vec<u32>> {
        let mut clocks: Vec<c_uint> = vec![0; 256];
        loop {
            let mut count = c_uint::try_from(clocks.len()).unwrap_or(c_uint::MAX);
            let answer = ask(
                "nvmlDeviceGetSupportedGraphicsClocks",
                self.lib.nvmlDeviceGetSupportedGraphicsClocks.as_ref(),
                // SAFETY: a live handle, a buffer of `count` entries, and `count` says so.
                |call| unsafe { call(self.handle, memory_clock_mhz, &raw mut count, clocks.as_mut_ptr()) },
            );
            match answer {
                Err(refused) if refused.kind == INSUFFICIENT_SIZE && count as usize > clocks.len() => {
                    clocks.resize(count as usize, 0);
                }
                Err(refused) => return Err(refused),
                Ok(()) => {
                    clocks.truncate(count as usize);
                    return Ok(clocks);
                }
            }
        }
    }
}

/// Whether the driver does not know this form of a call (or the number asked for: the next form tells).
fn is_unknown_form<T>(answer: &Answer<T>) -> bool {
    let kind = answer.as_ref().err().map(|refused| refused.kind);
    [Some(INVALID_ARGUMENT), Some(VERSION_MISMATCH), Some(DeviceErrorKind::MissingSymbol)].contains(&kind)
}

impl<'nvml> GpuInstance<'nvml> {
    /// What it is and where.
    pub(super) fn info(&self) -> Answer<GpuInstanceInfo> {
        let mut info: c::nvmlGpuInstanceInfo_t = zeroed();
        ask(
            "nvmlGpuInstanceGetInfo",
            self.lib.nvmlGpuInstanceGetInfo.as_ref(),
            // SAFETY: a handle got in this call sequence, and a structure to write.
            |call| unsafe { call(self.handle, &raw mut info) },
        )?;
        let placement = Extent { start: info.placement.start, size: info.placement.size };
        Ok(GpuInstanceInfo { id: info.id, profile_id: info.profileId, placement })
    }

    /// Destroys it. It must have no compute instance and no process. Needs rights.
    pub(super) fn destroy(self) -> Answer<()> {
        ask(
            "nvmlGpuInstanceDestroy",
            self.lib.nvmlGpuInstanceDestroy.as_ref(),
            // SAFETY: a handle got in this call sequence, given up here.
            |call| unsafe { call(self.handle) },
        )
    }

    /// Compute profile number `number` of `NVML_COMPUTE_INSTANCE_PROFILE_*`, engines shared. All that is
    /// wanted of it is in the first form of the call.
    pub(super) fn compute_profile(&self, number: u32) -> Answer<ComputeProfile> {
        let mut info: c::nvmlComputeInstanceProfileInfo_t = zeroed();
        ask(
            "nvmlGpuInstanceGetComputeInstanceProfileInfo",
            self.lib.nvmlGpuInstanceGetComputeInstanceProfileInfo.as_ref(),
            // SAFETY: a handle got in this call sequence, and a structure to write.
            |call| unsafe {
                call(self.handle, number, c::NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &raw mut info)
            },
        )?;
        let engines = [
            info.sharedCopyEngineCount,
            info.sharedDecoderCount,
            info.sharedEncoderCount,
            info.sharedJpegCount,
            info.sharedOfaCount,
        ];
        Ok(ComputeProfile {
            id: info.id,
            n_slices: info.sliceCount,
            n_sms: info.multiprocessorCount,
            n_engines: engines.iter().copied().fold(0, u32::saturating_add),
        })
    }

    /// The compute instances of a compute profile. Needs rights.
    pub(super) fn compute_instances(&self, profile_id: u32) -> Answer<Vec<ComputeInstance<'nvml>>> {
        let mut handles: [c::nvmlComputeInstance_t; ROOM] = [ptr::null_mut(); ROOM];
        let mut count = ROOM as c_uint;
        ask(
            "nvmlGpuInstanceGetComputeInstances",
            self.lib.nvmlGpuInstanceGetComputeInstances.as_ref(),
            // SAFETY: a handle got in this call sequence, and more room than any instance has slices.
            |call| unsafe { call(self.handle, profile_id, handles.as_mut_ptr(), &raw mut count) },
        )?;
        let known = handles.iter().take(count as usize).filter(|handle| !handle.is_null());
        Ok(known.map(|handle| ComputeInstance { lib: self.lib, handle: *handle }).collect())
    }

    /// Creates a compute instance of a compute profile; the driver finds the place. Needs rights.
    pub(super) fn create_compute_instance(&self, profile_id: u32) -> Answer<()> {
        let mut handle: c::nvmlComputeInstance_t = ptr::null_mut();
        ask(
            "nvmlGpuInstanceCreateComputeInstance",
            self.lib.nvmlGpuInstanceCreateComputeInstance.as_ref(),
            // SAFETY: a handle got in this call sequence, and a handle to write.
            |call| unsafe { call(self.handle, profile_id, &raw mut handle) },
        )
    }
}

impl ComputeInstance<'_> {
    /// Its id within its GPU instance.
    pub(super) fn id(&self) -> Answer<u32> {
        let mut info: c::nvmlComputeInstanceInfo_t = zeroed();
        ask(
            "nvmlComputeInstanceGetInfo_v2",
            self.lib.nvmlComputeInstanceGetInfo_v2.as_ref(),
            // SAFETY: a handle got in this call sequence, and a structure to write.
            |call| unsafe { call(self.handle, &raw mut info) },
        )?;
        Ok(info.id)
    }

    /// Destroys it. It must have no process. Needs rights.
    pub(super) fn destroy(self) -> Answer<()> {
        ask(
            "nvmlComputeInstanceDestroy",
            self.lib.nvmlComputeInstanceDestroy.as_ref(),
            // SAFETY: a handle got in this call sequence, given up here.
            |call| unsafe { call(self.handle) },
        )
    }
}

/// A library that was loaded, and what only entc's simulated one has. NVML proper is opened over it; it
/// stays loaded, because the simulated one would else forget which machine it was told to simulate.
pub(super) struct Loaded {
    library: libloading::Library,
}

impl Loaded {
    /// Loads a library by path or by the loader's own search.
    ///
    /// # Errors
    /// What the loader says.
    pub(super) fn load(library: &OsStr) -> Result<Self, String> {
        // SAFETY: loading runs the library's initialisers. It is the NVML library that the user named or
        // that the system's driver installed, which is trusted as the driver itself is.
        let library = unsafe { libloading::Library::new(library) };
        library.map(|library| Self { library }).map_err(|error| error.to_string())
    }

    /// Whether it is entc's simulated one.
    pub(super) fn is_simulated(&self) -> bool {
        type IsSimulated = unsafe extern "C" fn() -> c_uint;
        // SAFETY: the type is the one that our own library exports under this name, which no other has.
        unsafe { self.library.get::<IsSimulated>(b"entcSimIsSimulated\0").is_ok_and(|call| call() != 0) }
    }

    /// Tells the simulated library which machine it simulates. `None`: it is not the simulated one.
    pub(super) fn simulate(&self, folder: &Path) -> Option<Answer<()>> {
        type Use = unsafe extern "C" fn(*const c_char) -> c::nvmlReturn_t;
        let call = "entcSimUse";
        let Ok(folder) = CString::new(folder.as_os_str().as_bytes()) else {
            return Some(Err(Refused { call, kind: INVALID_ARGUMENT }));
        };
        // SAFETY: as above; the text ends with a zero and outlives the call.
        let code = unsafe { self.library.get::<Use>(b"entcSimUse\0").ok()?(folder.as_ptr()) };
        match code {
            c::nvmlReturn_enum_NVML_SUCCESS => Some(Ok(())),
            code => Some(Err(Refused { call, kind: kind_of(code) })),
        }
    }

    /// The boot id of the simulated machine. `None`: it is not the simulated library, or it has none.
    pub(super) fn boot_id(&self) -> Option<String> {
        type BootId = unsafe extern "C" fn(*mut c_char, c_uint) -> c::nvmlReturn_t;
        let mut buffer: [c_char; 128] = [0; 128];
        let room = c_uint::try_from(buffer.len()).unwrap_or_default() - 1;
        // SAFETY: as above; the buffer is one longer than it says, so that its text always ends.
        let code = unsafe { self.library.get::<BootId>(b"entcSimBootId\0").ok()?(buffer.as_mut_ptr(), room) };
        (code == c::nvmlReturn_enum_NVML_SUCCESS)
            .then(|| {
                // SAFETY: the last byte is zero whatever was written.
                unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_str().ok().map(str::to_owned)
            })
            .flatten()
    }
}

#[cfg(test)]
mod tests;
