//! Journals that were torn, edited or written by a newer entc.

use super::*;
use crate::changes::{Changes, Operation, Step};
use crate::error::StoreError;
use crate::observed::GpuUuid;
use crate::store::{Locked, Store};
use std::io::Write;
use std::time::Duration;

fn gpu() -> GpuUuid {
    GpuUuid("GPU-0".to_owned())
}

fn step(operation: Operation) -> Step {
    Step { gpu: gpu(), index: 0, operation, reason: "service a needs it".to_owned() }
}

fn create(start: u32) -> Step {
    step(Operation::CreateInstance { profile: "1g.10gb".to_owned(), start, size: 1 })
}

fn destroy(start: u32) -> Step {
    step(Operation::DestroyInstance { profile: "1g.10gb".to_owned(), start, size: 1 })
}

fn machine(boot_id: &str) -> Observed {
    Observed {
        driver_version: "575.57.08".to_owned(),
        library: "libnvidia-ml.so.1".to_owned(),
        is_simulated: true,
        boot_id: boot_id.to_owned(),
        gpus: Vec::new(),
        unreadable: Vec::new(),
    }
}

fn header() -> Header {
    Header {
        format_version: FORMAT_VERSION.to_owned(),
        transaction: Transaction::Apply,
        plan: Some("sha256:00".to_owned()),
        node: Some("n".to_owned()),
        before: machine("first"),
        state_before: State::default(),
        target: Target::default(),
        changes: Changes { steps: vec![create(0), create(1), destroy(1)], ..Changes::default() },
    }
}

fn store() -> (tempfile::TempDir, Locked) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap().lock("test", Duration::ZERO).unwrap();
    (folder, store)
}

fn intent(index: usize) -> Entry {
    Entry::Intent { step: index, is_inverse: false, what: header().changes.steps[index].clone() }
}

fn outcome(index: usize, error: Option<&str>) -> Entry {
    Entry::Outcome { step: index, is_inverse: false, error: error.map(str::to_owned), refusal: None }
}

/// A journal with these entries, on disk.
fn written(store: &Locked, entries: &[Entry]) -> Journal {
    let mut writer = Writer::create(store, header()).unwrap();
    entries.iter().for_each(|entry| writer.write(vec![entry.clone()]).unwrap());
    let read = store.journal().unwrap().unwrap();
    assert_eq!(read, writer.journal);
    read
}

