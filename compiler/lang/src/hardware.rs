//! `hardware` blocks → nodes, and the boards they use.

#![expect(clippy::wildcard_enum_match_arm, reason = "any other value is of the wrong type")]

use crate::ast::{Block, Name};
use crate::board::{self, Boards};
use crate::context::Context;
use crate::declarations::Declarations;
use crate::definitions::duplicate;
use crate::fields::{Fields, Shape};
use crate::meaning::NodeMeaning;
use crate::program::{Node, UnusedBoards};
use crate::quantity::Measure;
use crate::value::Value;
use ent_plan::device::Board;
use ent_plan::diagnostic::{Located, Span};
use ent_plan::plan::Sharing;
use ent_plan::units::Dollars;
use std::collections::BTreeMap;

pub(crate) const SHAPE: Shape = Shape {
    words: "the hardware",
    attributes: &[],
    blocks: &[],
    repeated_blocks: &["node"],
    has_objective: false,
};

pub(crate) const NODE: Shape = Shape {
    words: "a node",
    attributes: &["gpu", "unused", "sharing", "price", "pue", "clocks"],
    blocks: &[],
    repeated_blocks: &[],
    has_objective: false,
};

/// At most this many boards in one node.
const MAX_BOARDS: f64 = 1_000_000.0;

/// Dollars per board-hour beyond this are a slip.
const MAX_PRICE: f64 = 1e6;

/// The nodes of a program, as far as they can be understood.
pub(crate) fn outline(context: &mut Context<'_>, declarations: &Declarations<'_>) -> Vec<NodeMeaning> {
    let mut nodes = Vec::new();
    for block in &declarations.hardware {
        let fields = Fields::read(context, block, &SHAPE);
        for node in &fields.blocks {
            let Some(name) = &node.name else { continue };
            let Some(gpu) = Fields::read(context, node, &NODE).value(context, "gpu") else { continue };
            let (item, count) = match &gpu.value {
                Value::Times { item, count } => (&**item, Some(&**count)),
                _ => (&gpu, None),
            };
            let n_boards = match count {
                Some(count) => context.whole_number(count, "number of boards", 0.0..=MAX_BOARDS),
                None => Some(Located::new(1, gpu.span)),
            };
            let (Value::Word(board) | Value::Text(board, _)) = &item.value else { continue };
            nodes.push(NodeMeaning {
                name: name.text.clone(),
                board: board.to_string(),
                n_boards: n_boards.map(|n| n.value),
            });
        }
    }
    nodes
}

/// The hardware of a program.
#[derive(Default)]
pub(crate) struct Hardware {
    pub(crate) nodes: Vec<Node>,
    pub(crate) boards: Vec<Board>,
    /// Some node could not be read: a name may be its.
    pub(crate) is_broken: bool,
    /// By name, the board each node uses.
    index: BTreeMap<String, usize>,
}

impl Hardware {
    pub(crate) fn resolve(
        context: &mut Context<'_>,
        declarations: &Declarations<'_>,
        boards: &Boards,
    ) -> Self {
        let mut hardware = Self::default();
        let mut names: BTreeMap<&str, Span> = BTreeMap::new();
        let mut last: Option<Fields<'_>> = None;
        for block in &declarations.hardware {
            let fields = Fields::read(context, block, &SHAPE);
            hardware.is_broken |= fields.is_broken();
            for node in &fields.blocks {
                let Some(name) = &node.name else {
                    Fields::read(context, node, &NODE).missing(context, "name", "node \"box-0\" { … }");
                    hardware.is_broken = true;
                    continue;
                };
                if let Some(first) = names.get(name.text.as_str()) {
                    context.report(duplicate("node", &name.text, name.span, *first));
                    continue;
                }
                names.insert(&name.text, name.span);
                match hardware.node(context, declarations, boards, name, node) {
                    Some(node) => hardware.nodes.push(node),
                    None => hardware.is_broken = true,
                }
            }
            last = Some(fields);
        }
        if let Some(fields) = last.filter(|_| hardware.nodes.is_empty() && !hardware.is_broken) {
            fields.missing(context, "node", "node \"box-0\" { gpu = a100_80gb_pcie x 8 }");
            hardware.is_broken = true;
        }
        hardware
    }

