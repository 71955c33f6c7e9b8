//! Segments → boards: best fit by free slices, then boards that are little used are broken up.

use super::segments::{Configured, held};
use super::{Choice, Fate, Mode, Segment};

/// Slices of a board.
const CAPACITY: u32 = 7;
/// Boards with no more than this in use are broken up.
const LITTLE: u32 = 4;

/// A segment of a configured service.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Index into the configured services.
    owner: usize,
    slices: u32,
}

#[derive(Clone, Debug, Default)]
struct Board {
    /// What begins at each label. Labels that a larger neighbour covers are not regarded as taken.
    labels: [Option<Piece>; 7],
    /// Pieces that found no label.
    unlabelled: Vec<Piece>,
    used: u32,
}

impl Board {
    fn has(&self, label: usize, slices: u32) -> bool {
        self.labels[label].is_some_and(|p| p.slices == slices)
    }

    /// Two segments of three slices never share a board: the second's label is taken.
    fn refuses(&self, slices: u32) -> bool {
        match slices {
            3 => self.has(4, 3),
            1 => self.has(0, 3) && self.has(4, 3),
            _ => false,
        }
    }
}

/// The order in which labels are tried.
fn label_order(slices: u32) -> &'static [usize] {
    match slices {
        4 | 7 => &[0],
        3 => &[4],
        2 => &[0, 4, 2],
        _ => &[0, 6, 4, 1, 2, 3, 5],
    }
}

/// The boards so far.
pub(super) struct Packing<'a> {
    services: &'a [Configured],
    max_boards: usize,
    mode: Mode,
    boards: Vec<Board>,
    /// Throughput taken off boards and not yet given back, by configured service (req/s).
    credit: Vec<f64>,
    fates: Vec<(usize, Fate)>,
}

impl<'a> Packing<'a> {
    pub(super) fn new(services: &'a [Configured], max_boards: usize, mode: Mode) -> Self {
        Self {
            services,
            max_boards,
            mode,
            boards: Vec::new(),
            credit: vec![0.0; services.len()],
            fates: Vec::new(),
        }
    }

    /// Places all segments, largest first; among equals service by service.
    pub(super) fn fill(&mut self) {
        for slices in [7, 4, 3, 2, 1] {
            for owner in 0..self.services.len() {
                let service = &self.services[owner];
                if service.optimal.slices == slices {
                    for done in 0..service.n_optimal {
                        if !self.place(Piece { owner, slices }) {
                            let left = (service.n_optimal - done) as f64;
                            self.left_out(owner, left * service.optimal.throughput);
                            break;
                        }
                    }
                }
                if service.last.slices == slices && !self.place(Piece { owner, slices }) {
                    self.left_out(owner, service.last.throughput);
                }
            }
        }
    }

    fn left_out(&mut self, owner: usize, throughput: f64) {
        self.fates.push((self.services[owner].service, Fate::OutOfBoards { throughput }));
    }

    /// Puts a segment on the board where it leaves the least free; the first of equals. An empty board
    /// is the last resort.
    fn place(&mut self, piece: Piece) -> bool {
        let fits = |b: &Board| CAPACITY - b.used >= piece.slices && !b.refuses(piece.slices);
        let chosen = self
            .boards
            .iter()
            .enumerate()
            .filter(|(_, b)| fits(b))
            .min_by_key(|(_, b)| CAPACITY - b.used)
            .map(|(index, _)| index);
        let index = match chosen {
            Some(index) => index,
            None if self.boards.len() < self.max_boards => {
                self.boards.push(Board::default());
                self.boards.len() - 1
            }
            None => return false,
        };
        let board = &mut self.boards[index];
        board.used += piece.slices;
        match label_order(piece.slices).iter().find(|l| board.labels[**l].is_none()) {
            Some(label) => board.labels[*label] = Some(piece),
            None => {
                board.unlabelled.push(piece);
                self.fates.push((self.services[piece.owner].service, Fate::Unlabelled));
            }
        }
        true
    }

