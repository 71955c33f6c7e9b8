//! One deployment in the place of another, under load.

use crate::yard::{Yard, deployment, replica, service};
use ent_serve::deployment::{Deployment, Replica};
use ent_serve::supervisor::NotServing;
use ent_wire::Executor;

fn with_batch(id: &str, batch: u32, ms: f64) -> Replica {
    Replica { batch, batch_times_ms: vec![ms; batch as usize], ..replica(id) }
}

/// What an operator changes: another clock, another batch, a replica more, one less, one elsewhere, more
/// processes, another service on a place, and back.
fn deployments() -> Vec<Deployment> {
    let on = |a: Vec<Replica>, b: Vec<Replica>| deployment(vec![service("a", a), service("b", b)]);
    let (first, second, third) = ("gpu0/1g@0", "gpu0/1g@1", "gpu0/2g@2");
    vec![
        on(vec![with_batch(first, 8, 1.0)], vec![replica(second)]),
        on(vec![with_batch(first, 16, 1.0)], vec![replica(second)]),
        on(vec![with_batch(first, 4, 1.5), replica(third)], vec![replica(second)]),
        on(vec![replica(third)], vec![replica(second), replica(first)]),
        on(vec![replica(third)], vec![Replica { processes: 2, ..replica(first) }]),
        // Both services change places.
        on(vec![replica(first)], vec![replica(third)]),
        on(vec![replica(first), replica(second)], vec![replica(third)]),
    ]
}

#[test]
fn twenty_changes_under_load_fail_no_request() {
    let all = deployments();
    let yard = Yard::serving(&all[0]);
    let sending = yard.load(&["a", "b"]);
    for round in 1..=20 {
        let wanted = &all[round % all.len()];
        let report = yard.change(wanted).unwrap_or_else(|error| panic!("{round}: {error}\n{}", yard.log()));
        assert!(!report.is_new && report.paused.is_empty());
        assert_eq!(report.status.n_healthy(), report.status.replicas.len());
        let places = |deployment: &Deployment| -> Vec<(String, String)> {
            let all = deployment.services.iter().flat_map(|s| s.replicas.iter().map(move |r| (s, r)));
            all.map(|(s, r)| (s.name.clone(), r.id.clone())).collect()
        };
        let served: Vec<(String, String)> =
            report.status.replicas.iter().map(|r| (r.service.clone(), r.id.clone())).collect();
        assert_eq!(served, places(wanted), "change {round}");
        // Requests are answered between two changes, too.
        let served = |s: &ent_serve::supervisor::Status| -> u64 {
            s.stats.services.iter().map(|s| s.outcomes.served).sum()
        };
        let before = served(&report.status);
        yard.wait(|status| served(status) > before + 10);
    }
    assert!(sending.none_failed() > 200);
}

#[test]
fn a_replica_that_stays_keeps_its_worker() {
    let yard = Yard::serving(&deployment(vec![service("a", vec![with_batch("x", 8, 1.0), replica("y")])]));
    let pids =
        |yard: &Yard| -> Vec<Vec<u32>> { yard.status().replicas.iter().map(|r| r.pids.clone()).collect() };
    let before = pids(&yard);
    yard.change(&deployment(vec![service("a", vec![with_batch("x", 4, 3.0), replica("z")])])).unwrap();
    let after = pids(&yard);
    assert_eq!(after[0], before[0]);
    assert_ne!(after[1], before[1]);
}

#[test]
fn a_deployment_whose_workers_do_not_come_changes_nothing() {
    let good = deployment(vec![service("a", vec![replica("x")])]);
    let yard = Yard::starting(&good, |s| s.readiness = std::time::Duration::from_millis(1500));
    yard.wait(|status| status.n_healthy() == 1);
    let sending = yard.load(&["a"]);
    let broken = Replica { executor: Executor::Torch, ..replica("y") };
    let mut other = service("b", vec![broken]);
    other.model.artifact = Some("/nowhere/net.pt".into());
    let mut bad = good.clone();
    bad.services.push(other);
    let error = yard.change(&bad).unwrap_err();
    let NotServing::Kept(reloaded) = &error else { panic!("{error}") };
    let (id, reason) = &reloaded.replicas[0];
    assert_eq!(id, "y");
    assert!(reason.as_ref().is_some_and(|r| r.contains("torch") || r.contains("net.pt")), "{reason:?}");
    let status = yard.status();
    assert_eq!((status.n_healthy(), status.replicas.len()), (1, 1));
    sending.none_failed();
    // What is on disk is what serves.
    assert_eq!(ent_serve::supervisor::deployment(yard.path()).unwrap().unwrap(), good);
}

#[test]
fn workers_that_leave_their_places_lose_no_request() {
    let both = vec![replica("gpu0/1g@0"), replica("gpu0/1g@1")];
    let wanted = deployment(vec![service("a", both), service("b", vec![replica("gpu0/1g@2")])]);
    let yard = Yard::serving(&wanted);
    let sending = yard.load(&["a", "b"]);
    yard.wait(|status| status.stats.services.iter().all(|s| s.outcomes.served > 10));
    // One of two of the one service, the only one of the other: its requests wait.
    let leaving = ["gpu0/1g@1".to_owned(), "gpu0/1g@2".to_owned()];
    yard.client().vacate(&leaving).unwrap();
    let status = yard.status();
    let pids: Vec<usize> = status.replicas.iter().map(|r| r.pids.len()).collect();
    assert_eq!(pids, [1, 0, 0]);
    let served = status.stats.services[0].outcomes.served;
    yard.wait(|status| status.stats.services[0].outcomes.served > served + 10);
    let moved =
        deployment(vec![service("a", vec![replica("gpu0/1g@0")]), service("b", vec![replica("gpu0/2g@2")])]);
    yard.change(&moved).unwrap();
    sending.none_failed();
}
