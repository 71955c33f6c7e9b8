//! A journal + the machine read back → the state that is written at the end.

use super::{Before, GpuState, InstanceState, State};
use crate::changes::{Changes, Kept, Operation, Step};
use crate::journal::{Header, Journal, Transaction};
use crate::observed::{GpuUuid, Observed, ObservedGpu, ObservedInstance};
use crate::target::{ClockTarget, Target, TargetGpu, TargetInstance};

/// Whether one of our instances may be what a wish is about.
type Fits<'a> = &'a dyn Fn(&InstanceState, &TargetInstance) -> bool;

/// The wish of a header, with what its steps set although the wish leaves it: a reset loses persistence
/// mode and limits, and after a crash nothing but these steps remembers them.
#[must_use]
pub(crate) fn completed(header: &Header) -> Target {
    let mut target = header.target.clone();
    for step in &header.changes.steps {
        let Some(wish) = target.gpus.get_mut(&step.gpu) else { continue };
        match step.operation {
            Operation::SetPersistence { enabled } => wish.persistence = wish.persistence.or(Some(enabled)),
            Operation::SetPowerLimit { milliwatts } => {
                wish.power_limit_mw = wish.power_limit_mw.or(Some(milliwatts));
            }
            Operation::SetMigMode { .. }
            | Operation::DestroyInstance { .. }
            | Operation::CreateInstance { .. }
            | Operation::LockClocks { .. }
            | Operation::UnlockClocks => {}
        }
    }
    target
}

/// The state when the machine is as the header wishes. `now` is what is ours on it.
#[must_use]
pub(crate) fn wished(journal: &Journal, now: &State, observed: &Observed) -> State {
    let header = &journal.header;
    let mut state = dated(&header.state_before);
    state.boot_id.clone_from(&observed.boot_id);
    match header.transaction {
        Transaction::Apply | Transaction::Rollback => {
            state.plan.clone_from(&header.plan);
            state.node.clone_from(&header.node);
        }
        Transaction::Destroy => state.plan = None,
        Transaction::Import => {}
    }
    for (uuid, wish) in &completed(header).gpus {
        let Some(gpu) = observed.gpu(uuid) else { continue };
        let nothing = GpuState::default();
        let ours = now.gpus.get(uuid).unwrap_or(&nothing);
        let before = before(journal, uuid, state.gpus.get(uuid));
        let mut made = match header.transaction {
            Transaction::Destroy => GpuState { before: not_restored(before, gpu), ..GpuState::default() },
            Transaction::Import => imported(wish, ours, gpu, before),
            Transaction::Apply | Transaction::Rollback => {
                applied(wish, ours, gpu, before, journal.last_forward())
            }
        };
        made.boot_id.clone_from(&observed.boot_id);
        if header.transaction != Transaction::Destroy {
            look(&mut made, gpu, header.before.gpu(uuid));
        }
        state.gpus.insert(uuid.clone(), made);
    }
    state.gpus.retain(|_, gpu| !is_nothing(gpu));
    state
}

/// The state when the machine is as it was before. `target` is what was restored; `gone` are GPUs that are
/// given up: what is recorded of them stays, so that they can be given back when they are there again.
#[must_use]
pub(crate) fn restored(journal: &Journal, target: &Target, observed: &Observed, gone: &[GpuUuid]) -> State {
    let header = &journal.header;
    let mut state = dated(&header.state_before);
    for (uuid, wish) in &target.gpus {
        let Some(gpu) = state.gpus.get_mut(uuid) else { continue };
        if gpu.boot_id == header.before.boot_id && gpu.boot_id != observed.boot_id {
            gpu.boot_id.clone_from(&observed.boot_id);
            let is_back = |ours: &InstanceState| {
                wish.instances
                    .iter()
                    .any(|i| (i.start, i.size) == (ours.start, ours.size) && i.profile == ours.profile)
            };
            gpu.instances.retain(is_back);
        }
    }
    // A lock that may be there is one to be unlocked.
    let unlocked = |uuid: &GpuUuid| (uuid.clone(), TargetGpu::released());
    let now = journal.state_on(observed, &Target { gpus: gone.iter().map(unlocked).collect() });
    for uuid in gone {
        let recorded = state.gpus.get(uuid);
        let before = before(journal, uuid, recorded);
        let was = recorded.cloned().unwrap_or_default();
        let ours = now.gpus.get(uuid).cloned().unwrap_or_default();
        let given_up = GpuState {
            boot_id: observed.boot_id.clone(),
            mig: was.mig.or(before.mig),
            persistence: was.persistence.or(before.persistence),
            power_limit_mw: was.power_limit_mw.or(before.power_limit_mw),
            before,
            ..ours
        };
        if is_nothing(&given_up) {
            state.gpus.remove(uuid);
        } else {
            state.gpus.insert(uuid.clone(), given_up);
        }
    }
    state
}

/// What is seen on a GPU of ours beside what we made: instances of others, and a power limit that nobody
/// wishes, so that it can be told when that changes. Nothing of it makes a GPU ours.
fn look(made: &mut GpuState, gpu: &ObservedGpu, was: Option<&ObservedGpu>) {
    if is_nothing(made) {
        return;
    }
    let is_foreign = |other: &&ObservedInstance| !made.instances.iter().any(|ours| ours.is_at(other));
    let known = |other: &ObservedInstance| InstanceState {
        profile: other.profile.clone(),
        start: other.start,
        size: other.size,
        service: None,
    };
    let mut foreign: Vec<InstanceState> = gpu.instances.iter().filter(is_foreign).map(known).collect();
    foreign.sort_by_key(|instance| instance.start);
    made.foreign = foreign;
    made.power_limit_mw = made.power_limit_mw.or(gpu.power_limit_mw);
    made.before.power_limit_mw = made.before.power_limit_mw.or(was.and_then(|was| was.power_limit_mw));
}

