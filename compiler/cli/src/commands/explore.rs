//! `entc explore`: spec → plans of which none is better in both of two metrics.

use super::canvas_out;
use super::pictures::{possible, say, undrawn};
use super::plan::{Wishes, has_boards};
use super::program::{asked, performance};
use crate::arguments::{Explore, Format};
use crate::exit::{Exit, Stop};
use crate::render::{self, json};
use crate::terminal::Terminal;
use crate::{report, write};
use ent_picture::{front_page, front_svg};
use ent_plan::plan::{FORMAT_VERSION, LatencyRule, Metrics, Status, seal};
use ent_planner::{PlanOptions, Planner};
use schemars::JsonSchema;
use search::{Found, Search, Wanted};
use serde::Serialize;
use std::path::Path;

pub(super) mod search;

/// What `entc explore --format json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Exploration {
    /// The version of this report's format.
    pub(crate) format_version: &'static str,
    /// The version of entc that made it.
    pub(crate) entc_version: &'static str,
    /// Name of the program's file.
    pub(crate) program: String,
    /// The metric that was minimised: `power` (W), `energy` (J over the horizon), `carbon` (g over the
    /// horizon), `gpus`, `cost` (USD over the horizon).
    pub(crate) minimized: &'static str,
    /// What was limited: another metric, or `latency-slack`, by which every latency promise is multiplied.
    pub(crate) limited: &'static str,
    /// Which latency the promises are about.
    pub(crate) latency_rule: LatencyRule,
    /// Length of the horizon (s).
    pub(crate) horizon_s: f64,
    /// The front, ascending by what was limited.
    pub(crate) points: Vec<Explored>,
    /// What stopped the search before all points were tried: `interrupted`, `total time`.
    pub(crate) stopped_by: Option<&'static str>,
    /// What the points do not say, in words: ends that are infeasible, what was left out.
    pub(crate) notes: Vec<String>,
}

/// A plan on the front.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Explored {
    /// The plan's value of the limited metric, or its latency slack.
    pub(crate) limited: f64,
    /// The plan's value of the minimised metric.
    pub(crate) minimized: f64,
    /// Whether no other plan here is as good in both. Only the spec as it is is here without.
    pub(crate) is_best: bool,
    /// What the limited metric was kept within; `null` without a limit.
    pub(crate) at_most: Option<f64>,
    /// What every latency promise was multiplied by.
    pub(crate) latency_slack: f64,
    /// How far the plan is proven.
    pub(crate) status: Status,
    /// Which limit stopped the planner at this point.
    pub(crate) stopped_by: Option<String>,
    /// No plan within the limit is below this on the minimised metric.
    pub(crate) bound: Option<f64>,
    /// `|minimized - bound| / |minimized|`.
    pub(crate) gap: Option<f64>,
    /// All metrics of the plan, predicted.
    pub(crate) metrics: Metrics,
    /// The plan's file, where it was written.
    pub(crate) plan: Option<String>,
}

/// Explores and reports.
pub(super) fn run(arguments: &Explore, terminal: &Terminal) -> Result<Exit, Stop> {
    let results = [&arguments.pictures.svg, &arguments.pictures.html];
    crate::write::apart(&arguments.file, results.into_iter().flatten())?;
    possible(&arguments.pictures)?;
    crate::interrupt::listen();
    let mut compiled = asked(&arguments.file, &arguments.question)?;
    let performance = performance(&mut compiled, arguments.question.table.as_deref())?;
    // Said once, and not again with every point.
    super::tell(terminal, &compiled.sources, &compiled.diagnostics);
    compiled.diagnostics.clear();
    let rule = compiled.latency_rule();
    let (program, horizon_s) = (compiled.program.name.clone(), compiled.program.objective.horizon.get());
    let wanted = Wanted {
        minimized: arguments.over.minimized,
        limited: arguments.over.limited,
        n_points: arguments.points as usize,
        slack: arguments.slack,
    };
    let mut search = Search {
        compiled: &mut compiled,
        performance: &performance,
        wishes: Wishes {
            options: PlanOptions { planner: Planner::Optimal, metric: None, rule },
            gap: arguments.gap,
            time_limit: arguments.question.time_limit.as_secs_f64(),
            node_limit: arguments.node_limit,
        },
        total_s: arguments.total_time.as_secs_f64(),
        terminal,
    };
    let found = search.run(&wanted, None)?;
    if let Some(failed) = found.failed.as_ref().filter(|made| !has_boards(made.plan.status)) {
        return Err(Stop::Diagnostics {
            sources: std::mem::take(&mut compiled.sources),
            diagnostics: failed.diagnostics.clone(),
        });
    }
    if found.points.is_empty() {
        return Err(Stop::Refused {
            code: "no-plan-found",
            message: format!("no plan was found: {}", found.notes.join("; ")),
            help: Some("give more time with `--time-limit` and `--total-time`".to_owned()),
        });
    }
    let files = arguments.plans.as_deref().map(|folder| save(&found, folder, terminal)).transpose()?;
    let front = found.front(&wanted);
    if let Some(path) = &arguments.pictures.svg {
        write::atomically(path, &front_svg(&front).map_err(undrawn)?)?;
        say(path, terminal);
    }
    if let Some(path) = &arguments.pictures.html {
        let page = front_page(&program, &front, env!("CARGO_PKG_VERSION")).map_err(undrawn)?;
        write::atomically(path, &page)?;
        say(path, terminal);
    }
    let text = match arguments.format {
        Format::Human => render::front::front(&program, &front, &canvas_out(terminal, false, false)),
        Format::Json => {
            let exploration = Exploration {
                format_version: FORMAT_VERSION,
                entc_version: env!("CARGO_PKG_VERSION"),
                program,
                minimized: wanted.minimized.word(),
                limited: wanted.limited.word(),
                latency_rule: rule,
                horizon_s,
                points: explored(&found, files.as_deref().unwrap_or_default()),
                stopped_by: found.stopped_by,
                notes: found.notes.clone(),
            };
            json::text(&serde_json::json!(exploration))
        }
    };
    terminal.result(&text)?;
    Ok(if crate::interrupt::is_interrupted() { Exit::Interrupted } else { Exit::Done })
}

fn explored(found: &Found, files: &[String]) -> Vec<Explored> {
    let one = |(index, point): (usize, &search::Point)| Explored {
        limited: point.x,
        minimized: point.y,
        is_best: point.is_best,
        at_most: point.limit,
        latency_slack: point.slack,
        status: point.plan.status,
        stopped_by: point.plan.stopped_by.clone(),
        bound: point.plan.objective.bound,
        gap: point.plan.objective.gap,
        metrics: point.plan.metrics.clone(),
        plan: files.get(index).cloned(),
    };
    found.points.iter().enumerate().map(one).collect()
}

/// Writes the plans, `point-01.json` and on, in the order of the front.
fn save(found: &Found, folder: &Path, terminal: &Terminal) -> Result<Vec<String>, Stop> {
    std::fs::create_dir_all(folder).map_err(|error| Stop::Refused {
        code: "cannot-write",
        message: format!("cannot make the folder `{}`: {}", folder.display(), write::reason(&error)),
        help: Some("name a folder that you may make or write into".to_owned()),
    })?;
    let mut names = Vec::new();
    for (point, n) in found.points.iter().zip(1..) {
        let path = folder.join(format!("point-{n:02}.json"));
        let mut plan = point.plan.clone();
        seal(&mut plan);
        write::atomically(&path, &report::plan_file(&plan)?)?;
        say(&path, terminal);
        names.push(path.display().to_string());
    }
    Ok(names)
}
