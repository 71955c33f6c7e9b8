//! What runs after an apply: gateway and workers on a simulated machine, and what clients see of changes.

use crate::machine::{Bench, QUICK};
use ent_serve::load::{self, Measured, Stream, Target};
use serde_json::Value;
use std::net::TcpListener;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::Duration;

const STUCK: Duration = Duration::from_secs(120);

/// A machine whose plans are served, by a supervisor that ends with it.
struct Yard(Bench);

/// Builds the worker as these tests are.
fn build_worker() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--release", "--package", "ent-worker"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    });
}

impl Yard {
    fn new() -> Self {
        build_worker();
        Self(Bench::planned())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.command(arguments);
        command.env_remove("ENTC_NO_SERVE").env("ENTC_HTTP", "127.0.0.1:0").env("ENTC_GRPC", "off");
        command.env("ENTC_METRICS", "127.0.0.1:0");
        command
    }

    fn entc(&self, arguments: &[&str]) -> (i32, String, String) {
        crate::run::told(&self.command(arguments).output().unwrap())
    }

    #[track_caller]
    fn well(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.entc(arguments);
        assert_eq!(code, 0, "{arguments:?}\n{out}\n{err}\n{}", self.log());
        out
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.well(&[arguments, &["--format", "json"]].concat())).unwrap()
    }

    fn status(&self) -> Value {
        self.json(&["serve", "status"])
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.0.state().join("serve.log")).unwrap_or_default()
    }

    /// Sends to a service until it is told that it is over.
    fn send<'s>(
        &self,
        scope: &'s Scope<'s, '_>,
        is_over: &'s AtomicBool,
    ) -> std::thread::ScopedJoinHandle<'s, Measured> {
        let address = self.status()["http"].as_str().unwrap().parse().unwrap();
        let target = Target { address, host: "test".to_owned(), token: None, timeout: STUCK };
        let stream = Stream {
            service: "classify".to_owned(),
            body: load::body(&load::metadata(&target, "classify").unwrap()).unwrap(),
            at: (0..50_000).map(|n| f64::from(n) * 4e-3).collect(),
            from: 0.0,
            promise: STUCK,
        };
        scope.spawn(move || load::run(&target, &[stream], |_| !is_over.load(Ordering::Relaxed)).unwrap())
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        let _ = self.command(&["serve", "stop"]).output();
    }
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The one event of a kind.
fn event<'a>(all: &'a [Value], kind: &str) -> &'a Value {
    let mut found = all.iter().filter(|event| event["event"] == kind);
    let first = found.next();
    assert!(first.is_some() && found.next().is_none(), "not one `{kind}` in {all:#?}");
    first.unwrap()
}

