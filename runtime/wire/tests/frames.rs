//! Frames written and read again, whole, cut short and damaged.

use ent_wire::frame::{self, Head};
use ent_wire::*;
use proptest::prelude::*;
use std::borrow::Cow;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

fn tensor() -> impl Strategy<Value = Tensor<'static>> {
    (".{0,8}", 0..Datatype::ALL.len(), prop::collection::vec(any::<i64>(), 0..4), 0..64_u64).prop_map(
        |(name, datatype, shape, bytes)| Tensor {
            name: Cow::Owned(name),
            datatype: Datatype::ALL[datatype],
            shape: Cow::Owned(shape),
            bytes,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        batch: u64,
        rows: u32,
        inputs in prop::collection::vec(tensor(), 0..4),
        energy_j in prop::option::of(0.0..1e6),
    ) {
        let execute = ToWorker::Execute(Execute { batch, rows, inputs: inputs.clone() });
        let bytes = frame::to_worker(&execute).unwrap();
        let (head, message) = bytes.split_at(HEAD_LENGTH);
        let head = Head::read(head.try_into().unwrap(), 1 << 20).unwrap();
        prop_assert_eq!(head.message, message.len());
        prop_assert_eq!(head.body as u64, execute.body_length());
        prop_assert_eq!(frame::read_to_worker(message, head.body).unwrap(), execute);

        let done = FromWorker::Done(Done { batch, compute_us: 7, energy_j, outputs: inputs });
        let bytes = frame::from_worker(&done).unwrap();
        let body = usize::try_from(done.body_length()).unwrap();
        prop_assert_eq!(frame::read_from_worker(&bytes[HEAD_LENGTH..], body).unwrap(), done);
    }

    #[test]
    fn damaged_bytes_are_errors_and_nothing_worse(
        head: [u8; HEAD_LENGTH],
        message in prop::collection::vec(any::<u8>(), 0..64),
        body in 0..64_usize,
    ) {
        let mut marked = head;
        marked[..4].copy_from_slice(b"entW");
        for head in [head, marked] {
            if let Ok(head) = Head::read(&head, 1 << 20) {
                prop_assert!(head.body <= 1 << 20);
            }
        }
        let _ = frame::read_to_worker(&message, body);
        let _ = frame::read_from_worker(&message, body);
    }
}

fn hello() -> Hello {
    Hello {
        version: 0,
        service: "vision".into(),
        replica: "gpu0/1g.10gb@3".into(),
        epoch: 0,
        process: 0,
        executor: Executor::Modelled,
        pid: 1,
    }
}

#[test]
fn a_worker_gets_batches_and_answers_them() {
    let (worker, mut gateway) = UnixStream::pair().unwrap();
    let mut worker = Connection::from(worker);
    let inputs = vec![
        Tensor { name: "a".into(), datatype: Datatype::Uint8, shape: vec![2, 2].into(), bytes: 4 },
        Tensor { name: "b".into(), datatype: Datatype::Uint8, shape: vec![2, 1].into(), bytes: 2 },
    ];
    let mut bytes = frame::to_worker(&ToWorker::Execute(Execute { batch: 9, rows: 2, inputs })).unwrap();
    bytes.extend([1, 2, 3, 4, 5, 6]);
    gateway.write_all(&bytes).unwrap();
    let received = worker.receive().unwrap();
    assert_eq!(received.body, [1, 2, 3, 4, 5, 6]);
    let ToWorker::Execute(execute) = received.message else { panic!("{:?}", received.message) };
    assert_eq!((execute.batch, execute.rows, execute.inputs.len()), (9, 2, 2));

    let outputs =
        vec![Tensor { name: "y".into(), datatype: Datatype::Fp32, shape: vec![2, 1].into(), bytes: 8 }];
    let done = FromWorker::Done(Done { batch: 9, compute_us: 12, energy_j: None, outputs });
    assert!(matches!(worker.send(&done, &[&[0; 4]]), Err(WireError::Body { declared: 8, present: 4 })));
    worker.send(&done, &[&[0; 4], &[1; 4]]).unwrap();
    let mut head = [0; HEAD_LENGTH];
    gateway.read_exact(&mut head).unwrap();
    let head = Head::read(&head, 64).unwrap();
    let mut rest = vec![0; head.message + head.body];
    gateway.read_exact(&mut rest).unwrap();
    assert_eq!(frame::read_from_worker(&rest[..head.message], head.body).unwrap(), done);
    assert_eq!(rest[head.message..], [0, 0, 0, 0, 1, 1, 1, 1]);

    drop(gateway);
    assert!(matches!(worker.receive(), Err(WireError::Closed)));
}

#[test]
fn a_frame_cut_short_is_not_the_end_between_frames() {
    let (worker, mut gateway) = UnixStream::pair().unwrap();
    let mut worker = Connection::from(worker);
    let bytes = frame::to_worker(&ToWorker::Shutdown).unwrap();
    gateway.write_all(&bytes[..HEAD_LENGTH - 1]).unwrap();
    drop(gateway);
    assert!(matches!(worker.receive(), Err(WireError::Io(_))));
}

#[test]
fn a_worker_that_is_refused_says_why() {
    let folder = std::env::temp_dir().join(format!("ent-wire-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let socket = folder.join("refusing");
    let _ = std::fs::remove_file(&socket);
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let gateway = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; HEAD_LENGTH];
        stream.read_exact(&mut head).unwrap();
        let head = Head::read(&head, 0).unwrap();
        let mut message = vec![0; head.message];
        stream.read_exact(&mut message).unwrap();
        let said = frame::read_from_worker(&message, 0).unwrap();
        assert_eq!(said, FromWorker::Hello(Hello { version: VERSION, ..hello() }));
        let refused = ToWorker::Refused(Refused { reason: "no such replica".into() });
        stream.write_all(&frame::to_worker(&refused).unwrap()).unwrap();
    });
    let error = Connection::open(&socket, hello()).unwrap_err();
    assert_eq!(error.to_string(), "the gateway does not take this worker: no such replica");
    gateway.join().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_frame_that_is_too_large_is_refused_before_there_is_room_for_it() {
    let mut head = [0; HEAD_LENGTH];
    head[..4].copy_from_slice(b"entW");
    head[8..].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(Head::read(&head, 1 << 30), Err(WireError::TooLarge { .. })));
    head[..4].copy_from_slice(b"HTTP");
    assert!(matches!(Head::read(&head, 1 << 30), Err(WireError::NotAFrame(_))));
}
