//! `entc lsp`: the language server over standard input and output, with plans from entc's own planner.

use super::pictures::curves;
use super::plan::has_boards;
use super::program::{Compiled, performance, read};
use crate::arguments::Lsp as Arguments;
use crate::exit::{Exit, Stop};
use ent_lang::{Parsed, compile_parsed, imported_spec};
use ent_lsp::planning::Planned;
use ent_lsp::{End, Planning};
use ent_performance::PerformanceSet;
use ent_picture::{Curve, Findings};
use ent_plan::diagnostic::{Diagnostic, FileId, Label, Outcome, Sources, Span};
use ent_plan::plan::{Plan, check, seal};
use ent_plan::text::LoadError;
use ent_planner::{Control, PlanOptions, Planner, Progress, SolverFault};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Speaks with an editor until it leaves.
pub(super) fn run(arguments: &Arguments) -> Exit {
    crate::bug::processing("program");
    let planning: Option<Arc<dyn Planning>> = match arguments.no_planning {
        true => None,
        false => Some(Arc::new(Own::new(arguments.time_limit))),
    };
    match ent_lsp::serve_stdio(planning) {
        End::InOrder => Exit::Done,
        End::OutOfOrder => Exit::Wrong,
    }
}

/// entc's own planner that proves.
struct Own {
    time_limit: Duration,
    /// The curves of the last plan, by its checksum: a page shows them.
    curves: Mutex<(Option<String>, Vec<Curve>)>,
}

impl Planning for Own {
    fn plan(
        &self,
        main: &str,
        sources: &Sources,
        stop: &AtomicBool,
        found: &mut dyn FnMut(Planned),
    ) -> Planned {
        match self.make(main, sources, stop, found) {
            Ok(planned) => planned,
            Err(Stop::Diagnostics { sources: read, diagnostics }) => {
                let diagnostics = at_home(diagnostics, main, sources, &read);
                Planned { diagnostics, ..Planned::default() }
            }
            Err(Stop::Refused { message, .. }) => Planned { trouble: Some(message), ..Planned::default() },
            Err(Stop::World(_) | Stop::Output(_)) => Planned {
                trouble: Some("the program's files could not be read".to_owned()),
                ..Planned::default()
            },
        }
    }

    fn draws(&self) -> bool {
        true
    }

    fn page(&self, plan: &Plan) -> Option<String> {
        let last = self.curves.lock().unwrap_or_else(PoisonError::into_inner);
        let curves = (last.0 == plan.checksum).then(|| last.1.clone());
        ent_picture::plan_page(plan, &Findings { curves, ..Findings::default() }).ok()
    }
}

impl Own {
    fn new(time_limit: Duration) -> Self {
        Self { time_limit, curves: Mutex::default() }
    }

    /// A quick plan first, then the one that is proven.
    fn make(
        &self,
        main: &str,
        sources: &Sources,
        stop: &AtomicBool,
        found: &mut dyn FnMut(Planned),
    ) -> Result<Planned, Stop> {
        let started = Instant::now();
        let mut compiled = compile(main, sources)?;
        let performance = performance(&mut compiled, None)?;
        let mut planned = Planned::default();
        for planner in [Planner::Greedy, Planner::Optimal] {
            if stop.load(Ordering::Relaxed) {
                return Ok(Planned::default());
            }
            let outcome = match self.search(&compiled, &performance, planner, started, stop) {
                Ok(outcome) => outcome,
                Err(fault) => {
                    let trouble = format!("this is a bug in entc: the solver failed: {fault}");
                    return Ok(Planned { trouble: Some(trouble), ..Planned::default() });
                }
            };
            let said = compiled.diagnostics.iter().cloned().chain(outcome.diagnostics).collect();
            planned = checked(outcome.value, &compiled);
            planned.diagnostics = at_home(said, main, sources, &compiled.sources);
            // A quick search that met no plan says nothing of the program.
            if planner == Planner::Greedy && planned.state() == "planned" {
                found(planned.clone());
            }
        }
        if let Some(plan) = planned.plan.as_ref().filter(|plan| !plan.gpus.is_empty()) {
            let curves = curves(plan, &compiled, &performance);
            *self.curves.lock().unwrap_or_else(PoisonError::into_inner) = (plan.checksum.clone(), curves);
        }
        Ok(planned)
    }

