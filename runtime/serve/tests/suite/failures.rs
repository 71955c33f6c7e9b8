//! Workers that die, fail or talk nonsense, and what their clients see of it.

use super::rig::*;
use ent_wire::{Connection, Executor, FromWorker, Hello, Warm, WireError};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

#[test]
fn a_batch_whose_worker_dies_is_answered_by_another_replica() {
    let mut rig = Rig::new(&deployment(vec![service("net", vec![replica("gpu0"), replica("gpu1")])]));
    let gate = Gate::default();
    rig.worker("net", "gpu0", gate.before(|_| Act::Die));
    rig.until(|s| s.services[0].replicas[0].is_ready);
    let mut first = rig.ask(&rows(&[1.0]));
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    let mut waiting: Vec<_> = (2..6).map(|i| rig.ask(&rows(&[i as f32]))).collect();
    rig.until(|s| s.services[0].replicas[0].queued == 4);
    rig.worker("net", "gpu1", double);
    rig.until(|s| s.services[0].replicas[1].is_ready);
    gate.open(1);
    assert_eq!(read_answer(&mut first).data(), [2.0]);
    let mut answers: Vec<f64> = waiting.iter_mut().map(|s| read_answer(s).data()[0]).collect();
    answers.sort_by(f64::total_cmp);
    assert_eq!(answers, [4.0, 6.0, 8.0, 10.0]);
    let net = rig.service("net");
    assert_eq!((net.retries, net.outcomes.failed, net.outcomes.served), (1, 0, 5));
    assert_eq!(net.replicas[0].lost_workers, 1);
    assert!(!net.replicas[0].is_ready && net.is_ready);
}

#[test]
fn requests_wait_for_the_only_worker_to_come_back() {
    let mut rig = Rig::single(|_| Act::Die);
    let mut waiting = rig.ask(&rows(&[1.0]));
    rig.until(|s| s.services[0].replicas[0].lost_workers == 1);
    assert_eq!(rig.get("/v2/models/net/ready").status, 503);
    rig.worker("net", "gpu0", double);
    assert_eq!(read_answer(&mut waiting).data(), [2.0]);
    assert_eq!(rig.service("net").retries, 1);
}

#[test]
fn a_request_that_two_workers_died_of_is_given_up() {
    let mut rig = Rig::single(|_| Act::Die);
    let mut deadly = rig.ask(&rows(&[1.0]));
    rig.until(|s| s.services[0].replicas[0].lost_workers == 1);
    rig.worker("net", "gpu0", |_| Act::Die);
    let got = read_answer(&mut deadly);
    assert_eq!(got.status, 500);
    assert!(got.error().contains("two workers ended while they had the request"), "{}", got.error());
    rig.worker("net", "gpu0", double);
    assert_eq!(rig.infer(&[3.0]).data(), [6.0]);
}

#[test]
fn requests_for_a_worker_that_stays_away_are_told_so() {
    let one = deployment(vec![service("net", vec![replica("gpu0")])]);
    let rig = Rig::with(&one, |options| options.limits.absence_time = std::time::Duration::from_millis(1));
    let got = rig.infer(&[1.0]);
    assert_eq!((got.status, got.header("retry-after")), (503, Some("1")));
    assert!(got.error().contains("no worker of model `net` came back"), "{}", got.error());
    let empty = Rig::new(&deployment(vec![service("net", vec![])]));
    let got = empty.infer(&[1.0]);
    assert_eq!(got.status, 503);
    assert!(got.error().contains("has no replica in the deployment"), "{}", got.error());
}

#[test]
fn one_request_that_breaks_its_batch_breaks_no_other() {
    let gate = Gate::default();
    let rig = Rig::single(gate.before(|batch| {
        if batch.numbers().contains(&666.0) { Act::Fail("index out of range") } else { double(batch) }
    }));
    let mut first = rig.ask(&rows(&[0.0]));
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    let mut good = [rig.ask(&rows(&[1.0])), rig.ask(&rows(&[2.0]))];
    let mut bad = rig.ask(&rows(&[666.0]));
    rig.until(|s| s.services[0].replicas[0].queued == 3);
    gate.open(10);
    assert_eq!(read_answer(&mut first).status, 200);
    assert_eq!(read_answer(&mut good[0]).data(), [2.0]);
    assert_eq!(read_answer(&mut good[1]).data(), [4.0]);
    let got = read_answer(&mut bad);
    assert_eq!((got.status, got.error().as_str()), (500, "index out of range"));
    let net = rig.service("net");
    assert_eq!((net.retries, net.outcomes.served, net.outcomes.failed), (3, 3, 1));
}

#[test]
fn a_worker_that_answers_nonsense_does_not_pass_for_a_network() {
    let rig = Rig::single(|_| Act::Nonsense);
    let got = rig.infer(&[1.0]);
    assert_eq!(got.status, 500);
    assert!(got.error().contains("output `output` of shape [1000, 1] does not fit a batch of 1"));
}

#[test]
fn numbers_that_json_has_not_are_to_be_asked_for_raw() {
    let rig = Rig::single(|batch| Act::Answer(vec![f32::NAN; batch.rows as usize]));
    let got = rig.infer(&[1.0]);
    assert_eq!(got.status, 500);
    assert!(got.error().contains("holds NaN or infinity"), "{}", got.error());
    let raw = rows(&[1.0]).replacen('{', r#"{"parameters":{"binary_data_output":true},"#, 1);
    assert_eq!(rig.post("/v2/models/net/infer", raw).status, 200);
}

#[test]
fn only_workers_of_the_deployment_are_taken() {
    let rig = Rig::single(double);
    let refused = |hello: Hello| match Connection::open(&rig.socket, hello) {
        Err(WireError::Refused(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert!(refused(hello("net", "gpu7", 0)).contains("no replica `gpu7` of `net`"));
    assert!(refused(hello("other", "gpu0", 0)).contains("no replica `gpu0` of `other`"));
    assert!(refused(hello("net", "gpu0", 0)).contains("process 0 of replica `gpu0` is already there"));
    assert!(refused(hello("net", "gpu0", 1)).contains("has 1 processes"));
    let torch = Hello { executor: Executor::Torch, ..hello("net", "gpu0", 0) };
    assert!(refused(torch).contains("is torch; replica `gpu0` is to have modelled"));
    let mut stranger = UnixStream::connect(&rig.socket).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(stranger.read_to_end(&mut Vec::new()).unwrap(), 0, "a stranger is told nothing");
    let mut rude = Connection::from(UnixStream::connect(&rig.socket).unwrap());
    rude.send(&FromWorker::Warm(Warm { batch: 1, signature: None }), &[]).unwrap();
    assert!(rude.receive().is_ok_and(|r| r.message.word() == "`Refused`"));
    assert_eq!(rig.infer(&[1.0]).data(), [2.0]);
}

#[test]
fn a_client_that_goes_away_leaves_the_queue() {
    let gate = Gate::default();
    let rig = Rig::single(gate.before(double));
    let mut first = rig.ask(&rows(&[0.0]));
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    let gone = rig.ask(&rows(&[1.0]));
    rig.until(|s| s.services[0].replicas[0].queued == 1);
    drop(gone);
    rig.until(|s| s.services[0].replicas[0].queued == 0);
    rig.until(|s| s.services[0].outcomes.cancelled == 1);
    gate.open(1);
    assert_eq!(read_answer(&mut first).status, 200);
    assert_eq!(rig.service("net").replicas[0].batches, 1);
}
