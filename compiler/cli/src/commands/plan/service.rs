//! `entc explain FILE SERVICE`: why a service got what it got, and what else would have cost.
//!
//! Why, in the only way that is sure: each alternative is pinned, the whole spec planned again, and the
//! objective compared.

use super::{Wishes, has_boards, solve};
use crate::arguments::Explain;
use crate::commands::program::{Compiled, asked, performance};
use crate::commands::{canvas_err, canvas_out, tell};
use crate::exit::{Exit, Stop};
use crate::render;
use crate::terminal::{Terminal, Verbosity};
use ent_lang::program::Pin;
use ent_performance::PerformanceSet;
use ent_picture::{Alternative, Answer};
use ent_plan::diagnostic::Located;
use ent_plan::plan::{Instance, Plan, Status};
use ent_plan::units::Megahertz;
use ent_planner::{PlanOptions, Planner};
use std::collections::BTreeSet;
use std::time::Instant;

/// A share of a plan's gap: alternatives need not be told apart more finely.
pub(crate) const GAP: f64 = 1e-4;

/// Plans the spec and shows what concerns one service.
pub(crate) fn explain_service(arguments: &Explain, name: &str, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::interrupt::listen();
    let started = Instant::now();
    let mut compiled = asked(&arguments.subject, &arguments.question)?;
    let Some(index) = compiled.program.services.iter().position(|service| service.name.value == name) else {
        return Err(unknown(name, &compiled));
    };
    let performance = performance(&mut compiled, arguments.question.table.as_deref())?;
    let time_limit = arguments.question.time_limit.as_secs_f64();
    let wishes = Wishes {
        options: PlanOptions { planner: Planner::Optimal, metric: None, rule: compiled.latency_rule() },
        gap: GAP,
        time_limit,
        node_limit: None,
    };
    let made = solve(&mut compiled, &performance, &wishes, terminal)?;
    if !has_boards(made.plan.status) {
        terminal.message(&render::plan::status(&made.plan, Some(made.seconds), &canvas_err(terminal)));
        tell(terminal, &compiled.sources, &made.diagnostics);
        return Ok(Exit::Wrong);
    }
    let canvas = canvas_out(terminal, true, false);
    let text = render::plan::plan(&only(made.plan.clone(), name), Some(made.seconds), &canvas);
    terminal.result(&format!("{text}\n"))?;
    if made.is_interrupted {
        return Ok(Exit::Interrupted);
    }
    let budget = 2.0 * time_limit - started.elapsed().as_secs_f64();
    let found = alternatives(&mut compiled, &performance, &wishes, &made.plan, index, budget, terminal)?;
    terminal.result(&render::alternatives::table(name, &made.plan, &found, &canvas))?;
    Ok(if crate::interrupt::is_interrupted() { Exit::Interrupted } else { Exit::Done })
}

/// The plan with the boards that carry a service, and that service, only.
fn only(mut plan: Plan, name: &str) -> Plan {
    plan.gpus.retain(|gpu| gpu.instances.iter().any(|instance| instance.service == name));
    plan.services.retain(|service| service.name == name);
    plan
}

/// What else could be: another profile, another clock, half and twice the batch. The time that is left is
/// shared out evenly; what it does not suffice for is said.
pub(crate) fn alternatives(
    compiled: &mut Compiled,
    performance: &PerformanceSet,
    wishes: &Wishes,
    chosen: &Plan,
    index: usize,
    budget: f64,
    terminal: &Terminal,
) -> Result<Vec<Alternative>, Stop> {
    let pins = pins(compiled, chosen, index);
    let quiet = Terminal { verbosity: terminal.verbosity.min(Verbosity::Normal), ..*terminal };
    let started = Instant::now();
    let mut found = Vec::new();
    for (done, (choice, pin)) in pins.iter().enumerate() {
        let left = (budget - started.elapsed().as_secs_f64()) / (pins.len() - done) as f64;
        if left < 0.05 || crate::interrupt::is_interrupted() {
            found.push(Alternative { choice: choice.clone(), answer: Answer::NotTried });
            continue;
        }
        let before = set_pin(compiled, index, pin);
        let outcome = solve(compiled, performance, &Wishes { time_limit: left, ..*wishes }, &quiet);
        if let Some(service) = compiled.program.services.get_mut(index) {
            service.pin = before;
        }
        let plan = outcome?.plan;
        let answer = match (plan.status, plan.objective.value) {
            (Status::Optimal | Status::WithinGap, Some(value)) => Answer::Proven(value),
            (Status::Feasible, Some(value)) => Answer::Found(value),
            (Status::Infeasible, _) => Answer::Impossible,
            _ => Answer::NotTried,
        };
        found.push(Alternative { choice: choice.clone(), answer });
    }
    Ok(found)
}

