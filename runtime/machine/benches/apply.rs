//! What a transaction adds to the driver's calls: the same steps alone, and within journal and lock.
//!
//! Besides two lines on disk for each step, a transaction reads the machine twice, so its cost is asked for
//! two numbers of steps: the difference is the cost of a step. The store is on the disk that holds the
//! build, because waiting for a disk is what a line costs.

#![expect(clippy::expect_used, clippy::panic, reason = "a benchmark")]

use criterion::{Criterion, criterion_group, criterion_main};
use ent_machine::apply::{Means, Request, apply};
use ent_machine::changes::Changes;
use ent_machine::diff::diff;
use ent_machine::journal::Transaction;
use ent_machine::observed::Observed;
use ent_machine::preflight::Allowed;
use ent_machine::rollback::rollback;
use ent_machine::store::{Locked, Store};
use ent_machine::target::{ClockTarget, Target, TargetGpu, TargetInstance};
use ent_machine::{Driver, Library};
use ent_nvml_sim::description::{DescribedGpu, Description};
use ent_nvml_sim::machine::SimulatedMachine;
use std::time::Duration;

/// A board with MIG mode on.
fn machine() -> (Driver, SimulatedMachine) {
    let gpu =
        DescribedGpu { board: "a100-80gb-pcie".to_owned(), count: 1, mig: true, ..DescribedGpu::default() };
    let description = Description { gpu: vec![gpu], ..Description::of("575.57.08", &[]) };
    let machine = SimulatedMachine::new(&description).expect("the simulated library is built");
    let library = Library::Simulated { library: machine.library(), state: machine.state().to_owned() };
    (Driver::open(&library).expect("a simulated machine runs"), machine)
}

/// So many small instances on the one GPU.
fn target(observed: &Observed, n_instances: u32) -> Target {
    let instance = |start| TargetInstance {
        profile: "1g.10gb".to_owned(),
        start,
        size: 1,
        is_fixed: true,
        service: None,
    };
    let wish = TargetGpu {
        mig: Some(true),
        services: Vec::new(),
        persistence: None,
        instances: (0..n_instances).map(instance).collect(),
        sm_clock: ClockTarget::Leave,
        power_limit_mw: None,
    };
    let gpu = observed.gpus.first().expect("there is one");
    Target { gpus: [(gpu.uuid.clone(), wish)].into() }
}

fn there_and_back(driver: &Driver, store: &Locked, observed: &Observed, target: &Target, changes: &Changes) {
    let mut means = Means {
        driver,
        store,
        allowed: Allowed::default(),
        is_privileged: true,
        keep_going: false,
        is_interrupted: &|| false,
        tell: &mut |_| {},
    };
    let request =
        Request { transaction: Transaction::Apply, plan: None, node: None, observed, target, changes };
    for (_, result) in [apply(&mut means, &request), rollback(&mut means, false)] {
        result.unwrap_or_else(|error| panic!("{error}"));
    }
}

fn benchmarks(criterion: &mut Criterion) {
    let (driver, _machine) = machine();
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the build has a folder");
    let store = Store::open(folder.path()).and_then(|store| store.lock("bench", Duration::ZERO));
    let store = store.unwrap_or_else(|error| panic!("{error}"));
    let observed = driver.observe().expect("a simulated machine can be read");
    for n_instances in [1, 7] {
        let target = target(&observed, n_instances);
        let changes = |target: &Target| {
            let observed = driver.observe().expect("a simulated machine can be read");
            diff(target, &observed, &store.state().unwrap_or_default()).expect("there is room")
        };
        let forth = changes(&target);
        criterion.bench_function(
            &format!("{n_instances} created and destroyed: the driver alone"),
            |bencher| {
                bencher.iter(|| {
                    for step in &forth.steps {
                        driver.perform(step).expect("there is room");
                    }
                    for step in &forth.steps {
                        let mut step = step.clone();
                        if let ent_machine::changes::Operation::CreateInstance { profile, start, size } =
                            step.operation
                        {
                            step.operation =
                                ent_machine::changes::Operation::DestroyInstance { profile, start, size };
                        }
                        driver.perform(&step).expect("nobody uses it");
                    }
                });
            },
        );
        let observed = driver.observe().expect("a simulated machine can be read");
        criterion.bench_function(
            &format!("{n_instances} created and destroyed: apply and rollback"),
            |bencher| {
                bencher.iter(|| there_and_back(&driver, &store, &observed, &target, &forth));
            },
        );
    }
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
