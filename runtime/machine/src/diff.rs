//! Machine + target → changes: as few instances destroyed as any placement of the wish allows.
//!
//! All steps of all GPUs come in one order: MIG modes, persistence, instances that go, instances that come,
//! clocks, power limits. Before a mode goes off, the instances of that GPU are destroyed one by one, so that
//! nothing is lost that no step names. A mode change that resets the board loses persistence, clock and
//! limit, so these are set again behind it. The same inputs give the same steps.

use crate::catalogue;
use crate::changes::{Changes, Kept, Operation, Step};
use crate::error::Refusal;
use crate::observed::{GpuUuid, Observed, ObservedGpu, ObservedInstance};
use crate::state::{GpuState, InstanceState, State};
use crate::target::{ClockTarget, Target, TargetGpu, TargetInstance};
use std::collections::{BTreeMap, BTreeSet};

mod fit;
mod reasons;
mod refusals;

use fit::{Place, Present};
use reasons::Reasons;

/// The steps from a machine to a target.
///
/// `state` says what is ours, which services it carries and which clocks are locked; NVML tells neither. What
/// is not in it is not ours and is never destroyed. After a crash it must also hold what an open journal
/// began. An instance that is ours by the state and gone from the machine is created again.
///
/// # Errors
/// What makes the target unreachable: foreign instances in the way, unknown profiles, GPUs that are gone.
pub fn diff(target: &Target, observed: &Observed, state: &State) -> Result<Changes, Vec<Refusal>> {
    let mut refusals = refusals::duplicates(observed);
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let gpus: BTreeMap<&GpuUuid, &ObservedGpu> = observed.gpus.iter().map(|gpu| (&gpu.uuid, gpu)).collect();
    let nothing = GpuState::default();
    let mut found: Vec<(Phase, Step)> = Vec::new();
    let (mut kept, mut created) = (Vec::new(), Vec::new());
    let is_plan = reasons::is_plan(target);
    for (uuid, wish) in &target.gpus {
        let Some(gpu) = gpus.get(uuid) else {
            refusals.push(refusals::lost(uuid, observed));
            continue;
        };
        let is_same_boot = is_of_this_boot(state, uuid, observed);
        let state = state.gpus.get(uuid).unwrap_or(&nothing);
        let reasons = Reasons { wish, is_plan };
        let mut differ = Differ { gpu, wish, state, is_same_boot, reasons, steps: Vec::new() };
        match differ.all() {
            Ok((stay, come)) => {
                kept.extend(stay.into_iter().map(|stay| (gpu.index, stay)));
                created.extend(come.into_iter().map(|come| (gpu.index, come)));
                found.append(&mut differ.steps);
            }
            Err(mut more) => refusals.append(&mut more),
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    // Stable: within a phase and a GPU the steps stay in the order they were found in, by start.
    found.sort_by_key(|(phase, step)| (*phase, step.index));
    let in_order = |mut all: Vec<(u32, Kept)>| -> Vec<Kept> {
        all.sort_by_key(|(index, one)| (*index, one.start));
        all.into_iter().map(|(_, one)| one).collect()
    };
    let touched: BTreeSet<&GpuUuid> = found.iter().map(|(_, step)| &step.gpu).collect();
    let mut untouched: Vec<&ObservedGpu> =
        observed.gpus.iter().filter(|gpu| !touched.contains(&gpu.uuid)).collect();
    untouched.sort_by_key(|gpu| gpu.index);
    Ok(Changes {
        untouched: untouched.into_iter().map(|gpu| gpu.uuid.clone()).collect(),
        steps: found.into_iter().map(|(_, step)| step).collect(),
        kept: in_order(kept),
        created: in_order(created),
    })
}

/// Whether what the state says of a GPU's instances and clock can still be so: neither survives a boot, and
/// what sits in the same place after one was made by somebody else.
pub(crate) fn is_of_this_boot(state: &State, gpu: &GpuUuid, observed: &Observed) -> bool {
    state.gpus.get(gpu).is_some_and(|gpu| state.boot_of(gpu) == observed.boot_id)
}

/// When a step comes, over all GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// Instances of a GPU whose MIG mode goes off.
    Clear,
    Mode,
    Persistence,
    Destroy,
    Create,
    Clock,
    PowerLimit,
}

/// One GPU and what is found for it.
struct Differ<'a> {
    gpu: &'a ObservedGpu,
    wish: &'a TargetGpu,
    state: &'a GpuState,
    is_same_boot: bool,
    reasons: Reasons<'a>,
    steps: Vec<(Phase, Step)>,
}

