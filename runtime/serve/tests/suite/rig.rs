//! A gateway with workers made for a test, and clients for it.

use ent_serve::deployment::{Deployment, FORMAT_VERSION, Replica, Service};
use ent_serve::gateway::{Gateway, Handle, Options, ServiceStats, Stats};
use ent_wire::{
    Connection, Datatype, Done, Execute, Executor, Failed, FromWorker, Hello, Model, Tensor, ToWorker,
    VERSION, Warm, WireError,
};
use serde_json::Value;
use std::borrow::Cow;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long something that must happen may take before a test is called stuck.
pub(crate) const STUCK: Duration = Duration::from_secs(60);

/// A request's body with so many rows of one number.
pub(crate) fn rows(values: &[f32]) -> String {
    format!(
        r#"{{"inputs":[{{"name":"x","shape":[{},1],"datatype":"FP32","data":{values:?}}}]}}"#,
        values.len()
    )
}

/// A replica with small batches that take no time.
pub(crate) fn replica(id: &str) -> Replica {
    Replica { batch: 4, ..Replica::modelled(id, vec![0.1; 16]) }
}

/// A service with a promise that tests keep even on a busy machine.
pub(crate) fn service(name: &str, replicas: Vec<Replica>) -> Service {
    Service {
        name: name.into(),
        model: Model { name: "net".into(), artifact: None, signature: None },
        percentile: 0.99,
        promised_latency_ms: 10_000.0,
        arrivals: "poisson".into(),
        rate_rps: 10.0,
        replicas,
    }
}

pub(crate) fn deployment(services: Vec<Service>) -> Deployment {
    Deployment { format_version: FORMAT_VERSION.into(), plan: Some("sha256:abc".into()), services }
}

/// A batch as a worker gets it.
pub(crate) struct Batch {
    pub(crate) rows: u32,
    pub(crate) inputs: Vec<(String, Datatype, Vec<i64>, Vec<u8>)>,
}

impl Batch {
    /// The numbers of the first input.
    pub(crate) fn numbers(&self) -> Vec<f32> {
        self.inputs[0].3.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }
}

/// What a worker does with a batch.
pub(crate) enum Act {
    /// One number a row, under the name `output`.
    Answer(Vec<f32>),
    /// Its inputs come back.
    Echo,
    /// Something that fits no batch.
    Nonsense,
    Fail(&'static str),
    /// The process is gone.
    Die,
}

/// Doubles each row's number.
pub(crate) fn double(batch: &Batch) -> Act {
    Act::Answer(batch.numbers().iter().map(|x| x * 2.0).collect())
}

/// Lets a test say when a worker goes on.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<u64>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self, times: u64) {
        *self.0.0.lock().unwrap() += times;
        self.0.1.notify_all();
    }

    /// The same act, but each batch waits here first.
    pub(crate) fn before(
        &self,
        mut act: impl FnMut(&Batch) -> Act + Send + 'static,
    ) -> impl FnMut(&Batch) -> Act + Send + 'static {
        let gate = self.clone();
        move |batch: &Batch| {
            gate.pass();
            act(batch)
        }
    }

    pub(crate) fn pass(&self) {
        let mut left = self.0.0.lock().unwrap();
        while *left == 0 {
            left = self.0.1.wait(left).unwrap();
        }
        *left -= 1;
    }
}

pub(crate) struct Rig {
    pub(crate) handle: Option<Handle>,
    pub(crate) socket: PathBuf,
    workers: Vec<JoinHandle<()>>,
    agent: ureq::Agent,
    _folder: tempfile::TempDir,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The numbers of the first output.
    pub(crate) fn data(&self) -> Vec<f64> {
        let json = self.json();
        let data = json["outputs"][0]["data"].as_array();
        data.unwrap_or_else(|| panic!("{json}")).iter().map(|x| x.as_f64().unwrap()).collect()
    }
}

impl Rig {
    pub(crate) fn new(deployment: &Deployment) -> Self {
        Self::with(deployment, |_| ())
    }

