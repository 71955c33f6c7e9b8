//! What the driver layer costs: reading machines and doing steps, on a simulated library.
//!
//! Nearly all of it is the library: a simulated call opens its machine's files. On hardware the call
//! itself takes what the hardware takes, and this layer makes the same calls.

#![expect(clippy::expect_used, reason = "a benchmark")]

use criterion::{Criterion, criterion_group, criterion_main};
use ent_machine::changes::{Operation, Step};
use ent_machine::{Driver, Library};
use ent_nvml_sim::description::{DescribedGpu, Description};
use ent_nvml_sim::machine::SimulatedMachine;
use std::hint::black_box;

fn machine(n_gpus: u32) -> (Driver, SimulatedMachine) {
    let gpu = DescribedGpu {
        board: "a100-80gb-pcie".to_owned(),
        count: n_gpus,
        mig: true,
        ..DescribedGpu::default()
    };
    let description = Description { gpu: vec![gpu], ..Description::of("575.57.08", &[]) };
    let machine = SimulatedMachine::new(&description).expect("the simulated library is built");
    let library = Library::Simulated { library: machine.library(), state: machine.state().to_owned() };
    (Driver::open(&library).expect("a simulated machine runs"), machine)
}

fn step(driver: &Driver, operation: Operation) -> Step {
    let gpu = driver.observe().expect("a simulated machine can be read").gpus.remove(0);
    Step { gpu: gpu.uuid, index: 0, operation, reason: String::new() }
}

fn benchmarks(criterion: &mut Criterion) {
    for n_gpus in [1, 8] {
        let (driver, _machine) = machine(n_gpus);
        criterion.bench_function(&format!("observe, {n_gpus} GPUs"), |bencher| {
            bencher.iter(|| black_box(driver.observe()));
        });
    }
    let (driver, _machine) = machine(1);
    let place = |profile: &str| (profile.to_owned(), 2, 2);
    let (profile, start, size) = place("2g.20gb");
    let create = step(&driver, Operation::CreateInstance { profile, start, size });
    let (profile, start, size) = place("2g.20gb");
    let destroy = step(&driver, Operation::DestroyInstance { profile, start, size });
    criterion.bench_function("create and destroy an instance", |bencher| {
        bencher.iter(|| {
            driver.perform(&create).expect("there is room");
            driver.perform(&destroy).expect("nobody uses it");
        });
    });
    let lock = step(&driver, Operation::LockClocks { min: 900, max: 900 });
    criterion.bench_function("lock the clock", |bencher| {
        bencher.iter(|| driver.perform(&lock).expect("it may"));
    });
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