    fn search(
        &self,
        compiled: &Compiled,
        performance: &PerformanceSet,
        planner: Planner,
        started: Instant,
        stop: &AtomicBool,
    ) -> Result<Outcome<Plan>, SolverFault> {
        let options = PlanOptions { planner, metric: None, rule: compiled.latency_rule() };
        let mut progress = |_: Progress| match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let mut control = Control {
            gap: 0.0,
            time_limit: Some(self.time_limit.as_secs_f64()),
            node_limit: None,
            elapsed: &|| started.elapsed().as_secs_f64(),
            progress: &mut progress,
            is_stopped: false,
        };
        ent_planner::plan(&compiled.program, performance, options, &mut control)
    }
}

/// A plan that has passed the check, from which every number comes that is shown; or why there is none.
fn checked(mut plan: Plan, compiled: &Compiled) -> Planned {
    plan.assumptions.extend(compiled.assumptions.iter().cloned());
    if !has_boards(plan.status) {
        return Planned { plan: Some(plan), ..Planned::default() };
    }
    seal(&mut plan);
    match check(plan) {
        Ok(checked) => Planned { plan: Some(checked.into_plan()), ..Planned::default() },
        Err(faults) => {
            let first = faults.first().map_or_else(String::new, |f| format!("{}: {}", f.place, f.message));
            let trouble = format!("this is a bug in entc: the plan fails its check: {first}");
            Planned { trouble: Some(trouble), ..Planned::default() }
        }
    }
}

/// Compiles a program from the editor's texts, and reads the data files that it names.
fn compile(main: &str, sources: &Sources) -> Result<Compiled, Stop> {
    let mut parsed: BTreeMap<String, Parsed> = BTreeMap::new();
    let mut waiting = vec![main.to_owned()];
    while let Some(name) = waiting.pop() {
        if parsed.contains_key(&name) {
            continue;
        }
        // A file that could not be had is kept without a text.
        let Some(file) = sources.find(&name) else { continue };
        let Some(text) = sources.get(file).map(|f| f.text.as_str()).filter(|t| !t.trim().is_empty()) else {
            continue;
        };
        let tree = Parsed::new(file, text);
        let imports = tree.ast().items.iter().filter_map(|item| match &item.kind {
            ent_lang::ast::ItemKind::Import { path, .. } => imported_spec(&name, &path.text),
            ent_lang::ast::ItemKind::Comment(_)
            | ent_lang::ast::ItemKind::Param { .. }
            | ent_lang::ast::ItemKind::Let { .. }
            | ent_lang::ast::ItemKind::Limit { .. }
            | ent_lang::ast::ItemKind::Minimize { .. }
            | ent_lang::ast::ItemKind::Attribute { .. }
            | ent_lang::ast::ItemKind::Block(_)
            | ent_lang::ast::ItemKind::Broken { .. } => None,
        });
        waiting.extend(imports);
        parsed.insert(name, tree);
    }
    let mut open = |name: &str| parsed.get(name).ok_or(LoadError::Missing);
    let outcome = compile_parsed(main, &mut open, sources);
    let sources = sources.clone();
    // What the text alone says, the server has told.
    if outcome.has_errors() {
        return Err(Stop::Diagnostics { sources, diagnostics: Vec::new() });
    }
    read(outcome.value.program, sources)
}

/// Diagnostics of files that the editor does not know, moved to the main file with their place in words.
/// `read` has the editor's texts, and those that were read beside them.
fn at_home(diagnostics: Vec<Diagnostic>, main: &str, known: &Sources, read: &Sources) -> Vec<Diagnostic> {
    let (sources, n_known) = (read, known.iter().count());
    let home = sources.find(main).unwrap_or_default();
    let is_known = |file: FileId| usize::try_from(file.0).is_ok_and(|id| id < n_known);
    diagnostics
        .into_iter()
        .map(|mut diagnostic| {
            let at = diagnostic.primary.span;
            if !is_known(at.file) {
                let name = sources.get(at.file).map_or("", |f| f.name.as_str());
                let (line, column) = sources.position(at);
                let text = format!("{name}:{line}:{column} {}", diagnostic.primary.text);
                let span = place_of(name, home, sources);
                diagnostic.primary = Label { span, text: text.trim_end().to_owned() };
            }
            diagnostic.secondary.retain(|label| is_known(label.span.file));
            diagnostic
        })
        .collect()
}

