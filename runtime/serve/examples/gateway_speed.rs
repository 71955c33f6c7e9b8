//! How fast the gateway is: requests per second and latency, beside calling the same worker directly.
//!
//! `cargo run --release -p ent-serve --example gateway_speed` starts a gateway and one worker, each a process
//! of its own, with a network that does nothing. It measures the worker alone over its socket, then the
//! gateway with `wrk` (Debian package) where there is one, and with its own client at half the saturated
//! rate. It prints the machine's load, without which such numbers mean little.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that fails is to be seen at once"
)]

use ent_serve::deployment::{Deployment, FORMAT_VERSION, Replica, Service};
use ent_serve::gateway::{Gateway, Options};
use ent_wire::frame::{self, HEAD_LENGTH, Head};
use ent_wire::{
    Connection, Datatype, Done, Execute, Executor, FromWorker, Hello, Model, Tensor, ToWorker, VERSION, Warm,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const BATCH: u32 = 32;
const BODY: &str = r#"{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP32","data":[0.5,-1.25,3.0,2.0]}]}"#;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["worker", socket] => worker(Path::new(socket)),
        ["serve", folder, port, threads] => {
            serve(Path::new(folder), port.parse().unwrap(), threads.parse().unwrap());
        }
        [] => measure(1),
        [threads] => measure(threads.parse().unwrap()),
        other => println!("not understood: {other:?}"),
    }
}

/// A network that does nothing: one number a row.
fn worker(socket: &Path) {
    let hello = Hello {
        version: VERSION,
        service: "null".into(),
        replica: "cpu0".into(),
        epoch: 0,
        process: 0,
        executor: Executor::Modelled,
        pid: std::process::id(),
    };
    let (mut connection, _, configure) = Connection::open(socket, hello).unwrap();
    connection.send(&FromWorker::Warm(Warm { batch: configure.batch, signature: None }), &[]).unwrap();
    let zeros = vec![0; 4 * configure.batch as usize];
    while let Ok(received) = connection.receive() {
        let ToWorker::Execute(Execute { batch, rows, .. }) = received.message else { return };
        let bytes = &zeros[..4 * rows as usize];
        let shape = vec![i64::from(rows), 1].into();
        let outputs = vec![Tensor {
            name: "output".into(),
            datatype: Datatype::Fp32,
            shape,
            bytes: bytes.len() as u64,
        }];
        let done = Done { batch, compute_us: 0, energy_j: None, outputs };
        connection.send(&FromWorker::Done(done), &[bytes]).unwrap();
    }
}

fn deployment() -> Deployment {
    let replica = Replica {
        id: "cpu0".into(),
        epoch: 0,
        node: "here".into(),
        index: 0,
        gpu: None,
        mig_device: None,
        mps_percent: None,
        processes: 1,
        batch: BATCH,
        max_wait_ms: 0.0,
        batch_times_ms: vec![0.05; BATCH as usize],
        batch_energy_j: Vec::new(),
        rate_rps: 1.0,
        executor: Executor::Modelled,
    };
    let service = Service {
        name: "null".into(),
        model: Model { name: "null".into(), artifact: None, signature: None },
        percentile: 0.99,
        promised_latency_ms: 50.0,
        arrivals: "poisson".into(),
        rate_rps: 1.0,
        replicas: vec![replica],
    };
    Deployment { format_version: FORMAT_VERSION.into(), plan: None, services: vec![service] }
}

fn serve(folder: &Path, port: u16, threads: usize) {
    let mut options = Options::new(folder.join("workers"));
    options.http = Some(SocketAddr::from(([127, 0, 0, 1], port)));
    options.grpc = Some(SocketAddr::from(([127, 0, 0, 1], port + 1000)));
    options.metrics = None;
    options.threads = threads;
    let handle = Gateway::start(&deployment(), options).unwrap();
    println!("{}", handle.addresses().http.unwrap());
    let mut line = String::new();
    // Until the parent is gone.
    while std::io::stdin().read_line(&mut line).is_ok_and(|n| n > 0) {}
    let stats = handle.stats();
    for service in stats.services {
        let replica = &service.replicas[0];
        let rows: u64 = replica.batch_sizes.iter().zip(1..).map(|(n, k): (&u64, u64)| n * k).sum();
        println!(
            "gateway: {} served, {} shed, mean batch {:.1}",
            service.outcomes.served,
            service.outcomes.shed,
            rows as f64 / replica.batches.max(1) as f64
        );
    }
}

fn itself(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments);
    command
}

fn percentiles(what: &str, mut sample: Vec<Duration>) -> [f64; 2] {
    sample.sort();
    let at = |p: f64| sample[((sample.len() - 1) as f64 * p) as usize].as_secs_f64() * 1e3;
    println!("{what}: p50 {:.3} ms, p99 {:.3} ms, n {}", at(0.5), at(0.99), sample.len());
    [at(0.5), at(0.99)]
}

/// CPU seconds that a process has used.
fn cpu(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap().split(' ').collect();
    // User and system time, in ticks of a hundredth of a second (proc(5), fields 14 and 15).
    fields[11..13].iter().map(|f| f.parse::<f64>().unwrap() / 100.0).sum()
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().split(' ').take(1).collect()
}

