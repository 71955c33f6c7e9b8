//! The socket that workers connect to, and what each says.

use super::StartError;
use super::front::Front;
use super::link::Link;
use super::replica::Replica;
use bytes::BytesMut;
use ent_wire::{FromWorker, Hello, Refused, ToWorker, VERSION, frame};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};

/// A worker says hello at once.
const HELLO_TIME: Duration = Duration::from_secs(10);

/// Listens for workers. Only this user can connect.
pub(crate) fn listen(path: &Path) -> Result<UnixListener, StartError> {
    let fail = |source| StartError::Listen { address: path.display().to_string(), source };
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(fail(std::io::Error::other("another gateway listens there")));
    }
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(fail(e)),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(fail)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
    Ok(listener)
}

/// Takes workers in for as long as the gateway runs.
pub(crate) async fn accept(front: Arc<Front>, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let front = Arc::clone(&front);
                tokio::spawn(async move { serve(&front, stream).await });
            }
            // Out of files, most likely: the next one may find some.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(front: &Front, stream: UnixStream) {
    let _ = socket2::SockRef::from(&stream).set_send_buffer_size(4 << 20);
    let link = Arc::new(Link::new(stream));
    let mut buffer = BytesMut::new();
    let Ok(Ok(first)) = tokio::time::timeout(HELLO_TIME, link.receive(&mut buffer)).await else { return };
    let serial = front.next_serial();
    let welcome = match frame::read_from_worker(&first.message, first.body.len()) {
        Ok(FromWorker::Hello(hello)) => welcome(front, &hello, serial, &link),
        Ok(FromWorker::Warm(_) | FromWorker::Done(_) | FromWorker::Failed(_)) | Err(_) => {
            Err("a worker begins with `Hello`, of the gateway's version of entc".to_owned())
        }
    };
    let (replica, service) = match welcome {
        Ok(taken) => taken,
        Err(reason) => {
            link.send(&ToWorker::Refused(Refused { reason }), &[]);
            // What is not written yet gets a moment, and then goes with the connection.
            let _ = tokio::time::timeout(Duration::from_millis(200), link.drain()).await;
            return;
        }
    };
    // It leaves however this ends.
    let _leaving = Leaving { replica: Arc::clone(&replica), serial };
    let write = link.drain();
    let read = async {
        loop {
            let frame = link.receive(&mut buffer).await.ok()?;
            let body = frame.body.len();
            match frame::read_from_worker(&frame.message, body).ok()? {
                FromWorker::Hello(_) => return None::<()>,
                FromWorker::Warm(warm) => {
                    if let Some(signature) = warm.signature
                        && let Ok(service) = front.service(&service)
                    {
                        // The first worker's word holds: they all run one network.
                        let _ = service.reported.set(signature);
                    }
                    replica.warm(serial, warm.batch);
                }
                FromWorker::Done(done) => replica.done(serial, done, frame.body.clone()).ok()?,
                FromWorker::Failed(failed) => replica.failed(serial, failed.batch, &failed.message).ok()?,
            }
        }
    };
    let hang = async {
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            if replica.is_hanging(serial, front.options.limits.batch_time) {
                return;
            }
        }
    };
    tokio::select! {
        _ = write => {}
        _ = read => {}
        () = hang => {}
    }
}

fn welcome(
    front: &Front,
    hello: &Hello,
    serial: u64,
    link: &Arc<Link>,
) -> Result<(Arc<Replica>, String), String> {
    let Hello { version, service, replica: id, epoch, process, executor, .. } = hello;
    if *version != VERSION {
        return Err(format!(
            "the worker speaks version {version}, the gateway {VERSION}; use one version of entc"
        ));
    }
    let Some(replica) = front.replica(service, id, *epoch) else {
        return Err(format!("the deployment has no replica `{id}` of `{service}` (epoch {epoch})"));
    };
    if replica.executor != *executor {
        let (is, wanted) = (executor.word(), replica.executor.word());
        return Err(format!("the worker's executor is {is}; replica `{id}` is to have {wanted}"));
    }
    replica.join(*process, serial, Arc::clone(link))?;
    Ok((replica, service.clone()))
}

struct Leaving {
    replica: Arc<Replica>,
    serial: u64,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.replica.left(self.serial);
    }
}