/// What becomes of the MIG mode.
#[derive(Clone, Copy)]
struct Mode {
    /// Whether it is on when all is done.
    is_on: bool,
    /// Whether it changes from on to off.
    goes_off: bool,
    /// Whether the board resets.
    resets: bool,
}

impl<'a> Differ<'a> {
    /// All that is to be done to this GPU; the instances that stay and those that come.
    fn all(&mut self) -> Result<(Vec<Kept>, Vec<Kept>), Vec<Refusal>> {
        let mode = self.mode().map_err(|refusal| vec![refusal])?;
        self.persistence(mode);
        let there = self.instances(mode)?;
        self.clock(mode);
        self.power_limit(mode);
        Ok(there)
    }

    fn push(&mut self, phase: Phase, operation: Operation, reason: String) {
        let gpu = self.gpu.uuid.clone();
        self.steps.push((phase, Step { gpu, index: self.gpu.index, operation, reason }));
    }

    fn mode(&mut self) -> Result<Mode, Refusal> {
        let Some(now) = self.gpu.mig else {
            return match self.wish.mig {
                Some(true) => Err(refusals::no_mig(self.gpu)),
                Some(false) | None => Ok(Mode { is_on: false, goes_off: false, resets: false }),
            };
        };
        let is_on = self.wish.mig.unwrap_or(now.current);
        let changes = is_on != now.current;
        let resets = changes && self.gpu.board.as_deref().is_some_and(catalogue::mode_change_resets);
        if changes {
            let reason = self.reasons.mode(is_on);
            self.push(Phase::Mode, Operation::SetMigMode { enabled: is_on, resets }, reason);
        } else if self.wish.mig.is_some() && now.is_pending() {
            // Asking for the mode that is there takes back the change that waits for a reset.
            let reason = reasons::takes_back(now.pending);
            self.push(Phase::Mode, Operation::SetMigMode { enabled: is_on, resets }, reason);
        }
        Ok(Mode { is_on, goes_off: changes && !is_on, resets })
    }

    fn persistence(&mut self, mode: Mode) {
        let Some(now) = self.gpu.is_persistent else { return };
        let wanted = self.wish.persistence.unwrap_or(now);
        let is_lost = mode.resets && wanted;
        if wanted != now || is_lost {
            let reason = self.reasons.persistence(wanted, is_lost && now);
            self.push(Phase::Persistence, Operation::SetPersistence { enabled: wanted }, reason);
        }
    }