fn places(status: &Value) -> Vec<String> {
    let replicas = status["replicas"].as_array().unwrap();
    replicas.iter().map(|r| r["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_plan_that_is_applied_is_served_and_measured_and_given_back() {
    let yard = Yard::new();
    let out = yard.well(&["apply", "a.json", "--allow-reset", "--format", "json-lines"]);
    let told = events(&out);
    let serving = event(&told, "serving");
    assert_eq!(serving["is_new"], true);
    assert_eq!(event(&told, "end")["exit_code"], 0);
    assert!(
        told.iter().position(|e| e["event"] == "serving") < told.iter().position(|e| e["event"] == "end")
    );
    let status = yard.status();
    assert_eq!(status["pid"], serving["pid"]);
    let replicas = status["replicas"].as_array().unwrap();
    assert!(!replicas.is_empty() && replicas.iter().all(|r| r["is_healthy"] == true));
    assert!(replicas.iter().all(|r| r["executor"] == "modelled"));
    // The workers sit on the instances of the plan.
    let observed = yard.json(&["observe"]);
    let holders = observed["observed"]["gpus"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|g| g["holders"].as_array().unwrap());
    let mut held: Vec<u64> = holders.filter_map(|h| h["pid"].as_u64()).collect();
    let mut pids: Vec<u64> =
        replicas.iter().flat_map(|r| r["pids"].as_array().unwrap()).filter_map(Value::as_u64).collect();
    held.sort_unstable();
    pids.sort_unstable();
    assert_eq!(held, pids);

    let bench = yard.json(&["bench", "--duration", "2s", "--seed", "3"]);
    let service = &bench["services"][0];
    assert_eq!((bench["failed"].as_u64(), &service["executor"]), (Some(0), &Value::from("modelled")));
    assert_eq!(bench["sent"], bench["answered"]);
    let sent = bench["sent"].as_f64().unwrap();
    assert!((600.0..1000.0).contains(&sent), "{sent} of about 800 requests");
    for way in ["predicted", "simulated", "measured"] {
        assert!(service["latency_ms"][way].as_f64().unwrap() > 0.0, "{way}");
    }
    // What the boards count is their base power and what the executors report, and nothing else.
    let energy = &bench["energy"];
    let (joules, dynamic) = (&energy["joules"], &service["dynamic_j_per_request"]);
    let number = |value: &Value| value.as_f64().unwrap();
    let base = number(&joules["predicted"]) - sent * number(&dynamic["predicted"]);
    let spent = base + sent * number(&dynamic["measured"]);
    let off = number(&joules["measured"]) / spent - 1.0;
    assert!(off.abs() < 0.05, "{off}: {bench:#}");
    assert_eq!(energy["source"], "simulated");
    // The same seed sends the same.
    let again = yard.json(&["bench", "--duration", "2s", "--seed", "3"]);
    assert_eq!((&again["sent"], &again["services"][0]["counted"]), (&bench["sent"], &service["counted"]));
    assert_eq!(again["services"][0]["latency_ms"]["simulated"], service["latency_ms"]["simulated"]);

    let top = yard.well(&["top", "--once", "--every", "300ms"]);
    for word in ["classify", "modelled", "gpu 0", "simulated"] {
        assert!(top.contains(word), "{top}");
    }
    // Applied once more, nothing is touched.
    let told = events(&yard.well(&["apply", "a.json", "--format", "json-lines"]));
    assert_eq!(
        (&event(&told, "serving")["pid"], &event(&told, "serving")["is_new"]),
        (&status["pid"], &Value::from(false))
    );
    assert_eq!(places(&yard.status()), places(&status));

    let (code, out, err) = yard.entc(&["destroy", "--auto-approve", "--allow-reset"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, _, err) = yard.entc(&["serve", "status"]);
    assert!(code == 1 && err.contains("no supervisor runs"), "{err}");
    assert!(!yard.0.state().join("deployment.json").exists());
}

#[test]
fn other_plans_and_the_way_back_fail_no_request() {
    let yard = Yard::new();
    yard.well(&["apply", "a.json", "--allow-reset"]);
    let first = places(&yard.status());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = yard.send(scope, &is_over);
        // A busier one: other instances, another clock, another batch. Planned and applied as it is asked for.
        let apply = [&["apply", "b.ent", "--auto-approve", "--allow-reset"], &QUICK[..]].concat();
        let busier = yard.well(&apply);
        assert!(busier.contains("every one healthy and routed"), "{busier}");
        let second = places(&yard.status());
        assert_ne!(first, second);
        yard.well(&["rollback", "--allow-reset"]);
        assert_eq!(places(&yard.status()), first);
        is_over.store(true, Ordering::Relaxed);
        let measured = sending.join().unwrap();
        let service = &measured.services[0];
        assert!(service.failures.is_empty(), "{:?}\n{}", service.failures, yard.log());
        assert!(service.answered == service.sent && service.sent > 20, "{}", service.sent);
    });
}

#[test]
fn what_could_not_be_served_is_said_before_the_machine_changes() {
    let yard = Yard::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, out, err) = yard.entc(&["apply", "a.json", "--allow-reset", "--http", &address]);
    assert_eq!(code, 3, "{out}{err}");
    assert!(err.contains("error[cannot-listen]") && err.contains(&address), "{err}");
    let (code, _, err) = yard.entc(&["apply", "a.json", "--allow-reset", "--http", "0.0.0.0:0"]);
    assert!(code == 3 && err.contains("error[no-token]") && err.contains("--token-file"), "{err}");
    assert_eq!(yard.entc(&["serve", "status"]).0, 1, "nothing was started");
    drop(taken);
    let out = yard.well(&["apply", "a.json", "--allow-reset"]);
    assert!(out.contains("Applied"), "nothing was changed before: {out}");
    assert!(out.contains("every one healthy and routed"), "{out}");
}

#[test]
fn nothing_is_started_where_nothing_is_to_serve() {
    let yard = Yard::new();
    let out = yard.well(&["apply", "a.json", "--allow-reset", "--no-serve"]);
    assert!(out.contains("Applied") && !out.contains("Serving"), "{out}");
    assert_eq!(yard.entc(&["serve", "status"]).0, 1);
    let (code, _, err) = yard.entc(&["bench", "--duration", "1s"]);
    assert!(code == 1 && err.contains("error[nothing-serves]"), "{err}");
    // Another service manager is told what to run.
    yard.well(&["apply", "a.json", "--deploy-only"]);
    assert_eq!(yard.entc(&["serve", "status"]).0, 1);
    assert!(yard.0.state().join("deployment.json").exists());
}

#[test]
fn only_the_plan_that_is_served_is_measured() {
    let yard = Yard::new();
    yard.well(&["apply", "a.json", "--allow-reset"]);
    yard.0.plan("b");
    let (code, _, err) = yard.entc(&["bench", "b.json", "--duration", "1s"]);
    assert!(code == 1 && err.contains("error[another-plan]"), "{err}");
    let (code, _, err) = yard.entc(&["bench", "--service", "clasify"]);
    assert!(code == 1 && err.contains("use one of: classify"), "{err}");
    let (code, _, err) = yard.entc(&["bench", "--url", "http://127.0.0.1:1", "--duration", "1s"]);
    assert!(code == 1 && err.contains("error[gateway-unreachable]"), "{err}");
    let (code, _, err) = yard.entc(&["top", "--once", "--url", "http://127.0.0.1:1/metrics"]);
    assert!(code == 1 && err.contains("error[metrics-unreachable]"), "{err}");
}
