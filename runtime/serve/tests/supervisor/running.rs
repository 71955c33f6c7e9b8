//! Workers that are there, workers that die, workers that cannot run, and the end.

use crate::yard::{STUCK, Yard, deployment, replica, service, settings};
use ent_serve::deployment::Replica;
use ent_serve::supervisor::{
    Answer, NotServing, Question, Start, SupervisorError, run, start_or_reload, stop, write_down,
};
use ent_wire::Executor;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::time::Duration;

fn pid(raw: u32) -> Pid {
    Pid::from_raw(i32::try_from(raw).unwrap()).unwrap()
}

fn is_there(raw: u32) -> bool {
    // A zombie is gone for us: its parent, this process, waits for it.
    let stat = std::fs::read_to_string(format!("/proc/{raw}/stat")).unwrap_or_default();
    test_kill_process(pid(raw)).is_ok() && !stat.contains(") Z ")
}

#[test]
fn a_worker_that_is_killed_under_load_loses_no_request_and_comes_back() {
    let two = Replica { processes: 2, ..replica("gpu0/1g@0") };
    let yard = Yard::serving(&deployment(vec![service("net", vec![two, replica("gpu0/1g@1")])]));
    let sending = yard.load(&["net"]);
    let answered = |status: &ent_serve::supervisor::Status| status.stats.services[0].outcomes.served;
    for round in 1..=3 {
        let begin = answered(&yard.status());
        // In the middle of its work.
        let status = yard.wait(|status| answered(status) > begin + 20 && status.n_healthy() == 2);
        let victim = status.replicas.iter().flat_map(|r| &r.pids).copied().nth(round % 3).unwrap();
        kill_process(pid(victim), Signal::KILL).unwrap();
        let back = yard.wait(|status| {
            let starts: u32 = status.replicas.iter().map(|r| r.starts).sum();
            starts >= 3 + u32::try_from(round).unwrap() && status.n_healthy() == 2
        });
        assert!(!back.replicas.iter().any(|r| r.pids.contains(&victim)));
    }
    assert!(sending.none_failed() > 60);
    let lost: u64 = yard.status().stats.services[0].replicas.iter().map(|r| r.lost_workers).sum();
    assert_eq!(lost, 3);
    assert!(yard.log().contains("it was ended by signal 9"), "{}", yard.log());
}

#[test]
fn the_only_worker_of_a_service_is_killed_and_its_requests_wait() {
    let yard = Yard::serving(&deployment(vec![service("net", vec![replica("gpu0/1g@0")])]));
    let sending = yard.load(&["net"]);
    yard.wait(|status| status.stats.services[0].outcomes.served > 20);
    let victim = yard.status().replicas[0].pids[0];
    kill_process(pid(victim), Signal::KILL).unwrap();
    yard.wait(|status| status.replicas[0].starts >= 2 && status.n_healthy() == 1);
    sending.none_failed();
}

#[test]
fn a_worker_that_cannot_run_says_why() {
    // This build of the worker has no torch; and if it had, there is no such file.
    let broken = Replica { executor: Executor::Torch, ..replica("cpu0") };
    let mut one = service("net", vec![broken]);
    one.model.artifact = Some("/nowhere/net.pt".into());
    let wanted = deployment(vec![one]);
    let yard = Yard::starting(&wanted, |_| ());
    let status = yard.wait(|status| status.replicas[0].starts >= 4);
    let reason = status.replicas[0].reason.clone().unwrap();
    assert!(reason.contains("torch") || reason.contains("net.pt"), "{reason}");
    assert_eq!(status.n_healthy(), 0);
    // Asked for it again, it is not waited for in vain.
    let error = yard.change(&wanted).unwrap_err();
    let NotServing::Unhealthy { replicas, .. } = &error else { panic!("{error}") };
    assert_eq!(replicas[0].reason, Some(reason.clone()));
    assert!(error.to_string().contains(&reason), "{error}");
}

#[test]
fn a_folder_has_one_supervisor() {
    let yard = Yard::serving(&deployment(vec![service("net", vec![replica("a")])]));
    let Err(SupervisorError::Running { pid, .. }) = run(settings(yard.path(), |_| ()), None, |_| ()) else {
        panic!()
    };
    assert_eq!(pid, Some(std::process::id()));
    assert_eq!(yard.status().n_healthy(), 1);
}

