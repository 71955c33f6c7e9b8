//! Boards: first fit within a clock, exchange between clocks, joining under a limit.

use super::cost::Price;
use super::search::{Candidate, Present, Search, undominated};
use super::{Board, CAPACITY, Input, Mode, Service};

/// Models that the original knows by name, because they were measured at 690 MHz and above only.
const SLOW: [&str; 3] = ["gpt", "diffusion_1024_1024", "diffusion_256_256"];
/// Their lowest clock (MHz), and what is taken off their swing (W).
const SLOW_CLOCK: u32 = 690;
const SLOW_SWING: f64 = 20.0;

/// The most slices of an instance that is chosen first, and of one on a board that is joined.
const MAX_FIRST: u32 = 6;
const MAX_JOINED: u32 = 4;

/// A board in the making.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// Index into the clocks, ascending.
    clock: usize,
    members: Vec<(usize, usize)>,
    slices: u32,
    present: Present,
    cost: f64,
}

pub(super) struct Merging<'a> {
    input: &'a Input,
    mode: Mode,
    prices: Vec<Price>,
    /// Usable rows by service and clock, in the order of the rows.
    usable: Vec<Vec<Vec<Candidate>>>,
    /// The same without those that are never the answer of a search.
    sharp: Vec<Vec<Vec<Candidate>>>,
    /// Services without a usable row.
    pub(super) unserved: Vec<usize>,
    work: u64,
}

impl<'a> Merging<'a> {
    pub(super) fn new(input: &'a Input, mode: Mode) -> Self {
        let prices: Vec<Price> = input.clocks.iter().map(|c| input.estimator.price(c)).collect();
        let candidates = |service: &Service, clock: usize| -> Vec<Candidate> {
            let rows = service.rows.iter().enumerate();
            rows.filter(|(_, r)| r.clock == input.clocks[clock].clock)
                .filter(|(_, r)| r.slices >= 1 && r.slices <= CAPACITY && r.throughput >= service.rate)
                .filter(|(_, r)| mode == Mode::Native || r.latency <= service.bound)
                .filter(|(_, r)| r.dynamic.is_finite() && r.latency.is_finite())
                .map(|(row, r)| Candidate {
                    row,
                    slices: r.slices,
                    own: input.estimator.own(r, &prices[clock]),
                    latency: r.latency,
                })
                .collect()
        };
        let usable: Vec<Vec<Vec<Candidate>>> = input
            .services
            .iter()
            .map(|s| (0..prices.len()).map(|clock| candidates(s, clock)).collect())
            .collect();
        let sharp = usable.iter().map(|s| s.iter().map(|c| undominated(c)).collect()).collect();
        Self { input, mode, prices, usable, sharp, unserved: Vec::new(), work: 0 }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.work >= self.input.max_work
    }

    /// The cheapest row of each service alone, then first fit among equal clocks where sharing is
    /// cheaper. Highest clock first.
    pub(super) fn first_fit(&mut self) -> Vec<Draft> {
        let mut boards: Vec<Vec<Draft>> = vec![Vec::new(); self.prices.len()];
        // The original's bins of a clock are in the order of their first service.
        for service in 0..self.input.services.len() {
            let Some((clock, chosen)) = self.cheapest_alone(service) else {
                self.unserved.push(service);
                continue;
            };
            let price = self.prices[clock];
            let alone = price.of(chosen.own, chosen.latency);
            let place = boards[clock].iter_mut().find(|b| {
                b.slices + chosen.slices <= CAPACITY
                    && price.of(b.present.own + chosen.own, b.present.latency.max(chosen.latency))
                        < b.cost + alone
            });
            match place {
                Some(board) => add(board, &price, service, &chosen),
                None => {
                    let mut board = Draft {
                        clock,
                        members: Vec::new(),
                        slices: 0,
                        present: Present::default(),
                        cost: 0.0,
                    };
                    add(&mut board, &price, service, &chosen);
                    boards[clock].push(board);
                }
            }
        }
        boards.into_iter().rev().flatten().collect()
    }

