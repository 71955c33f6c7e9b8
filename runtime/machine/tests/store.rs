//! State and lock of a machine, with bad files, bad folders, full disks and several processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use ent_machine::error::StoreError;
use ent_machine::state::State;
use ent_machine::store::Store;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Names the folder of a store to the child, and what it is to do there.
const FOLDER: &str = "ENT_TEST_FOLDER";
const TASK: &str = "ENT_TEST_TASK";

/// This very executable, which does one task on a folder: see [`child`].
fn task(folder: &Path, task: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["child", "--exact", "--nocapture", "--quiet"]);
    command.env(FOLDER, folder).env(TASK, task).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// What a child does; nothing when the tests are run.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = Store::at(Path::new(&folder));
    match std::env::var(TASK).unwrap().as_str() {
        "hold" => {
            let _locked = store.lock("entc apply plan.json", Duration::ZERO).unwrap();
            println!("held");
            // Until the parent closes its end.
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        }
        "write" => {
            let error = Store::open(Path::new(&folder))
                .and_then(|store| store.lock("entc apply", Duration::ZERO))
                .and_then(|locked| locked.write_state(&State::default()));
            match error {
                Err(StoreError::Io { what, source, .. }) => println!("{what}: {:?}", source.kind()),
                other => println!("{other:?}"),
            }
        }
        other => panic!("no task `{other}`"),
    }
}

/// A child that holds the lock.
fn holder(folder: &Path) -> Child {
    let mut child = task(folder, "hold").spawn().unwrap();
    let mut said = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    while !said.contains("held") {
        let mut byte = [0];
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "{said}");
        said.push(byte[0].into());
    }
    child
}

/// What a child prints of a task, under the shell's limits.
fn said(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_lock_is_refused_with_the_name_of_its_holder() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = holder(folder.path());
    let store = Store::open(folder.path()).unwrap();
    let error = store.lock("entc rollback", Duration::ZERO).unwrap_err();
    let is_it = |pid: u32, command: &str| pid == child.id() && command == "entc apply plan.json";
    assert!(matches!(&error, StoreError::Locked { pid, command } if is_it(*pid, command)), "{error}");
    assert_eq!(error.word(), "locked");
    // Reading needs no lock.
    assert_eq!(store.state().unwrap(), State::default());
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_lock_is_waited_for_and_dies_with_its_holder() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    for is_killed in [false, true] {
        let mut child = holder(folder.path());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| store.lock("entc rollback", Duration::from_secs(60)).map(drop));
            if is_killed {
                child.kill().unwrap();
            }
            drop(child.stdin.take());
            waiting.join().unwrap().unwrap();
        });
        child.wait().unwrap();
    }
}

#[test]
fn a_second_lock_in_the_same_process_is_refused_too() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let locked = store.lock("one", Duration::ZERO).unwrap();
    let error = store.lock("two", Duration::ZERO).unwrap_err();
    assert!(matches!(error, StoreError::Locked { pid, .. } if pid == std::process::id()));
    drop(locked);
    store.lock("two", Duration::ZERO).unwrap();
}

#[test]
fn a_state_is_read_as_it_was_written_and_an_absent_one_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("a/b")).unwrap();
    assert_eq!(store.state().unwrap(), State::default());
    assert_eq!(Store::at(Path::new("/nowhere/at/all")).state().unwrap(), State::default());
    let state = State { plan: Some("sha256:12".to_owned()), boot_id: "b".to_owned(), ..State::default() };
    store.lock("test", Duration::ZERO).unwrap().write_state(&state).unwrap();
    assert_eq!(store.state().unwrap(), state);
    let names = std::fs::read_dir(store.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["lock", "state.json"]);
}

#[test]
fn a_state_that_is_damaged_or_newer_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    store.lock("test", Duration::ZERO).unwrap().write_state(&State::default()).unwrap();
    let whole = std::fs::read_to_string(store.state_path()).unwrap();
    let newer = whole.replace("\"1.0\"", "\"2.3\"");
    std::fs::write(store.state_path(), &newer).unwrap();
    let error = store.state().unwrap_err();
    assert!(matches!(&error, StoreError::Newer { found, .. } if found == "2.3"), "{error}");
    std::fs::write(store.state_path(), whole.replace("\"1.0\"", "\"1.9\"")).unwrap();
    assert_eq!(store.state().unwrap().format_version, "1.9");
    let bad = [
        "",
        "{",
        "[]",
        "null",
        "\u{0}\u{0}",
        &whole[..whole.len() / 2],
        &whole.replace("1.0", "x"),
        "{\"format_version\": \"1.0\"}",
    ];
    for text in bad {
        std::fs::write(store.state_path(), text).unwrap();
        let error = store.state().unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{text}: {error}");
        assert!(error.help().contains("mv "), "{}", error.help());
    }
}

#[test]
fn a_folder_that_may_not_be_written_is_a_typed_error() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("entc");
    std::fs::create_dir(&state).unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o555)).unwrap();
    let mut writer = task(&state, "write");
    // Permissions do not bind root.
    if is_root() {
        writer.uid(65534).gid(65534);
    }
    assert!(said(writer).contains("open: PermissionDenied"));
    let in_a_file = folder.path().join("file");
    std::fs::write(&in_a_file, "").unwrap();
    let error = Store::open(&in_a_file.join("entc")).unwrap_err();
    assert!(
        matches!(&error, StoreError::Io { source, .. } if source.kind() == ErrorKind::NotADirectory),
        "{error}"
    );
    assert!(error.help().contains("another folder"), "{}", error.help());
}

fn is_root() -> bool {
    // The owner of what this process makes is who it is.
    let made = tempfile::NamedTempFile::new().unwrap();
    std::os::unix::fs::MetadataExt::uid(&made.as_file().metadata().unwrap()) == 0
}

#[test]
fn a_full_disk_leaves_the_old_state() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let old = State { plan: Some("sha256:12".to_owned()), ..State::default() };
    store.lock("test", Duration::ZERO).unwrap().write_state(&old).unwrap();
    // No file may grow: the same refusals at the same calls as on a full disk, under another code.
    let inner = task(folder.path(), "write");
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]);
    limited.arg(inner.get_program()).args(inner.get_args());
    inner.get_envs().for_each(|(name, value)| {
        limited.env(name, value.unwrap());
    });
    // The child's own words go to a pipe, which has no size.
    let words = said(limited);
    assert!(words.contains("write: FileTooLarge"), "{words}");
    assert_eq!(store.state().unwrap(), old);
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["lock", "state.json"], "nothing half-written stays");
}
