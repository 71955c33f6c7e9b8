//! What an observer from outside says of a machine after a command, or after a crash.
//!
//! Nothing here asks entc: machine, journal and state are read as files, and compared with the machine as
//! it was at the start.

use crate::worker::is_effected;
use crate::world::{Gpu, Instance, Snapshot, World};
use ent_machine::changes::{Operation, Step};
use ent_machine::journal::{Entry, Journal};
use ent_machine::state::State;
use ent_machine::target::{ClockTarget, Target, TargetGpu};
use std::collections::{BTreeMap, BTreeSet};

/// The start of a run.
pub(crate) struct Start {
    pub(crate) machine: Snapshot,
    pub(crate) state: State,
    /// The journal of an earlier transaction.
    journal: Option<Journal>,
    /// Serials of instances that are not entc's.
    pub(crate) foreign: BTreeSet<u64>,
}

impl Start {
    pub(crate) fn of(world: &World) -> Self {
        let (machine, state) = (world.snapshot(), world.state());
        let ours = state.ours();
        let foreign = machine.gpus.iter().flat_map(|gpu| {
            let is_foreign =
                |i: &&Instance| !ours.contains(&(gpu.uuid.clone(), i.start, i.size, i.profile.clone()));
            gpu.instances.iter().filter(is_foreign).map(|i| i.serial)
        });
        let journal = world.store().journal().unwrap();
        Self { foreign: foreign.collect(), journal, machine, state }
    }

    /// Whether a journal is not the one that was there at the start.
    pub(crate) fn is_begun(&self, journal: &Journal) -> bool {
        self.journal.as_ref() != Some(journal)
    }

    /// Whether nothing was changed.
    pub(crate) fn is_same(&self, now: &Snapshot) -> bool {
        let all = |snapshot: &Snapshot| snapshot.gpus.iter().map(settled).collect::<Vec<Gpu>>();
        all(&self.machine) == all(now)
    }

    fn is_ours(&self, instance: &Instance) -> bool {
        !self.foreign.contains(&instance.serial)
    }

    fn has_rebooted(&self, now: &Snapshot) -> bool {
        self.machine.boot != now.boot
    }

    /// Nothing foreign was touched, and no GPU instance of ours lacks its compute instance.
    pub(crate) fn is_clean(&self, now: &Snapshot) {
        for (was, is) in self.machine.gpus.iter().zip(&now.gpus) {
            self.is_foreign_untouched(was, is, now);
            for instance in is.instances.iter().filter(|i| self.is_ours(i)) {
                assert!(instance.is_whole, "an orphan: {instance:?}");
            }
        }
    }

    /// Whatever else happened.
    pub(crate) fn is_foreign_unharmed(&self, now: &Snapshot) {
        self.machine.gpus.iter().zip(&now.gpus).for_each(|(was, is)| self.is_foreign_untouched(was, is, now));
    }

    fn is_foreign_untouched(&self, was: &Gpu, is: &Gpu, now: &Snapshot) {
        if !self.has_rebooted(now) {
            let foreign = |gpu: &Gpu| -> Vec<Instance> {
                gpu.instances.iter().filter(|i| !self.is_ours(i)).cloned().collect()
            };
            assert_eq!(foreign(was), foreign(is), "foreign instances");
        }
    }

    /// The machine is the plan.
    pub(crate) fn is_plan(&self, target: &Target, now: &Snapshot) {
        for (was, is) in self.machine.gpus.iter().zip(&now.gpus) {
            match target.gpus.get(&is.uuid) {
                Some(wish) => self.is_wish(wish, is),
                None if self.has_rebooted(now) => {}
                None => assert_eq!(settled(was), settled(is), "a GPU that the plan does not name"),
            }
        }
    }

