//! Any call of a step goes wrong: the step says so or did not need it, and done again it comes about.

use crate::{Bench, bench, create, cut, destroy, instance, layout, set_mig};
use ent_machine::changes::Operation;
use ent_machine::error::{DeviceError, DeviceErrorKind};
use ent_machine::observed::ObservedGpu;
use ent_nvml_sim::description::DescribedGpu;
use serde_json::json;

/// From now on the machine's driver goes wrong like this.
fn inject(bench: &Bench, faults: &serde_json::Value) {
    std::fs::write(bench.machine.state().join("faults.json"), faults.to_string()).unwrap();
}

fn heal(bench: &Bench) {
    inject(bench, &json!([]));
}

#[test]
fn a_gpu_instance_that_cannot_be_filled_is_removed_again() {
    let bench = bench(cut("a100-80gb-pcie"));
    inject(
        &bench,
        &json!([{
            "call": "nvmlGpuInstanceCreateComputeInstance", "occurrence": 1, "when": "before",
            "what": { "error": "insufficient-resources" },
        }]),
    );
    let error = bench.perform(create("3g.40gb", 4, 4)).unwrap_err();
    assert_eq!(error.kind, DeviceErrorKind::InsufficientResources);
    assert_eq!(error.call, "nvmlGpuInstanceCreateComputeInstance");
    assert!(error.to_string().contains("the GPU instance was removed again"), "{error}");
    assert_eq!(layout(&bench.gpu()), []);
}

#[test]
fn a_gpu_instance_that_can_neither_be_filled_nor_removed_is_said_to_be_left() {
    let bench = bench(cut("a100-80gb-pcie"));
    inject(
        &bench,
        &json!([
            { "call": "nvmlGpuInstanceCreateComputeInstance", "occurrence": 1, "when": "before",
              "what": { "error": "insufficient-resources" } },
            { "call": "nvmlGpuInstanceDestroy", "occurrence": 1, "when": "before",
              "what": { "error": "in-use" } },
        ]),
    );
    let error = bench.perform(create("3g.40gb", 4, 4)).unwrap_err();
    assert_eq!(error.kind, DeviceErrorKind::InsufficientResources);
    assert!(error.to_string().contains("left without one: something has it open"), "{error}");
    assert_eq!(layout(&bench.gpu()), [("3g.40gb", 4, 4, false)]);
    bench.perform(create("3g.40gb", 4, 4)).unwrap();
    assert_eq!(layout(&bench.gpu()), [("3g.40gb", 4, 4, true)]);
}

#[test]
fn an_instance_that_lost_its_compute_and_stays_is_said_to_be_left() {
    let bench = bench(DescribedGpu { instances: vec![instance("2g.20gb", 2)], ..cut("a100-80gb-pcie") });
    inject(
        &bench,
        &json!([{ "call": "nvmlGpuInstanceDestroy", "occurrence": 1, "when": "before",
                  "what": { "error": "in-use" } }]),
    );
    let error = bench.perform(destroy("2g.20gb", 2, 2)).unwrap_err();
    assert_eq!(error.kind, DeviceErrorKind::InUse);
    assert!(error.to_string().contains("left without a compute instance"), "{error}");
    assert_eq!(layout(&bench.gpu()), [("2g.20gb", 2, 2, false)]);
    bench.perform(create("2g.20gb", 2, 2)).unwrap();
    assert_eq!(layout(&bench.gpu()), [("2g.20gb", 2, 2, true)]);
}

#[test]
fn a_gpu_that_is_lost_in_the_middle_of_a_step_is_lost() {
    let bench = bench(cut("a100-80gb-pcie"));
    let faults = json!([{ "call": "nvmlGpuInstanceCreateComputeInstance", "occurrence": 1, "when": "before",
                          "what": { "lost": 0 } }]);
    let step = ent_machine::changes::Step {
        gpu: bench.gpu().uuid,
        index: 0,
        operation: create("2g.20gb", 2, 2),
        reason: String::new(),
    };
    inject(&bench, &faults);
    let error = bench.driver.perform(&step).unwrap_err();
    assert_eq!(error.kind, DeviceErrorKind::Lost);
    let observed = bench.observe();
    assert_eq!((observed.gpus.len(), observed.unreadable.len()), (0, 1));
}

