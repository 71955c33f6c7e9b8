//! A main file's name → Program: reading, parsing, resolving.

use crate::ast::{Ast, Expr};
use crate::board;
use crate::context::Context;
use crate::declarations::Declarations;
use crate::definitions::define;
use crate::files::{self, Files};
use crate::hardware::Hardware;
use crate::objective;
use crate::parse::{parse, parse_value};
use crate::parsed::Parsed;
use crate::print::print_expr;
use crate::program::{Carbon, Objective, Program};
use crate::service;
use crate::suggest::{choices, similar};
use crate::value::Value;
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Fix, Located, Outcome, Severity, Sources, Span};
use ent_plan::plan::{LatencyRule, Metric};
use ent_plan::text::{Load, LoadError, MAX_SPEC_BYTES, decode};
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// What the caller sets from outside the text.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Values of params, as written: `load` and `50%`. The last one of a name counts.
    pub set: Vec<(String, String)>,
    /// Minimise this in place of what the text says.
    pub minimize: Option<Metric>,
    /// Judge latency by this rule in place of what the text says.
    pub latency_rule: Option<LatencyRule>,
}

/// Compiles the program whose main file has this name. Files are read through `load` and added to
/// `sources`, the main file first.
///
/// The value is `None` when any diagnostic is an error.
pub fn compile(
    main: &str,
    options: &Options,
    load: &mut Load<'_>,
    sources: &mut Sources,
) -> Outcome<Option<Program>> {
    let mut open = |name: &str| {
        let text = load(name).and_then(|bytes| decode(&bytes, MAX_SPEC_BYTES))?;
        let file = sources.add(name, text);
        let outcome = parse(file, sources.get(file).map_or("", |f| f.text.as_str()));
        Ok((outcome.value, outcome.diagnostics))
    };
    let (mut files, no_main) = files::read(main, &mut open);
    if let Some(error) = no_main {
        let span = Span { file: sources.add(main, ""), start: 0, end: 0 };
        files.diagnostics.push(files::unreadable(main, span, &error, false));
    }
    let (set, diagnostics) = settings(&options.set, sources);
    let (program, diagnostics) = finish(main, options, files, &set, diagnostics, sources);
    let outcome = Outcome { value: Some(program), diagnostics };
    let has_errors = outcome.has_errors();
    Outcome { value: outcome.value.filter(|_| !has_errors), diagnostics: outcome.diagnostics }
}

/// A program whose files are open somewhere, as far as it could be made.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    /// The program. When there are errors, it lacks what they are about: fit to be shown, not to be planned.
    pub program: Program,
    /// Its specs that could be had, the main file first.
    pub files: Vec<FileId>,
}

/// Compiles the program whose main file has this name, from files that are parsed already: an editor's.
/// `open` gives the tree of a file by its name; `sources` has the text of each.
pub fn compile_parsed<'a>(
    main: &str,
    open: &mut dyn FnMut(&str) -> Result<&'a Parsed, LoadError>,
    sources: &Sources,
) -> Outcome<Compiled> {
    let mut opened = |name: &str| open(name).map(|parsed| (parsed.ast(), parsed.diagnostics()));
    let (mut files, no_main) = files::read(main, &mut opened);
    if let Some(error) = no_main {
        let span = Span { file: sources.find(main).unwrap_or_default(), start: 0, end: 0 };
        files.diagnostics.push(files::unreadable(main, span, &error, false));
    }
    let ids = files.asts.iter().map(|ast| ast.file).collect();
    let (program, diagnostics) =
        finish(main, &Options::default(), files, &BTreeMap::new(), Vec::new(), sources);
    Outcome { value: Compiled { program, files: ids }, diagnostics }
}

/// Resolves files that were read; the diagnostics of both, in the order of the text.
fn finish<A: Borrow<Ast>>(
    main: &str,
    options: &Options,
    files: Files<A>,
    set: &BTreeMap<String, Located<Option<Expr>>>,
    mut diagnostics: Vec<Diagnostic>,
    sources: &Sources,
) -> (Program, Vec<Diagnostic>) {
    diagnostics.extend(files.diagnostics);
    let mut context = Context::new(sources);
    context.is_all_poisoned = files.is_incomplete;
    let has_errors = diagnostics.iter().any(|d| d.severity == Severity::Error);
    for diagnostic in diagnostics {
        context.report(diagnostic);
    }
    let asts: Vec<&Ast> = files.asts.iter().map(Borrow::borrow).collect();
    let program = resolve(&mut context, main, &asts, set, options, has_errors || files.is_incomplete);
    let mut diagnostics = context.into_diagnostics();
    diagnostics.sort_by_key(|d| (d.primary.span.file, d.primary.span.start));
    (program, diagnostics)
}

/// Parses the values set from outside; each becomes a source of its own, so that errors can show it.
fn settings(
    set: &[(String, String)],
    sources: &mut Sources,
) -> (BTreeMap<String, Located<Option<Expr>>>, Vec<Diagnostic>) {
    let mut values = BTreeMap::new();
    let mut diagnostics = Vec::new();
    for (name, text) in set {
        let whole = format!("{name}={text}");
        let file = sources.add("--set", whole.clone());
        let mut outcome = parse_value(file, &whole, name.len() + 1);
        diagnostics.append(&mut outcome.diagnostics);
        let end = u32::try_from(name.len()).unwrap_or(u32::MAX);
        values.insert(name.clone(), Located::new(outcome.value, Span { file, start: 0, end }));
    }
    (values, diagnostics)
}