    pub(crate) fn with(deployment: &Deployment, change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("workers");
        let mut options = Options::new(socket.clone());
        let free = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        (options.http, options.grpc, options.metrics) = (free, free, free);
        change(&mut options);
        let handle = Gateway::start(deployment, options).unwrap();
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_idle_connections_per_host(64)
            .build()
            .into();
        Self { handle: Some(handle), socket, workers: Vec::new(), agent, _folder: folder }
    }

    /// One service `net` with one replica `gpu0`, and its worker.
    pub(crate) fn single(act: impl FnMut(&Batch) -> Act + Send + 'static) -> Self {
        let mut rig = Self::new(&deployment(vec![service("net", vec![replica("gpu0")])]));
        rig.worker("net", "gpu0", act);
        rig.ready();
        rig
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.handle.as_ref().unwrap()
    }

    /// Starts a worker; it ends with its connection.
    pub(crate) fn worker(
        &mut self,
        service: &str,
        replica: &str,
        act: impl FnMut(&Batch) -> Act + Send + 'static,
    ) {
        self.process(service, replica, 0, act);
    }

    pub(crate) fn process(
        &mut self,
        service: &str,
        replica: &str,
        process: u32,
        act: impl FnMut(&Batch) -> Act + Send + 'static,
    ) {
        let hello = hello(service, replica, process);
        let socket = self.socket.clone();
        self.workers.push(std::thread::spawn(move || work(&socket, hello, act)));
    }

    /// Starts a worker that asks until it is wanted: for a deployment that is on its way.
    pub(crate) fn worker_when_asked(
        &self,
        service: &str,
        replica: &str,
        epoch: u64,
        act: impl FnMut(&Batch) -> Act + Send + 'static,
    ) {
        let hello = Hello { epoch, ..hello(service, replica, 0) };
        let socket = self.socket.clone();
        // It ends with the gateway, or when the gateway is gone before it was wanted.
        std::thread::spawn(move || {
            loop {
                match Connection::open(&socket, hello.clone()) {
                    Ok((connection, _, configure)) => return serve(connection, configure.batch, act),
                    Err(WireError::Refused(_)) => std::thread::yield_now(),
                    Err(_) => return,
                }
            }
        });
    }

    pub(crate) fn ready(&self) {
        block_on(self.handle().ready(STUCK)).unwrap();
    }

    pub(crate) fn stats(&self) -> Stats {
        self.handle().stats()
    }

    pub(crate) fn service(&self, name: &str) -> ServiceStats {
        self.stats().services.into_iter().find(|s| s.name == name).unwrap()
    }

