//! A folder with a supervisor in a thread of its own, real workers, and a client that sends all the time.

use ent_serve::deployment::{Deployment, FORMAT_VERSION, Replica, Service};
use ent_serve::load::{self, Measured, Stream, Target};
use ent_serve::supervisor::{
    self, Client, NotServing, Report, Settings, Start, Status, SupervisorError, start_or_reload,
};
use ent_wire::Model;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long something that must happen may take before a test is called stuck.
pub(crate) const STUCK: Duration = Duration::from_secs(120);

/// The worker's executable, built as these tests are.
pub(crate) fn worker() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--release", "--package", "ent-worker"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        // target/release/deps/supervisor-… → target/release/ent-worker
        let own = std::env::current_exe().unwrap();
        own.parent().unwrap().parent().unwrap().join("ent-worker")
    });
    built.clone()
}

/// A replica whose batches take two milliseconds.
pub(crate) fn replica(id: &str) -> Replica {
    Replica { batch_energy_j: vec![0.5; 8], rate_rps: 100.0, ..Replica::modelled(id, vec![2.0; 8]) }
}

pub(crate) fn service(name: &str, replicas: Vec<Replica>) -> Service {
    Service {
        name: name.into(),
        model: Model { name: "net".into(), artifact: None, signature: None },
        percentile: 0.99,
        // A busy machine is not what is tested.
        promised_latency_ms: 60_000.0,
        arrivals: "poisson".into(),
        rate_rps: 100.0,
        replicas,
    }
}

pub(crate) fn deployment(services: Vec<Service>) -> Deployment {
    Deployment { format_version: FORMAT_VERSION.into(), plan: None, services }
}

/// A supervisor.
pub(crate) struct Yard {
    folder: tempfile::TempDir,
    thread: Option<JoinHandle<Result<(), SupervisorError>>>,
}

impl Yard {
    /// One that serves this.
    pub(crate) fn serving(deployment: &Deployment) -> Self {
        let yard = Self::starting(deployment, |_| ());
        yard.wait(|status| status.n_healthy() == status.replicas.len());
        yard
    }

    /// One that has just begun to.
    pub(crate) fn starting(deployment: &Deployment, change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        supervisor::write_down(folder.path(), deployment).unwrap();
        let settings = settings(folder.path(), change);
        let (send, started) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            supervisor::run(settings, None, move |addresses| drop(send.send(addresses.clone())))
        });
        started.recv_timeout(STUCK).unwrap();
        Self { folder, thread: Some(thread) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.path()).unwrap().unwrap()
    }

    pub(crate) fn status(&self) -> Status {
        self.client().status().unwrap()
    }

    /// Looks until it is so.
    pub(crate) fn wait(&self, is_so: impl Fn(&Status) -> bool) -> Status {
        let begin = Instant::now();
        loop {
            let status = self.status();
            if is_so(&status) {
                return status;
            }
            assert!(begin.elapsed() < STUCK, "stuck: {status:#?}\n{}", self.log());
            std::thread::yield_now();
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(supervisor::log_path(self.path())).unwrap_or_default()
    }

    /// Puts another deployment in the place of the present one.
    pub(crate) fn change(&self, deployment: &Deployment) -> Result<Report, NotServing> {
        let mut tell = |_, _| ();
        start_or_reload(
            self.path(),
            deployment,
            &mut Start { command: &[], readiness: STUCK, tell: &mut tell },
        )
    }

    /// Ends it, and returns what it returned.
    pub(crate) fn end(&mut self) -> Result<(), SupervisorError> {
        supervisor::stop(self.path(), STUCK).unwrap();
        self.thread.take().unwrap().join().unwrap()
    }

    /// Sends to these services until it is dropped or ended, 250 requests a second each.
    pub(crate) fn load(&self, services: &[&str]) -> Sending {
        let address = self.status().http.unwrap();
        let target = Target { address, host: address.to_string(), token: None, timeout: STUCK };
        let streams: Vec<Stream> = services
            .iter()
            .map(|service| Stream {
                service: (*service).to_owned(),
                body: load::body(&load::metadata(&target, service).unwrap()).unwrap(),
                at: (0..50_000).map(|n| f64::from(n) * 4e-3).collect(),
                from: 0.0,
                promise: STUCK,
            })
            .collect();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            load::run(&target, &streams, |_| !over.load(Ordering::Relaxed)).unwrap()
        });
        Sending { is_over, thread: Some(thread) }
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = supervisor::stop(self.path(), Duration::from_secs(5));
            let _ = thread.join();
        }
    }
}

/// How a supervisor of a folder runs.
pub(crate) fn settings(folder: &Path, change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::new(folder.to_path_buf(), worker());
    let free = Some("127.0.0.1:0".parse().unwrap());
    (settings.gateway.http, settings.gateway.grpc, settings.gateway.metrics) = (free, None, free);
    settings.readiness = STUCK;
    change(&mut settings);
    settings
}

/// Requests on their way.
pub(crate) struct Sending {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Measured>>,
}

impl Sending {
    /// Sends no more, waits for the answers, and says what became of them. None of them failed.
    #[track_caller]
    pub(crate) fn none_failed(mut self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        let measured = self.thread.take().unwrap().join().unwrap();
        let mut answered = 0;
        for service in &measured.services {
            assert!(service.failures.is_empty(), "{}: {:?}", service.service, service.failures);
            assert_eq!(service.answered, service.sent);
            answered += service.answered;
        }
        answered
    }
}
