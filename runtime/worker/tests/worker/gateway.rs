//! A gateway for one worker, as small as a test needs.

use ent_wire::frame::{self, Head};
use ent_wire::{
    Configure, Datatype, Execute, FromWorker, HEAD_LENGTH, Hello, Model, Tensor, ToWorker, Welcome,
};
use std::borrow::Cow;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A worker process and the gateway's end of its connection.
pub(crate) struct Worker {
    pub(crate) child: Child,
    pub(crate) stream: UnixStream,
    pub(crate) hello: Hello,
    _folder: TempDir,
}

/// A batch's answer: shapes and bytes by output, or the failure's words.
pub(crate) type Answer = Result<Vec<(String, Vec<i64>, Vec<u8>)>, String>;

/// Starts a worker and welcomes it.
pub(crate) fn start(arguments: &[&str], model: Model, configure: Configure) -> Worker {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("workers.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_ent-worker"))
        .args(["--service", "classify", "--replica", "gpu0/1g.10gb@3", "--socket"])
        .arg(&socket)
        .args(arguments)
        .env("OMP_NUM_THREADS", "1")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let (message, _) = receive(&mut stream).unwrap();
    let FromWorker::Hello(hello) = frame::read_from_worker(&message, 0).unwrap() else {
        panic!("the first message is no hello")
    };
    send(&mut stream, &ToWorker::Welcome(Welcome { model, configure }), &[]);
    Worker { child, stream, hello, _folder: folder }
}

impl Worker {
    /// Waits until it is warm; `None` when it ended instead.
    pub(crate) fn warm(&mut self) -> Option<ent_wire::Warm> {
        let (message, body) = receive(&mut self.stream)?;
        match frame::read_from_worker(&message, body.len()).unwrap() {
            FromWorker::Warm(warm) => Some(warm),
            other @ (FromWorker::Hello(_) | FromWorker::Done(_) | FromWorker::Failed(_)) => {
                panic!("{} and not warm", other.word())
            }
        }
    }

    /// Runs a batch of named inputs.
    pub(crate) fn run(&mut self, rows: u32, inputs: &[(&str, Datatype, &[i64], &[u8])]) -> Answer {
        self.begin(rows, inputs);
        self.end()
    }

    /// Sends a batch.
    pub(crate) fn begin(&mut self, rows: u32, inputs: &[(&str, Datatype, &[i64], &[u8])]) {
        let heads = inputs.iter().map(|(name, datatype, shape, bytes)| Tensor {
            name: Cow::Borrowed(*name),
            datatype: *datatype,
            shape: Cow::Borrowed(*shape),
            bytes: bytes.len() as u64,
        });
        let execute = Execute { batch: 41, rows, inputs: heads.collect() };
        let bytes: Vec<&[u8]> = inputs.iter().map(|(_, _, _, bytes)| *bytes).collect();
        send(&mut self.stream, &ToWorker::Execute(execute), &bytes);
    }

    /// Waits for its answer.
    pub(crate) fn end(&mut self) -> Answer {
        let (message, body) = receive(&mut self.stream).expect("the worker ended");
        match frame::read_from_worker(&message, body.len()).unwrap() {
            FromWorker::Done(done) => {
                assert_eq!(done.batch, 41);
                let mut rest = body.as_slice();
                let mut outputs = Vec::new();
                for tensor in done.outputs {
                    let (bytes, more) = rest.split_at(tensor.bytes as usize);
                    outputs.push((tensor.name.into_owned(), tensor.shape.into_owned(), bytes.to_vec()));
                    rest = more;
                }
                Ok(outputs)
            }
            FromWorker::Failed(failed) => Err(failed.message.into_owned()),
            other @ (FromWorker::Hello(_) | FromWorker::Warm(_)) => panic!("{}", other.word()),
        }
    }

    /// Sends anything.
    pub(crate) fn say(&mut self, message: &ToWorker<'_>) {
        send(&mut self.stream, message, &[]);
    }

    /// Waits for its end: exit code and what it said.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

fn send(stream: &mut UnixStream, message: &ToWorker<'_>, tensors: &[&[u8]]) {
    stream.write_all(&frame::to_worker(message).unwrap()).unwrap();
    tensors.iter().for_each(|bytes| stream.write_all(bytes).unwrap());
}

fn receive(stream: &mut UnixStream) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut head = [0; HEAD_LENGTH];
    stream.read_exact(&mut head).ok()?;
    let head = Head::read(&head, 1 << 30).unwrap();
    let (mut message, mut body) = (vec![0; head.message], vec![0; head.body]);
    stream.read_exact(&mut message).unwrap();
    stream.read_exact(&mut body).unwrap();
    Some((message, body))
}
