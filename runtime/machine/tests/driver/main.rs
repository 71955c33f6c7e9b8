//! The driver against simulated machines: what it reads, what it does, what it refuses.
//!
//! Every machine has a library of its own, so the tests run side by side in one process.

#![expect(clippy::unwrap_used, reason = "a test stops when what it needs is not there")]

mod conformance;
mod faults;
mod observing;
mod opening;
mod performing;
mod walk;

use ent_machine::changes::{Operation, Step};
use ent_machine::error::DeviceError;
use ent_machine::observed::{Observed, ObservedGpu};
use ent_machine::{Driver, Library};
use ent_nvml_sim::description::{DescribedGpu, DescribedInstance, DescribedProcess, Description};
use ent_nvml_sim::machine::SimulatedMachine;
use ent_nvml_sim::silicon::Device;

/// The one GPU of most machines here.
const GPU: Device = Device::Gpu(0);

/// A machine and a driver over it.
struct Bench {
    // Dropped first: the driver has the machine's library open.
    driver: Driver,
    machine: SimulatedMachine,
}

/// A machine with one GPU of this board, its MIG mode on.
fn cut(board: &str) -> DescribedGpu {
    DescribedGpu { board: board.to_owned(), count: 1, mig: true, ..DescribedGpu::default() }
}

/// The same with MIG mode off.
fn uncut(board: &str) -> DescribedGpu {
    DescribedGpu { mig: false, ..cut(board) }
}

fn instance(profile: &str, start: u32) -> DescribedInstance {
    DescribedInstance { profile: profile.to_owned(), start: Some(start), compute: true }
}

fn process(name: &str, pid: u32, instance: Option<usize>) -> DescribedProcess {
    DescribedProcess { name: name.to_owned(), pid, instance }
}

fn description(gpu: Vec<DescribedGpu>) -> Description {
    // Later than the least driver of every board in the catalogue.
    Description { gpu, ..Description::of("590.10", &[]) }
}

fn bench(gpu: DescribedGpu) -> Bench {
    boot(&description(vec![gpu]))
}

fn boot(description: &Description) -> Bench {
    let machine = SimulatedMachine::new(description).unwrap();
    Bench { driver: open(&machine), machine }
}

fn open(machine: &SimulatedMachine) -> Driver {
    Driver::open(&simulated(machine)).unwrap()
}

fn simulated(machine: &SimulatedMachine) -> Library {
    Library::Simulated { library: machine.library(), state: machine.state().to_owned() }
}

impl Bench {
    fn observe(&self) -> Observed {
        self.driver.observe().unwrap()
    }

    /// The one GPU.
    fn gpu(&self) -> ObservedGpu {
        self.observe().gpus.remove(0)
    }

    /// Does one operation on the GPU with this index.
    fn perform_on(&self, index: usize, operation: Operation) -> Result<(), DeviceError> {
        let gpu = self.observe().gpus.remove(index);
        self.driver.perform(&Step { gpu: gpu.uuid, index: gpu.index, operation, reason: "test".to_owned() })
    }

    fn perform(&self, operation: Operation) -> Result<(), DeviceError> {
        self.perform_on(0, operation)
    }
}

/// What is on a GPU, by start: profile, start, size, and whether CUDA sees it.
fn layout(gpu: &ObservedGpu) -> Vec<(&str, u32, u32, bool)> {
    gpu.instances.iter().map(|i| (i.profile.as_str(), i.start, i.size, i.mig_device().is_some())).collect()
}

fn create(profile: &str, start: u32, size: u32) -> Operation {
    Operation::CreateInstance { profile: profile.to_owned(), start, size }
}

fn destroy(profile: &str, start: u32, size: u32) -> Operation {
    Operation::DestroyInstance { profile: profile.to_owned(), start, size }
}

fn set_mig(enabled: bool) -> Operation {
    Operation::SetMigMode { enabled, resets: true }
}