    /// Breaks up boards that are little used into segments of one and two slices, which fill the holes
    /// of the others. Throughput that comes off a board is credited to the service, and every new
    /// segment is charged; a surplus is kept for the service's later segments.
    pub(super) fn break_up(&mut self) {
        for index in (0..self.boards.len()).rev() {
            if self.boards[index].used > LITTLE {
                continue;
            }
            for label in 0..7 {
                let Some(piece) = self.boards[index].labels[label].take() else { continue };
                self.boards[index].used -= piece.slices;
                self.split(piece);
            }
        }
    }

    fn split(&mut self, piece: Piece) {
        let mode = self.mode;
        let service = &self.services[piece.owner];
        // The original credits the last segment's throughput for whatever is not an optimal one.
        let own = if piece.slices == service.optimal.slices { service.optimal } else { service.last };
        let mut credit = held(self.credit[piece.owner] + own.throughput, mode);
        let (twos, ones) = match (service.two, service.one) {
            (None, None) => {
                self.credit[piece.owner] = credit;
                let throughput = self.choice(piece).throughput;
                self.fates.push((service.service, Fate::Lost { throughput }));
                return;
            }
            (None, Some(one)) => (0, charge(&mut credit, one, f64::ceil, mode)),
            (Some(two), None) => (charge(&mut credit, two, f64::ceil, mode), 0),
            (Some(two), Some(one)) if held(two.throughput / 2.0, mode) > one.throughput => {
                let twos = charge(&mut credit, two, f64::floor, mode);
                (twos, charge(&mut credit, one, f64::ceil, mode))
            }
            (Some(_), Some(one)) => (0, charge(&mut credit, one, f64::ceil, mode)),
        };
        self.credit[piece.owner] = credit;
        for (slices, count, choice) in [(2, twos, service.two), (1, ones, service.one)] {
            for done in 0..count {
                if !self.place(Piece { owner: piece.owner, slices }) {
                    let each = choice.map_or(0.0, |c| c.throughput);
                    self.left_out(piece.owner, (count - done) as f64 * each);
                    break;
                }
            }
        }
    }

    /// The operating point of a segment.
    fn choice(&self, piece: Piece) -> Choice {
        let service = &self.services[piece.owner];
        let small = if piece.slices == 2 { service.two } else { service.one };
        if piece.slices == service.optimal.slices {
            service.optimal
        } else if piece.slices == service.last.slices {
            service.last
        } else {
            small.unwrap_or(service.last)
        }
    }

    /// Used boards, segments by slices descending.
    pub(super) fn finish(self) -> (Vec<Vec<Segment>>, Vec<(usize, Fate)>) {
        let boards = self
            .boards
            .iter()
            .filter(|b| b.used > 0)
            .map(|board| {
                let labelled = (0..7).filter_map(|l| Some((Some(l as u32), board.labels[l]?)));
                let rest = board.unlabelled.iter().map(|p| (None, *p));
                let mut pieces: Vec<(Option<u32>, Piece)> = labelled.chain(rest).collect();
                // Selection sort, as the original's: it is not stable, and the order is part of the answer.
                for at in 0..pieces.len() {
                    let greatest = (at..pieces.len())
                        .reduce(|a, b| if pieces[b].1.slices > pieces[a].1.slices { b } else { a })
                        .unwrap_or(at);
                    pieces.swap(at, greatest);
                }
                pieces
                    .into_iter()
                    .map(|(label, p)| Segment {
                        service: self.services[p.owner].service,
                        label,
                        choice: self.choice(p),
                    })
                    .collect()
            })
            .collect();
        (boards, self.fates)
    }
}

/// How many segments of a choice the credit pays for, and charges them.
fn charge(credit: &mut f64, choice: Choice, round: fn(f64) -> f64, mode: Mode) -> u64 {
    // Of a negative credit the cast makes none.
    let count = round(held(*credit / choice.throughput, mode)) as u64;
    for _ in 0..count {
        *credit = held(*credit - choice.throughput, mode);
    }
    count
}
