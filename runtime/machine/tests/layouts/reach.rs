//! All maximal layouts of every board in the catalogue, from every one to every other.
//!
//! A plan's wish leaves the places open and keeps what it can; the wish to go back names the very places.
//! Both are tried: from a layout to the wish for another, and from there to that other's very places.

use crate::lab::{Lab, assert_done};
use crate::placements::{Placements, multiset};
use crate::tour::tour;
use ent_machine::diff::diff;
use ent_machine::observed::{MigDeviceUuid, Observed};
use ent_machine::state::{GpuState, InstanceState, State};
use ent_machine::target::Target;
use ent_plan::device::{Board, Layout, board, board_ids, maximal_layouts};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is drawn follows from this and the board.
const SEED: u64 = 0x006c_6179_6f75_7473;

/// Ways drawn of each board where not all are gone.
const N_DRAWN: usize = 10;

/// The board of the literature.
const A100: &str = "a100-80gb-pcie";

/// Boards that are cut by whole transactions in any case.
const BY_APPLY: [&str; 4] = [A100, "a30-24gb", "h100-80gb-sxm", "rtx-pro-6000-blackwell"];

/// Which profiles a layout may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Menu {
    /// The base profiles but the double-memory 1g.
    Plain,
    /// All base profiles.
    Base,
    /// Media, graphics and other variants as well.
    All,
}

impl Menu {
    fn layouts(self, board: &Board) -> Vec<Layout> {
        let is_plain = |index: usize| {
            let profile = &board.profiles[index];
            board.base_profile(profile.n_compute_slices).is_some_and(|base| base.name == profile.name)
        };
        match self {
            Self::Plain => maximal_layouts(board, is_plain),
            Self::Base => maximal_layouts(board, |index| board.profiles[index].is_base),
            Self::All => maximal_layouts(board, |_| true),
        }
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Of the menu, all boards together.
    layouts: usize,
    /// Ordered pairs of layouts.
    ways: usize,
    /// Of them whole transactions.
    applied: usize,
    /// Of them to very places.
    fixed: usize,
    /// Of them with nothing to do.
    idle: usize,
    steps: usize,
    destroyed: usize,
    kept: usize,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.layouts += other.layouts;
        self.ways += other.ways;
        self.applied += other.applied;
        self.fixed += other.fixed;
        self.idle += other.idle;
        self.steps += other.steps;
        self.destroyed += other.destroyed;
        self.kept += other.kept;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} layouts, {} ways ({} by apply, {} to very places, {} with nothing to do), {} steps, \
             {} instances destroyed, {} kept",
            self.layouts,
            self.ways,
            self.applied,
            self.fixed,
            self.idle,
            self.steps,
            self.destroyed,
            self.kept
        )
    }
}

/// How steps are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// A whole transaction: journal, state, reading back.
    Apply,
    /// The driver alone, step by step.
    Driver,
}

/// A board that is cut now one way, now another.
struct Walk {
    lab: Lab,
    board: Board,
    /// The machine after the last way.
    now: Observed,
    counts: Counts,
}

impl Walk {
    fn new(id: &str) -> Self {
        let lab = Lab::new(id);
        let now = lab.observe();
        Self { lab, board: board(id).unwrap(), now, counts: Counts::default() }
    }

    fn here(&self) -> Layout {
        self.lab.layout(&self.now.gpus[0])
    }

    /// All that is there is ours.
    fn state(&self) -> State {
        let instance = |i: &ent_machine::observed::ObservedInstance| InstanceState {
            profile: i.profile.clone(),
            start: i.start,
            size: i.size,
            service: None,
        };
        let instances = self.now.gpus[0].instances.iter().map(instance).collect();
        let gpu = GpuState { instances, ..GpuState::default() };
        State {
            boot_id: self.now.boot_id.clone(),
            gpus: [(self.lab.uuid.clone(), gpu)].into(),
            ..State::default()
        }
    }

    /// Goes to a layout, and says what the machine then is.
    fn go(&mut self, all: &mut Placements<'_>, to: &Layout, is_fixed: bool, by: By) {
        let from = self.here();
        let target = self.lab.wish(to, is_fixed);
        let least =
            if is_fixed { from.iter().filter(|one| !to.contains(one)).count() } else { all.least(&from, to) };
        let before = devices(&self.now);
        let n_destroyed = self.steps(&target, by);
        let what = || format!("{}: {from:?} -> {to:?}, {by:?}", self.board.id);
        assert_eq!(n_destroyed, least, "{}", what());
        let after = devices(&self.now);
        // Not what was said, but what came of it: who is not there any more was destroyed.
        assert_eq!(before.difference(&after).count(), n_destroyed, "{}", what());
        assert_eq!(after.len(), to.len(), "{}: one MIG device for each instance", what());
        assert_eq!(multiset(&self.here()), multiset(to), "{}", what());
        assert!(!is_fixed || self.here() == *to, "{}", what());
        self.counts.ways += 1;
        self.counts.applied += usize::from(by == By::Apply);
        self.counts.fixed += usize::from(is_fixed);
        self.counts.destroyed += n_destroyed;
        self.counts.kept += before.len() - n_destroyed;
    }

