//! A folder ↔ the machine in it: `machine.toml` and `state.json`, shared by several processes.
//!
//! Readers never wait and never see half a write: a new state replaces the old file by rename. Writers
//! take turns by a lock on a file of its own, begin from what is on disk, and are done when the new state
//! is. A process that is killed at any point leaves the old state or the new one. (Power loss may take the
//! last changes: a simulated machine has no power to lose.)

use crate::description::{Description, DescriptionError, FILE};
use crate::faults::{Faults, FaultsError};
use crate::returns::Return;
use crate::silicon::state::{State, VERSION};
use crate::silicon::{Machine, Silicon};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The environment variable that names the folder.
pub const FOLDER_VARIABLE: &str = "ENTC_SIM_STATE";

/// The name of the file with what became of the machine.
pub const STATE_FILE: &str = "state.json";

/// The name of the file that writers lock.
const LOCK_FILE: &str = "lock";

/// How long a store may go without looking for processes that ended, which costs a file for each: so long
/// they may still seem to draw power. Whether an instance is in use is always looked at anew.
const REAP_EVERY: Duration = Duration::from_millis(1);

/// Why a machine cannot be read or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is none, or none that could be.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// What is to go wrong is not understood.
    #[error(transparent)]
    Faults(#[from] FaultsError),
    /// A file cannot be read, written or locked.
    #[error("cannot {operation} `{}`", path.display())]
    File {
        /// `read`, `write` or `lock`.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The state is cut off or was damaged.
    #[error(
        "`{}` is damaged ({message}); remove it to let the machine boot anew, without instances",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The state was written by a newer entc.
    #[error("`{}` has version {found}; this library knows {VERSION}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// The state is of another machine than the description.
    #[error(
        "`{}` is the state of other boards than {FILE} describes; remove it to let the new machine boot",
        path.display()
    )]
    OtherMachine {
        /// The file.
        path: PathBuf,
    },
    /// What is described to be there at first boot does not fit.
    #[error("{FILE}: {0}")]
    Impossible(String),
}

/// What a call answers when there is no machine to answer for.
impl From<&StoreError> for Return {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::File { .. } => Self::OperatingSystem,
            StoreError::Newer { .. } => Self::LibRmVersionMismatch,
            StoreError::Description(_)
            | StoreError::Faults(_)
            | StoreError::Damaged { .. }
            | StoreError::OtherMachine { .. }
            | StoreError::Impossible(_) => Self::DriverNotLoaded,
        }
    }
}

/// An open folder. One for each process is enough; threads share it.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    cache: Mutex<Cache>,
}

/// What was read last, and from which files.
#[derive(Debug, Default)]
struct Cache {
    description: Option<(Version, Arc<Machine>)>,
    state: Option<(Version, Silicon)>,
    faults: Option<(Version, Faults)>,
    reaped: Option<Instant>,
}

impl Cache {
    /// Whether it is time to look for processes that ended; they are looked for then.
    fn is_reaping_due(&mut self) -> bool {
        let is_due = self.reaped.is_none_or(|last| last.elapsed() >= REAP_EVERY);
        if is_due {
            self.reaped = Some(Instant::now());
        }
        is_due
    }
}