    /// Whether an instance on the machine is ours, and what it carries.
    fn of_ours(&self, instance: &ObservedInstance) -> Option<&'a InstanceState> {
        let mut of_this_boot = self.state.instances.iter().filter(|_| self.is_same_boot);
        of_this_boot.find(|ours| ours.is_at(instance))
    }

    fn instances(&mut self, mode: Mode) -> Result<(Vec<Kept>, Vec<Kept>), Vec<Refusal>> {
        let gpu = self.gpu;
        if !gpu.unplaced.is_empty() && (mode.is_on || mode.goes_off) {
            return Err(vec![refusals::unplaced(gpu)]);
        }
        let (mut ours, mut foreign) = (Vec::new(), Vec::new());
        for instance in &gpu.instances {
            let is_busy = gpu.holders.iter().any(|h| h.gpu_instance_id == Some(instance.gpu_instance_id));
            match self.of_ours(instance) {
                Some(known) => {
                    ours.push(Present { instance, service: known.service.as_deref(), is_busy });
                }
                None => foreign.push(instance),
            }
        }
        ours.sort_by_key(|present| present.instance.start);
        foreign.sort_by_key(|instance| instance.start);
        if !mode.is_on {
            if !self.wish.instances.is_empty() {
                return Err(vec![refusals::mode_off(gpu)]);
            }
            if mode.goes_off && !foreign.is_empty() {
                let in_way = |instance: &&ObservedInstance| refusals::foreign_and_mode(gpu, instance);
                return Err(foreign.iter().map(in_way).collect());
            }
            for present in &ours {
                self.destroy(Phase::Clear, present.instance, "MIG mode goes off".to_owned());
            }
            return Ok((Vec::new(), Vec::new()));
        }
        let places = place(gpu, &self.wish.instances, &ours, &foreign)?;
        self.changes_of(&ours, &places);
        let (mut kept, mut created) = (Vec::new(), Vec::new());
        for (wish, at) in self.wish.instances.iter().zip(&places) {
            let one = Kept {
                gpu: gpu.uuid.clone(),
                profile: wish.profile.clone(),
                start: at.start,
                size: at.size,
                service: wish.service.clone(),
            };
            // One that only lacks its compute instance has a step as well.
            let is_there = at.present.and_then(|index| ours.get(index)).is_some_and(|it| !it.is_orphan());
            if is_there { kept.push(one) } else { created.push(one) }
        }
        Ok((kept, created))
    }

    /// The steps for instances that go and come, by start.
    fn changes_of(&mut self, ours: &[Present<'_>], places: &[Place]) {
        let wish = self.wish;
        let mut wanted: Vec<(&TargetInstance, Place)> =
            wish.instances.iter().zip(places.iter().copied()).collect();
        wanted.sort_by_key(|(_, at)| at.start);
        for (index, present) in ours.iter().enumerate() {
            if places.iter().any(|at| at.present == Some(index)) {
                continue;
            }
            let bits = present.mask();
            let over = wanted
                .iter()
                .find(|(_, at)| at.present.is_none() && fit::mask(at.start, at.size) & bits != 0)
                .map(|(wish, at)| (wish.profile.as_str(), at.start));
            let reason = self.reasons.destroy(present.instance, over);
            self.destroy(Phase::Destroy, present.instance, reason);
        }
        for (wish, at) in wanted {
            let is_repair = at.present.and_then(|index| ours.get(index)).map(Present::is_orphan);
            if is_repair != Some(false) {
                let reason = self.reasons.create(wish, is_repair == Some(true));
                let operation = Operation::CreateInstance {
                    profile: wish.profile.clone(),
                    start: at.start,
                    size: at.size,
                };
                self.push(Phase::Create, operation, reason);
            }
        }
    }

    fn destroy(&mut self, phase: Phase, instance: &ObservedInstance, reason: String) {
        let operation = Operation::DestroyInstance {
            profile: instance.profile.clone(),
            start: instance.start,
            size: instance.size,
        };
        self.push(phase, operation, reason);
    }

    /// NVML does not tell what is locked: the state does, unless a boot or a reset has been since.
    fn clock(&mut self, mode: Mode) {
        let locked = self.state.locked_sm_clock_mhz;
        match self.wish.sm_clock {
            ClockTarget::Leave => {}
            ClockTarget::Unlocked => {
                if locked.is_some() && (self.is_same_boot || mode.resets) {
                    let reason = self.reasons.unlock();
                    self.push(Phase::Clock, Operation::UnlockClocks, reason);
                }
            }
            ClockTarget::Locked { min, max } => {
                let turns_persistent = self.wish.persistence == Some(true);
                let was_lost = turns_persistent && self.gpu.is_persistent == Some(false);
                // A clock above the lock says that there is none; one below may be heat or the power limit.
                let above = self.gpu.sm_clock_mhz.filter(|now| *now > max);
                let reason = if locked != Some((min, max)) {
                    self.reasons.lock()
                } else if mode.resets {
                    "the reset unlocks it".to_owned()
                } else if !self.is_same_boot {
                    "the lock was lost at the reboot".to_owned()
                } else if was_lost {
                    "without persistence mode the lock may have been lost".to_owned()
                } else if let Some(above) = above {
                    format!("it runs at {above} MHz: the lock is gone")
                } else {
                    return;
                };
                self.push(Phase::Clock, Operation::LockClocks { min, max }, reason);
            }
        }
    }

    fn power_limit(&mut self, mode: Mode) {
        let Some(now) = self.gpu.power_limit_mw else { return };
        let wanted = self.wish.power_limit_mw.unwrap_or(now);
        let is_lost = mode.resets && Some(wanted) != self.gpu.default_power_limit_mw;
        if wanted != now || is_lost {
            let reason = if wanted == now { "the reset sets it back" } else { "as before" };
            let operation = Operation::SetPowerLimit { milliwatts: wanted };
            self.push(Phase::PowerLimit, operation, reason.to_owned());
        }
    }
}

