//! A seed → machines, plans and faults.

use crate::worker::{Action, Death, Job};
use crate::world::{Lab, World, board};
use ent_machine::changes::{Operation, Step};
use ent_machine::diff::diff;
use ent_machine::target::{ClockTarget, Target, TargetGpu, TargetInstance};
use ent_nvml_sim::description::{DescribedGpu, DescribedInstance, Description};
use ent_nvml_sim::returns::Return;
use ent_plan::device::Board;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

/// Boards of three generations, with 4, 8 and 12 memory slices.
const BOARDS: [&str; 7] = [
    "a100-80gb-pcie",
    "a100-40gb",
    "a30-24gb",
    "h100-80gb-sxm",
    "h200-141gb",
    "b200-180gb",
    "rtx-pro-6000-blackwell",
];

/// How many calls an apply makes when nothing goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls {
    /// Which calls: all, or those that change the machine.
    call: &'static str,
    n_calls: u64,
    n_steps: usize,
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// At a call.
    Call { call: &'static str, occurrence: u64, when: &'static str, what: Value },
    /// Between calls.
    Death(Death),
}

impl Fault {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Death(_) => "death",
            Self::Call { what, .. } if what.get("error").is_some() => "error",
            Self::Call { what, .. } if what.get("lost").is_some() => "lost",
            Self::Call { what, .. } if what == "reboot" => "reboot",
            Self::Call { .. } => "kill",
        }
    }

    /// Whether it takes a process of its own: one that dies of it, or cannot shut the library down.
    pub(crate) fn is_apart(&self) -> bool {
        let is_any_call = matches!(self, Self::Call { call: "*", .. });
        is_any_call || ["death", "kill", "reboot"].contains(&self.word())
    }

    pub(crate) fn death(&self) -> Option<Death> {
        match self {
            Self::Death(death) => Some(*death),
            Self::Call { .. } => None,
        }
    }

    /// The file that the simulated library reads.
    pub(crate) fn file(&self) -> Value {
        match self {
            Self::Death(_) => json!([]),
            Self::Call { call, occurrence, when, what } => {
                json!([{ "call": call, "occurrence": occurrence, "when": when, "what": what }])
            }
        }
    }
}

/// A stream of draws.
pub(crate) struct Draw {
    random: ChaCha8Rng,
}

impl Draw {
    pub(crate) fn new(seed: u64, run: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(run);
        Self { random }
    }

