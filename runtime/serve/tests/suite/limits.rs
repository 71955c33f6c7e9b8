//! Clients that send too much, too slowly or not at all, and a service that has too much to do.

use super::rig::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn raw(rig: &Rig, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(rig.address()).unwrap();
    stream.set_read_timeout(Some(STUCK)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

const POST: &str = "POST /v2/models/net/infer HTTP/1.1\r\nhost: x\r\n";

#[test]
fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let rig = Rig::single(double);
    let mut stream = raw(&rig, &format!("{POST}content-length: 1073741824\r\n\r\n"));
    let got = read_answer(&mut stream);
    assert_eq!(got.status, 413);
    assert!(got.error().contains("larger than the limit of 67108864 bytes"), "{}", got.error());
    let mut stream = raw(&rig, &format!("{POST}content-length: 1073741824\r\nexpect: 100-continue\r\n\r\n"));
    assert_eq!(read_answer(&mut stream).status, 413, "without a `100 Continue` before it");
    assert_eq!(rig.infer(&[1.0]).data(), [2.0]);
}

#[test]
fn a_refusal_before_the_body_keeps_the_connection_or_says_that_it_ends() {
    let rig = Rig::single(double);
    let unknown = POST.replace("net", "nett");
    // A client that sends head and body apart, and then its next request on the same connection.
    let mut stream = raw(&rig, "");
    stream.set_nodelay(true).unwrap();
    for _ in 0..200 {
        stream.write_all(format!("{unknown}content-length: 4\r\n\r\n").as_bytes()).unwrap();
        stream.write_all(b"body").unwrap();
        let got = read_answer(&mut stream);
        assert_eq!((got.status, got.header("connection")), (404, None));
    }
    // What is long, or does not come, is not waited for: the next request needs another connection.
    for length in ["100000", "4"] {
        let got = read_answer(&mut raw(&rig, &format!("{unknown}content-length: {length}\r\n\r\n")));
        assert_eq!((got.status, got.header("connection")), (404, Some("close")), "{length}");
    }
    assert_eq!(rig.infer(&[1.0]).data(), [2.0]);
}

#[test]
fn a_body_that_grows_over_the_limit_is_refused_on_the_way() {
    let one = deployment(vec![service("net", vec![replica("gpu0")])]);
    let mut rig = Rig::with(&one, |options| options.limits.body_bytes = 1 << 20);
    rig.worker("net", "gpu0", double);
    rig.ready();
    let mut stream = raw(&rig, &format!("{POST}transfer-encoding: chunked\r\n\r\n"));
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..17 {
        stream.write_all(chunk.as_bytes()).unwrap();
    }
    assert_eq!(read_answer(&mut stream).status, 413);
    // One that is within it is put together from its chunks.
    let body = rows(&[1.0]);
    let (a, b) = body.split_at(10);
    let text = format!(
        "{POST}transfer-encoding: chunked\r\n\r\n{:x}\r\n{a}\r\n{:x}\r\n{b}\r\n0\r\n\r\n",
        a.len(),
        b.len()
    );
    assert_eq!(read_answer(&mut raw(&rig, &text)).data(), [2.0]);
}

#[test]
fn bodies_that_are_too_much_together_are_refused() {
    let one = deployment(vec![service("net", vec![replica("gpu0")])]);
    let mut rig = Rig::with(&one, |options| options.limits.held_bytes = 1000);
    rig.worker("net", "gpu0", double);
    rig.ready();
    let waiting = raw(&rig, &format!("{POST}content-length: 950\r\n\r\n{{"));
    let refused = || {
        let got = rig.infer(&[1.0; 4]);
        (got.status == 429).then(|| got.error())
    };
    rig.until(|s| s.connections >= 1);
    let start = std::time::Instant::now();
    let message = loop {
        if let Some(message) = refused() {
            break message;
        }
        assert!(start.elapsed() < STUCK);
    };
    assert!(message.contains("over 1000 bytes together"), "{message}");
    drop(waiting);
    while rig.infer(&[1.0]).status != 200 {
        assert!(start.elapsed() < STUCK, "they are let go with their client");
    }
}

#[test]
fn slow_and_silent_clients_are_ended_and_disturb_nobody() {
    let one = deployment(vec![service("net", vec![replica("gpu0")])]);
    let mut rig = Rig::with(&one, |options| {
        options.limits.head_time = Duration::from_millis(300);
        options.limits.body_time = Duration::from_millis(300);
    });
    rig.worker("net", "gpu0", double);
    rig.ready();
    let mut silent = raw(&rig, "");
    let mut slow_head = raw(&rig, "POST /v2/models/net/in");
    let mut slow_body = raw(&rig, &format!("{POST}content-length: 100\r\n\r\n{{\"inputs\""));
    assert_eq!(rig.infer(&[1.0]).data(), [2.0], "meanwhile");
    let got = read_answer(&mut slow_body);
    assert_eq!(got.status, 408);
    assert!(got.error().contains("did not arrive"), "{}", got.error());
    for stream in [&mut silent, &mut slow_head] {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
    }
}

#[test]
fn a_body_that_ends_early_ends_its_connection_only() {
    let rig = Rig::single(double);
    let mut cut = raw(&rig, &format!("{POST}content-length: 100\r\n\r\n{{\"inputs\""));
    cut.shutdown(std::net::Shutdown::Write).unwrap();
    cut.read_to_end(&mut Vec::new()).unwrap();
    for nonsense in ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "POST /v2 HTTP/1.1\r\ncontent-length: -5\r\n\r\n"] {
        let mut answer = String::new();
        raw(&rig, nonsense).read_to_string(&mut answer).unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{nonsense}: {answer}");
    }
    assert_eq!(rig.infer(&[1.0]).data(), [2.0]);
}