    fn cheapest_alone(&self, service: usize) -> Option<(usize, Candidate)> {
        let all = self.usable[service].iter().enumerate();
        let mut best: Option<(f64, usize, Candidate)> = None;
        for (clock, candidates) in all {
            for c in candidates.iter().filter(|c| c.slices <= MAX_FIRST) {
                let cost = self.prices[clock].of(c.own, c.latency);
                let is_better =
                    best.is_none_or(|(least, _, b)| cost < least || cost == least && c.row < b.row);
                if is_better {
                    best = Some((cost, clock, *c));
                }
            }
        }
        best.map(|(_, clock, c)| (clock, c))
    }

    /// Tries boards on each other: from the highest clock into the lowest, then back. Full boards are
    /// set aside.
    pub(super) fn exchange(&mut self, mut boards: Vec<Draft>) -> Vec<Draft> {
        let mut done = Vec::new();
        // The original takes boards out of the list that it walks, and so misses the next one.
        let mut at = 0;
        while at < boards.len() {
            if boards[at].slices == CAPACITY {
                done.push(boards.remove(at));
            }
            at += 1;
        }
        self.lower(&mut boards, &mut done);
        self.raise(&mut boards, &mut done);
        done.extend(boards);
        done
    }

    /// Boards from the highest clock, each into the first that is cheaper, from the lowest clock.
    fn lower(&mut self, boards: &mut Vec<Draft>, done: &mut Vec<Draft>) {
        let mut from = 0;
        while from < boards.len() {
            let into = (from + 1..boards.len()).rev().find_map(|into| {
                let joint = self.joint(&boards[from], &boards[into])?;
                Some((into, joint))
            });
            match into {
                Some((into, joint)) => {
                    settle(boards, done, into, joint);
                    boards.remove(from);
                }
                None => from += 1,
            }
        }
    }

    /// Boards but the first, those that lose least at a high clock first, each into the first that is
    /// cheaper, from the highest clock.
    fn raise(&mut self, boards: &mut Vec<Draft>, done: &mut Vec<Draft>) {
        // Boards keep their number while others come and go.
        let mut numbered: Vec<(usize, Draft)> = std::mem::take(boards).into_iter().enumerate().collect();
        let mut order: Vec<(f64, usize)> =
            numbered.iter().skip(1).map(|(number, b)| (self.swing(b), *number)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, number) in order {
            let Some(from) = numbered.iter().position(|(n, _)| *n == number) else { continue };
            let into = (0..from).find_map(|into| {
                let joint = self.joint(&numbered[from].1, &numbered[into].1)?;
                Some((into, joint))
            });
            let Some((into, joint)) = into else { continue };
            numbered.remove(from);
            if joint.slices == CAPACITY {
                numbered.remove(into);
                done.push(joint);
            } else {
                numbered[into].1 = joint;
            }
        }
        *boards = numbered.into_iter().map(|(_, b)| b).collect();
    }

    /// `from`'s services on `into`, at its clock and beside what it has, if that is cheaper.
    fn joint(&mut self, from: &Draft, into: &Draft) -> Option<Draft> {
        let services: Vec<usize> = from.members.iter().map(|m| m.0).collect();
        let free = CAPACITY - into.slices;
        let (cost, rows) = self.cheapest(&services, into.clock, into.present, free, free)?;
        (cost < from.cost + into.cost).then(|| {
            let mut board = into.clone();
            self.put(&mut board, &services, &rows);
            board
        })
    }