#[test]
fn what_cannot_run_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let none = run(settings(folder.path(), |_| ()), None, |_| ());
    assert!(matches!(none, Err(SupervisorError::NoDeployment(_))));
    write_down(folder.path(), &deployment(vec![service("net", vec![replica("a")])])).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let refused = run(settings(folder.path(), |s| s.gateway.http = Some(address)), None, |_| ());
    let error = refused.unwrap_err().to_string();
    assert!(error.contains(&address.to_string()), "{error}");
    assert!(!stop(folder.path(), STUCK).unwrap());
}

#[test]
fn a_supervisor_that_does_not_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = deployment(vec![service("net", vec![replica("a")])]);
    let mut tell = |_, _| ();
    let words = |words: &[&str]| words.iter().map(std::ffi::OsString::from).collect::<Vec<_>>();
    let absent = words(&["/nowhere/entc", "serve"]);
    let mut start = Start { command: &absent, readiness: STUCK, tell: &mut tell };
    let error = start_or_reload(folder.path(), &wanted, &mut start).unwrap_err();
    assert!(error.to_string().contains("/nowhere/entc"), "{error}");
    let talks = words(&["sh", "-c", "echo no port is free >&2; exit 1"]);
    let mut tell = |_, _| ();
    let mut start = Start { command: &talks, readiness: STUCK, tell: &mut tell };
    let error = start_or_reload(folder.path(), &wanted, &mut start).unwrap_err();
    assert!(
        matches!(&error, NotServing::NotStarted { reason, .. } if reason == "no port is free"),
        "{error}"
    );
}

#[test]
fn draining_answers_what_is_there_and_ends_every_worker() {
    let slow = Replica { batch_times_ms: vec![300.0; 8], ..replica("gpu0/1g@0") };
    let mut yard = Yard::serving(&deployment(vec![service("net", vec![slow])]));
    let sending = yard.load(&["net"]);
    let status = yard.wait(|status| status.stats.services[0].replicas[0].in_flight > 0);
    drop(sending);
    let pids: Vec<u32> = status.replicas.iter().flat_map(|r| r.pids.clone()).collect();
    assert!(!pids.is_empty() && pids.iter().all(|pid| is_there(*pid)));
    yard.end().unwrap();
    assert!(!pids.iter().any(|pid| is_there(*pid)));
    for name in ["control.sock", "workers.sock"] {
        assert!(!yard.path().join(name).exists(), "{name} is left");
    }
    assert!(!yard.log().contains("unanswered"), "{}", yard.log());
}

#[test]
fn only_questions_are_answered() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::fs::PermissionsExt;
    let yard = Yard::serving(&deployment(vec![service("net", vec![replica("a")])]));
    let path = yard.path().join("control.sock");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(STUCK)).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    for wrong in ["", "{}", "[1,2", r#"{"ask":"explode"}"#, "\u{0}\u{1}", &"x".repeat(9000)] {
        stream.write_all(format!("{wrong}\n").as_bytes()).unwrap();
        let answer: Answer = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert!(matches!(answer, Answer::Refused { .. }), "{answer:?}");
    }
    // Half a question, and whoever asked is gone: nobody is disturbed.
    stream.write_all(b"{\"ask\":").unwrap();
    drop((stream, lines));
    let mut client = yard.client();
    assert!(matches!(client.ask(&Question::Status, STUCK).unwrap(), Answer::Status(_)));
    // A change that is asked for without a new deployment changes nothing.
    let before = yard.status().replicas;
    assert!(matches!(client.ask(&Question::Reload, STUCK).unwrap(), Answer::Reloaded(r) if r.is_done));
    assert_eq!(yard.status().replicas, before);
    std::fs::write(yard.path().join("deployment.next.json"), "{").unwrap();
    let Answer::Reloaded(refused) = client.ask(&Question::Reload, Duration::from_secs(60)).unwrap() else {
        panic!()
    };
    assert!(!refused.is_done && refused.reason.unwrap().contains("deployment.next.json"));
    assert_eq!(yard.status().n_healthy(), 1);
}