    fn node(
        &mut self,
        context: &mut Context<'_>,
        declarations: &Declarations<'_>,
        boards: &Boards,
        name: &Name,
        block: &Block,
    ) -> Option<Node> {
        let fields = Fields::read(context, block, &NODE);
        let gpu = fields
            .required(context, "gpu", "gpu = a100_80gb_pcie x 8")
            .and_then(|gpu| self.gpu(context, declarations, boards, &gpu));
        let unused = fields.value(context, "unused").and_then(|v| {
            context.choice(
                &v,
                "use of idle boards",
                &[("idle", UnusedBoards::Idle), ("off", UnusedBoards::Off)],
            )
        });
        let sharing = fields.value(context, "sharing").and_then(|v| {
            let options = [("mig", Sharing::Mig), ("mps", Sharing::Mps), ("whole", Sharing::Whole)];
            context.choice(&v, "way of sharing", &options)
        });
        let price = fields.value(context, "price").and_then(|v| {
            let price = context.amount(&v, Measure::Price, "price", MAX_PRICE / 3600.0)?;
            // A price is held in USD per hour; `amount` gives it in that unit.
            Some(Located::new(Dollars(price), v.span))
        });
        let pue = fields.value(context, "pue").and_then(|v| context.ratio(&v, "PUE", 1.0..=10.0));
        let clocks = fields.value(context, "clocks");
        let (board, count) = gpu?;
        let ladder = self.boards.get(board.value)?.clone();
        let clocks = clocks.and_then(|v| {
            let clocks = board::clocks(context, &v, &ladder.clocks)?;
            let is_on = |c: &ent_plan::units::Megahertz| {
                board::on_ladder(context, Located::new(*c, clocks.span), &[&ladder])
            };
            // One clock off the ladder is enough to say so.
            clocks.value.iter().all(is_on).then_some(clocks)
        });
        Some(Node {
            name: Located::new(name.text.clone(), name.span),
            board,
            count,
            unused: unused.map_or(UnusedBoards::Idle, |u| u.value),
            sharing: sharing.map_or(Sharing::Mig, |s| s.value),
            price,
            pue: pue.map_or(1.0, |p| p.value),
            clocks,
        })
    }

    /// `board x count`, or a board alone.
    fn gpu(
        &mut self,
        context: &mut Context<'_>,
        declarations: &Declarations<'_>,
        boards: &Boards,
        gpu: &Located<Value>,
    ) -> Option<(Located<usize>, Located<u32>)> {
        const HELP: &str = "write the board and how many: `gpu = a100_80gb_pcie x 8`";
        let (item, count) = match &gpu.value {
            Value::Times { item, count } => (&**item, Some(&**count)),
            _ => (gpu, None),
        };
        let count = match count {
            Some(count) => context.whole_number(count, "number of boards", 0.0..=MAX_BOARDS),
            None => Some(Located::new(1, gpu.span)),
        };
        let (Value::Word(name) | Value::Text(name, _)) = &item.value else {
            context.mismatch(item, "a board", HELP);
            return None;
        };
        let board = board::find(context, boards, declarations, name, item.span)?;
        let index = match self.index.get(&**name) {
            Some(index) => *index,
            None => {
                // Two names of one catalogue board are one board.
                let known = self.boards.iter().position(|b| b.id == board.id && b == board);
                let index = known.unwrap_or(self.boards.len());
                if known.is_none() {
                    self.boards.push(board.clone());
                }
                self.index.insert(name.to_string(), index);
                index
            }
        };
        Some((Located::new(index, item.span), count?))
    }

    /// The boards of one node, or of all.
    pub(crate) fn boards_of(&self, node: Option<&str>) -> Vec<&Board> {
        match node {
            None => self.boards.iter().collect(),
            Some(name) => {
                let node = self.nodes.iter().find(|n| n.name.value == name);
                node.and_then(|n| self.boards.get(n.board.value)).into_iter().collect()
            }
        }
    }
}