fn resolve(
    context: &mut Context<'_>,
    main: &str,
    asts: &[&Ast],
    set: &BTreeMap<String, Located<Option<Expr>>>,
    options: &Options,
    is_broken: bool,
) -> Program {
    let declarations = Declarations::collect(context, asts);
    let is_broken = is_broken || declarations.is_broken;
    for (name, value) in set {
        unknown_param(context, &declarations, name, value.span);
    }
    let given: BTreeMap<String, Expr> =
        set.iter().filter_map(|(name, value)| Some((name.clone(), value.value.clone()?))).collect();
    define(context, &declarations.values, &given);
    let boards = board::boards(context, &declarations);
    let hardware = Hardware::resolve(context, &declarations, &boards);
    let models = service::models(context, &declarations);
    let (services, models) = service::services(context, &declarations, &models, &hardware);
    let carbon = declarations.carbon.map_or_else(Carbon::default, |block| objective::carbon(context, block));
    let (mut objective, rule) = match declarations.objective {
        Some(block) => objective::objective(context, block),
        None => (Objective::default(), None),
    };
    if let Some(metric) = options.minimize {
        objective.minimize = Located::new(metric, objective.minimize.span);
    }
    let whole = asts.first().map_or_else(Span::default, |ast| files::whole(ast.file, context.sources));
    if !is_broken {
        if declarations.services.is_empty() {
            missing_block(
                context,
                whole,
                "service",
                "service classify { … }",
                "service classify {\n  model   = resnet50\n  rate    = 120 req/s\n  latency = p99 <= 50 ms\n}\n",
            );
        }
        if declarations.hardware.is_empty() {
            let board = boards.keys().next().map_or("a100_80gb_pcie", String::as_str);
            missing_block(
                context,
                whole,
                "hardware",
                "hardware { node \"box-0\" { gpu = a100_80gb_pcie x 8 } }",
                &format!("hardware {{\n  node \"box-0\" {{\n    gpu = {board} x 8\n  }}\n}}\n"),
            );
        }
    }
    Program {
        name: main.to_owned(),
        params: params(context, &declarations, &given),
        models,
        services,
        nodes: hardware.nodes,
        boards: hardware.boards,
        carbon,
        objective,
        latency_rule: options.latency_rule.or(rule.map(|r| r.value)),
    }
}

fn unknown_param(context: &mut Context<'_>, declarations: &Declarations<'_>, name: &str, span: Span) {
    let declared = declarations.values.iter().find(|d| d.name.text == name);
    if declared.is_some_and(|d| d.is_param) || context.is_all_poisoned || context.poisoned.contains(name) {
        return;
    }
    let params = || declarations.values.iter().filter(|d| d.is_param).map(|d| d.name.text.as_str());
    let problem = Diagnostic::error(Code::UnknownParam, span, format!("unknown param `{name}`"))
        .label("the program declares no such param");
    let problem = match declared {
        Some(d) => problem
            .and(d.name.span, "a `let` cannot be set from outside")
            .help(format!("write `param {name} = …` in place of `let {name} = …`")),
        None => match similar(name, params()) {
            Some(meant) => problem.help(format!("did you mean `{meant}`?")),
            None if params().next().is_none() => {
                problem.help(format!("add `param {name} = …` to the program"))
            }
            None => problem.help(format!("use one of {}", choices(params()))),
        },
    };
    context.report(problem);
}

/// Reports a block that must be there; `block` is one as it would be written at the end of the file.
fn missing_block(context: &mut Context<'_>, whole: Span, kind: &str, example: &str, block: &str) {
    let span = Span { end: whole.start, ..whole };
    let text = context.sources.snippet(whole);
    let gap = match text {
        "" => "",
        _ if text.ends_with("\n\n") => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let end = Span { start: whole.end, ..whole };
    context.report(
        Diagnostic::error(Code::MissingAttribute, span, format!("missing `{kind}` block"))
            .label(format!("no `{kind}` in this program"))
            .help(format!("add `{example}`"))
            .fix(Fix::insert(format!("add a `{kind}` block"), end, format!("{gap}{block}")).example()),
    );
}

/// Every param with its final value, as it would be written.
fn params(
    context: &Context<'_>,
    declarations: &Declarations<'_>,
    given: &BTreeMap<String, Expr>,
) -> BTreeMap<String, String> {
    let mut shown = BTreeMap::new();
    for declared in declarations.values.iter().filter(|d| d.is_param) {
        let name = &declared.name.text;
        let written = given.get(name).unwrap_or(declared.value);
        let text = match context.definitions.get(name).map(|d| &d.value) {
            Some(Value::Quantity(quantity)) if !is_literal(written) => quantity.text(),
            _ => print_expr(written),
        };
        shown.insert(name.clone(), text);
    }
    shown
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr.kind, crate::ast::ExprKind::Number { .. })
}
