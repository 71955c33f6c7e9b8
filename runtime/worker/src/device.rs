//! The simulated board that a worker sits on: there it is a process, and its batches' energy is spent.
//!
//! Energy is gathered and spent every tenth of a second, beside the batches: the board's file is shared by all
//! processes, and a batch must not wait for it. On a real board nothing of this happens.
#![expect(unsafe_code, reason = "calls the four functions that only the simulated library has")]

use crate::arguments::Arguments;
use crate::error::WorkerError;
use libloading::{Library, Symbol};
use std::ffi::{CString, c_char, c_double, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Energy is spent this often.
const BETWEEN_SPENDINGS: Duration = Duration::from_millis(100);

/// A place on a simulated board.
pub(crate) struct Board {
    // Before `spender`, so that the channel is closed when the thread is waited for.
    batches: Option<Sender<f64>>,
    spender: Option<JoinHandle<()>>,
}

impl Board {
    /// Takes the place that the arguments name, if they name a simulated one.
    pub(crate) fn open(arguments: &Arguments) -> Result<Option<Self>, WorkerError> {
        let (Some(library), Some(uuid)) = (&arguments.simulated, &arguments.board) else { return Ok(None) };
        let simulated = Simulated::open(library, arguments.sim_state.as_deref(), uuid)?;
        simulated.attach()?;
        let (batches, received) = channel::<f64>();
        let spend = move || {
            let mut joules = 0.0;
            let mut is_open = true;
            while is_open {
                // Sleeping by waiting: the end of the channel is noticed at once.
                let until = std::time::Instant::now() + BETWEEN_SPENDINGS;
                loop {
                    match received.recv_timeout(until.saturating_duration_since(std::time::Instant::now())) {
                        Ok(more) => joules += more,
                        Err(RecvTimeoutError::Timeout) => break,
                        Err(RecvTimeoutError::Disconnected) => {
                            is_open = false;
                            break;
                        }
                    }
                }
                // What cannot be spent now is tried again with the next.
                if joules > 0.0 && simulated.spend(joules).is_ok() {
                    joules = 0.0;
                }
            }
            let _ignored = simulated.detach();
        };
        Ok(Some(Self { batches: Some(batches), spender: Some(std::thread::spawn(spend)) }))
    }

    /// Spends a batch's energy (J).
    pub(crate) fn spend(&self, joules: f64) -> Result<(), WorkerError> {
        let sent = self.batches.as_ref().map(|batches| batches.send(joules));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(WorkerError::Simulated("its energy cannot be spent any more".to_owned())),
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(spender) = self.spender.take() {
            let _ignored = spender.join();
        }
    }
}

/// The simulated library.
struct Simulated {
    library: Library,
    uuid: CString,
    pid: c_uint,
}

impl Simulated {
    fn open(library: &Path, state: Option<&Path>, uuid: &str) -> Result<Self, WorkerError> {
        let refuse = |what: String| WorkerError::Simulated(what);
        // SAFETY: the library is entc's own, and its initialisers do nothing.
        let library = unsafe { Library::new(library) }.map_err(|e| refuse(e.to_string()))?;
        let uuid = CString::new(uuid).map_err(|_| refuse("the UUID holds a zero byte".to_owned()))?;
        let simulated = Self { library, uuid, pid: std::process::id() };
        if let Some(state) = state {
            let folder = CString::new(state.as_os_str().as_bytes())
                .map_err(|_| refuse("the folder's name holds a zero byte".to_owned()))?;
            // SAFETY: the function's type is that of runtime/nvml-sim; the text outlives the call.
            let code = unsafe {
                let enter: Symbol<'_, unsafe extern "C" fn(*const c_char) -> c_uint> =
                    simulated.library.get(b"entcSimUse\0").map_err(|e| refuse(e.to_string()))?;
                enter(folder.as_ptr())
            };
            succeeded("entcSimUse", code)?;
        }
        Ok(simulated)
    }

    fn attach(&self) -> Result<(), WorkerError> {
        // SAFETY: the function's type is that of runtime/nvml-sim; the texts outlive the call.
        let code = unsafe {
            let attach: Symbol<'_, unsafe extern "C" fn(*const c_char, c_uint, *const c_char) -> c_uint> =
                self.get(b"entcSimAttach\0")?;
            attach(self.uuid.as_ptr(), self.pid, c"ent-worker".as_ptr())
        };
        succeeded("entcSimAttach", code)
    }

    fn detach(&self) -> Result<(), WorkerError> {
        // SAFETY: as above.
        let code = unsafe {
            let detach: Symbol<'_, unsafe extern "C" fn(*const c_char, c_uint) -> c_uint> =
                self.get(b"entcSimDetach\0")?;
            detach(self.uuid.as_ptr(), self.pid)
        };
        succeeded("entcSimDetach", code)
    }

    fn spend(&self, joules: f64) -> Result<(), WorkerError> {
        // SAFETY: as above.
        let code = unsafe {
            let spend: Symbol<'_, unsafe extern "C" fn(*const c_char, c_uint, c_double) -> c_uint> =
                self.get(b"entcSimSpend\0")?;
            spend(self.uuid.as_ptr(), self.pid, joules)
        };
        succeeded("entcSimSpend", code)
    }

    /// A function of the library. The caller says its type.
    unsafe fn get<T>(&self, name: &[u8]) -> Result<Symbol<'_, T>, WorkerError> {
        // SAFETY: the caller's.
        unsafe { self.library.get(name) }.map_err(|error| WorkerError::Simulated(error.to_string()))
    }
}

fn succeeded(call: &str, code: c_uint) -> Result<(), WorkerError> {
    match code {
        0 => Ok(()),
        code => Err(WorkerError::Simulated(format!("{call} returned code {code}"))),
    }
}
