//! A library with functions of our own → what the raw calls make of old, odd and wrong drivers.
//!
//! `NvmlLib` keeps each function as a field, so a driver that does not exist can be put together from
//! functions here; none of its other symbols is there.

use super::*;

/// A library that has no NVML function at all: this executable.
fn empty() -> c::NvmlLib {
    let this: libloading::Library = libloading::os::unix::Library::this().into();
    // SAFETY: this executable is loaded, and has no NVML function.
    unsafe { c::NvmlLib::from_library(this) }.unwrap()
}

fn device(lib: &c::NvmlLib) -> RawDevice<'_> {
    RawDevice { lib, handle: ptr::null_mut() }
}

fn gpu_instance(lib: &c::NvmlLib) -> GpuInstance<'_> {
    GpuInstance { lib, handle: ptr::null_mut() }
}

const SUCCESS: c::nvmlReturn_t = c::nvmlReturn_enum_NVML_SUCCESS;

fn refused<T: std::fmt::Debug>(answer: Answer<T>) -> DeviceErrorKind {
    answer.unwrap_err().kind
}

#[test]
fn a_driver_without_the_calls_is_too_old_and_no_panic() {
    let lib = empty();
    let missing = DeviceErrorKind::MissingSymbol;
    let (device, instance) = (device(&lib), gpu_instance(&lib));
    let compute = ComputeInstance { lib: &lib, handle: ptr::null_mut() };
    assert_eq!(refused(device.profile(0)), missing);
    assert_eq!(refused(device.placements(0)), missing);
    assert_eq!(device.gpu_instances(0).map(|_| ()).unwrap_err().kind, missing);
    let at = Extent { start: 0, size: 1 };
    assert_eq!(device.create_gpu_instance(0, at).map(|_| ()).unwrap_err().kind, missing);
    assert_eq!(refused(device.gpu_instance_id()), missing);
    assert_eq!(refused(device.compute_instance_id()), missing);
    assert_eq!(refused(device.supported_sm_clocks(1215)), missing);
    assert_eq!(refused(instance.info()), missing);
    assert_eq!(refused(instance.compute_profile(0)), missing);
    assert_eq!(instance.compute_instances(0).map(|_| ()).unwrap_err().kind, missing);
    assert_eq!(refused(instance.create_compute_instance(0)), missing);
    assert_eq!(refused(instance.destroy()), missing);
    assert_eq!(refused(compute.id()), missing);
    assert_eq!(refused(compute.destroy()), missing);
}

#[test]
fn this_executable_is_no_simulated_library() {
    let loaded = Loaded { library: libloading::os::unix::Library::this().into() };
    assert!(!loaded.is_simulated());
    assert_eq!(loaded.simulate(Path::new("/")), None);
    assert_eq!(loaded.boot_id(), None);
}

/// The first form of the profile call: one profile, number 9 with id 15.
unsafe extern "C" fn first_form(
    _: c::nvmlDevice_t,
    number: c_uint,
    info: *mut c::nvmlGpuInstanceProfileInfo_t,
) -> c::nvmlReturn_t {
    match number {
        9 => {
            let profile = c::nvmlGpuInstanceProfileInfo_t { id: 15, sliceCount: 1, ..zeroed() };
            // SAFETY: the caller gives a structure of this type.
            unsafe { info.write(profile) };
            SUCCESS
        }
        0..=17 => c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
        _ => c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT,
    }
}

