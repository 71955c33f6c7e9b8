//! Random applies, and somebody else who makes, destroys and uses instances between them and amid them: what
//! is theirs stays theirs, and every apply ends read back as wished, as before, or refused by a typed reason.
//!
//! NVML has no owners: an instance is ours by its profile and place. So two things are left out, for nobody could
//! tell: somebody who destroys an instance of ours and makes the same profile at the same place, and somebody who
//! forestalls one that is about to be created with one that lacks a part.

use crate::lab::{GPU, Lab, assert_done};
use crate::placements::multiset;
use ent_machine::apply::{Event as Told, Outcome, Report};
use ent_machine::changes::{Operation, Step};
use ent_machine::diff::diff;
use ent_machine::error::{ApplyError, Refusal};
use ent_machine::rollback::rollback;
use ent_nvml_sim::silicon::state::{self, GpuInstance};
use ent_nvml_sim::silicon::{Device, Serial, Silicon};
use ent_plan::device::{Layout, PlacedProfile, board, layouts};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

const BOARDS: [&str; 4] = ["a100-80gb-pcie", "a30-24gb", "h100-80gb-sxm", "rtx-pro-6000-blackwell"];

/// All ways to cut these boards with base profiles, partial ones too.
static LAYOUTS: LazyLock<Vec<Vec<Layout>>> = LazyLock::new(|| {
    let of = |id: &str| {
        let board = board(id).unwrap();
        layouts(&board, |profile| board.profiles[profile].is_base)
    };
    BOARDS.into_iter().map(of).collect()
});

/// A process that is there and not this one: who holds an instance must not be entc itself.
const SOMEBODY: u32 = 1;

/// What happens to a machine.
#[derive(Clone, Debug)]
enum Event {
    /// A wish is applied; somebody else does something after so many steps, if there are as many.
    Apply {
        layout: Index,
        amid: Option<(usize, Other)>,
    },
    /// The last transaction is taken back.
    Rollback,
    /// Somebody else does something.
    Other(Other),
    Reboot,
}

/// What somebody else does.
#[derive(Clone, Debug)]
enum Other {
    /// Makes an instance of any profile, with no, a part or all of its compute.
    Create { profile: Index, start: Index, compute: u8 },
    /// Destroys one, theirs or ours.
    Destroy(Index),
    /// Begins to use one, theirs or ours.
    Sit(Index),
    /// Stops using them all.
    Leave,
}