/// The worker alone, one row at a time, over its socket.
fn directly(folder: &Path, calls: usize) -> Vec<Duration> {
    let socket = folder.join("direct");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut child = itself(&["worker", socket.to_str().unwrap()]).spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut rest = Vec::new();
    let mut receive = |stream: &mut UnixStream| {
        let mut head = [0; HEAD_LENGTH];
        stream.read_exact(&mut head).unwrap();
        let head = Head::read(&head, 1 << 20).unwrap();
        rest.resize(head.message + head.body, 0);
        stream.read_exact(&mut rest).unwrap();
    };
    receive(&mut stream);
    let configure = ent_wire::Configure { batch: BATCH, batch_times_ms: vec![], batch_energy_j: vec![] };
    let model = deployment().services.remove(0).model;
    let welcome = ToWorker::Welcome(ent_wire::Welcome { model, configure });
    stream.write_all(&frame::to_worker(&welcome).unwrap()).unwrap();
    receive(&mut stream);
    let mut took = Vec::with_capacity(calls);
    for batch in 0..calls as u64 {
        let start = Instant::now();
        let inputs =
            vec![Tensor { name: "x".into(), datatype: Datatype::Fp32, shape: vec![1, 4].into(), bytes: 16 }];
        let mut bytes = frame::to_worker(&ToWorker::Execute(Execute { batch, rows: 1, inputs })).unwrap();
        bytes.extend([0; 16]);
        stream.write_all(&bytes).unwrap();
        receive(&mut stream);
        took.push(start.elapsed());
    }
    drop(stream);
    child.wait().unwrap();
    took
}

/// Connections that each send at even gaps, from when each should have been sent.
fn paced(address: SocketAddr, rate: f64, connections: usize, duration: Duration) -> Vec<Duration> {
    let request = format!(
        "POST /v2/models/null/infer HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let gap = Duration::from_secs_f64(connections as f64 / rate);
    let start = Instant::now() + Duration::from_millis(50);
    let one = |i: usize| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut due = start + gap.mul_f64(i as f64 / connections as f64);
        let mut took = Vec::new();
        let mut buffer = [0; 4096];
        while due < start + duration {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            // A sleep ends late by the scheduler's doing, which is the client's and not the gateway's; a
            // request that has to wait for the one before it is the gateway's.
            let from = due.max(Instant::now() - Duration::from_micros(60).min(due.elapsed()));
            stream.write_all(request.as_bytes()).unwrap();
            let n = stream.read(&mut buffer).unwrap();
            assert!(buffer[..n].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&buffer[..n]));
            took.push(from.elapsed());
            due += gap;
        }
        took
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|i| scope.spawn(move || one(i))).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    })
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(threads: usize) {
    let folder: PathBuf = std::env::temp_dir().join(format!("gateway-speed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    println!("load average at the start: {}", load());
    directly(&folder, 2000);
    std::fs::remove_file(folder.join("direct")).unwrap();
    let direct = percentiles("worker called directly, one at a time", directly(&folder, 20_000));

    let address = SocketAddr::from(([127, 0, 0, 1], 18_000 + (std::process::id() % 1000) as u16));
    let mut gateway =
        itself(&["serve", folder.to_str().unwrap(), &address.port().to_string(), &threads.to_string()]);
    let mut gateway = Running(gateway.stdin(std::process::Stdio::piped()).spawn().unwrap());
    while !folder.join("workers").exists() {
        std::thread::yield_now();
    }
    let worker = Running(itself(&["worker", folder.join("workers").to_str().unwrap()]).spawn().unwrap());
    let ready = "GET /v2/health/ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    loop {
        let mut answer = String::new();
        if let Ok(mut stream) = TcpStream::connect(address)
            && stream.write_all(ready.as_bytes()).is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer.starts_with("HTTP/1.1 200")
        {
            break;
        }
    }
    let script = folder.join("infer.lua");
    let text = format!("wrk.method = \"POST\"\nwrk.body = [[{BODY}]]\n");
    std::fs::write(&script, text).unwrap();
    let url = format!("http://{address}/v2/models/null/infer");
    let mut saturated = 20_000.0;
    for run in 0..2 {
        let seconds = if run == 0 { "-d2s" } else { "-d8s" };
        let before = [gateway.0.id(), worker.0.id()].map(cpu);
        let wrk = Command::new("wrk")
            .args(["-t1", "-c64", seconds, "--latency", "-s", script.to_str().unwrap(), &url])
            .output();
        let Ok(wrk) = wrk else {
            println!("without `wrk` the saturated rate is not measured");
            break;
        };
        let text = String::from_utf8_lossy(&wrk.stdout).into_owned();
        if run == 1 {
            println!("wrk, 64 connections, load {}:\n{text}", load());
            let after = [gateway.0.id(), worker.0.id()].map(cpu);
            let requests = text.lines().find_map(|l| l.trim().split_once(" requests in"));
            let requests: f64 = requests.unwrap().0.parse().unwrap();
            let per = |i: usize| (after[i] - before[i]) / requests * 1e6;
            println!("CPU per request: gateway {:.1} us, worker {:.1} us", per(0), per(1));
        }
        let rate = text.lines().find_map(|l| l.strip_prefix("Requests/sec:"));
        saturated = rate.and_then(|r| r.trim().parse().ok()).unwrap_or(saturated);
    }
    for share in [0.1, 0.5] {
        let rate = saturated * share;
        let took = paced(address, rate, 32, Duration::from_secs(5));
        let what = format!("through the gateway, {rate:.0} req/s from 32 connections (load {})", load());
        let through = percentiles(&what, took);
        println!("  added: p50 {:.3} ms, p99 {:.3} ms", through[0] - direct[0], through[1] - direct[1]);
    }
    drop(gateway.0.stdin.take());
    let _ = gateway.0.wait();
    let _ = std::fs::remove_dir_all(&folder);
}