/// A driver that knows the second form and calls the third a mismatch ...
unsafe extern "C" fn second_form(
    _: c::nvmlDevice_t,
    number: c_uint,
    info: *mut c::nvmlGpuInstanceProfileInfo_v2_t,
) -> c::nvmlReturn_t {
    // SAFETY: the caller gives a structure that begins with its version.
    if unsafe { (*info).version } != version_of::<c::nvmlGpuInstanceProfileInfo_v2_t>(2) {
        return c::nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    if number != 9 {
        return c::nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED;
    }
    let mut profile = c::nvmlGpuInstanceProfileInfo_v2_t { id: 15, sliceCount: 1, ..zeroed() };
    for (to, from) in profile.name.iter_mut().zip(b"MIG 1g.10gb") {
        *to = *from as c_char;
    }
    // SAFETY: the version says that it is of this type.
    unsafe { info.write(profile) };
    SUCCESS
}

/// ... and one that calls any form it does not know an invalid argument.
unsafe extern "C" fn no_form(
    _: c::nvmlDevice_t,
    _: c_uint,
    _: *mut c::nvmlGpuInstanceProfileInfo_v2_t,
) -> c::nvmlReturn_t {
    c::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT
}

#[test]
fn the_newest_form_that_the_driver_knows_answers() {
    let mut lib = empty();
    lib.nvmlDeviceGetGpuInstanceProfileInfo = Ok(first_form);
    let told = device(&lib).profile(9).unwrap();
    assert_eq!((told.id, told.name), (15, None));
    lib.nvmlDeviceGetGpuInstanceProfileInfoV = Ok(no_form);
    assert_eq!(device(&lib).profile(9).unwrap().name, None);
    assert_eq!(refused(device(&lib).profile(8)), DeviceErrorKind::NotSupported);
    assert_eq!(refused(device(&lib).profile(18)), INVALID_ARGUMENT);
    lib.nvmlDeviceGetGpuInstanceProfileInfoV = Ok(second_form);
    let told = device(&lib).profile(9).unwrap();
    assert_eq!((told.id, told.name.as_deref()), (15, Some("MIG 1g.10gb")));
    assert_eq!(refused(device(&lib).profile(8)), DeviceErrorKind::NotSupported);
}

#[test]
fn a_menu_is_walked_past_its_holes_to_its_end() {
    let mut lib = empty();
    lib.nvmlDeviceGetGpuInstanceProfileInfo = Ok(first_form);
    let board = ent_plan::device::board("a100-80gb-pcie");
    let menu = super::super::profiles::menu(&device(&lib), board.as_ref()).unwrap();
    let told: Vec<(u32, &str)> = menu.iter().map(|e| (e.profile.id, e.name.as_str())).collect();
    assert_eq!(told, [(15, "1g.20gb")], "the catalogue's name, where the driver tells none");
    let none = super::super::profiles::menu(&device(&empty()), None).unwrap();
    assert_eq!(none, [], "a driver from before MIG");
}

/// Three placements; without a buffer it counts, and says so with success (id 0) or not (id 1).
unsafe extern "C" fn three_placements(
    _: c::nvmlDevice_t,
    profile_id: c_uint,
    placements: *mut c::nvmlGpuInstancePlacement_t,
    count: *mut c_uint,
) -> c::nvmlReturn_t {
    // SAFETY: the caller gives a count, and with a buffer one that fits it.
    unsafe {
        let room = *count;
        *count = 3;
        if placements.is_null() {
            return [SUCCESS, c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE][profile_id as usize];
        }
        assert!(room >= 3);
        for start in 0..3 {
            placements.add(start as usize).write(c::nvmlGpuInstancePlacement_t { start: 2 * start, size: 2 });
        }
    }
    SUCCESS
}

#[test]
fn placements_are_counted_and_then_read() {
    let mut lib = empty();
    lib.nvmlDeviceGetGpuInstancePossiblePlacements_v2 = Ok(three_placements);
    let expected: Vec<Extent> = [0, 2, 4].map(|start| Extent { start, size: 2 }).into();
    assert_eq!(device(&lib).placements(0).unwrap(), expected);
    assert_eq!(device(&lib).placements(1).unwrap(), expected);
}

/// Thirty clocks more than fit where nvml-wrapper begins, and than fit where we do.
const N_CLOCKS: c_uint = 286;

unsafe extern "C" fn many_clocks(
    _: c::nvmlDevice_t,
    _: c_uint,
    count: *mut c_uint,
    clocks: *mut c_uint,
) -> c::nvmlReturn_t {
    // SAFETY: the caller gives a buffer and its size.
    unsafe {
        let room = *count;
        *count = N_CLOCKS;
        if room < N_CLOCKS {
            return c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;
        }
        for index in 0..N_CLOCKS {
            clocks.add(index as usize).write(2000 - index);
        }
    }
    SUCCESS
}

#[test]
fn a_ladder_that_is_longer_than_expected_is_read_whole() {
    let mut lib = empty();
    lib.nvmlDeviceGetSupportedGraphicsClocks = Ok(many_clocks);
    let clocks = device(&lib).supported_sm_clocks(1215).unwrap();
    assert_eq!((clocks.len(), clocks[0], clocks[285]), (286, 2000, 1715));
}

/// Four handles, one of them null.
unsafe extern "C" fn four_instances(
    _: c::nvmlDevice_t,
    _: c_uint,
    handles: *mut c::nvmlGpuInstance_t,
    count: *mut c_uint,
) -> c::nvmlReturn_t {
    // SAFETY: the caller gives room for more than four.
    unsafe {
        for index in 0..4 {
            handles.add(index).write(ptr::without_provenance_mut(index * 8));
        }
        *count = 4;
    }
    SUCCESS
}

#[test]
fn more_instances_than_the_profile_admits_are_listed_and_nulls_are_not() {
    let mut lib = empty();
    lib.nvmlDeviceGetGpuInstances = Ok(four_instances);
    assert_eq!(device(&lib).gpu_instances(14).unwrap().len(), 3);
}

#[test]
fn codes_keep_their_meaning() {
    let named = [
        (c::nvmlReturn_enum_NVML_ERROR_IN_USE, DeviceErrorKind::InUse),
        (c::nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST, DeviceErrorKind::Lost),
        (c::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES, DeviceErrorKind::InsufficientResources),
        (c::nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND, DeviceErrorKind::MissingSymbol),
        (31, DeviceErrorKind::Other(31)),
    ];
    for (code, kind) in named {
        assert_eq!(kind_of(code), kind);
        // The same through nvml-wrapper, which has no name for 23 and up.
        assert_eq!(refused(wrapped::<()>("nvmlX", Err(NvmlError::from(code)))), kind);
    }
    let missing = NvmlError::FailedToLoadSymbol("nvmlX".to_owned());
    assert_eq!(refused(wrapped::<()>("nvmlX", Err(missing))), DeviceErrorKind::MissingSymbol);
}

#[test]
fn structure_versions_are_those_of_the_header() {
    // nvml.h, NVML_STRUCT_VERSION: sizeof | version << 24; sizes by the C rules of alignment.
    assert_eq!(version_of::<c::nvmlGpuInstanceProfileInfo_v2_t>(2), 152 | 2 << 24);
    assert_eq!(version_of::<c::nvmlGpuInstanceProfileInfo_v3_t>(3), 152 | 3 << 24);
}

#[test]
fn text_ends_at_the_first_zero_or_with_the_buffer() {
    let chars = |bytes: &[u8]| bytes.iter().map(|b| *b as c_char).collect::<Vec<_>>();
    assert_eq!(text(&chars(b"MIG 1g.5gb\0\0x")).as_deref(), Some("MIG 1g.5gb"));
    assert_eq!(text(&chars(b"full")).as_deref(), Some("full"));
    assert_eq!(text(&chars(b"\0")), None);
    assert_eq!(text(&chars(&[0xff, 0])), None);
}