/// Which file that was. The file is kept open, so that its inode cannot come again for another.
#[derive(Debug)]
struct Version {
    #[expect(dead_code, reason = "held, not used")]
    file: File,
    identity: Identity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Identity {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl Store {
    /// Opens a folder; the machine's first boot when it has no state yet.
    ///
    /// # Errors
    /// When `machine.toml` or `faults.json` is wrong, or the state cannot be read or made.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let store = Self { folder: folder.to_owned(), cache: Mutex::new(Cache::default()) };
        {
            let mut cache = store.cache();
            store.refresh_faults(&mut cache)?;
            if store.load(&mut cache)?.is_some() {
                drop(cache);
                return Ok(store);
            }
        }
        // Another process may boot it meanwhile; whoever has the lock looks again.
        store.with_mut(|_| ())?;
        Ok(store)
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Looks at the machine as it is now.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn with<T>(&self, look: impl FnOnce(&Silicon) -> T) -> Result<T, StoreError> {
        let (found, is_due) = {
            let mut cache = self.cache();
            (self.load(&mut cache)?, cache.is_reaping_due())
        };
        match found {
            // Whoever may not write sees processes that ended until somebody else forgets them.
            Some(silicon) if is_due && silicon.has_ended_processes() => {
                let reaped = self.change(true, |silicon| silicon.clone());
                Ok(look(&reaped.unwrap_or(silicon)))
            }
            Some(silicon) => Ok(look(&silicon)),
            None => self.with_mut(|silicon| look(silicon)),
        }
    }

    /// Changes the machine, alone; what was changed is on disk when this returns.
    ///
    /// # Errors
    /// When the files cannot be read or written; nothing is changed then.
    pub fn with_mut<T>(&self, change: impl FnOnce(&mut Silicon) -> T) -> Result<T, StoreError> {
        let is_due = self.cache().is_reaping_due();
        self.change(is_due, change)
    }

    fn change<T>(
        &self,
        is_reaping_due: bool,
        change: impl FnOnce(&mut Silicon) -> T,
    ) -> Result<T, StoreError> {
        let _lock = self.lock()?;
        let mut cache = self.cache();
        let now = now_ns();
        let (mut silicon, is_new) = match self.load(&mut cache)? {
            Some(silicon) => (silicon, false),
            None => (self.boot(&mut cache, now)?, true),
        };
        // What was drawn until now is counted before anything changes. That alone is no change: the time
        // between is counted by whoever looks, too.
        silicon.advance(now);
        let is_reaped = is_reaping_due && silicon.reap();
        let before = silicon.clone();
        let answer = change(&mut silicon);
        if is_new || is_reaped || silicon.state() != before.state() {
            cache.state = Some((self.save(silicon.state())?, silicon));
        }
        Ok(answer)
    }

    /// Counts a call against the described faults: see [`crate::faults::check`].
    pub(crate) fn with_faults<T>(&self, count: impl Fn(&mut Faults) -> T) -> Result<Option<T>, StoreError> {
        {
            // Without a file, or with one that does not know the call, nothing is locked or written.
            let mut cache = self.cache();
            self.refresh_faults(&mut cache)?;
            let Some((_, faults)) = &cache.faults else { return Ok(None) };
            let mut counted = faults.clone();
            let answer = count(&mut counted);
            if counted == *faults {
                return Ok(Some(answer));
            }
        }
        let _lock = self.lock()?;
        let mut cache = self.cache();
        self.refresh_faults(&mut cache)?;
        let Some((_, faults)) = &cache.faults else { return Ok(None) };
        let mut counted = faults.clone();
        let answer = count(&mut counted);
        if counted != *faults {
            let text = counted.text();
            cache.faults = Some((self.replace(crate::faults::FILE, text.as_bytes())?, counted));
        }
        Ok(Some(answer))
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        // What a panicking thread left is what was on disk: it is assigned whole.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> Result<File, StoreError> {
        let path = self.folder.join(LOCK_FILE);
        // The lock is the process's and thread's: each has a file of its own, and it goes with that file.
        let locked = File::create(&path).and_then(|file| file.lock().map(|()| file));
        locked.map_err(|source| StoreError::File { operation: "lock", path, source })
    }

    /// The machine as the files have it, now; `None` when it was never booted.
    fn load(&self, cache: &mut Cache) -> Result<Option<Silicon>, StoreError> {
        let machine = self.machine(cache)?;
        let path = self.folder.join(STATE_FILE);
        let Some(identity) = identity(&path)? else { return Ok(None) };
        if let Some((version, silicon)) = &cache.state
            && version.identity == identity
        {
            return Ok(Some(silicon.at(&machine, now_ns())));
        }
        let Some((version, text)) = read(&path)? else { return Ok(None) };
        let state = parse_state(&path, &text)?;
        if !Silicon::is_of(&state, machine.description()) {
            return Err(StoreError::OtherMachine { path });
        }
        let silicon = Silicon::new(machine, state, now_ns(), started);
        cache.state = Some((version, silicon.clone()));
        Ok(Some(silicon))
    }

    /// The described machine.
    fn machine(&self, cache: &mut Cache) -> Result<Arc<Machine>, StoreError> {
        let path = self.folder.join(FILE);
        let missing = || StoreError::Description(DescriptionError::Missing(self.folder.clone()));
        let identity = identity(&path)?.ok_or_else(missing)?;
        if let Some((version, machine)) = &cache.description
            && version.identity == identity
        {
            return Ok(Arc::clone(machine));
        }
        let (version, text) = read(&path)?.ok_or_else(missing)?;
        let machine = Arc::new(Machine::new(Description::parse(&text)?));
        // Of other boards, perhaps: the state is looked at again.
        cache.state = None;
        cache.description = Some((version, Arc::clone(&machine)));
        Ok(machine)
    }

    fn refresh_faults(&self, cache: &mut Cache) -> Result<(), StoreError> {
        let path = self.folder.join(crate::faults::FILE);
        let identity = identity(&path)?;
        if identity == cache.faults.as_ref().map(|(version, _)| version.identity) {
            return Ok(());
        }
        cache.faults = None;
        if let Some((version, text)) = read(&path)? {
            cache.faults = Some((version, Faults::parse(&text)?));
        }
        Ok(())
    }

    fn boot(&self, cache: &mut Cache, now: u64) -> Result<Silicon, StoreError> {
        let machine = self.machine(cache)?;
        Silicon::first_boot(machine, now, started).map_err(StoreError::Impossible)
    }

    fn save(&self, state: &State) -> Result<Version, StoreError> {
        let path = self.folder.join(STATE_FILE);
        let text = serde_json::to_vec(state).map_err(|e| StoreError::File {
            operation: "write",
            path,
            source: e.into(),
        })?;
        self.replace(STATE_FILE, &text)
    }

    /// Puts a new file in place of an old one, whole or not at all. The caller has the lock.
    fn replace(&self, name: &str, text: &[u8]) -> Result<Version, StoreError> {
        let (path, new) = (self.folder.join(name), self.folder.join(format!("{name}.new")));
        let put = || {
            fs::write(&new, text)?;
            let file = File::open(&new)?;
            fs::rename(&new, &path)?;
            let identity = Identity::of(&file.metadata()?);
            Ok(Version { file, identity })
        };
        put().map_err(|source| StoreError::File { operation: "write", path: path.clone(), source })
    }
}

/// Which file is there now.
fn identity(path: &Path) -> Result<Option<Identity>, StoreError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(Identity::of(&metadata))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StoreError::File { operation: "read", path: path.to_owned(), source }),
    }
}