fn append(store: &Locked, bytes: &[u8]) {
    let mut file = std::fs::OpenOptions::new().append(true).open(store.journal_path()).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn a_journal_is_read_as_it_was_written() {
    let (_folder, store) = store();
    let journal = written(&store, &[intent(0), outcome(0, None), Entry::End { outcome: Ending::Done }]);
    assert_eq!(journal.header, header());
    assert_eq!(journal.ending(), Some(Ending::Done));
    assert!(journal.notes().is_empty());
}

#[test]
fn a_line_that_was_torn_off_had_not_begun() {
    let (_folder, store) = store();
    written(&store, &[intent(0), outcome(0, None)]);
    let line = serde_json::to_vec(&intent(1)).unwrap();
    // Torn anywhere, even just before its end of line.
    for length in 1..=line.len() {
        let whole = std::fs::read(store.journal_path()).unwrap();
        append(&store, &line[..length]);
        let torn = store.journal().unwrap().unwrap();
        assert!(torn.is_torn && torn.is_open() && torn.entries.len() == 2, "{length} bytes");
        assert!(torn.notes()[0].contains("torn"), "{:?}", torn.notes());
        // Going on cuts it off, so that the next line is whole.
        let mut writer = Writer::at_end(torn).unwrap();
        assert_eq!(std::fs::read(store.journal_path()).unwrap(), whole);
        if length == line.len() {
            writer.write(vec![intent(2)]).unwrap();
            let journal = store.journal().unwrap().unwrap();
            assert!(!journal.is_torn && journal.damaged_lines.is_empty() && journal.entries.len() == 3);
        }
    }
}

#[test]
fn a_damaged_line_in_the_middle_is_reported_and_does_no_harm() {
    let (_folder, store) = store();
    written(&store, &[intent(0)]);
    append(&store, b"{\"event\":\"outc\xff\x00\n");
    let mut writer = Writer::at_end(store.journal().unwrap().unwrap()).unwrap();
    writer.write(vec![outcome(0, None)]).unwrap();
    let journal = store.journal().unwrap().unwrap();
    assert_eq!(journal.damaged_lines, [3]);
    assert_eq!(journal.entries, [intent(0), outcome(0, None)]);
    assert!(journal.notes()[0].contains("line 3"), "{:?}", journal.notes());
    // A damaged line may have been an intent: all that was meant to be created may be ours.
    assert_eq!(journal.state_on(&machine("first"), &Target::default()).ours().len(), 2);
}

#[test]
fn what_follows_an_end_and_cannot_be_read_may_have_begun() {
    let (_folder, store) = store();
    written(&store, &[Entry::End { outcome: Ending::Done }]);
    append(&store, b"{\"event\":\"contin");
    assert_eq!(store.journal().unwrap().unwrap().ending(), Some(Ending::Done));
    append(&store, b"\n");
    assert_eq!(store.journal().unwrap().unwrap().ending(), None);
}

#[test]
fn a_first_line_that_is_not_whole_is_refused_with_what_to_do() {
    let (_folder, store) = store();
    written(&store, &[intent(0)]);
    let whole = std::fs::read(store.journal_path()).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut edited = whole.clone();
    let at = whole.windows(5).position(|bytes| bytes == b"first").unwrap();
    edited[at] = b'F';
    let mut garbled = whole.clone();
    garbled[first / 2] = 0xff;
    let cuts = (0..first).step_by(7).map(|length| whole[..length].to_vec());
    for bytes in cuts.chain([edited, garbled, b"\n".to_vec(), b"{}\n".to_vec(), b"null\n".to_vec()]) {
        std::fs::write(store.journal_path(), &bytes).unwrap();
        let error = store.journal().unwrap_err();
        assert!(
            matches!(&error, StoreError::Damaged { path, .. } if *path == store.journal_path()),
            "{error}"
        );
        assert!(error.help().contains("entc import"), "{}", error.help());
    }
}

#[test]
fn a_journal_of_a_newer_entc_is_refused_as_such() {
    let (_folder, store) = store();
    let mut newer = header();
    newer.format_version = "2.0".to_owned();
    drop(Writer::create(&store, newer).unwrap());
    let error = store.journal().unwrap_err();
    assert!(matches!(&error, StoreError::Newer { found, read: "1.0", .. } if found == "2.0"), "{error}");
    let mut minor = header();
    minor.format_version = "1.7".to_owned();
    drop(Writer::create(&store, minor).unwrap());
    assert_eq!(store.journal().unwrap().unwrap().header.format_version, "1.7");
}

#[test]
fn the_journal_before_the_last_is_kept_until_it_is_the_last_again() {
    let (_folder, store) = store();
    let ended = written(&store, &[Entry::End { outcome: Ending::Done }]);
    let writer = Writer::create(&store, header()).unwrap();
    assert!(store.journal().unwrap().unwrap().is_open());
    let previous = std::fs::read(store.previous_journal_path()).unwrap();
    assert_eq!(Journal::parse(&ended.path, &previous).unwrap(), ended);
    writer.discard(&store).unwrap();
    assert_eq!(store.journal().unwrap().unwrap(), ended);
    assert!(!store.previous_journal_path().exists());
    // A crash between the two renames of a new journal leaves only the previous one.
    std::fs::rename(store.journal_path(), store.previous_journal_path()).unwrap();
    assert_eq!(store.journal().unwrap().unwrap().ending(), Some(Ending::Done));
}

#[test]
fn an_instance_is_ours_from_the_intent_to_create_it_to_the_outcome_of_its_destruction() {
    let (_folder, store) = store();
    let ours = |entries: &[Entry], boot: &str| {
        let state = written(&store, entries).state_on(&machine(boot), &Target::default());
        state.ours().into_iter().map(|(_, start, ..)| start).collect::<Vec<u32>>()
    };
    assert!(ours(&[], "first").is_empty());
    assert_eq!(ours(&[intent(0)], "first"), [0]);
    assert_eq!(ours(&[intent(0), outcome(0, Some("no room"))], "first"), [0]);
    let all = [intent(0), outcome(0, None), intent(1), outcome(1, None), intent(2)];
    assert_eq!(ours(&all, "first"), [0, 1]);
    let mut destroyed = all.to_vec();
    destroyed.push(outcome(2, None));
    assert_eq!(ours(&destroyed, "first"), [0]);
    // After a boot nothing of the one before is ours; what is made in it is.
    assert!(ours(&destroyed, "second").is_empty());
    destroyed.push(Entry::Continued {
        is_inverse: false,
        boot_id: "second".to_owned(),
        changes: header().changes,
    });
    assert!(ours(&destroyed, "second").is_empty());
    destroyed.push(intent(1));
    assert_eq!(ours(&destroyed, "second"), [1]);
    assert_eq!(ours(&destroyed, "first"), [0]);
}

#[test]
fn a_clock_without_an_outcome_is_set_again_whatever_is_wished() {
    use crate::target::{ClockTarget, TargetGpu};
    let (_folder, store) = store();
    let lock = step(Operation::LockClocks { min: 1000, max: 1000 });
    let begun = Entry::Intent { step: 0, is_inverse: false, what: lock };
    let locked = |entries: &[Entry], wish: ClockTarget| {
        let wished = TargetGpu {
            mig: None,
            services: Vec::new(),
            persistence: None,
            instances: Vec::new(),
            sm_clock: wish,
            power_limit_mw: None,
        };
        let target = Target { gpus: [(gpu(), wished)].into() };
        let state = written(&store, entries).state_on(&machine("first"), &target);
        state.gpus[&gpu()].locked_sm_clock_mhz
    };
    let wish = ClockTarget::Locked { min: 1000, max: 1000 };
    let done = [begun.clone(), outcome(0, None)];
    assert_eq!(locked(&done, wish), Some((1000, 1000)));
    assert_eq!(locked(&done, ClockTarget::Unlocked), Some((1000, 1000)));
    // Not known: said to be other than wished, so that `diff` finds a step.
    assert_eq!(locked(std::slice::from_ref(&begun), wish), None);
    assert!(locked(&[begun], ClockTarget::Unlocked).is_some());
}