    fn is_wish(&self, wish: &TargetGpu, gpu: &Gpu) {
        if let Some(mig) = wish.mig {
            assert_eq!((gpu.mig, gpu.mig_pending), (mig, mig), "MIG mode");
        }
        let ours: Vec<&Instance> = gpu.instances.iter().filter(|i| self.is_ours(i)).collect();
        let mut found: Vec<&str> = ours.iter().map(|i| i.profile.as_str()).collect();
        let mut wanted: Vec<&str> = wish.instances.iter().map(|i| i.profile.as_str()).collect();
        found.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{wish:?}\n{gpu:?}");
        for fixed in wish.instances.iter().filter(|wish| wish.is_fixed) {
            let place = (fixed.start, fixed.size, fixed.profile.as_str());
            assert!(ours.iter().any(|i| i.place() == place), "{fixed:?}");
        }
        if let Some(persistence) = wish.persistence {
            assert_eq!(gpu.is_persistent, persistence);
        }
        // Without persistence mode these go with the last client.
        if gpu.is_persistent {
            match wish.sm_clock {
                ClockTarget::Locked { min, max } => assert_eq!(gpu.locked, Some((min, max))),
                ClockTarget::Unlocked => assert_eq!(gpu.locked, None),
                ClockTarget::Leave => {}
            }
            if let Some(limit) = wish.power_limit_mw {
                assert_eq!(gpu.power_limit_mw, Some(limit));
            }
        }
    }

    /// The machine is what it was; after a boot, as far as that was ours. `touched` are the GPUs that the
    /// journal has steps for.
    pub(crate) fn is_before(&self, journal: &Journal, now: &Snapshot) {
        let touched: BTreeSet<_> = journal_steps(journal).iter().map(|step| step.gpu.clone()).collect();
        for (was, is) in self.machine.gpus.iter().zip(&now.gpus) {
            if !self.has_rebooted(now) {
                assert_eq!(settled(was), settled(is), "before and now");
                continue;
            }
            if journal.header.before.gpu(&was.uuid).is_none() {
                // It had fallen off the bus before the first step: of that nothing is to be brought back.
                continue;
            }
            let places = |gpu: &Gpu, is_wanted: &dyn Fn(&Instance) -> bool| -> BTreeSet<(u32, u32, String)> {
                let wanted = gpu.instances.iter().filter(|i| is_wanted(i));
                wanted.map(|i| (i.start, i.size, i.profile.clone())).collect()
            };
            let ours = places(was, &|i| self.is_ours(i));
            // The boot took all others, and entc makes no foreign instance again.
            assert_eq!(places(is, &|_| true), ours);
            if touched.contains(&was.uuid) {
                assert_eq!((is.mig, is.is_persistent), (was.mig, was.is_persistent), "modes");
            }
            let state = self.state.gpus.get(&was.uuid);
            if let Some(range) = state.and_then(|gpu| gpu.locked_sm_clock_mhz).filter(|_| is.is_persistent) {
                assert_eq!(
                    is.locked,
                    Some(range).filter(|_| was.is_persistent || touched.contains(&was.uuid))
                );
            }
        }
    }

    /// The state says of exactly our instances that they are ours.
    pub(crate) fn is_state_true(&self, state: &State, now: &Snapshot, boot_id: &str) {
        let mut said = state.clone();
        said.gpus.retain(|_, gpu| state.boot_of(gpu) == boot_id);
        let ours = now.gpus.iter().flat_map(|gpu| {
            let ours = gpu.instances.iter().filter(|i| self.is_ours(i));
            ours.map(|i| (gpu.uuid.clone(), i.start, i.size, i.profile.clone()))
        });
        assert_eq!(said.ours(), ours.collect(), "state.json");
    }
}

/// A GPU without serials, and without what goes with the last client where persistence mode is off.
fn settled(gpu: &Gpu) -> Gpu {
    let mut gpu = gpu.clone();
    gpu.is_lost = false;
    for instance in &mut gpu.instances {
        instance.serial = 0;
        instance.compute.fill(0);
    }
    if !gpu.is_persistent {
        gpu.locked = None;
        gpu.power_limit_mw = None;
    }
    gpu
}

