//! A journal + the machine → what is ours in the middle of a transaction.
//!
//! A step that was begun may have come about. So an instance is ours from the intent to create it until
//! the outcome of its destruction, and a clock is unknown from an intent until its outcome. What belongs
//! to an earlier boot is gone.

use super::{Entry, Journal};
use crate::changes::{Kept, Operation, Step};
use crate::error::DeviceErrorKind;
use crate::observed::{GpuUuid, Observed};
use crate::state::{InstanceState, Ours, State};
use crate::target::{ClockTarget, Target};
use std::collections::{BTreeMap, BTreeSet};

/// A lock of the SM clock (MHz), as far as lines tell it.
#[derive(Clone, Copy)]
enum Lock {
    /// This, or none.
    Known(Option<(u32, u32)>),
    /// A step that changes it has no known outcome; a range that it may be.
    Unknown(Option<(u32, u32)>),
}

impl Lock {
    fn range(self) -> Option<(u32, u32)> {
        match self {
            Self::Known(range) | Self::Unknown(range) => range,
        }
    }
}

/// The lines, done again in thought.
struct Replay {
    ours: Ours,
    locks: BTreeMap<GpuUuid, Lock>,
}

impl Journal {
    /// What is ours on a machine in the middle of this transaction, for [`diff`](crate::diff::diff) against
    /// a target: the state before it, with each instance that a step has begun to create, without each that
    /// is known to be destroyed, and nothing of an earlier boot. A clock that is not known is said to be
    /// other than the target wishes, so that it is set again.
    #[must_use]
    pub fn state_on(&self, observed: &Observed, target: &Target) -> State {
        let header = &self.header;
        let replay = self.replay(observed);
        let mut state = header.state_before.on(&header.before);
        state.boot_id.clone_from(&observed.boot_id);
        let mut services = BTreeMap::new();
        services.extend(self.created().map(|made| {
            ((made.gpu.clone(), made.start, made.size, made.profile.clone()), made.service.clone())
        }));
        for (uuid, gpu) in &mut state.gpus {
            gpu.boot_id.clone_from(&observed.boot_id);
            gpu.locked_sm_clock_mhz = None;
            let instances = std::mem::take(&mut gpu.instances);
            services.extend(
                instances.into_iter().map(|i| ((uuid.clone(), i.start, i.size, i.profile), i.service)),
            );
        }
        for place in replay.ours {
            let service = services.get(&place).cloned().flatten();
            let (uuid, start, size, profile) = place;
            let gpu = state.gpus.entry(uuid).or_default();
            gpu.boot_id.clone_from(&observed.boot_id);
            gpu.instances.push(InstanceState { profile, start, size, service });
        }
        for (uuid, lock) in replay.locks {
            let wish = target.gpus.get(&uuid).map_or(ClockTarget::Leave, |gpu| gpu.sm_clock);
            let gpu = state.gpus.entry(uuid).or_default();
            gpu.boot_id.clone_from(&observed.boot_id);
            gpu.locked_sm_clock_mhz = match (lock, wish) {
                (Lock::Known(range), _) => range,
                // Not as wished, so that it is set once more: doing so twice does no harm.
                (Lock::Unknown(range), ClockTarget::Unlocked) => range.or(Some((0, 0))),
                (Lock::Unknown(_), ClockTarget::Locked { .. } | ClockTarget::Leave) => None,
            };
        }
        state
    }

    /// What the steps towards the header's wish were to create, and for which service.
    fn created(&self) -> impl Iterator<Item = &Kept> {
        let continued = self.entries.iter().flat_map(|entry| match entry {
            Entry::Continued { is_inverse: false, changes, .. } => changes.created.as_slice(),
            Entry::Continued { .. }
            | Entry::Intent { .. }
            | Entry::Outcome { .. }
            | Entry::Adopted { .. }
            | Entry::End { .. } => &[],
        });
        self.header.changes.created.iter().chain(continued)
    }

