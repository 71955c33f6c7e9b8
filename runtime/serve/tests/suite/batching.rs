//! Which requests are of which batch, by what the gateway counts.

use super::rig::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[test]
fn what_waits_while_the_worker_is_busy_leaves_together() {
    let gate = Gate::default();
    let rig = Rig::single(gate.before(double));
    let mut first = rig.ask(&rows(&[0.0]));
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    let mut others: Vec<_> = (1..8).map(|i| rig.ask(&rows(&[i as f32]))).collect();
    rig.until(|s| s.services[0].replicas[0].queued == 7);
    gate.open(8);
    assert_eq!(read_answer(&mut first).data(), [0.0]);
    let mut answers: Vec<f64> = others.iter_mut().map(|s| read_answer(s).data()[0]).collect();
    answers.sort_by(f64::total_cmp);
    assert_eq!(answers, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]);
    // One alone, then four, then the three that are left.
    assert_eq!(rig.service("net").replicas[0].batch_sizes, [1, 0, 1, 1]);
}

#[test]
fn each_request_of_a_batch_gets_its_own_rows() {
    let gate = Gate::default();
    let rig = Rig::single(gate.before(double));
    let mut first = rig.ask(&rows(&[0.0]));
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    let mut two = rig.ask(&rows(&[1.0, 2.0]));
    rig.until(|s| s.services[0].replicas[0].queued == 1);
    let mut one = rig.ask(&rows(&[3.0]));
    rig.until(|s| s.services[0].replicas[0].queued == 2);
    let mut three = rig.ask(&rows(&[4.0, 5.0, 6.0]));
    rig.until(|s| s.services[0].replicas[0].queued == 3);
    gate.open(3);
    read_answer(&mut first);
    assert_eq!(read_answer(&mut two).data(), [2.0, 4.0]);
    assert_eq!(read_answer(&mut one).data(), [6.0]);
    assert_eq!(read_answer(&mut three).data(), [8.0, 10.0, 12.0]);
    assert_eq!(rig.service("net").replicas[0].batch_sizes, [1, 0, 2], "three rows do not fit beside three");
}

#[test]
fn requests_of_different_shapes_are_of_different_batches() {
    let gate = Gate::default();
    let rig =
        Rig::single(gate.before(|batch| Act::Answer(vec![batch.inputs[0].2[1] as f32; batch.rows as usize])));
    let mut first = rig.ask(&rows(&[0.0]));
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    let wide = r#"{"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}"#;
    let mut others = Vec::new();
    for (i, body) in [wide, wide, &rows(&[1.0]), wide].into_iter().enumerate() {
        others.push(rig.ask(body));
        rig.until(|s| s.services[0].replicas[0].queued == i as u64 + 1);
    }
    gate.open(4);
    read_answer(&mut first);
    let widths: Vec<f64> = others.iter_mut().map(|s| read_answer(s).data()[0]).collect();
    assert_eq!(widths, [3.0, 3.0, 1.0, 3.0]);
    assert_eq!(rig.service("net").replicas[0].batch_sizes, [3, 1]);
}

#[test]
fn a_batch_that_waits_leaves_when_it_is_full() {
    let mut patient = replica("gpu0");
    // Far longer than any test: only a full batch can leave.
    patient.max_wait_ms = 3_000_000.0;
    let mut one = service("net", vec![patient]);
    one.promised_latency_ms = 1e9;
    let mut rig = Rig::new(&deployment(vec![one]));
    rig.worker("net", "gpu0", double);
    rig.ready();
    let mut some: Vec<_> = (0..3).map(|i| rig.ask(&rows(&[i as f32]))).collect();
    rig.until(|s| s.services[0].replicas[0].queued == 3);
    some.push(rig.ask(&rows(&[3.0])));
    some.iter_mut().for_each(|s| assert_eq!(read_answer(s).status, 200));
    assert_eq!(rig.service("net").replicas[0].batch_sizes, [0, 0, 0, 1]);
}

#[test]
fn a_batch_that_does_not_fill_leaves_when_its_oldest_has_waited() {
    let mut patient = replica("gpu0");
    patient.max_wait_ms = 30.0;
    let mut rig = Rig::new(&deployment(vec![service("net", vec![patient])]));
    rig.worker("net", "gpu0", double);
    rig.ready();
    for i in 0..5 {
        assert_eq!(rig.infer(&[i as f32]).data(), [f64::from(i) * 2.0]);
    }
    assert_eq!(rig.service("net").replicas[0].batch_sizes, [5]);
    assert!(rig.service("net").latency_sum_s >= 5.0 * 0.03, "each waited for company in vain");
}

#[test]
fn processes_of_a_replica_share_one_queue() {
    let mut shared = replica("gpu0");
    shared.processes = 3;
    shared.batch = 1;
    let mut rig = Rig::new(&deployment(vec![service("net", vec![shared])]));
    let gate = Gate::default();
    let inside = Arc::new(AtomicU64::new(0));
    for process in 0..3 {
        let (gate, inside) = (gate.clone(), Arc::clone(&inside));
        rig.process("net", "gpu0", process, move |batch| {
            inside.fetch_add(1, Ordering::SeqCst);
            gate.pass();
            double(batch)
        });
    }
    rig.ready();
    let mut some: Vec<_> = (0..5).map(|i| rig.ask(&rows(&[i as f32]))).collect();
    rig.until(|s| s.services[0].replicas[0].in_flight == 3 && s.services[0].replicas[0].queued == 2);
    gate.open(5);
    some.iter_mut().for_each(|s| assert_eq!(read_answer(s).status, 200));
    assert_eq!(inside.load(Ordering::SeqCst), 5);
}

#[test]
fn at_saturation_batches_are_full() {
    let rig = Arc::new(Rig::single(|batch| {
        // What a network does here: it takes its time.
        std::thread::sleep(Duration::from_millis(4));
        double(batch)
    }));
    const CLIENTS: u64 = 24;
    const EACH: u64 = 30;
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let rig = Arc::clone(&rig);
            scope.spawn(move || {
                for i in 0..EACH {
                    let x = (client * EACH + i) as f32;
                    assert_eq!(rig.infer(&[x]).data(), [f64::from(x * 2.0)]);
                }
            });
        }
    });
    let replica = rig.service("net").replicas.remove(0);
    let mean = (CLIENTS * EACH) as f64 / replica.batches as f64;
    assert!(mean >= 0.9 * f64::from(replica.batch), "mean batch {mean}: {:?}", replica.batch_sizes);
}

#[test]
fn replicas_get_requests_by_their_planned_rates() {
    for arrivals in ["poisson", "uniform"] {
        let (mut large, small) = (replica("gpu0"), replica("gpu1"));
        large.rate_rps = 30.0;
        let mut one = service("net", vec![large, small]);
        one.arrivals = arrivals.into();
        let mut rig = Rig::new(&deployment(vec![one]));
        rig.worker("net", "gpu0", double);
        rig.worker("net", "gpu1", double);
        rig.ready();
        for i in 0..400 {
            rig.infer(&[i as f32]);
        }
        let batches: Vec<u64> = rig.service("net").replicas.iter().map(|r| r.batches).collect();
        assert_eq!(batches.iter().sum::<u64>(), 400);
        // In turn it is exact; at random it is within four standard deviations.
        let off = batches[0].abs_diff(300);
        assert!(off <= if arrivals == "uniform" { 0 } else { 35 }, "{arrivals}: {batches:?}");
    }
}