fn other() -> impl Strategy<Value = Other> {
    prop_oneof![
        5 => (any::<Index>(), any::<Index>(), 0..3_u8)
            .prop_map(|(profile, start, compute)| Other::Create { profile, start, compute }),
        2 => any::<Index>().prop_map(Other::Destroy),
        1 => any::<Index>().prop_map(Other::Sit),
        2 => Just(Other::Leave),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let amid = prop::option::of((1..5_usize, other()));
    prop_oneof![
        6 => (any::<Index>(), amid).prop_map(|(layout, amid)| Event::Apply { layout, amid }),
        1 => Just(Event::Rollback),
        5 => other().prop_map(Event::Other),
        1 => Just(Event::Reboot),
    ]
}

/// A machine, and what of it belongs to somebody else.
struct World {
    lab: Lab,
    /// Their GPU instances, each with its compute instances.
    theirs: RefCell<BTreeMap<Serial, Vec<Serial>>>,
    /// Places that are to become ours.
    pending: RefCell<BTreeSet<(String, u32)>>,
    is_used: Cell<bool>,
}

/// How often what came of it.
type Counts = BTreeMap<String, usize>;

fn count(counts: &mut Counts, what: &str) {
    *counts.entry(what.to_owned()).or_default() += 1;
}

impl World {
    fn instances(&self) -> Vec<GpuInstance> {
        let path = self.lab.silicon.folder().join(ent_nvml_sim::store::STATE_FILE);
        let mut state: state::State = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut instances = state.gpus.remove(0).instances;
        instances.sort_by_key(|instance| instance.placement.start);
        instances
    }

    fn placed(&self, instance: &GpuInstance) -> PlacedProfile {
        let is_it = |p: &ent_plan::device::GpuInstanceProfile| p.gi_profile_id == Some(instance.profile_id);
        let profile = self.lab.board.profiles.iter().position(is_it).unwrap();
        PlacedProfile { profile, start: instance.placement.start }
    }

    /// What is there and not theirs.
    fn ours(&self) -> Layout {
        let theirs = self.theirs.borrow();
        self.instances().iter().filter(|i| !theirs.contains_key(&i.serial)).map(|i| self.placed(i)).collect()
    }

    /// Fails when anything of theirs is not as they left it.
    #[track_caller]
    fn assert_theirs_untouched(&self) {
        let there: BTreeMap<Serial, Vec<Serial>> = self
            .instances()
            .into_iter()
            .map(|i| (i.serial, i.compute_instances.iter().map(|c| c.serial).collect()))
            .collect();
        for (serial, compute) in self.theirs.borrow().iter() {
            assert_eq!(there.get(serial), Some(compute), "instance {serial} of somebody else");
        }
    }

    /// Somebody else does something, as far as the silicon lets them.
    fn other(&self, other: &Other, counts: &mut Counts) {
        match other {
            Other::Create { profile, start, compute } => {
                let profile = profile.get(&self.lab.board.profiles);
                let start = *start.get(&profile.starts);
                let place = (profile.name.clone(), start);
                let ours = self.lab.store.state().unwrap().ours();
                let is_ours = ours.iter().any(|(_, at, _, name)| (name, at) == (&place.0, &place.1));
                let is_whole = *compute > 1;
                if !is_ours && (is_whole || !self.pending.borrow().contains(&place)) {
                    let (id, size) = (profile.gi_profile_id.unwrap(), profile.n_memory_slices);
                    let made = self.lab.change(|silicon| create(silicon, id, start, size, *compute));
                    if let Some((serial, compute)) = made {
                        self.theirs.borrow_mut().insert(serial, compute);
                        count(counts, "foreign instance made");
                    }
                }
            }
            Other::Destroy(index) => {
                let all = self.instances();
                if let Some(instance) = (!all.is_empty()).then(|| index.get(&all)) {
                    let is_gone = self.lab.change(|silicon| {
                        let mut all = silicon.clone();
                        let compute = &instance.compute_instances;
                        let is_free = compute.iter().all(|c| all.destroy_compute_instance(c.serial).is_ok());
                        let is_gone = is_free && all.destroy_gpu_instance(instance.serial).is_ok();
                        if is_gone {
                            *silicon = all;
                        }
                        is_gone
                    });
                    if is_gone {
                        let is_theirs = self.theirs.borrow_mut().remove(&instance.serial).is_some();
                        let whose = if is_theirs { "foreign" } else { "our" };
                        count(counts, &format!("{whose} instance destroyed by somebody else"));
                    }
                }
            }
            Other::Sit(index) => {
                let all: Vec<Serial> = self
                    .instances()
                    .iter()
                    .flat_map(|i| i.compute_instances.iter().map(|c| c.serial))
                    .collect();
                if !all.is_empty() {
                    let on = Device::Mig(*index.get(&all));
                    self.lab.change(|silicon| silicon.attach(on, SOMEBODY, "somebody")).unwrap();
                    self.is_used.set(true);
                }
            }
            Other::Leave => self.leave(),
        }
    }

    fn leave(&self) {
        let all: Vec<Serial> =
            self.instances().iter().flat_map(|i| i.compute_instances.iter().map(|c| c.serial)).collect();
        self.lab.change(|silicon| {
            for compute in all {
                // On most nobody sits.
                let _ = silicon.detach(Device::Mig(compute), SOMEBODY);
            }
        });
        self.is_used.set(false);
    }

    /// Somebody else takes away all that is theirs, and uses nothing.
    fn withdraw(&self) {
        self.leave();
        self.lab.change(|silicon| {
            for (serial, compute) in std::mem::take(&mut *self.theirs.borrow_mut()) {
                compute.into_iter().for_each(|compute| silicon.destroy_compute_instance(compute).unwrap());
                silicon.destroy_gpu_instance(serial).unwrap();
            }
        });
    }

    fn apply(&self, wish: &Layout, amid: Option<&(usize, Other)>, counts: &mut Counts) {
        let (lab, before) = (&self.lab, self.instances());
        let ours_before = self.ours();
        let is_alone = self.theirs.borrow().is_empty() && !self.is_used.get();
        let (target, observed) = (lab.wish(wish, false), lab.observe());
        let changes = match diff(&target, &observed, &lab.store.state().unwrap().on(&observed)) {
            Ok(changes) => changes,
            Err(refusals) => {
                assert!(!is_alone, "nobody else is there: {refusals:?}");
                return assert_typed(&refusals, counts, "diff");
            }
        };
        *self.pending.borrow_mut() = changes.steps.iter().filter_map(place_of_creation).collect();
        let (mut n_steps, mut is_disturbed) = (0, false);
        let ended = lab.apply(&observed, &target, &changes, &mut |told| {
            if matches!(told, Told::Finished { .. }) {
                n_steps += 1;
                if let Some((_, other)) = amid.filter(|(after, _)| *after == n_steps) {
                    is_disturbed = true;
                    self.other(other, counts);
                }
            }
        });
        self.pending.borrow_mut().clear();
        self.assert_theirs_untouched();
        let (report, result) = &ended;
        match (result, report.outcome) {
            (Ok(()), Outcome::Done) => {
                count(counts, if is_disturbed { "apply done amid others" } else { "apply done" });
                assert_done(&ended);
                let now = lab.observe();
                let rest = diff(&target, &now, &lab.store.state().unwrap().on(&now)).unwrap();
                assert!(rest.is_empty(), "said to be done, and still to do:\n{rest}");
                assert_eq!(multiset(&self.ours()), multiset(wish));
            }
            (Err(ApplyError::Refused(refusals)), Outcome::Unchanged) => {
                assert!(!is_alone, "nobody else is there: {refusals:?}");
                assert_eq!(self.instances(), before, "refused, and changed");
                assert_typed(refusals, counts, "apply");
            }
            (Err(ApplyError::Step { .. } | ApplyError::NotVerified(_)), Outcome::RolledBack) => {
                assert!(is_disturbed || !is_alone, "nobody else did anything: {result:?}");
                count(counts, "apply rolled back");
                assert_eq!(self.ours(), ours_before, "{result:?}");
            }
            (Err(ApplyError::NotRolledBack { then, .. }), Outcome::Open) => {
                assert!(is_disturbed, "nobody else did anything: {result:?}");
                if let ApplyError::Refused(refusals) = &**then {
                    assert_typed(refusals, counts, "going back");
                } else {
                    assert!(matches!(**then, ApplyError::Step { .. }), "going back: {then}");
                    count(counts, "going back failed at a step");
                }
                self.withdraw();
                let ended = rollback(&mut lab.means(&mut |_| ()), false);
                assert!(ended.1.is_ok() && ended.0.outcome == Outcome::RolledBack, "{ended:?}");
                assert_eq!(self.ours(), ours_before);
                count(counts, "rolled back when the others had gone");
            }
            _ => unreachable!("{result:?}\n{report:?}"),
        }
        self.assert_whole();
    }

    /// Nothing of ours lacks compute.
    #[track_caller]
    fn assert_whole(&self) {
        let theirs = self.theirs.borrow();
        let mut ours = self.instances().into_iter().filter(|i| !theirs.contains_key(&i.serial));
        assert!(ours.all(|instance| !instance.compute_instances.is_empty()), "an orphan was left");
    }

    fn rollback(&self, counts: &mut Counts) {
        let before = self.instances();
        let (report, result): (Report, _) = rollback(&mut self.lab.means(&mut |_| ()), false);
        match (&result, report.outcome) {
            (Ok(()), Outcome::RolledBack) => count(counts, "rollback done"),
            (Err(ApplyError::Refused(refusals)), Outcome::Unchanged) => {
                assert_eq!(self.instances(), before, "refused, and changed");
                assert_typed(refusals, counts, "rollback");
            }
            _ => unreachable!("{result:?}\n{report:?}"),
        }
    }
}

fn place_of_creation(step: &Step) -> Option<(String, u32)> {
    if let Operation::CreateInstance { profile, start, .. } = &step.operation {
        Some((profile.clone(), *start))
    } else {
        None
    }
}

/// Makes an instance with no (0), a part (1) or all (2) of its compute; its serial and that of its compute.
fn create(
    silicon: &mut Silicon,
    profile: u32,
    start: u32,
    size: u32,
    compute: u8,
) -> Option<(Serial, Vec<Serial>)> {
    let placement = ent_nvml_sim::silicon::Placement { start, size };
    let serial = silicon.create_gpu_instance(GPU, profile, Some(placement)).ok()?;
    let mut cuts: Vec<(u32, u32)> = (0..8)
        .filter_map(|profile| silicon.compute_instance_profile(serial, profile, 0).ok())
        .map(|info| (info.slice_count, info.id))
        .collect();
    cuts.sort_unstable();
    let cut = match compute {
        0 => None,
        1 => cuts.first(),
        _ => cuts.last(),
    };
    let made = cut.map(|(_, id)| silicon.create_compute_instance(serial, *id, None).unwrap());
    Some((serial, made.into_iter().collect()))
}

/// Why something may be refused when others are there.
#[track_caller]
fn assert_typed(refusals: &[Refusal], counts: &mut Counts, by: &str) {
    assert!(!refusals.is_empty());
    for refusal in refusals {
        let is_known = ["foreign-instance", "in-use", "nothing-to-roll-back"].contains(&refusal.code);
        assert!(is_known && !refusal.message.is_empty() && !refusal.help.is_empty(), "{refusal:?}");
    }
    count(counts, &format!("{by} refused: {}", refusals[0].code));
}

#[test]
fn whatever_others_do_theirs_stays_and_every_apply_ends_verified_or_refused() {
    let cases = if std::env::var_os("ENT_LAYOUTS").is_some_and(|all| all == "all") { 2_000 } else { 120 };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let counts = RefCell::new(Counts::new());
    let strategy = (0..BOARDS.len(), prop::collection::vec(event(), 1..24));
    let ran = TestRunner::new_with_rng(config, rng).run(&strategy, |(board, events)| {
        let mut world = World {
            lab: Lab::new(BOARDS[board]),
            theirs: RefCell::default(),
            pending: RefCell::default(),
            is_used: Cell::new(false),
        };
        let counts = &mut *counts.borrow_mut();
        for event in &events {
            match event {
                Event::Apply { layout, amid } => {
                    world.apply(layout.get(&LAYOUTS[board]), amid.as_ref(), counts);
                }
                Event::Rollback => world.rollback(counts),
                Event::Other(other) => world.other(other, counts),
                Event::Reboot => {
                    world.lab.reboot();
                    world.theirs.borrow_mut().clear();
                    world.is_used.set(false);
                    count(counts, "reboot");
                }
            }
            world.assert_theirs_untouched();
        }
        Ok(())
    });
    let counts = counts.into_inner();
    println!("others: {cases} machines, {counts:?}");
    ran.unwrap();
    for what in [
        "apply done",
        "apply done amid others",
        "apply refused: in-use",
        "apply rolled back",
        "diff refused: foreign-instance",
        "going back refused: foreign-instance",
        "rolled back when the others had gone",
        "rollback done",
        "our instance destroyed by somebody else",
        "foreign instance made",
    ] {
        assert!(counts.contains_key(what), "{what} never happened: it proves nothing");
    }
}
