//! Which library answers, and what is said when none does.

use crate::{bench, boot, cut, description, open, simulated};
use ent_machine::error::OpenError;
use ent_machine::{Driver, Library};
use std::path::PathBuf;

#[test]
fn a_driver_may_go_from_thread_to_thread() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Driver>();
}

#[test]
fn a_simulated_library_says_so_even_when_it_is_named_by_path() {
    let bench = bench(cut("a100-80gb-pcie"));
    assert!(bench.driver.is_simulated());
    assert_eq!(bench.driver.library_name(), bench.machine.library().display().to_string());
    let observed = bench.observe();
    assert!(observed.is_simulated);
    assert_eq!(observed.library, bench.driver.library_name());
    assert_eq!(observed.boot_id, bench.driver.boot_id());
    assert!(!observed.boot_id.is_empty());
}

#[test]
fn a_boot_has_an_id_of_its_own() {
    let bench = bench(cut("a100-80gb-pcie"));
    let before = bench.driver.boot_id();
    assert_eq!(before, bench.driver.boot_id());
    bench.machine.reboot().unwrap();
    let again = {
        let machine = bench.machine;
        drop(bench.driver);
        let driver = open(&machine);
        driver.boot_id()
    };
    assert_ne!(before, again);
}

#[test]
fn a_folder_without_a_machine_is_named() {
    let bench = bench(cut("a100-80gb-pcie"));
    let empty = tempfile::tempdir().unwrap();
    let library = Library::Simulated { library: bench.machine.library(), state: empty.path().to_owned() };
    assert_eq!(Driver::open(&library).unwrap_err(), OpenError::NoSimulatedMachine(empty.path().to_owned()));
}

#[test]
fn a_machine_that_cannot_be_is_no_driver() {
    let bench = bench(cut("a100-80gb-pcie"));
    let machine = bench.machine;
    drop(bench.driver);
    std::fs::write(machine.state().join("machine.toml"), "driver_version = 7\n").unwrap();
    std::fs::remove_file(machine.state().join("state.json")).unwrap();
    assert!(matches!(Driver::open(&simulated(&machine)), Err(OpenError::NoDriver { .. })));
}

/// The C library of this process: it can be loaded, and is no NVML.
fn c_library() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut mapped = maps.lines().filter_map(|line| line.split_whitespace().last());
    mapped.find(|path| path.contains("/libc.so") || path.contains("/libc-")).unwrap().into()
}

#[test]
fn another_library_is_not_taken_for_the_simulated_one() {
    let bench = bench(cut("a100-80gb-pcie"));
    let state = bench.machine.state().to_owned();
    let error = Driver::open(&Library::Simulated { library: c_library(), state }).unwrap_err();
    assert!(matches!(&error, OpenError::NotLoadable { .. }), "{error}");
    assert!(error.to_string().contains("simulated"), "{error}");
}

#[test]
fn a_library_without_nvml_is_not_loadable() {
    let error = Driver::open(&Library::Path(c_library())).unwrap_err();
    assert!(error.to_string().contains("no NVML library"), "{error}");
}

#[test]
fn two_machines_in_one_process_stay_apart() {
    let first = bench(cut("a100-80gb-pcie"));
    let second = boot(&description(vec![cut("a30-24gb"), cut("a30-24gb")]));
    assert_eq!(first.observe().gpus.len(), 1);
    assert_eq!(second.observe().gpus.len(), 2);
    assert_eq!(first.gpu().board.as_deref(), Some("a100-80gb-pcie"));
    // The same file for another machine: refused in words, and the first is not disturbed.
    let library =
        Library::Simulated { library: first.machine.library(), state: second.machine.state().to_owned() };
    let error = Driver::open(&library).unwrap_err();
    assert!(error.to_string().contains("another driver in this process"), "{error}");
    assert_eq!(first.observe().gpus.len(), 1);
}