    fn replay(&self, observed: &Observed) -> Replay {
        let is_now = |boot: &str| boot == observed.boot_id;
        let mut boot = self.header.before.boot_id.as_str();
        let mut replay = Replay { ours: Ours::new(), locks: BTreeMap::new() };
        if is_now(boot) {
            let state = self.header.state_before.on(&self.header.before);
            replay.ours = state.ours();
            let locked = |(uuid, gpu): (&GpuUuid, &crate::state::GpuState)| {
                (uuid.clone(), Lock::Known(gpu.locked_sm_clock_mhz))
            };
            replay.locks = state.gpus.iter().map(locked).collect();
            if !self.damaged_lines.is_empty() {
                // A lost line may have been an intent: whatever the header meant to do may be begun.
                for step in &self.header.changes.steps {
                    replay.begin(step);
                }
            }
        }
        let mut begun = None;
        for entry in &self.entries {
            match entry {
                Entry::Continued { boot_id, .. } => {
                    boot = boot_id;
                    begun = None;
                }
                Entry::Adopted { gpu, profile, start, size, boot_id } => {
                    if is_now(boot_id) {
                        replay.ours.insert((gpu.clone(), *start, *size, profile.clone()));
                    }
                }
                Entry::Intent { what, .. } if is_now(boot) => {
                    let is_new = replay.begin(what);
                    begun = Some((what, is_new));
                }
                Entry::Outcome { refusal: Some(refusal), .. }
                    if is_now(boot) && refusal == DeviceErrorKind::AlreadyThere.word() =>
                {
                    if let Some((step, true)) = begun.take() {
                        replay.forget(step);
                    }
                }
                Entry::Outcome { error: None, .. } if is_now(boot) => {
                    if let Some((step, _)) = begun.take() {
                        replay.end(step);
                    }
                }
                Entry::Intent { .. } | Entry::Outcome { .. } | Entry::End { .. } => begun = None,
            }
        }
        if !self.damaged_lines.is_empty() {
            // Nor is any outcome certain to be the last word on a clock.
            let gpus: BTreeSet<&GpuUuid> = self.steps().map(|step| &step.gpu).collect();
            for gpu in gpus {
                if let Some(lock) = replay.locks.get_mut(gpu) {
                    *lock = Lock::Unknown(lock.range());
                }
            }
        }
        replay
    }
}

impl Replay {
    /// Whether an instance may have become ours by this step.
    fn begin(&mut self, step: &Step) -> bool {
        let gpu = &step.gpu;
        let was = self.locks.get(gpu).copied().and_then(Lock::range);
        match &step.operation {
            Operation::CreateInstance { profile, start, size } => {
                return self.ours.insert((gpu.clone(), *start, *size, profile.clone()));
            }
            Operation::LockClocks { min, max } => {
                self.locks.insert(gpu.clone(), Lock::Unknown(Some((*min, *max))));
            }
            // A reset unlocks; so does the last client's end where persistence mode is off. What was not
            // locked stays so.
            Operation::UnlockClocks
            | Operation::SetMigMode { resets: true, .. }
            | Operation::SetPersistence { .. } => {
                if was.is_some() {
                    self.locks.insert(gpu.clone(), Lock::Unknown(was));
                }
            }
            Operation::SetMigMode { resets: false, .. }
            | Operation::DestroyInstance { .. }
            | Operation::SetPowerLimit { .. } => {}
        }
        false
    }

    /// What a step was to create had been made by somebody else.
    fn forget(&mut self, step: &Step) {
        if let Operation::CreateInstance { profile, start, size } = &step.operation {
            self.ours.remove(&(step.gpu.clone(), *start, *size, profile.clone()));
        }
    }

    fn end(&mut self, step: &Step) {
        let gpu = &step.gpu;
        match &step.operation {
            Operation::DestroyInstance { profile, start, size } => {
                self.ours.remove(&(gpu.clone(), *start, *size, profile.clone()));
            }
            Operation::LockClocks { min, max } => {
                self.locks.insert(gpu.clone(), Lock::Known(Some((*min, *max))));
            }
            Operation::UnlockClocks | Operation::SetMigMode { resets: true, .. } => {
                self.locks.insert(gpu.clone(), Lock::Known(None));
            }
            Operation::SetMigMode { resets: false, .. }
            | Operation::SetPersistence { .. }
            | Operation::CreateInstance { .. }
            | Operation::SetPowerLimit { .. } => {}
        }
    }
}