    /// Waits until the gateway's numbers are so.
    #[track_caller]
    pub(crate) fn until(&self, is_so: impl Fn(&Stats) -> bool) {
        let start = Instant::now();
        while !is_so(&self.stats()) {
            assert!(start.elapsed() < STUCK, "{:#?}", self.stats());
            std::thread::yield_now();
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.handle().addresses().http.unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Got {
        self.get_from(self.address(), path)
    }

    pub(crate) fn get_from(&self, address: SocketAddr, path: &str) -> Got {
        got(self.agent.get(format!("http://{address}{path}")).call().unwrap())
    }

    pub(crate) fn post(&self, path: &str, body: impl AsRef<[u8]>) -> Got {
        self.post_with(path, &[], body)
    }

    pub(crate) fn post_with(&self, path: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Got {
        let mut request = self.agent.post(format!("http://{}{path}", self.address()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        got(request.send(body.as_ref()).unwrap())
    }

    pub(crate) fn infer(&self, values: &[f32]) -> Got {
        self.post("/v2/models/net/infer", rows(values))
    }

    /// Asks on a connection of its own, without waiting for the answer.
    pub(crate) fn ask(&self, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(STUCK)).unwrap();
        let length = body.len();
        let head =
            format!("POST /v2/models/net/infer HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.shutdown();
        }
        for worker in self.workers.drain(..) {
            let ended = worker.join();
            assert!(ended.is_ok() || std::thread::panicking(), "a worker of the test panicked");
        }
    }
}

fn got(mut response: ureq::http::Response<ureq::Body>) -> Got {
    let text = |v: &ureq::http::HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned();
    Got {
        status: response.status().as_u16(),
        headers: response.headers().iter().map(|(n, v)| (n.as_str().to_owned(), text(v))).collect(),
        body: response.body_mut().with_config().limit(1 << 30).read_to_vec().unwrap(),
    }
}

/// Reads one answer from a connection: status, and body by its length.
pub(crate) fn read_answer(stream: &mut TcpStream) -> Got {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            other => panic!("{other:?} after {}", String::from_utf8_lossy(&head)),
        }
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> =
        lines.filter_map(|l| l.split_once(": ")).map(|(n, v)| (n.to_lowercase(), v.to_owned())).collect();
    let length = headers.iter().find(|(n, _)| n == "content-length").map_or(0, |(_, v)| v.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    Got { status, headers, body }
}

pub(crate) fn hello(service: &str, replica: &str, process: u32) -> Hello {
    Hello {
        version: VERSION,
        service: service.into(),
        replica: replica.into(),
        epoch: 0,
        process,
        executor: Executor::Modelled,
        pid: std::process::id(),
    }
}

fn work(socket: &std::path::Path, hello: Hello, act: impl FnMut(&Batch) -> Act) {
    let (connection, _, configure) = Connection::open(socket, hello).unwrap();
    serve(connection, configure.batch, act);
}

fn serve(mut connection: Connection, batch: u32, mut act: impl FnMut(&Batch) -> Act) {
    let warm = |batch| FromWorker::Warm(Warm { batch, signature: None });
    connection.send(&warm(batch), &[]).unwrap();
    // Without a gateway there is no more work.
    while let Ok(received) = connection.receive() {
        let (id, batch) = match received.message {
            ToWorker::Configure(configure) => {
                connection.send(&warm(configure.batch), &[]).unwrap();
                continue;
            }
            ToWorker::Execute(Execute { batch, rows, inputs }) => {
                let mut rest = &*received.body;
                let mut take = |t: Tensor<'_>| {
                    let (data, more) = rest.split_at(t.bytes as usize);
                    rest = more;
                    (t.name.into_owned(), t.datatype, t.shape.into_owned(), data.to_vec())
                };
                (batch, Batch { rows, inputs: inputs.into_iter().map(&mut take).collect() })
            }
            ToWorker::Welcome(_) | ToWorker::Refused(_) | ToWorker::Shutdown => return,
        };
        let outputs = match act(&batch) {
            Act::Answer(numbers) => {
                let data: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
                vec![("output".to_owned(), Datatype::Fp32, vec![i64::from(batch.rows), 1], data)]
            }
            Act::Echo => batch.inputs,
            Act::Nonsense => vec![("output".to_owned(), Datatype::Fp32, vec![1000, 1], vec![0; 4])],
            Act::Fail(message) => {
                let failed = Failed { batch: id, message: Cow::Borrowed(message) };
                connection.send(&FromWorker::Failed(failed), &[]).unwrap();
                continue;
            }
            Act::Die => {
                connection.stream().shutdown(Shutdown::Both).unwrap();
                return;
            }
        };
        let head = |(name, datatype, shape, data): &(String, Datatype, Vec<i64>, Vec<u8>)| Tensor {
            name: name.clone().into(),
            datatype: *datatype,
            shape: shape.clone().into(),
            bytes: data.len() as u64,
        };
        let done = Done {
            batch: id,
            compute_us: 10,
            energy_j: Some(0.5),
            outputs: outputs.iter().map(head).collect(),
        };
        let bodies: Vec<&[u8]> = outputs.iter().map(|o| o.3.as_slice()).collect();
        if connection.send(&FromWorker::Done(done), &bodies).is_err() {
            return;
        }
    }
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