#[test]
fn connections_over_the_limit_are_told_so() {
    let one = deployment(vec![service("net", vec![replica("gpu0")])]);
    let rig = Rig::with(&one, |options| options.limits.connections = 2);
    let held = [raw(&rig, ""), raw(&rig, "")];
    rig.until(|s| s.connections == 2);
    let mut third = raw(&rig, "");
    let got = read_answer(&mut third);
    assert_eq!(got.status, 503);
    assert!(got.error().contains("too many connections"), "{}", got.error());
    let grpc = rig.handle().addresses().grpc.unwrap();
    let mut fourth = TcpStream::connect(grpc).unwrap();
    fourth.set_read_timeout(Some(STUCK)).unwrap();
    assert!(matches!(fourth.read(&mut [0]), Ok(0) | Err(_)), "it ends");
    drop(held);
    rig.until(|s| s.connections == 0);
    assert_eq!(rig.get("/v2/health/live").status, 200);
}

#[test]
fn requests_that_would_be_far_too_late_are_refused_at_once() {
    let mut slow = replica("gpu0");
    slow.batch = 1;
    slow.batch_times_ms = vec![100_000.0];
    let mut one = service("net", vec![slow]);
    one.promised_latency_ms = 9_000.0;
    let mut rig = Rig::new(&deployment(vec![one]));
    let gate = Gate::default();
    rig.worker("net", "gpu0", gate.before(double));
    rig.ready();
    // Within twenty promises, alone; the next one would take two batches' time.
    let mut first = rig.ask(&rows(&[1.0]));
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    let got = rig.infer(&[2.0]);
    assert_eq!(got.status, 503, "{}", got.text());
    assert!(got.error().contains("model `net` is overloaded"), "{}", got.error());
    let after: u64 = got.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=20).contains(&after), "{after}");
    gate.open(1);
    assert_eq!(read_answer(&mut first).status, 200);
    assert_eq!(rig.service("net").outcomes.shed, 1);
}

#[test]
fn a_client_that_says_how_long_it_waits_is_not_kept_longer() {
    let mut slow = replica("gpu0");
    slow.batch_times_ms = vec![50.0; 4];
    let mut rig = Rig::new(&deployment(vec![service("net", vec![slow])]));
    let gate = Gate::default();
    rig.worker("net", "gpu0", gate.before(double));
    rig.ready();
    let hasty = |us: u32| rows(&[1.0]).replacen('{', &format!(r#"{{"parameters":{{"timeout":{us}}},"#), 1);
    let got = rig.post("/v2/models/net/infer", hasty(1000));
    assert_eq!(got.status, 503);
    assert!(got.error().contains("allowed by the client's timeout"), "{}", got.error());
    // It looked possible, but the worker takes longer than planned.
    let mut first = rig.ask(&rows(&[1.0]));
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    let got = rig.post("/v2/models/net/infer", hasty(150_000));
    assert_eq!(got.status, 503);
    assert!(got.error().contains("timeout"), "{}", got.error());
    gate.open(1);
    assert_eq!(read_answer(&mut first).status, 200);
}

#[test]
fn a_worker_that_hangs_keeps_nobody_longer_than_he_said() {
    let gate = Gate::default();
    let rig = Rig::single(gate.before(double));
    let hasty = rows(&[1.0]).replacen('{', r#"{"parameters":{"timeout":200000},"#, 1);
    let got = rig.post("/v2/models/net/infer", hasty);
    assert_eq!((got.status, rig.stats().services[0].replicas[0].in_flight), (503, 1));
    gate.open(1);
}

#[test]
fn a_queue_has_an_end() {
    let one = deployment(vec![service("net", vec![replica("gpu0")])]);
    let mut rig = Rig::with(&one, |options| options.limits.queued_requests = 2);
    let gate = Gate::default();
    rig.worker("net", "gpu0", gate.before(double));
    rig.ready();
    let mut taken = vec![rig.ask(&rows(&[1.0]))];
    rig.until(|s| s.services[0].replicas[0].in_flight == 1);
    taken.extend([rig.ask(&rows(&[1.0])), rig.ask(&rows(&[1.0]))]);
    rig.until(|s| s.services[0].replicas[0].queued == 2);
    let got = rig.infer(&[2.0]);
    assert_eq!((got.status, got.header("retry-after")), (429, Some("1")));
    assert!(got.error().contains("2 for model `net`"), "{}", got.error());
    gate.open(2);
    taken.iter_mut().for_each(|s| assert_eq!(read_answer(s).status, 200));
    assert_eq!(rig.service("net").outcomes.full, 1);
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    use ent_serve::gateway::{Gateway, Options, StartError};
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::new(folder.path().join("workers"));
    options.http = Some(std::net::SocketAddr::from(([0, 0, 0, 0], 0)));
    (options.grpc, options.metrics) = (None, None);
    let started = Gateway::start(&deployment(vec![]), options.clone());
    assert!(matches!(started, Err(StartError::TokenNeeded(_))));
    assert!(!folder.path().join("workers").exists());
    options.token = Some("t".into());
    Gateway::start(&deployment(vec![]), options).unwrap().shutdown();
}