    /// Makes it as wished, and says how many instances went by the steps that were shown.
    fn steps(&mut self, target: &Target, by: By) -> usize {
        let state = match by {
            By::Apply => self.lab.store.state().unwrap().on(&self.now),
            By::Driver => self.state(),
        };
        let changes = diff(target, &self.now, &state).unwrap();
        match by {
            By::Apply => assert_done(&self.lab.apply(&self.now, target, &changes, &mut |_| ())),
            By::Driver => changes.steps.iter().for_each(|step| self.lab.driver().perform(step).unwrap()),
        }
        self.now = self.lab.observe();
        let state = match by {
            By::Apply => self.lab.store.state().unwrap().on(&self.now),
            By::Driver => self.state(),
        };
        let rest = diff(target, &self.now, &state).unwrap();
        assert!(rest.is_empty(), "{}: still to do:\n{rest}", self.board.id);
        self.counts.steps += changes.steps.len();
        self.counts.idle += usize::from(changes.is_empty());
        changes.n_destroyed()
    }

    /// From one layout to the next, as `order` says. From each exactly: where a wish was realised at other
    /// places, these are put right before the next one.
    fn along(&mut self, layouts: &[Layout], order: &[usize], by: By) {
        let board = self.board.clone();
        let mut all = Placements::of(&board);
        for (nth, &index) in order.iter().enumerate() {
            self.go(&mut all, &layouts[index], nth == 0, by);
            if self.here() != layouts[index] {
                self.go(&mut all, &layouts[index], true, by);
            }
        }
    }

    /// From one layout to the next, to the very places.
    fn along_fixed(&mut self, layouts: &[Layout], order: &[usize], by: By) {
        let board = self.board.clone();
        let mut all = Placements::of(&board);
        order.iter().for_each(|index| self.go(&mut all, &layouts[*index], true, by));
    }
}

/// The MIG devices that CUDA sees; each has a new UUID when it is made.
fn devices(observed: &Observed) -> BTreeSet<MigDeviceUuid> {
    observed.gpus[0].instances.iter().filter_map(|instance| instance.mig_device().cloned()).collect()
}

/// Each board in turn on its own machine, some at a time.
fn on_all_boards(work: impl Fn(&mut Walk) + Sync) -> Counts {
    let boards: Vec<&str> = board_ids().collect();
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Counts::default()));
    let lanes = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                while let Some(id) = boards.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut walk = Walk::new(id);
                    work(&mut walk);
                    total.lock().unwrap().add(walk.counts);
                }
            });
        }
    });
    total.into_inner().unwrap()
}

/// Whether nothing is only sampled on a board.
fn is_whole(board: &Board) -> bool {
    std::env::var("ENT_LAYOUTS").is_ok_and(|which| which == "all" || which == board.id)
}

/// By whole transactions on one board of each kind of menu and generation, and wherever all is gone through:
/// what differs beyond these are names and numbers.
fn by(board: &Board) -> By {
    let is_by_apply = BY_APPLY.contains(&board.id.as_str()) || is_whole(board);
    if is_by_apply { By::Apply } else { By::Driver }
}

/// A round trip in which every ordered pair of `n` comes once.
fn round_trip(n: usize) -> Vec<usize> {
    let mut order = tour(n);
    order.extend(order.first().copied());
    order
}

/// Some of `n`, each drawn anew.
fn draw(id: &str, n: usize) -> Vec<usize> {
    let salt = id.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut rng = ChaCha8Rng::seed_from_u64(SEED ^ salt);
    (0..=N_DRAWN).map(|_| rng.random_range(0..n)).collect()
}

#[test]
fn every_maximal_layout_of_every_board_is_reached_from_every_other() {
    let counts = on_all_boards(|walk| {
        let layouts = Menu::Plain.layouts(&walk.board);
        // Seven slices wide: 19, as in the literature; four quarters: 5.
        assert_eq!(
            layouts.len(),
            if walk.board.n_compute_slices() == 7 { 19 } else { 5 },
            "{}",
            walk.board.id
        );
        walk.counts.layouts = layouts.len();
        let (order, by) = (round_trip(layouts.len()), by(&walk.board));
        walk.along(&layouts, &order, by);
        if walk.board.id == A100 || is_whole(&walk.board) {
            walk.along_fixed(&layouts, &order, by);
        }
    });
    println!("all pairs of the base profiles without double memory: {counts}");
}

#[test]
fn layouts_with_double_memory_are_reached_from_each_other() {
    let counts = on_all_boards(|walk| {
        let layouts = Menu::Base.layouts(&walk.board);
        assert_eq!(
            layouts.len(),
            if walk.board.n_compute_slices() == 7 { 78 } else { 5 },
            "{}",
            walk.board.id
        );
        sampled(walk, &layouts);
    });
    println!("pairs of the base profiles with double memory: {counts}");
}

#[test]
fn layouts_with_media_and_graphics_are_reached_from_each_other() {
    let counts = on_all_boards(|walk| {
        let layouts = Menu::All.layouts(&walk.board);
        assert!(layouts.len() > Menu::Base.layouts(&walk.board).len());
        sampled(walk, &layouts);
    });
    println!("pairs of all profiles: {counts}");
}

/// All pairs where the environment says so, else some.
fn sampled(walk: &mut Walk, layouts: &[Layout]) {
    walk.counts.layouts = layouts.len();
    let is_whole = is_whole(&walk.board);
    let order = if is_whole { round_trip(layouts.len()) } else { draw(&walk.board.id, layouts.len()) };
    walk.along(layouts, &order, By::Apply);
}