/// Where the main file names another file, or its beginning.
fn place_of(name: &str, home: FileId, sources: &Sources) -> Span {
    let short = name.rsplit('/').next().unwrap_or(name);
    let text = sources.get(home).map_or("", |f| f.text.as_str());
    let start = text.find(short).filter(|_| !short.is_empty());
    let end = start.map_or(0, |start| start + short.len());
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Span { file: home, start: number(start.unwrap_or(0)), end: number(end) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ent_plan::diagnostic::{Code, Severity};
    use ent_plan::plan::Status;

    fn planned(text: &str, stop: bool) -> Planned {
        planned_by_steps(text, stop).1
    }

    /// The plans on the way, and the last.
    fn planned_by_steps(text: &str, stop: bool) -> (Vec<Planned>, Planned) {
        let mut sources = Sources::default();
        sources.add("/other.ent", "");
        sources.add("/specs/program.ent", text);
        let own = Own::new(Duration::from_secs(60));
        let mut steps = Vec::new();
        let mut found = |planned| steps.push(planned);
        let last = own.plan("/specs/program.ent", &sources, &AtomicBool::new(stop), &mut found);
        (steps, last)
    }

    const HEAD: &str = "import \"catalog:nvidia/a100-80gb-pcie\"\nimport \"catalog:performance/a100-80gb-pcie\"\n\
                        model m { performance = a100_80gb_pcie.mobilenet_v3_large }\n\
                        hardware { node \"box\" { gpu = a100_80gb_pcie x 1 } }\n";

    #[test]
    fn an_open_program_is_planned_from_the_editors_text() {
        let text = format!("{HEAD}service s {{ model = m, rate = 10 req/s, latency = p99 <= 200 ms }}\n");
        let (steps, planned) = planned_by_steps(&text, false);
        assert_eq!(
            steps.iter().map(|s| s.plan.as_ref().unwrap().status).collect::<Vec<_>>(),
            [Status::Feasible]
        );
        let plan = planned.plan.unwrap();
        assert_eq!(plan.status, Status::Optimal, "{:?}", planned.diagnostics);
        assert_eq!(plan.services[0].name, "s");
        assert_eq!(planned.trouble, None);
        let page = Own::new(Duration::from_secs(60)).page(&plan).unwrap();
        assert!(page.contains("<html"), "{page}");
    }

    #[test]
    fn a_promise_out_of_reach_is_told_at_its_place() {
        let text = format!("{HEAD}service s {{ model = m, rate = 10 req/s, latency = p99 <= 0.01 ms }}\n");
        let planned = planned(&text, false);
        let problem = planned.diagnostics.iter().find(|d| d.code == Code::LatencyOutOfReach).unwrap();
        assert_eq!(problem.severity, Severity::Error);
        let at = problem.primary.span;
        assert_eq!((at.file, &text[at.start as usize..at.end as usize]), (FileId(1), "p99 <= 0.01 ms"));
        assert!(planned.plan.is_none_or(|plan| plan.gpus.is_empty()));
    }

    #[test]
    fn a_data_file_that_is_missing_is_told_where_it_is_named() {
        let text = HEAD.replace("a100_80gb_pcie.mobilenet_v3_large", "\"none.csv\"")
            + "service s { model = m, rate = 10 req/s, latency = p99 <= 1 s }\n";
        let planned = planned(&text, false);
        let problem = planned.diagnostics.iter().find(|d| d.code == Code::MissingFile).unwrap();
        let at = problem.primary.span;
        assert_eq!(at.file, FileId(1));
        assert!(text[at.start as usize..at.end as usize].contains("none.csv"));
    }

    #[test]
    fn what_was_stopped_plans_nothing() {
        let text = format!("{HEAD}service s {{ model = m, rate = 10 req/s, latency = p99 <= 200 ms }}\n");
        assert!(planned(&text, true).plan.is_none());
    }
}