    /// The first two boards that fit on one become one: at the lowest clock first, then from the last
    /// board into the one before it. Their cost is not compared.
    pub(super) fn join_first(&mut self, boards: &mut Vec<Draft>) -> bool {
        for clock in 0..self.prices.len() {
            for from in (1..boards.len()).rev() {
                for into in (0..from).rev() {
                    if clock < boards[into].clock || self.is_stopped() {
                        continue;
                    }
                    let services: Vec<usize> =
                        boards[from].members.iter().chain(&boards[into].members).map(|m| m.0).collect();
                    let found = self.cheapest(&services, clock, Present::default(), CAPACITY, MAX_JOINED);
                    if let Some((_, rows)) = found {
                        let mut board = Draft {
                            clock,
                            members: Vec::new(),
                            slices: 0,
                            present: Present::default(),
                            cost: 0.0,
                        };
                        self.put(&mut board, &services, &rows);
                        boards[into] = board;
                        boards.remove(from);
                        return true;
                    }
                }
            }
        }
        false
    }

    fn cheapest(
        &mut self,
        services: &[usize],
        clock: usize,
        present: Present,
        free: u32,
        max_slices: u32,
    ) -> Option<(f64, Vec<usize>)> {
        self.work += 1;
        if services.len() > free as usize {
            return None;
        }
        // Rows come with their slices in any order; a limit below seven must be kept by each.
        let kept: Vec<Vec<Candidate>> = services
            .iter()
            .map(|s| self.sharp[*s][clock].iter().filter(|c| c.slices <= max_slices).copied().collect())
            .collect();
        if kept.iter().any(Vec::is_empty) {
            return None;
        }
        let lists: Vec<&[Candidate]> = kept.iter().map(Vec::as_slice).collect();
        let left = self.input.max_work.saturating_sub(self.work);
        let (found, work) = Search::new(self.prices[clock], &lists).run(present, free, left);
        self.work += work;
        found
    }

    fn put(&self, board: &mut Draft, services: &[usize], rows: &[usize]) {
        let price = self.prices[board.clock];
        for (service, row) in services.iter().zip(rows) {
            let found = self.usable[*service][board.clock].iter().find(|c| c.row == *row);
            if let Some(candidate) = found {
                add(board, &price, *service, candidate);
            }
        }
    }

    /// How much the dynamic power of a board's services can differ between clocks (W).
    fn swing(&self, board: &Draft) -> f64 {
        let top = self.prices.len().saturating_sub(1);
        let of = |service: &Service, usable: &[Vec<Candidate>]| -> f64 {
            let high = usable.get(top).into_iter().flatten().map(|c| service.rows[c.row].dynamic);
            let is_slow = self.mode == Mode::Conformant && SLOW.contains(&service.name.as_str());
            let lowest = match (self.mode, is_slow) {
                (Mode::Conformant, true) => Some(SLOW_CLOCK),
                (Mode::Conformant, false) => self.input.clocks.first().map(|c| c.clock),
                (Mode::Native, _) => service.rows.iter().map(|r| r.clock).min(),
            };
            let low = service.rows.iter().filter(|r| Some(r.clock) == lowest).map(|r| r.dynamic);
            let low = low.reduce(f64::min).unwrap_or(0.0);
            high.reduce(f64::max).unwrap_or(0.0) - low - if is_slow { SLOW_SWING } else { 0.0 }
        };
        board.members.iter().map(|(s, _)| of(&self.input.services[*s], &self.usable[*s])).sum()
    }

    /// A board as the caller knows it.
    pub(super) fn named(&self, draft: Draft) -> Board {
        Board { clock: self.input.clocks[draft.clock].clock, members: draft.members, cost: draft.cost }
    }
}

fn add(board: &mut Draft, price: &Price, service: usize, candidate: &Candidate) {
    board.members.push((service, candidate.row));
    board.slices += candidate.slices;
    board.present.own += candidate.own;
    board.present.latency = board.present.latency.max(candidate.latency);
    board.cost = price.of(board.present.own, board.present.latency);
}

/// Puts a board in the place of another, or sets it aside when it is full.
fn settle(boards: &mut Vec<Draft>, done: &mut Vec<Draft>, at: usize, board: Draft) {
    if board.slices == CAPACITY {
        boards.remove(at);
        done.push(board);
    } else {
        boards[at] = board;
    }
}
