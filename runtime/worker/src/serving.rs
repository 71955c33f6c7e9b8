//! The worker's life: connect, load, get warm, answer batches, end.

use crate::arguments::{Arguments, Kind};
use crate::device::Board;
use crate::error::WorkerError;
use crate::executor::Executor;
use ent_wire::{
    Connection, Done, Executor as Wired, Failed, FromWorker, Hello, ToWorker, VERSION, Warm, WireError,
};
use std::borrow::Cow;
use std::net::Shutdown;
use std::time::Instant;

/// Serves until the gateway or a signal says to end. A batch that is being run when SIGTERM or SIGINT comes is
/// finished and answered; the gateway gives the rest to others.
pub(crate) fn serve(arguments: &Arguments) -> Result<(), WorkerError> {
    let board = Board::open(arguments)?;
    let hello = Hello {
        version: VERSION,
        service: arguments.service.clone(),
        replica: arguments.replica.clone(),
        epoch: arguments.epoch,
        process: arguments.process,
        executor: match arguments.executor {
            Kind::Modelled => Wired::Modelled,
            Kind::Torch => Wired::Torch,
        },
        pid: std::process::id(),
    };
    let (mut connection, model, mut configure) = Connection::open(&arguments.socket, hello)?;
    end_on_signal(&connection)?;
    let mut executor = Executor::load(arguments, model)?;
    loop {
        let batch = configure.batch;
        executor.warm(configure)?;
        connection.send(&FromWorker::Warm(Warm { batch, signature: executor.signature() }), &[])?;
        match answer(&mut connection, &mut executor, board.as_ref())? {
            Some(changed) => configure = changed,
            None => return Ok(()),
        }
    }
}

/// Answers batches until they change or none comes any more.
fn answer(
    connection: &mut Connection,
    executor: &mut Executor,
    board: Option<&Board>,
) -> Result<Option<ent_wire::Configure>, WorkerError> {
    loop {
        let received = match connection.receive() {
            Ok(received) => received,
            Err(WireError::Closed) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (id, result, compute_us) = match received.message {
            ToWorker::Execute(batch) => {
                let started = Instant::now();
                let result = executor.run(&batch, received.body);
                (batch.batch, result, u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX))
            }
            ToWorker::Configure(configure) => return Ok(Some(configure)),
            ToWorker::Shutdown => return Ok(None),
            other @ (ToWorker::Welcome(_) | ToWorker::Refused(_)) => {
                return Err(WireError::Unexpected(other.word()).into());
            }
        };
        match result {
            Ok(answer) => {
                if let (Some(board), Some(joules)) = (board, answer.energy_j) {
                    board.spend(joules)?;
                }
                let bytes: Vec<&[u8]> = answer.bytes.iter().map(Vec::as_slice).collect();
                let done = Done { batch: id, compute_us, energy_j: answer.energy_j, outputs: answer.tensors };
                connection.send(&FromWorker::Done(done), &bytes)?;
            }
            Err(message) => {
                connection
                    .send(&FromWorker::Failed(Failed { batch: id, message: Cow::Owned(message) }), &[])?;
            }
        }
    }
}

/// A signal ends the reading side of the connection: what is being run is still answered.
fn end_on_signal(connection: &Connection) -> Result<(), WorkerError> {
    let stream = connection.stream().try_clone().map_err(WireError::Io)?;
    // Without a handler a signal simply ends the process, which the gateway bears as well.
    let _ignored = ctrlc::set_handler(move || {
        let _ignored = stream.shutdown(Shutdown::Read);
    });
    Ok(())
}
