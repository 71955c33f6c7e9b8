//! The modelled executor, end to end.

use crate::gateway::{Worker, start};
use ent_wire::{Configure, Datatype, Executor, Model, ToWorker};
use std::process::Command;

fn model() -> Model {
    Model { name: "resnet50".to_owned(), artifact: None, signature: None }
}

fn times(milliseconds: &[f64]) -> Configure {
    let batch = u32::try_from(milliseconds.len()).unwrap();
    Configure { batch, batch_times_ms: milliseconds.to_vec(), batch_energy_j: Vec::new() }
}

fn modelled(milliseconds: &[f64]) -> Worker {
    start(&["--executor", "modelled", "--process", "2", "--epoch", "5"], model(), times(milliseconds))
}

#[test]
fn a_worker_says_who_it_is_gets_warm_and_answers() {
    let mut worker = modelled(&[0.1, 0.2, 0.3]);
    assert_eq!(
        (worker.hello.service.as_str(), worker.hello.replica.as_str()),
        ("classify", "gpu0/1g.10gb@3")
    );
    assert_eq!((worker.hello.process, worker.hello.epoch, worker.hello.executor), (2, 5, Executor::Modelled));
    assert_eq!(worker.warm().unwrap().batch, 3);
    let outputs = worker.run(2, &[("x", Datatype::Fp32, &[2, 3], &[1; 24])]).unwrap();
    assert_eq!(outputs, [("output".to_owned(), vec![2, 1], vec![0; 8])]);
    worker.say(&ToWorker::Shutdown);
    assert_eq!(worker.ended(), (Some(0), String::new()));
}

#[test]
fn a_batch_that_cannot_be_run_is_an_answer_and_the_worker_goes_on() {
    let mut worker = modelled(&[0.1]);
    worker.warm().unwrap();
    assert!(worker.run(2, &[]).unwrap_err().contains("larger than planned"));
    assert!(worker.run(1, &[]).is_ok());
}

#[test]
fn batches_change_under_a_running_worker() {
    let mut worker = modelled(&[0.1]);
    worker.warm().unwrap();
    worker.say(&ToWorker::Configure(times(&[0.1, 0.1])));
    assert_eq!(worker.warm().unwrap().batch, 2);
    assert!(worker.run(2, &[]).is_ok());
}

#[test]
fn a_signal_lets_the_batch_that_runs_be_answered() {
    let mut worker = modelled(&[300.0]);
    worker.warm().unwrap();
    worker.begin(1, &[]);
    let pid = worker.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(worker.end().is_ok());
    assert_eq!(worker.ended().0, Some(0));
}

#[test]
fn a_gateway_that_is_gone_ends_the_worker() {
    let mut worker = modelled(&[0.1]);
    worker.warm().unwrap();
    worker.stream.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(worker.ended().0, Some(0));
}

#[test]
fn a_worker_without_a_gateway_says_so() {
    let output = Command::new(env!("CARGO_BIN_EXE_ent-worker"))
        .args([
            "--service",
            "s",
            "--replica",
            "r",
            "--executor",
            "modelled",
            "--socket",
            "/nonexistent/socket",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("ent-worker: r: "), "{said}");
}

#[cfg(not(feature = "torch"))]
#[test]
fn a_worker_without_torch_says_how_to_get_it() {
    let mut worker = start(&["--executor", "torch"], model(), times(&[1.0]));
    assert!(worker.warm().is_none());
    let (code, said) = worker.ended();
    assert_eq!(code, Some(1));
    assert!(said.contains("setup/torch.sh"), "{said}");
}
