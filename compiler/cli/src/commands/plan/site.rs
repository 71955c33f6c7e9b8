//! A spec and a machine → the node that the machine is, if its boards are the node's.

use crate::arguments;
use crate::commands::program::Compiled;
use crate::exit::Stop;
use crate::machine::{self, Machine};
use ent_machine::observed::Observed;
use ent_plan::plan::Plan;

/// A machine that a spec speaks of.
pub(crate) struct Site {
    /// Its node.
    pub(crate) node: String,
    /// The machine.
    pub(crate) machine: Machine,
    /// What it was before the spec was planned.
    pub(crate) observed: Observed,
}

impl Site {
    /// Finds the node that this machine is, and looks at the machine. Where the simulated library has no
    /// machine yet, one with the node's boards is made when it may.
    ///
    /// # Errors
    /// When it is not clear which node it is, the machine cannot be read, or has other boards.
    pub(crate) fn of(
        compiled: &Compiled,
        library: &arguments::Library,
        node: Option<&str>,
        may_make: bool,
    ) -> Result<Self, Stop> {
        let program = &compiled.program;
        let names: Vec<String> = program.nodes.iter().map(|node| node.name.value.clone()).collect();
        let node = machine::this_node(&names, node)?;
        let (board, count) = program
            .nodes
            .iter()
            .find(|one| one.name.value == node)
            .and_then(|one| Some((program.boards.get(one.board.value)?.id.clone(), one.count.value)))
            .unwrap_or_default();
        let library = machine::choose(library)?;
        if may_make {
            machine::make_if_missing(&library, &board, count)?;
        }
        let machine = machine::open(library)?;
        let observed = machine.observe()?;
        machine::fits(&node, &board, count, &observed)?;
        Ok(Self { node, machine, observed })
    }

    /// Writes the machine into the plan that was made for it.
    pub(crate) fn write_into(&self, plan: &mut Plan) {
        machine::fill(plan, &self.node, &self.observed);
    }
}
