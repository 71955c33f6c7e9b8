//! What one process has open: the machine's folder, and how often NVML was initialised.

use crate::faults::{self, When};
use crate::returns::Return;
use crate::silicon::Silicon;
use crate::store::{self, Store};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a call comes to.
pub(super) type Answer<T> = Result<T, Return>;

struct Process {
    /// The folder that was asked for; otherwise the environment's.
    folder: Option<PathBuf>,
    store: Option<Arc<Store>>,
    n_initialisations: u32,
    /// The boot that was initialised in. After another one the driver has never heard of this process.
    boot: u64,
}

static PROCESS: Mutex<Process> =
    Mutex::new(Process { folder: None, store: None, n_initialisations: 0, boot: 0 });

fn process() -> MutexGuard<'static, Process> {
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    fn open(&mut self) -> Answer<Arc<Store>> {
        if let Some(store) = &self.store {
            return Ok(Arc::clone(store));
        }
        let folder = self.folder.clone().or_else(store::folder).ok_or(Return::DriverNotLoaded)?;
        let store = Arc::new(Store::open(&folder).map_err(|error| Return::from(&error))?);
        self.store = Some(Arc::clone(&store));
        Ok(store)
    }
}

/// Runs the body of an exported function: what is to go wrong goes wrong around it, and a panic becomes
/// a return code.
pub(super) fn call(function: &str, body: impl FnOnce() -> Answer<()>) -> u32 {
    let answer = catch_unwind(AssertUnwindSafe(|| {
        let begins = function.starts_with("nvmlInit") || function.starts_with("entcSim");
        let store =
            if begins && function != "entcSimUse" { process().open().ok() } else { process().store.clone() };
        if let Some(fault) = store.as_ref().and_then(|s| faults::check(s, function, When::Before)) {
            return Err(fault);
        }
        // nvml.h lets the library's own version be asked at any time.
        let is_free = begins || function == "nvmlSystemGetNVMLVersion";
        let answer =
            if is_free || process().n_initialisations > 0 { body() } else { Err(Return::Uninitialized) };
        let fault = store.as_ref().and_then(|s| faults::check(s, function, When::After));
        fault.map_or(answer, Err)
    }));
    match answer {
        Ok(Ok(())) => 0,
        Ok(Err(refusal)) => refusal.code(),
        Err(_) => Return::Unknown.code(),
    }
}

/// Initialises once more. Each must be matched by a [`shut_down`].
pub(super) fn initialise(may_lack_gpus: bool) -> Answer<()> {
    let mut process = process();
    let store = process.open()?;
    let (boot, n_gpus) =
        store.with(|machine| (machine.boot(), machine.n_gpus())).map_err(|error| Return::from(&error))?;
    if n_gpus == 0 && !may_lack_gpus {
        return Err(Return::GpuNotFound);
    }
    // The driver stays loaded while somebody has NVML initialised. Where the folder cannot be written
    // nobody can change the machine, and it does not matter.
    let _unwritable = store.with_mut(|machine| machine.open_session(std::process::id()));
    process.boot = boot;
    process.n_initialisations = process.n_initialisations.saturating_add(1);
    Ok(())
}

/// Takes one initialisation back; the last closes the machine.
pub(super) fn shut_down() -> Answer<()> {
    let mut process = process();
    process.n_initialisations = process.n_initialisations.checked_sub(1).ok_or(Return::Uninitialized)?;
    if process.n_initialisations == 0
        && let Some(store) = process.store.take()
    {
        let _unwritable = store.with_mut(|machine| machine.close_session(std::process::id()));
    }
    Ok(())
}

/// Chooses the folder, while nothing is initialised.
pub(super) fn use_folder(folder: PathBuf) -> Answer<()> {
    let mut process = process();
    if process.n_initialisations > 0 {
        return Err(Return::InvalidState);
    }
    process.folder = Some(folder);
    process.store = None;
    Ok(())
}

fn opened() -> Answer<(Arc<Store>, u64)> {
    let process = process();
    Ok((process.store.clone().ok_or(Return::Uninitialized)?, process.boot))
}

/// Looks at the machine.
pub(super) fn look<T>(question: impl FnOnce(&Silicon) -> Answer<T>) -> Answer<T> {
    let (store, boot) = opened()?;
    let answer = store
        .with(|machine| if machine.boot() == boot { question(machine) } else { Err(Return::Uninitialized) });
    answer.map_err(|error| Return::from(&error))?
}

/// Changes the machine.
pub(super) fn change<T>(request: impl FnOnce(&mut Silicon) -> Answer<T>) -> Answer<T> {
    let (store, boot) = opened()?;
    let answer =
        store.with_mut(
            |machine| {
                if machine.boot() == boot { request(machine) } else { Err(Return::Uninitialized) }
            },
        );
    answer.map_err(|error| Return::from(&error))?
}

/// The machine without NVML, for what no real driver has.
pub(super) fn machine() -> Answer<Arc<Store>> {
    process().open()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_does_not_unwind_into_c() {
        assert_eq!(call("entcSimUse", || panic!("a bug")), Return::Unknown.code());
        assert_eq!(call("entcSimUse", || Err(Return::NotFound)), Return::NotFound.code());
        assert_eq!(call("nvmlDeviceGetCount_v2", || panic!("not run")), Return::Uninitialized.code());
        assert_eq!(call("entcSimUse", || Ok(())), 0);
    }
}