    /// True so often in a hundred.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.random.random_ratio(percent, 100)
    }

    /// A machine, with instances that are not entc's on some boards.
    pub(crate) fn description(&mut self) -> Description {
        let n_gpus = *[1, 1, 1, 2, 2, 3].choose(&mut self.random).unwrap();
        let gpu = (0..n_gpus).map(|_| {
            let id = *BOARDS.choose(&mut self.random).unwrap();
            let mig = self.chance(70);
            let board = board(id);
            let foreign = if mig && self.chance(40) { self.layout(board, 0, 2) } else { Vec::new() };
            let instances = foreign.into_iter().map(|(profile, start, _)| DescribedInstance {
                profile,
                start: Some(start),
                // A GPU instance without a compute instance may be somebody's, too.
                compute: self.chance(80),
            });
            DescribedGpu {
                board: id.to_owned(),
                count: 1,
                mig,
                instances: instances.collect(),
                ..DescribedGpu::default()
            }
        });
        let gpu: Vec<DescribedGpu> = gpu.collect();
        let mut description = Description::of("590.10", &[]);
        description.persistenced = self.chance(30);
        description.gpu = gpu;
        description
    }

    /// Up to so many instances in places that are free and legal together.
    fn layout(&mut self, board: &Board, taken: u32, at_most: usize) -> Vec<(String, u32, u32)> {
        let mut taken = taken;
        let mut counts = vec![0; board.profiles.len()];
        let mut media = 0;
        let mut layout = Vec::new();
        for _ in 0..self.random.random_range(0..=at_most) {
            let index = self.random.random_range(0..board.profiles.len());
            let profile = &board.profiles[index];
            // Few variants with media engines may be together; one of them is enough here.
            let is_rare = profile.name.contains(['+', '-']);
            let start = *profile.starts.choose(&mut self.random).unwrap();
            let mask = ((1_u32 << profile.n_memory_slices) - 1) << start;
            let is_full = profile.name.contains(".all")
                || counts[index] >= profile.max_instances
                || (is_rare && media > 0);
            if taken & mask == 0 && !is_full {
                taken |= mask;
                counts[index] += 1;
                media += u32::from(is_rare);
                layout.push((profile.name.clone(), start, profile.n_memory_slices));
            }
        }
        layout
    }

    /// A wish for some of the boards, beside what is foreign on them.
    pub(crate) fn target(&mut self, world: &World) -> Target {
        let mut target = Target::default();
        let ours = world.state().ours();
        for (gpu, board) in world.snapshot().gpus.iter().zip(&world.boards) {
            if self.chance(15) {
                continue;
            }
            let is_foreign = |i: &&crate::world::Instance| {
                !ours.contains(&(gpu.uuid.clone(), i.start, i.size, i.profile.clone()))
            };
            let foreign = gpu.instances.iter().filter(is_foreign);
            let taken = foreign.fold(0, |bits, i| bits | (((1_u32 << i.size) - 1) << i.start));
            let is_cut = taken != 0 || self.chance(85);
            let layout = if is_cut { self.layout(board, taken, 7) } else { Vec::new() };
            let instance = |(profile, start, size): (String, u32, u32)| TargetInstance {
                profile,
                start,
                size,
                is_fixed: self.random.random_ratio(1, 3),
                service: ["a", "b", "c"].choose(&mut self.random).map(|name| (*name).to_owned()),
            };
            let mut instances: Vec<TargetInstance> = layout.into_iter().map(instance).collect();
            instances.sort_by_key(|instance| instance.start);
            let persistence = if self.chance(70) { Some(true) } else { None };
            let clock = board.clocks.choose(&mut self.random).map(|clock| clock.0);
            let sm_clock = match clock {
                Some(clock) if self.chance(60) => ClockTarget::Locked { min: clock, max: clock },
                _ if self.chance(50) => ClockTarget::Unlocked,
                _ => ClockTarget::Leave,
            };
            let limits = board.power_limits.filter(|_| self.random.random_ratio(1, 4));
            let power_limit_mw = limits.and_then(|limits| {
                let (least, most) = (limits.min?.0.round() as u32, limits.max.0.round() as u32);
                Some(self.random.random_range(least..=most) * 1000)
            });
            let wish = TargetGpu {
                mig: Some(is_cut),
                services: Vec::new(),
                persistence,
                instances,
                sm_clock,
                power_limit_mw,
            };
            target.gpus.insert(gpu.uuid.clone(), wish);
        }
        target
    }

    /// Counts the calls that an apply makes; `None` when it has nothing to do, or is not possible beside what
    /// is foreign there.
    pub(crate) fn calls(&mut self, lab: &Lab, world: &World, target: &Target) -> Option<Calls> {
        let steps = {
            let observed = world.driver().observe().unwrap();
            diff(target, &observed, &world.state().on(&observed)).ok()?.steps
        };
        if steps.is_empty() {
            return None;
        }
        let n_steps = steps.len();
        if self.chance(70) {
            // A GPU instance and its compute instance are two calls.
            let n_calls = |step: &Step| match step.operation {
                Operation::CreateInstance { .. } | Operation::DestroyInstance { .. } => 2,
                Operation::SetMigMode { .. }
                | Operation::SetPersistence { .. }
                | Operation::LockClocks { .. }
                | Operation::UnlockClocks
                | Operation::SetPowerLimit { .. } => 1,
            };
            return Some(Calls { call: "mutating", n_calls: steps.iter().map(n_calls).sum(), n_steps });
        }
        // All the others are counted by the library, in a trial on a copy of the machine.
        let trial = world.copy(lab);
        trial.set_faults(&json!([{ "call": "*", "occurrence": u64::MAX, "when": "before", "what": "kill" }]));
        let said = Job::new(&trial, Action::Apply(target.clone())).run();
        assert_eq!((said.outcome.as_str(), said.steps[0]), ("done", n_steps), "{said:?}");
        let path = trial.machine().join(ent_nvml_sim::faults::FILE);
        let faults: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        Some(Calls { call: "*", n_calls: faults[0]["seen"].as_u64().unwrap(), n_steps })
    }

    pub(crate) fn fault(&mut self, calls: Calls, n_gpus: usize) -> Fault {
        let death = self.random.random_range(0..100) < 20;
        if death {
            let nth = self.random.random_range(1..=calls.n_steps);
            return Fault::Death(match self.random.random_range(0..5) {
                0 | 1 => Death::Intent(nth),
                2 => Death::Outcome { nth, thousandths: 1000 },
                3 => Death::Outcome { nth, thousandths: self.random.random_range(0..1000) },
                _ => Death::Verifying,
            });
        }
        let occurrence = self.random.random_range(1..=calls.n_calls);
        let when = if self.chance(50) { "before" } else { "after" };
        let what = match self.random.random_range(0..10) {
            0..5 => json!({ "error": Return::ALL.choose(&mut self.random).unwrap() }),
            5..8 => json!("kill"),
            8 => json!("reboot"),
            _ => json!({ "lost": self.random.random_range(0..n_gpus) }),
        };
        Fault::Call { call: calls.call, occurrence, when, what }
    }
}
