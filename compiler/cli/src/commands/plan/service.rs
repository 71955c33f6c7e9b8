//! `entc explain FILE SERVICE`: why a service got what it got, and what else would have cost.

use super::{Wishes, has_boards, solve};
use crate::arguments::Explain;
use crate::commands::program::{compile, performance};
use crate::commands::{canvas_err, canvas_out, tell};
use crate::exit::{Exit, Stop};
use crate::render;
use crate::terminal::Terminal;
use ent_plan::plan::{LatencyRule, Plan};
use ent_planner::{PlanOptions, Planner};

/// Plans the spec and shows what concerns one service.
pub(crate) fn explain_service(arguments: &Explain, name: &str, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::interrupt::listen();
    let mut compiled = compile(
        &arguments.subject,
        &ent_lang::Options { set: arguments.settings.clone(), ..Default::default() },
    )?;
    if !compiled.program.services.iter().any(|service| service.name.value == name) {
        return Err(unknown(name, &compiled.program.services.iter().map(|s| s.name.value.as_str()).collect::<Vec<_>>()));
    }
    let performance = performance(&mut compiled, None)?;
    let rule = compiled.program.latency_rule.unwrap_or(LatencyRule::Queueing);
    let wishes = Wishes {
        options: PlanOptions { planner: Planner::Optimal, metric: None, rule },
        gap: 0.0,
        time_limit: arguments.time_limit.as_secs_f64(),
        node_limit: None,
    };
    let made = solve(&mut compiled, &performance, &wishes, terminal)?;
    if !has_boards(made.plan.status) {
        terminal.message(&render::plan::status(&made.plan, Some(made.seconds), &canvas_err(terminal)));
        tell(terminal, &compiled.sources, &made.diagnostics);
        return Ok(Exit::Wrong);
    }
    let plan = only(made.plan, name);
    terminal.result(&render::plan::plan(&plan, Some(made.seconds), &canvas_out(terminal, true, false)))?;
    Ok(if made.is_interrupted { Exit::Interrupted } else { Exit::Done })
}

/// The plan with the boards that carry a service, and that service, only.
fn only(mut plan: Plan, name: &str) -> Plan {
    plan.gpus.retain(|gpu| gpu.instances.iter().any(|instance| instance.service == name));
    plan.services.retain(|service| service.name == name);
    plan
}

fn unknown(name: &str, services: &[&str]) -> Stop {
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
