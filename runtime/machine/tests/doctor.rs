//! Made-up facts → checks: each thing that is known to stand in the way is found and has a fix.

use ent_machine::doctor::{Check, Facts, Machine, Verdict, examine};
use ent_machine::driver::Rights;
use ent_machine::error::{DeviceError, DeviceErrorKind, OpenError};
use ent_machine::holders::{KernelModule, Process};
use ent_machine::observed::{
    GpuUuid, Holder, MigMode, Observed, ObservedGpu, ObservedInstance, UnplacedInstance, UnreadableGpu,
};

const ALL_RIGHTS: Rights = Rights { modes: true, instances: true, clocks: true };

fn a100() -> ObservedGpu {
    ObservedGpu {
        uuid: GpuUuid("GPU-1".to_owned()),
        index: 0,
        name: "NVIDIA A100 80GB PCIe".to_owned(),
        pci_bus_id: "00000000:07:00.0".to_owned(),
        pci_device_id: "0x20B510DE".to_owned(),
        board: Some("a100-80gb-pcie".to_owned()),
        mig: Some(MigMode { current: true, pending: true }),
        is_persistent: Some(true),
        sm_clock_mhz: Some(210),
        supported_sm_clocks_mhz: vec![210, 1410],
        power_limit_mw: Some(300_000),
        default_power_limit_mw: Some(300_000),
        power_mw: Some(50_000),
        energy_mj: Some(0),
        profiles: Vec::new(),
        instances: Vec::new(),
        unplaced: Vec::new(),
        holders: Vec::new(),
    }
}

fn machine(gpu: ObservedGpu) -> Observed {
    Observed {
        driver_version: "575.57.08".to_owned(),
        library: "libnvidia-ml.so.1".to_owned(),
        is_simulated: false,
        boot_id: "boot".to_owned(),
        gpus: vec![gpu],
        unreadable: Vec::new(),
    }
}

fn facts(observed: Observed) -> Facts {
    with(Machine::Readable(Box::new(observed), ALL_RIGHTS))
}

fn with(machine: Machine) -> Facts {
    Facts { machine, modules: Vec::new(), daemons: Vec::new() }
}

/// The checks that are not well. Each must say what to do.
#[track_caller]
fn ailments(facts: &Facts) -> Vec<Check> {
    let ill: Vec<Check> = examine(facts).into_iter().filter(|check| check.verdict != Verdict::Ok).collect();
    for check in &ill {
        assert!(check.fix.as_ref().is_some_and(|fix| !fix.is_empty()), "no fix: {check:?}");
        assert!(!check.message.contains('\n'), "{check:?}");
    }
    ill
}

/// The one check that is not well.
#[track_caller]
fn ailment(facts: &Facts) -> Check {
    let ill = ailments(facts);
    assert_eq!(ill.len(), 1, "{ill:#?}");
    ill[0].clone()
}

#[test]
fn a_healthy_machine_has_no_ailments() {
    assert_eq!(ailments(&facts(machine(a100()))), []);
}

#[test]
fn a_pending_mode_is_a_problem_that_names_both_modes_and_both_ways_out() {
    let gpu = ObservedGpu { mig: Some(MigMode { current: false, pending: true }), ..a100() };
    let check = ailment(&facts(machine(gpu)));
    assert_eq!((check.name.as_str(), check.verdict), ("mig mode of gpu 0", Verdict::Problem));
    assert_eq!(check.message, "off now, and on after the next reset or reboot");
    let fix = check.fix.unwrap();
    assert!(fix.contains("--gpu-reset -i 0") && fix.contains("-i 0 -mig 0"), "{fix}");
}

#[test]
fn an_old_driver_is_a_problem_for_its_board_only() {
    let mut observed = machine(ObservedGpu { board: Some("h200-141gb".to_owned()), ..a100() });
    observed.driver_version = "550.54.15".to_owned();
    let check = ailment(&facts(observed.clone()));
    assert_eq!(check.verdict, Verdict::Problem);
    assert!(check.message.contains("550.54.15") && check.message.contains("550.90.07"), "{}", check.message);
    observed.gpus[0].board = Some("a100-80gb-pcie".to_owned());
    assert_eq!(ailments(&facts(observed)), []);
}

#[test]
fn holders_are_named_with_pid_and_instance() {
    let holders = vec![
        Holder { pid: 77, name: Some("python3".to_owned()), gpu_instance_id: Some(9) },
        Holder { pid: 78, name: None, gpu_instance_id: None },
    ];
    let check = ailment(&facts(machine(ObservedGpu { holders, ..a100() })));
    assert_eq!(check.message, "open by python3 (pid 77) on GPU instance 9, a process (pid 78)");
}