/// A state in which every GPU says which boot it speaks of.
fn dated(state: &State) -> State {
    let mut dated = state.clone();
    for gpu in dated.gpus.values_mut() {
        if gpu.boot_id.is_empty() {
            gpu.boot_id.clone_from(&state.boot_id);
        }
    }
    dated
}

fn is_nothing(gpu: &GpuState) -> bool {
    GpuState { boot_id: String::new(), foreign: Vec::new(), ..gpu.clone() } == GpuState::default()
}

/// The values from before entc first changed a GPU: those recorded, and those that this transaction changes.
fn before(journal: &Journal, uuid: &GpuUuid, recorded: Option<&GpuState>) -> Before {
    let mut before = recorded.map(|gpu| gpu.before).unwrap_or_default();
    let Some(was) = journal.header.before.gpu(uuid) else { return before };
    let is_import = journal.header.transaction == Transaction::Import;
    let changes =
        |is_it: fn(&Step) -> bool| is_import || journal.steps().any(|step| step.gpu == *uuid && is_it(step));
    if changes(|step| matches!(step.operation, Operation::SetMigMode { .. })) {
        before.mig = before.mig.or(was.mig.map(|mode| mode.current));
    }
    if changes(|step| matches!(step.operation, Operation::SetPersistence { .. })) {
        before.persistence = before.persistence.or(was.is_persistent);
    }
    if changes(|step| matches!(step.operation, Operation::SetPowerLimit { .. })) {
        before.power_limit_mw = before.power_limit_mw.or(was.power_limit_mw);
    }
    before
}

/// What of the values from before a GPU does not have again.
fn not_restored(before: Before, gpu: &ObservedGpu) -> Before {
    Before {
        mig: before.mig.filter(|mode| gpu.mig.is_some_and(|now| now.current != *mode)),
        persistence: before.persistence.filter(|mode| gpu.is_persistent.is_some_and(|now| now != *mode)),
        power_limit_mw: before
            .power_limit_mw
            .filter(|limit| gpu.power_limit_mw.is_some_and(|now| now != *limit)),
    }
}

fn imported(wish: &TargetGpu, ours: &GpuState, gpu: &ObservedGpu, before: Before) -> GpuState {
    let instance = |wish: &TargetInstance| InstanceState {
        profile: wish.profile.clone(),
        start: wish.start,
        size: wish.size,
        service: wish.service.clone(),
    };
    GpuState {
        boot_id: String::new(),
        instances: wish.instances.iter().map(instance).collect(),
        mig: gpu.mig.map(|mode| mode.current),
        before,
        ..ours.clone()
    }
}

fn applied(
    wish: &TargetGpu,
    ours: &GpuState,
    gpu: &ObservedGpu,
    before: Before,
    changes: &Changes,
) -> GpuState {
    let instances = instances(wish, ours, gpu, changes);
    let relies_on_mig = (!instances.is_empty()).then_some(true);
    GpuState {
        boot_id: String::new(),
        locked_sm_clock_mhz: match wish.sm_clock {
            ClockTarget::Leave => ours.locked_sm_clock_mhz,
            ClockTarget::Unlocked => None,
            ClockTarget::Locked { min, max } => Some((min, max)),
        },
        mig: wish.mig.filter(|_| gpu.mig.is_some()).or(relies_on_mig).or(ours.mig),
        persistence: wish.persistence.filter(|_| gpu.is_persistent.is_some()).or(ours.persistence),
        power_limit_mw: wish.power_limit_mw.filter(|_| gpu.power_limit_mw.is_some()).or(ours.power_limit_mw),
        services: wish.services.clone(),
        foreign: Vec::new(),
        instances,
        before,
    }
}

/// Our instances that are there, each with the service that it carries: what the changes keep and create as they say,
/// then what is exactly where the wish puts it, then any wish for the same profile.
fn instances(wish: &TargetGpu, ours: &GpuState, gpu: &ObservedGpu, changes: &Changes) -> Vec<InstanceState> {
    let is_ours = |instance: &&ObservedInstance| ours.instances.iter().any(|ours| ours.is_at(instance));
    let mut found: Vec<InstanceState> = Vec::new();
    for instance in gpu.instances.iter().filter(is_ours) {
        let (profile, start, size) = (instance.profile.clone(), instance.start, instance.size);
        found.push(InstanceState { profile, start, size, service: None });
    }
    found.sort_by_key(|instance| instance.start);
    let mut left: Vec<&TargetInstance> = wish.instances.iter().collect();
    let mut settled = vec![false; found.len()];
    let meant = |at: &InstanceState, wish: &TargetInstance| {
        let is_it = |by: &Kept| by.gpu == gpu.uuid && by.start == at.start && by.service == wish.service;
        changes.kept.iter().chain(&changes.created).any(is_it)
    };
    let exact = |at: &InstanceState, wish: &TargetInstance| at.start == wish.start;
    let any = |_: &InstanceState, _: &TargetInstance| true;
    let rounds: [Fits<'_>; 3] = [&meant, &exact, &any];
    for fits in rounds {
        for (at, settled) in found.iter_mut().zip(&mut settled).filter(|(_, settled)| !**settled) {
            let is_it = |wish: &&TargetInstance| wish.profile == at.profile && fits(at, wish);
            if let Some(index) = left.iter().position(is_it) {
                at.service.clone_from(&left.remove(index).service);
                *settled = true;
            }
        }
    }
    found
}