/// A place for every wish on one GPU.
fn place(
    gpu: &ObservedGpu,
    wishes: &[TargetInstance],
    ours: &[Present<'_>],
    foreign: &[&ObservedInstance],
) -> Result<Vec<Place>, Vec<Refusal>> {
    let board = gpu.board.as_deref().and_then(catalogue::board);
    let is_on_menu = |wish: &TargetInstance| {
        gpu.profiles.is_empty() || gpu.profiles.iter().any(|profile| profile.name == wish.profile)
    };
    let is_known = |wish: &TargetInstance| board.is_some_and(|b| b.profile(&wish.profile).is_some());
    let placed = |foreign: &[&ObservedInstance]| {
        let taken = foreign.iter().fold(0, |bits, other| bits | fit::mask(other.start, other.size));
        let places = fit::fit(board, wishes, ours, taken)?;
        let comes = |(wish, at): (&TargetInstance, &Place)| at.present.is_none().then(|| is_on_menu(wish));
        let mut new = wishes.iter().zip(&places).filter_map(comes).peekable();
        // What is all there already needs no leave of the catalogue.
        let is_legal = new.peek().is_none()
            || new.all(|on_menu| on_menu) && board.is_some_and(|b| is_multiset(b, wishes, foreign));
        is_legal.then_some(places)
    };
    if let Some(places) = placed(foreign) {
        return Ok(places);
    }
    let Some(board) = board else { return Err(vec![refusals::unknown_board(gpu)]) };
    let unknown: BTreeSet<&str> =
        wishes.iter().filter(|w| !is_known(w) || !is_on_menu(w)).map(|w| w.profile.as_str()).collect();
    if !unknown.is_empty() {
        return Err(unknown.into_iter().map(|name| refusals::unknown_profile(gpu, name)).collect());
    }
    // The fewest foreign instances without which there would be room; all subsets, smallest first.
    let mut subsets: Vec<u32> = (0..1_u32 << foreign.len().min(fit_axis(board))).collect();
    subsets.sort_by_key(|bits| bits.count_ones());
    for bits in subsets {
        let is_out = |index: usize| index < u32::BITS as usize && bits & (1 << index) != 0;
        let (out, stay): (Vec<_>, Vec<_>) = foreign.iter().enumerate().partition(|(index, _)| is_out(*index));
        let stay: Vec<&ObservedInstance> = stay.into_iter().map(|(_, other)| *other).collect();
        if placed(&stay).is_some() {
            return Err(out.into_iter().map(|(_, other)| refusals::foreign(gpu, other, wishes)).collect());
        }
    }
    Err(vec![refusals::impossible(gpu, wishes)])
}

fn fit_axis(board: &ent_plan::device::Board) -> usize {
    board.n_memory_slices.min(ent_plan::device::MAX_MEMORY_SLICES) as usize
}

/// Whether these profiles may be on one board together, wherever they are: counts, media extensions, and
/// room for them at all. A foreign profile that the catalogue does not know only takes up slices.
fn is_multiset(
    board: &ent_plan::device::Board,
    wishes: &[TargetInstance],
    foreign: &[&ObservedInstance],
) -> bool {
    let index = |name: &str| board.profiles.iter().position(|profile| profile.name == name);
    let wished: Option<Vec<usize>> = wishes.iter().map(|wish| index(&wish.profile)).collect();
    wished.is_some_and(|mut all| {
        all.extend(foreign.iter().filter_map(|other| index(&other.profile)));
        ent_plan::device::place(board, &all).is_some()
    })
}