#[test]
fn missing_rights_are_said_with_what_they_are_for() {
    let of = |rights| ailment(&with(Machine::Readable(Box::new(machine(a100())), rights)));
    let none = of(Rights { modes: false, instances: false, clocks: false });
    // An apply would be refused.
    assert_eq!(none.verdict, Verdict::Problem);
    assert!(none.message.contains("modes") && none.message.contains("clocks"), "{}", none.message);
    assert!(none.fix.unwrap().contains("/proc/driver/nvidia/capabilities/mig/config"));
    let delegated = of(Rights { modes: false, instances: true, clocks: false });
    assert!(!delegated.message.contains("instances"), "{}", delegated.message);
}

#[test]
fn instances_that_nobody_can_use_or_see_are_said() {
    let orphan = ObservedInstance {
        gpu_instance_id: 3,
        profile: "2g.20gb".to_owned(),
        profile_id: 14,
        start: 2,
        size: 2,
        compute_instances: Vec::new(),
    };
    let check = ailment(&facts(machine(ObservedGpu { instances: vec![orphan], ..a100() })));
    assert!(check.message.contains("2g.20gb at slice 2"), "{}", check.message);
    let hidden = UnplacedInstance { gpu_instance_id: 3, profile: None, mig_devices: Vec::new() };
    let check = ailment(&facts(machine(ObservedGpu { unplaced: vec![hidden], ..a100() })));
    assert!(check.message.starts_with("1 instance "), "{}", check.message);
}

#[test]
fn what_keeps_a_board_from_being_reset_is_found() {
    let mut all = facts(machine(ObservedGpu { is_persistent: Some(false), ..a100() }));
    let process = |pid, name: &str| Process { pid, name: name.to_owned() };
    all.daemons = vec![
        process(10, "dcgm-exporter"),
        process(11, "nv-hostengine"),
        process(12, "nvidia-persistenced"),
        process(13, "nvsm-core"),
        process(14, "Xorg"),
    ];
    let module = |name: &str, n_uses| KernelModule { name: name.to_owned(), n_uses, used_by: Vec::new() };
    all.modules = vec![
        module("nvidia", 9),
        module("nvidia_drm", 2),
        module("nvidia_modeset", 0),
        module("nvidia_uvm", 4),
    ];
    let names: Vec<String> = ailments(&all).into_iter().map(|check| check.name).collect();
    let expected = [
        "persistence mode of gpu 0",
        "dcgm-exporter",
        "nv-hostengine",
        "nvsm-core",
        "Xorg",
        "kernel module nvidia_drm",
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_machine_without_a_driver_gets_the_way_to_one() {
    let of = |error: OpenError| ailment(&with(Machine::NoDriver(error)));
    let absent = of(OpenError::NoLibrary("libnvidia-ml.so.1".to_owned()));
    assert_eq!(absent.verdict, Verdict::Problem);
    assert!(absent.fix.unwrap().contains("--nvml simulated"));
    let undescribed = of(OpenError::NoSimulatedMachine("/var/lib/machine".into()));
    assert!(undescribed.fix.unwrap().contains("/var/lib/machine/machine.toml"));
    let library = "libnvidia-ml.so.1".to_owned();
    let stopped = of(OpenError::NoDriver { library, reason: "NVIDIA driver is not loaded".to_owned() });
    assert!(stopped.message.contains("not loaded"));
}

#[test]
fn a_machine_that_cannot_be_read_and_gpus_that_are_gone_are_problems() {
    let error = DeviceError {
        gpu: None,
        operation: "count GPUs".to_owned(),
        call: "nvmlDeviceGetCount_v2",
        kind: DeviceErrorKind::Other(999),
    };
    let check = ailment(&with(Machine::NotReadable { library: "libnvidia-ml.so.1".to_owned(), error }));
    assert!(check.message.contains("nvmlDeviceGetCount_v2"), "{}", check.message);
    let mut observed = machine(a100());
    observed.unreadable = vec![UnreadableGpu { index: 1, uuid: None, reason: "gone".to_owned() }];
    assert_eq!(ailment(&facts(observed.clone())).name, "gpu 1");
    observed.unreadable.clear();
    observed.gpus.clear();
    assert_eq!(ailment(&facts(observed)).message, "the driver sees no GPU");
}

#[test]
fn an_unknown_board_and_a_gpu_without_mig_are_warnings() {
    let gpu = ObservedGpu { board: None, name: "NVIDIA T4".to_owned(), mig: None, ..a100() };
    let checks = examine(&facts(machine(gpu)));
    let ill: Vec<&str> =
        checks.iter().filter(|c| c.verdict == Verdict::Warning).map(|c| c.name.as_str()).collect();
    assert_eq!(ill, ["board of gpu 0", "mig mode of gpu 0"]);
}