/// A file's text, and which file it was; `None` when there is none.
fn read(path: &Path) -> Result<Option<(Version, String)>, StoreError> {
    let open = || {
        let mut file = File::open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let identity = Identity::of(&file.metadata()?);
        Ok((Version { file, identity }, text))
    };
    match open() {
        Ok(found) => Ok(Some(found)),
        Err(error) if ErrorKind::NotFound == std::io::Error::kind(&error) => Ok(None),
        Err(source) => Err(StoreError::File { operation: "read", path: path.to_owned(), source }),
    }
}

fn parse_state(path: &Path, text: &str) -> Result<State, StoreError> {
    #[derive(serde::Deserialize)]
    struct Probe {
        version: u64,
    }
    let damaged =
        |e: serde_json::Error| StoreError::Damaged { path: path.to_owned(), message: e.to_string() };
    let probe: Probe = serde_json::from_str(text).map_err(damaged)?;
    if probe.version > u64::from(VERSION) {
        return Err(StoreError::Newer { path: path.to_owned(), found: probe.version });
    }
    serde_json::from_str(text).map_err(damaged)
}

/// Nanoseconds since the epoch; the clock that all processes share.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// When a process started, in clock ticks since the system's boot (proc(5), `/proc/PID/stat` field 22). A
/// zombie has ended: its files are closed.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, parentheses too.
    let mut fields = stat.get(stat.rfind(')')? + 2..)?.split(' ');
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The folder that the environment names: `ENTC_SIM_STATE`, else `$XDG_STATE_HOME/entc/simulated`, else
/// `$HOME/.local/state/entc/simulated`. `None` without any of them.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let under = |folder: PathBuf| folder.join("entc").join("simulated");
    variable(FOLDER_VARIABLE)
        .or_else(|| variable("XDG_STATE_HOME").map(under))
        .or_else(|| variable("HOME").map(|home| under(home.join(".local").join("state"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::silicon::Device;
    use std::process::{Command, Stdio};
    use tempfile::TempDir;

    const GPU: Device = Device::Gpu(0);

    fn boot(describe: impl FnOnce(&mut Description)) -> (TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let mut description = Description::of("575.57.08", &[("a100-80gb-pcie", 8)]);
        description.gpu[0].mig = true;
        describe(&mut description);
        description.write(folder.path()).unwrap();
        let store = Store::open(folder.path()).unwrap();
        (folder, store)
    }

    fn create(store: &Store) -> Result<u64, Return> {
        store.with_mut(|s| s.create_gpu_instance(GPU, 19, None)).unwrap()
    }

    fn n_instances(store: &Store) -> usize {
        store.with(|s| s.gpu_instances(GPU, 19).unwrap().len()).unwrap()
    }

    #[test]
    fn what_one_does_another_sees() {
        let (folder, store) = boot(|_| ());
        let other = Store::open(folder.path()).unwrap();
        assert_eq!((n_instances(&store), n_instances(&other)), (0, 0));
        let serial = create(&store).unwrap();
        assert_eq!((n_instances(&store), n_instances(&other)), (1, 1));
        other.with_mut(|s| s.destroy_gpu_instance(serial)).unwrap().unwrap();
        assert_eq!(n_instances(&store), 0);
        let boots = |store: &Store| store.with(Silicon::boot).unwrap();
        other.with_mut(Silicon::reboot).unwrap();
        assert_eq!((boots(&store), boots(&other), boots(&Store::open(folder.path()).unwrap())), (2, 2, 2));
    }

    #[test]
    fn what_changes_nothing_writes_nothing() {
        let (folder, store) = boot(|_| ());
        let version = || fs::metadata(folder.path().join(STATE_FILE)).unwrap().ino();
        let before = version();
        store.with(|s| s.total_energy(GPU)).unwrap().unwrap();
        assert_eq!(
            store.with_mut(|s| s.create_gpu_instance(GPU, 1, None)).unwrap(),
            Err(Return::InvalidArgument)
        );
        assert_eq!(version(), before);
        create(&store).unwrap();
        assert_ne!(version(), before);
        assert!(!folder.path().join("state.json.new").exists());
    }

    #[test]
    fn a_description_may_change_what_is_no_hardware() {
        let (folder, store) = boot(|_| ());
        create(&store).unwrap();
        let mut description = Description::read(folder.path()).unwrap();
        description.privileged = false;
        description.driver_version = "580.1".to_owned();
        description.write(folder.path()).unwrap();
        assert_eq!(create(&store), Err(Return::NoPermission));
        assert_eq!(store.with(|s| s.driver_version().to_owned()).unwrap(), "580.1");
        description.gpu[0].board = "a100-40gb".to_owned();
        description.write(folder.path()).unwrap();
        assert!(matches!(store.with(|_| ()), Err(StoreError::OtherMachine { .. })));
        assert!(matches!(Store::open(folder.path()), Err(StoreError::OtherMachine { .. })));
        fs::remove_file(folder.path().join(FILE)).unwrap();
        assert!(matches!(store.with(|_| ()), Err(StoreError::Description(DescriptionError::Missing(_)))));
    }

    #[test]
    fn a_state_that_cannot_be_read_says_why_and_is_left_alone() {
        let (folder, store) = boot(|d| d.gpu[0].count = 1);
        create(&store).unwrap();
        let path = folder.path().join(STATE_FILE);
        let text = fs::read_to_string(&path).unwrap();
        // Every truncation is noticed; so are other versions and other keys.
        for end in 0..text.len() {
            fs::write(&path, &text[..end]).unwrap();
            assert!(matches!(store.with(|_| ()), Err(StoreError::Damaged { .. })), "{end}");
        }
        fs::write(&path, text.replacen("\"boot\"", "\"boots\"", 1)).unwrap();
        assert!(matches!(store.with(|_| ()), Err(StoreError::Damaged { .. })));
        fs::write(&path, text.replacen("\"version\":1", "\"version\":2", 1)).unwrap();
        let error = store.with_mut(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::Newer { found: 2, .. }), "{error}");
        assert_eq!(Return::from(&error), Return::LibRmVersionMismatch);
        assert!(fs::read_to_string(&path).unwrap().contains("\"version\":2"));
        fs::write(&path, &text).unwrap();
        assert_eq!(n_instances(&store), 1);
    }

    #[test]
    fn what_is_described_for_first_boot_must_fit() {
        let folder = tempfile::tempdir().unwrap();
        let mut description = Description::of("575.57.08", &[("a100-80gb-pcie", 1)]);
        description.gpu[0].mig = true;
        let seven = crate::description::DescribedInstance {
            profile: "7g.80gb".to_owned(),
            start: None,
            compute: true,
        };
        description.gpu[0].instances = vec![seven.clone(), seven];
        description.write(folder.path()).unwrap();
        let error = Store::open(folder.path()).unwrap_err();
        assert!(matches!(&error, StoreError::Impossible(text) if text.contains("7g.80gb")), "{error}");
        assert!(!folder.path().join(STATE_FILE).exists());
    }

    /// Eight threads with stores of their own take and give back; the instances of a GPU never exceed
    /// what fits, and every one that was given is there once.
    #[test]
    fn writers_take_turns_and_readers_see_whole_states() {
        let (folder, store) = boot(|_| ());
        let made = std::thread::scope(|scope| {
            let work = || {
                let own = Store::open(folder.path()).unwrap();
                let mut serials = Vec::new();
                for _ in 0..40 {
                    match create(&own) {
                        Ok(serial) => serials.push(serial),
                        Err(error) => assert_eq!(error, Return::InsufficientResources),
                    }
                    assert!(n_instances(&own) <= 7);
                    if let Some(serial) = serials.pop_if(|s| *s % 3 != 0) {
                        own.with_mut(|s| s.destroy_gpu_instance(serial)).unwrap().unwrap();
                    }
                }
                serials
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
            threads.into_iter().flat_map(|t| t.join().unwrap()).collect::<Vec<_>>()
        });
        let mut expected = made;
        expected.sort_unstable();
        let mut found = store.with(|s| s.gpu_instances(GPU, 19)).unwrap().unwrap();
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_process_that_ended_holds_nothing() {
        let (_folder, store) = boot(|_| ());
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        let device = store
            .with_mut(|s| {
                let instance = s.create_gpu_instance(GPU, 19, None).unwrap();
                Device::Mig(s.create_compute_instance(instance, 0, None).unwrap())
            })
            .unwrap();
        let Device::Mig(compute) = device else { unreachable!() };
        store.with_mut(|s| s.attach(device, pid, "cat")).unwrap().unwrap();
        let destroy = || store.with_mut(|s| s.destroy_compute_instance(compute)).unwrap();
        assert_eq!(destroy(), Err(Return::InUse));
        assert_eq!(store.with(|s| s.processes(device).unwrap().len()).unwrap(), 1);
        child.kill().unwrap();
        // Not waited for yet: a zombie has let go, too.
        while started(pid).is_some() {
            std::thread::yield_now();
        }
        assert_eq!(store.with(|s| s.processes(device).unwrap().len()).unwrap(), 0);
        destroy().unwrap();
        child.wait().unwrap();
        assert_eq!(store.with_mut(|s| s.attach(GPU, pid, "cat")).unwrap(), Err(Return::NotFound));
    }

    #[test]
    fn this_process_has_started() {
        assert!(started(std::process::id()).is_some());
        assert_eq!(started(u32::MAX), None);
    }
}