/// Puts a pin on a service and gives back the one it had.
fn set_pin(compiled: &mut Compiled, index: usize, pin: &Pin) -> Option<Located<Pin>> {
    let service = compiled.program.services.get_mut(index)?;
    let span = service.pin.as_ref().map_or(service.name.span, |pin| pin.span);
    service.pin.replace(Located::new(pin.clone(), span))
}

/// The alternatives to what a service got, each with its words and its pin.
fn pins(compiled: &Compiled, plan: &Plan, index: usize) -> Vec<(String, Pin)> {
    let Some(service) = compiled.program.services.get(index) else { return Vec::new() };
    let span = service.name.span;
    let base = service.pin.as_ref().map(|pin| pin.value.clone()).unwrap_or_default();
    let is_mine = |instance: &&Instance| instance.service == service.name.value;
    let mine: Vec<&Instance> =
        plan.gpus.iter().flat_map(|gpu| gpu.instances.iter().filter(is_mine)).collect();
    let mut pins = Vec::new();
    if base.profile.is_none() {
        let used: BTreeSet<&str> = mine.iter().filter_map(|i| i.profile.as_deref()).collect();
        let all = plan.boards.iter().flat_map(|board| board.profiles.iter().filter(|p| p.is_base));
        let names: BTreeSet<(u32, &str)> = all.map(|p| (p.n_compute_slices, p.name.as_str())).collect();
        for (_, name) in names.into_iter().filter(|(_, name)| !used.contains(name) || used.len() > 1) {
            let profile = Some(Located::new(name.to_owned(), span));
            pins.push((format!("on {name}"), Pin { profile, ..base.clone() }));
        }
    }
    if base.batch.is_none() {
        let used: BTreeSet<u32> = mine.iter().map(|i| i.batch).collect();
        let others: BTreeSet<u32> = used
            .iter()
            .flat_map(|b| [b / 2, b.saturating_mul(2)])
            .filter(|b| *b > 0 && !used.contains(b))
            .collect();
        for batch in others {
            let pinned = Some(Located::new(batch, span));
            pins.push((format!("with batch {batch}"), Pin { batch: pinned, ..base.clone() }));
        }
    }
    if base.clock.is_none() {
        for clock in neighbours(plan, &service.name.value) {
            let pinned = Some(Located::new(clock, span));
            pins.push((format!("at {clock}"), Pin { clock: pinned, ..base.clone() }));
        }
    }
    pins
}

/// The clocks with a known base power next to those in use.
fn neighbours(plan: &Plan, service: &str) -> BTreeSet<Megahertz> {
    let mut found = BTreeSet::new();
    let mut used = BTreeSet::new();
    for gpu in plan.gpus.iter().filter(|gpu| gpu.instances.iter().any(|i| i.service == service)) {
        used.insert(gpu.sm_clock_mhz);
        let board = plan.boards.iter().find(|board| board.id == gpu.board);
        let ladder: Vec<Megahertz> = board
            .and_then(|board| board.base_power.as_ref())
            .map(|base| base.points.iter().map(|(clock, _)| *clock).collect())
            .unwrap_or_default();
        found.extend(ladder.iter().rev().find(|clock| **clock < gpu.sm_clock_mhz));
        found.extend(ladder.iter().find(|clock| **clock > gpu.sm_clock_mhz));
    }
    found.difference(&used).copied().collect()
}

fn unknown(name: &str, compiled: &Compiled) -> Stop {
    let services: Vec<&str> = compiled.program.services.iter().map(|s| s.name.value.as_str()).collect();
    let nearest = services
        .iter()
        .map(|service| (strsim::jaro_winkler(name, service), service))
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    let help = match nearest {
        Some((likeness, nearest)) if likeness > 0.75 => format!("did you mean `{nearest}`?"),
        _ => format!("name one of: {}", services.join(", ")),
    };
    Stop::Refused {
        code: "unknown-name",
        message: format!("the spec has no service `{name}`"),
        help: Some(help),
    }
}