/// How a GPU is, in what steps can change.
fn shape(gpu: &ObservedGpu) -> String {
    let mode = gpu.mig.unwrap();
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        mode,
        layout(gpu),
        gpu.is_persistent,
        gpu.power_limit_mw,
        gpu.sm_clock_mhz
    )
}

/// Does an operation with a fault at each of its calls in turn, and at each that changes something also
/// after its effect, each time on a machine of its own. Returns how many faults were met.
fn with_a_fault_at_each_call(gpu: &DescribedGpu, operation: &Operation) -> usize {
    let wanted = {
        let healthy = bench(gpu.clone());
        healthy.perform(operation.clone()).unwrap();
        shape(&healthy.gpu())
    };
    let mut n_met = 0;
    for (call, when) in [("*", "before"), ("mutating", "after")] {
        for occurrence in 1.. {
            let bench = bench(gpu.clone());
            let observed = bench.observe();
            let gpu = &observed.gpus[0];
            let step = ent_machine::changes::Step {
                gpu: gpu.uuid.clone(),
                index: 0,
                operation: operation.clone(),
                reason: String::new(),
            };
            inject(
                &bench,
                &json!([{ "call": call, "occurrence": occurrence, "when": when, "what": { "error": "unknown" } }]),
            );
            let met = bench.driver.perform(&step);
            let left = std::fs::read_to_string(bench.machine.state().join("faults.json")).unwrap();
            let has_happened = left.contains(&format!("\"seen\":{occurrence}"))
                || left.contains(&format!("\"seen\": {occurrence}"));
            heal(&bench);
            if let Err(error) = &met {
                assert_eq!(error.kind, DeviceErrorKind::Other(999), "{error}");
                assert_eq!(error.gpu.as_ref(), Some(&step.gpu));
                assert!(error.call.starts_with("nvml"), "{error:?}");
            }
            if met.is_ok() {
                assert_eq!(shape(&bench.gpu()), wanted, "{operation} with a fault {when} call {occurrence}");
            }
            // Whatever it left, done again it comes about; what has come about is not made twice.
            let again = bench.driver.perform(&step);
            let is_made = |error: &DeviceError| error.kind == DeviceErrorKind::AlreadyThere;
            assert!(again.as_ref().err().is_none_or(is_made), "{again:?}");
            assert_eq!(
                shape(&bench.gpu()),
                wanted,
                "{operation} again after a fault {when} call {occurrence}"
            );
            if !has_happened {
                assert!(met.is_ok(), "a step without a fault fails: {met:?}");
                break;
            }
            n_met += 1;
        }
    }
    n_met
}

#[test]
fn a_step_that_met_a_fault_comes_about_when_done_again() {
    let free = cut("a100-80gb-pcie");
    let taken = DescribedGpu { instances: vec![instance("2g.20gb", 2)], ..free.clone() };
    let steps = [
        (&free, create("2g.20gb", 2, 2)),
        (&taken, destroy("2g.20gb", 2, 2)),
        (&free, set_mig(false)),
        (&free, Operation::SetPersistence { enabled: true }),
        (&free, Operation::SetPowerLimit { milliwatts: 200_000 }),
        (&free, Operation::LockClocks { min: 900, max: 900 }),
        (&free, Operation::UnlockClocks),
    ];
    let mut n_met = 0;
    for (gpu, operation) in steps {
        let met = with_a_fault_at_each_call(gpu, &operation);
        assert!(met >= 3, "{operation} met only {met} faults");
        n_met += met;
    }
    println!("{n_met} faults met");
}
