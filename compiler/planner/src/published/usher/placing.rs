//! Where the replicas of a group go: the fullest board with room, those of the group first.

use super::{Gpu, Input, Profile, Replica};

/// Compute over memory use from which a model is heavy on compute.
const COMPUTE_HEAVY: f64 = 1.2;
/// Compute over memory use up to which a model is heavy on memory.
const MEMORY_HEAVY: f64 = 0.8;
/// Bounds on the interference factor.
const INTERFERENCE: (f64, f64) = (1.0, 3.0);

/// A board that is in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Board {
    pub(super) load: Load,
    /// What is on it, with the profile at the chosen batch.
    pub(super) tenants: Vec<(Replica, Profile)>,
}

/// How full a board is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) compute: f64,
    pub(super) memory: f64,
    pub(super) memory_mb: f64,
    /// The two busiest models on it.
    pub(super) busiest: [Option<Bandwidth>; 2],
    /// Which members of the group being placed are on it, by bit.
    members: u32,
}

/// A model's use of what is shared on a board.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bandwidth {
    l2: f64,
    memory: f64,
}

/// One member of a group with the batch to be tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Its position in the group.
    pub(super) position: usize,
    pub(super) profile: Profile,
}

impl Load {
    fn has_room(&self, profile: &Profile) -> bool {
        self.compute + profile.compute <= 1.0 && self.memory + profile.memory <= 1.0
    }

    /// Usher adds a share of compute and megabytes of memory: memory decides.
    fn remaining(&self, memory_mb: f64) -> f64 {
        (1.0 - self.compute) + (memory_mb - self.memory_mb)
    }

    pub(super) fn add(&mut self, profile: &Profile, memory_mb: f64) {
        self.compute += profile.compute;
        self.memory += profile.memory;
        self.memory_mb += profile.memory * memory_mb;
        let new = Bandwidth { l2: profile.l2, memory: profile.memory };
        let is_busier = |than: Option<Bandwidth>| than.is_none_or(|b| new.l2 + new.memory > b.l2 + b.memory);
        if is_busier(self.busiest[0]) {
            self.busiest = [Some(new), self.busiest[0]];
        } else if is_busier(self.busiest[1]) {
            self.busiest[1] = Some(new);
        }
    }

    /// How much longer batches take on it.
    pub(super) fn interference(&self, c: &[f64; 5]) -> f64 {
        match self.busiest {
            [Some(a), Some(b)] => (c[4] + c[0] * a.l2 + c[1] * b.l2 + c[2] * a.memory + c[3] * b.memory)
                .clamp(INTERFERENCE.0, INTERFERENCE.1),
            _ => 1.0,
        }
    }
}

impl Board {
    /// As it is reported.
    pub(super) fn gpu(self, input: &Input) -> Gpu {
        Gpu {
            compute: self.load.compute,
            memory_mb: self.load.memory_mb,
            interference: self.load.interference(&input.constants),
            replicas: self.tenants.into_iter().map(|(replica, _)| replica).collect(),
        }
    }
}

/// The order members are placed in: heavy on compute and heavy on memory in turn, the balanced last; within
/// each the neediest first.
pub(super) fn order(members: &[Member]) -> Vec<Member> {
    let ratio = |m: &Member| m.profile.compute / m.profile.memory;
    let need = |m: &Member| m.profile.compute + m.profile.memory;
    let class = |test: &dyn Fn(f64) -> bool| {
        let mut own: Vec<Member> = members.iter().copied().filter(|m| test(ratio(m))).collect();
        own.sort_by(|a, b| need(b).total_cmp(&need(a)));
        own
    };
    let compute = class(&|r| r >= COMPUTE_HEAVY);
    let memory = class(&|r| r <= MEMORY_HEAVY);
    // A ratio that is not a number (0 / 0) is balanced.
    let balanced = class(&|r| !(r >= COMPUTE_HEAVY || r <= MEMORY_HEAVY));
    let longest = compute.len().max(memory.len());
    (0..longest)
        .flat_map(|i| [compute.get(i).copied(), memory.get(i).copied()])
        .flatten()
        .chain(balanced)
        .collect()
}

/// Boards with a group's replicas put on them, for one configuration at a time.
#[derive(Default)]
pub(super) struct Trial {
    pub(super) loads: Vec<Load>,
    /// Board, member's position and number of each replica, in the order placed.
    pub(super) placed: Vec<(usize, usize, u32)>,
    /// Boards opened.
    pub(super) added: u32,
}

impl Trial {
    /// Places the members' replicas (by position) on boards as they are. False, and unfinished, as soon as
    /// `limit` boards would be opened.
    pub(super) fn place(
        &mut self,
        boards: &[Board],
        ordered: &[Member],
        replicas: &[u32],
        memory_mb: f64,
        limit: u32,
    ) -> bool {
        self.loads.clear();
        self.loads.extend(boards.iter().map(|b| b.load));
        self.placed.clear();
        self.added = 0;
        for member in ordered {
            let bit = 1 << member.position;
            for replica in 0..replicas[member.position] {
                let board = match self.choose(member, memory_mb) {
                    Some(board) => board,
                    None => {
                        self.added += 1;
                        if self.added >= limit {
                            return false;
                        }
                        self.loads.push(Load::default());
                        self.loads.len() - 1
                    }
                };
                self.loads[board].members |= bit;
                self.loads[board].add(&member.profile, memory_mb);
                self.placed.push((board, member.position, replica));
            }
        }
        true
    }

    /// The board with room and the least remaining, one that serves the group before others.
    fn choose(&self, member: &Member, memory_mb: f64) -> Option<usize> {
        let bit = 1 << member.position;
        let mut best: Option<(bool, f64, usize)> = None;
        for (index, load) in self.loads.iter().enumerate() {
            if load.members & bit != 0 || !load.has_room(&member.profile) {
                continue;
            }
            let is_stranger = load.members == 0;
            let remaining = load.remaining(memory_mb);
            let is_better = best.is_none_or(|(stranger, least, _)| {
                (!is_stranger && stranger) || (is_stranger == stranger && remaining < least)
            });
            if is_better {
                best = Some((is_stranger, remaining, index));
            }
        }
        best.map(|(_, _, index)| index)
    }
}