/// The boot in which a transaction was last worked on.
pub(crate) fn last_boot(journal: &Journal) -> &str {
    let last = journal.entries.iter().rev().find_map(|entry| match entry {
        Entry::Continued { boot_id, .. } => Some(boot_id),
        Entry::Intent { .. } | Entry::Outcome { .. } | Entry::Adopted { .. } | Entry::End { .. } => None,
    });
    last.unwrap_or(&journal.header.before.boot_id)
}

/// All steps that lines of a journal speak of.
pub(crate) fn journal_steps(journal: &Journal) -> Vec<Step> {
    let mut steps = journal.header.changes.steps.clone();
    for entry in &journal.entries {
        if let Entry::Continued { changes, .. } = entry {
            steps.extend(changes.steps.iter().cloned());
        }
    }
    steps
}

/// The machine is what the journal says was made of it: every step with a good outcome came about, and
/// nothing changed that no intent speaks of. Within one boot.
pub(crate) fn is_explained(start: &Snapshot, journal: &Journal, now: &Snapshot) {
    // The last word on each thing that a step changes, by GPU.
    let mut last: BTreeMap<(String, String), (Step, bool)> = BTreeMap::new();
    let mut begun: Option<Step> = None;
    for entry in &journal.entries {
        match entry {
            Entry::Intent { what, .. } => {
                if matches!(what.operation, Operation::SetMigMode { resets: true, .. }) {
                    // A reset may undo what was set before.
                    last.retain(|(gpu, thing), _| *gpu != what.gpu.0 || !is_volatile(thing));
                    for thing in ["clock", "limit"] {
                        last.insert((what.gpu.0.clone(), thing.to_owned()), (what.clone(), false));
                    }
                }
                last.insert((what.gpu.0.clone(), thing(&what.operation)), (what.clone(), false));
                begun = Some(what.clone());
            }
            Entry::Outcome { error: None, .. } => {
                if let Some(step) = begun.take() {
                    last.insert((step.gpu.0.clone(), thing(&step.operation)), (step, true));
                }
            }
            Entry::Outcome { .. } | Entry::Continued { .. } | Entry::Adopted { .. } | Entry::End { .. } => {
                begun = None;
            }
        }
    }
    for (was, is) in start.gpus.iter().zip(&now.gpus) {
        let said = |thing: &str| last.get(&(was.uuid.0.clone(), thing.to_owned()));
        for (step, is_done) in last.values().filter(|(step, _)| step.gpu == was.uuid) {
            let is_kept = is.is_persistent || !is_volatile(&thing(&step.operation));
            assert!(!is_done || !is_kept || is_effected(step, is), "the journal says done: {step:?}\n{is:?}");
        }
        let unsaid = |thing: &str, is_same: bool| {
            assert!(is_same || said(thing).is_some(), "no intent says why: {thing}\n{was:?}\n{is:?}");
        };
        unsaid("mode", (was.mig, was.mig_pending) == (is.mig, is.mig_pending));
        unsaid("persistence", was.is_persistent == is.is_persistent);
        if was.is_persistent && is.is_persistent {
            unsaid("clock", was.locked == is.locked);
            unsaid("limit", was.power_limit_mw == is.power_limit_mw);
        }
        for instance in was.instances.iter().filter(|i| !is.instances.contains(i)) {
            unsaid(&place(&instance.profile, instance.start), false);
        }
        for instance in is.instances.iter().filter(|i| !was.instances.contains(i)) {
            unsaid(&place(&instance.profile, instance.start), false);
        }
    }
}

fn place(profile: &str, start: u32) -> String {
    format!("{profile}@{start}")
}

fn thing(operation: &Operation) -> String {
    match operation {
        Operation::SetMigMode { .. } => "mode".to_owned(),
        Operation::SetPersistence { .. } => "persistence".to_owned(),
        Operation::DestroyInstance { profile, start, .. }
        | Operation::CreateInstance { profile, start, .. } => place(profile, *start),
        Operation::LockClocks { .. } | Operation::UnlockClocks => "clock".to_owned(),
        Operation::SetPowerLimit { .. } => "limit".to_owned(),
    }
}

fn is_volatile(thing: &str) -> bool {
    ["clock", "limit"].contains(&thing)
}
