//! Deployments in the place of others under load, draining and the end.

use super::rig::*;
use ent_serve::gateway::ReconfigureError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

#[test]
fn twenty_changes_under_load_fail_no_request() {
    let mut rig = Rig::new(&deployment(vec![service("net", vec![replica("gpu0"), replica("gpu1")])]));
    for id in ["gpu0", "gpu1"] {
        rig.worker("net", id, double);
    }
    rig.ready();
    let is_over = AtomicBool::new(false);
    let answered = AtomicU64::new(0);
    let address = rig.address();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|client| {
                let (is_over, answered) = (&is_over, &answered);
                scope.spawn(move || {
                    let mut stream = std::net::TcpStream::connect(address).unwrap();
                    stream.set_read_timeout(Some(STUCK)).unwrap();
                    let mut i = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let x = (client * 1000 + i % 1000) as f32;
                        let body = rows(&[x]);
                        let length = body.len();
                        let head = "POST /v2/models/net/infer HTTP/1.1\r\nhost: x\r\n";
                        let text = format!("{head}content-length: {length}\r\n\r\n{body}");
                        std::io::Write::write_all(&mut stream, text.as_bytes()).unwrap();
                        let got = read_answer(&mut stream);
                        assert_eq!(got.status, 200, "{}", got.text());
                        assert_eq!(got.data(), [f64::from(x * 2.0)]);
                        answered.fetch_add(1, Ordering::Relaxed);
                        i += 1;
                    }
                })
            })
            .collect();
        for change in 0..20 {
            let before = answered.load(Ordering::Relaxed);
            let (mut stays, mut moves) = (replica("gpu0"), replica("gpu1"));
            match change % 4 {
                // Another batch and wait, a larger batch again.
                0 => (stays.batch, stays.max_wait_ms) = (2, 1.0),
                1 => (stays.batch, stays.rate_rps) = (16, 90.0),
                // Other clocks: other times.
                2 => stays.batch_times_ms = vec![0.3; 16],
                _ => {}
            }
            moves.epoch = change / 2;
            let mut replicas = vec![stays, moves];
            if change % 2 == 1 {
                // A replica more, and every other time one that takes another's place.
                replicas.push(replica("gpu2"));
                rig.worker_when_asked("net", "gpu2", 0, double);
            }
            if change % 2 == 0 && change > 0 {
                rig.worker_when_asked("net", "gpu1", change / 2, double);
            }
            let next = deployment(vec![service("net", replicas)]);
            block_on(rig.handle().reconfigure(next, STUCK)).unwrap();
            while answered.load(Ordering::Relaxed) < before + 50 {
                assert!(!clients.iter().any(|c| c.is_finished()), "a client failed");
                std::thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let net = rig.service("net");
    assert_eq!(net.outcomes.served, answered.load(Ordering::Relaxed));
    assert_eq!((net.outcomes.failed, net.outcomes.shed, net.outcomes.full, net.retries), (0, 0, 0, 0));
    assert!(net.replicas.iter().all(|r| r.lost_workers == 0), "{net:#?}");
}

#[test]
fn a_deployment_without_workers_does_not_take_the_place_of_one_that_serves() {
    let rig = Rig::single(double);
    let next = deployment(vec![service("net", vec![replica("gpu9")])]);
    let result = block_on(rig.handle().reconfigure(next, Duration::from_millis(20)));
    let Err(ReconfigureError::NotReady { replicas, .. }) = &result else { panic!("{result:?}") };
    assert_eq!(*replicas, ["gpu9"]);
    assert_eq!(rig.infer(&[1.0]).data(), [2.0]);
    let mut wrong = deployment(vec![service("net", vec![replica("gpu0")])]);
    wrong.services[0].replicas[0].batch = 0;
    let result = block_on(rig.handle().reconfigure(wrong, STUCK));
    assert!(matches!(result, Err(ReconfigureError::Deployment(_))), "{result:?}");
    assert_eq!(rig.infer(&[1.0]).data(), [2.0]);
}

#[test]
fn a_replica_that_goes_finishes_its_batch_and_hands_its_queue_on() {
    let mut rig = Rig::new(&deployment(vec![service("net", vec![replica("gpu0")])]));
    let gate = Gate::default();
    rig.worker("net", "gpu0", gate.before(double));
    rig.ready();
    let mut first = rig.ask(&rows(&[1.0]));
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    let mut second = rig.ask(&rows(&[2.0]));
    rig.until(|s| s.services[0].replicas[0].queued == 1);
    rig.worker_when_asked("net", "gpu1", 0, double);
    let next = deployment(vec![service("net", vec![replica("gpu1")])]);
    std::thread::scope(|scope| {
        let changing = scope.spawn(|| block_on(rig.handle().reconfigure(next, STUCK)));
        assert_eq!(read_answer(&mut second).data(), [4.0], "while the first is still with the old worker");
        gate.open(1);
        assert_eq!(read_answer(&mut first).data(), [2.0]);
        changing.join().unwrap().unwrap();
    });
    assert_eq!(rig.service("net").replicas.len(), 1);
}

#[test]
fn a_replica_that_rests_finishes_its_batch_and_what_waits_for_it_is_not_refused() {
    // A batch is said to take 100 s, and 110 s are allowed: a second request is refused.
    let slow = |id: &str| {
        let mut slow = replica(id);
        (slow.batch, slow.batch_times_ms) = (1, vec![100_000.0]);
        let mut one = service("net", vec![slow]);
        one.promised_latency_ms = 5_500.0;
        deployment(vec![one])
    };
    let mut rig = Rig::new(&slow("gpu0"));
    let gate = Gate::default();
    rig.worker("net", "gpu0", gate.before(double));
    rig.ready();
    let mut first = rig.ask(&rows(&[1.0]));
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    assert_eq!(rig.infer(&[1.0]).status, 503);
    let mut waiting: Vec<_> = std::thread::scope(|scope| {
        let resting = scope.spawn(|| block_on(rig.handle().rest(vec!["gpu0".to_owned()], STUCK)));
        rig.until(|s| !s.services[0].replicas[0].is_ready);
        let waiting = (2..5).map(|i| rig.ask(&rows(&[i as f32]))).collect();
        rig.until(|s| s.services[0].replicas[0].queued == 3);
        assert!(!resting.is_finished(), "it has a batch yet");
        gate.open(4);
        assert_eq!(read_answer(&mut first).data(), [2.0]);
        resting.join().unwrap();
        waiting
    });
    let look = rig.stats().services[0].replicas[0].clone();
    assert_eq!((look.in_flight, look.queued), (0, 3), "nothing is begun");
    rig.worker_when_asked("net", "gpu1", 0, gate.before(double));
    block_on(rig.handle().reconfigure(slow("gpu1"), STUCK)).unwrap();
    let mut answers: Vec<f64> = waiting.iter_mut().map(|s| read_answer(s).data()[0]).collect();
    answers.sort_by(f64::total_cmp);
    assert_eq!(answers, [4.0, 6.0, 8.0]);
    // What was waited for is over: the usual rule holds again.
    let _begun = rig.ask(&rows(&[1.0]));
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    assert_eq!(rig.infer(&[1.0]).status, 503);
    gate.open(1);
    let net = rig.service("net");
    assert_eq!((net.outcomes.shed, net.retries, net.outcomes.failed), (2, 0, 0));
}

#[test]
fn requests_of_a_replica_that_rests_go_to_another() {
    let mut rig = Rig::new(&deployment(vec![service("net", vec![replica("gpu0"), replica("gpu1")])]));
    let gate = Gate::default();
    for id in ["gpu0", "gpu1"] {
        rig.worker("net", id, gate.before(double));
    }
    rig.ready();
    let mut asked: Vec<_> = (0..40).map(|i| rig.ask(&rows(&[i as f32]))).collect();
    rig.until(|s| s.services[0].replicas.iter().map(|r| r.queued + r.in_flight).sum::<u64>() == 40);
    std::thread::scope(|scope| {
        let resting = scope.spawn(|| block_on(rig.handle().rest(vec!["gpu0".to_owned()], STUCK)));
        rig.until(|s| s.services[0].replicas[0].queued == 0);
        gate.open(100);
        resting.join().unwrap();
    });
    for (i, stream) in asked.iter_mut().enumerate() {
        assert_eq!(read_answer(stream).data(), [i as f64 * 2.0]);
    }
    let net = rig.service("net");
    assert_eq!((net.outcomes.served, net.retries), (40, 0));
    assert!(!net.replicas[0].is_ready && net.is_ready);
}

#[test]
fn a_service_that_goes_is_unknown_and_one_that_comes_is_served() {
    let rig = Rig::single(double);
    rig.worker_when_asked("new", "gpu0", 1, double);
    let mut again = replica("gpu0");
    again.epoch = 1;
    block_on(rig.handle().reconfigure(deployment(vec![service("new", vec![again])]), STUCK)).unwrap();
    assert_eq!(rig.infer(&[1.0]).status, 404);
    assert_eq!(rig.post("/v2/models/new/infer", rows(&[1.0])).data(), [2.0]);
}

#[test]
fn draining_answers_what_is_there_and_takes_no_more() {
    let gate = Gate::default();
    let rig = Rig::single(gate.before(double));
    let mut idle = rig.ask("");
    assert_eq!(read_answer(&mut idle).status, 400);
    let mut first = rig.ask(&rows(&[1.0]));
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    assert_eq!(block_on(rig.handle().drain(Duration::from_millis(1))), 1, "one is left");
    assert!(!rig.stats().is_ready);
    assert_eq!(std::io::Read::read(&mut idle, &mut [0]).unwrap(), 0, "idle connections end");
    gate.open(1);
    let got = read_answer(&mut first);
    assert_eq!((got.data(), got.header("connection")), (vec![2.0], Some("close")));
    assert_eq!(block_on(rig.handle().drain(STUCK)), 0);
    assert_eq!(rig.stats().connections, 0);
    let metrics = rig.handle().addresses().metrics.unwrap();
    assert!(rig.get_from(metrics, "/metrics").text().contains(r#"entc_model_ready{service="net"} 1"#));
    assert!(std::net::TcpStream::connect(rig.address()).is_err());
}
