//! Problem → the CPLEX LP format, which every solver reads: to look at, or to solve elsewhere.
//!
//! The counted problem as it is formulated, before covers, columns and cuts. Variables: `boards_P` for
//! pattern P, `instances_S_K` and `rate_S_K` for point K of service S. Replicas kept apart are decided
//! when boards are dealt, and are not in it.

use crate::problem::{Problem, Weights};
use std::fmt::Write as _;

/// Terms are broken into lines of this many, since readers limit the length of a line.
const TERMS_PER_LINE: usize = 8;

/// The problem in LP format. Numbers read back exactly.
#[must_use]
pub fn lp(problem: &Problem) -> String {
    let mut text = format!("\\ minimise {}: {}\n", problem.metric.word(), names(problem));
    text.push_str("Minimize\n objective:");
    let mut objective = terms_of(problem, &problem.objective);
    if problem.objective.constant != 0.0 {
        objective.push((problem.objective.constant, "one".to_owned()));
    }
    write_terms(&mut text, &objective);
    text.push_str("\nSubject To\n");
    cells(problem, &mut text);
    services(problem, &mut text);
    classes(problem, &mut text);
    for (index, limit) in problem.limits.iter().enumerate() {
        let at_most = limit.at_most - limit.weights.constant;
        row(&mut text, &format!("limit_{index}"), &terms_of(problem, &limit.weights), "<=", at_most);
    }
    bounds(problem, &mut text);
    text
}

/// Which service is which number.
fn names(problem: &Problem) -> String {
    let named: Vec<String> = problem
        .services
        .iter()
        .enumerate()
        .map(|(index, s)| format!("{index} {}", s.name.escape_default()))
        .collect();
    named.join(", ")
}

/// What a metric costs, by variable.
fn terms_of(problem: &Problem, weights: &Weights) -> Vec<(f64, String)> {
    let mut terms = Vec::new();
    for (index, pattern) in problem.patterns.iter().enumerate() {
        let w = weights.classes[pattern.class];
        terms.push((w.board + w.base * pattern.base, format!("boards_{index}")));
    }
    for (s, service) in problem.services.iter().enumerate() {
        for (k, point) in service.points.iter().enumerate() {
            let w = weights.classes[problem.cells[point.cell].class];
            terms.push((w.dynamic * point.dynamic, format!("instances_{s}_{k}")));
            terms.push((w.mean * point.energy, format!("rate_{s}_{k}")));
        }
    }
    terms
}

/// Instances need a place that a board offers.
fn cells(problem: &Problem, text: &mut String) {
    let mut terms: Vec<Vec<(f64, String)>> = vec![Vec::new(); problem.cells.len()];
    for (s, service) in problem.services.iter().enumerate() {
        for (k, point) in service.points.iter().enumerate() {
            terms[point.cell].push((1.0, format!("instances_{s}_{k}")));
        }
    }
    for (index, pattern) in problem.patterns.iter().enumerate() {
        for &(cell, places) in &pattern.places {
            terms[cell].push((-f64::from(places), format!("boards_{index}")));
        }
    }
    for (index, terms) in terms.iter().enumerate() {
        row(text, &format!("cell_{index}"), terms, "<=", 0.0);
    }
}

/// Every rate is served, no instance above what it may take, and there are as many as asked for.
fn services(problem: &Problem, text: &mut String) {
    for (s, service) in problem.services.iter().enumerate() {
        for (k, point) in service.points.iter().enumerate() {
            let terms = [(1.0, format!("rate_{s}_{k}")), (-point.admissible, format!("instances_{s}_{k}"))];
            row(text, &format!("admissible_{s}_{k}"), &terms, "<=", 0.0);
        }
        let all = |what: &str| -> Vec<(f64, String)> {
            (0..service.points.len()).map(|k| (1.0, format!("{what}_{s}_{k}"))).collect()
        };
        row(text, &format!("served_{s}"), &all("rate"), "=", service.rate);
        let (least, most) = service.replicas;
        row(text, &format!("replicas_least_{s}"), &all("instances"), ">=", f64::from(least));
        if most < u32::MAX {
            row(text, &format!("replicas_most_{s}"), &all("instances"), "<=", f64::from(most));
        }
    }
}

/// No more boards than there are.
fn classes(problem: &Problem, text: &mut String) {
    for (index, class) in problem.classes.iter().enumerate() {
        let terms: Vec<(f64, String)> = problem
            .patterns
            .iter()
            .enumerate()
            .filter(|(_, pattern)| pattern.class == index)
            .map(|(p, _)| (1.0, format!("boards_{p}")))
            .collect();
        row(text, &format!("class_{index}"), &terms, "<=", f64::from(class.count));
    }
}

/// What is whole, and the variable that carries the objective's constant.
fn bounds(problem: &Problem, text: &mut String) {
    if problem.objective.constant != 0.0 {
        text.push_str("Bounds\n one = 1\n");
    }
    text.push_str("General\n");
    for index in 0..problem.patterns.len() {
        let _ = writeln!(text, " boards_{index}");
    }
    for (s, service) in problem.services.iter().enumerate() {
        for k in 0..service.points.len() {
            let _ = writeln!(text, " instances_{s}_{k}");
        }
    }
    text.push_str("End\n");
}

/// One constraint; none where nothing is bounded.
fn row(text: &mut String, name: &str, terms: &[(f64, String)], sense: &str, right: f64) {
    if terms.is_empty() {
        return;
    }
    let _ = write!(text, " {name}:");
    write_terms(text, terms);
    let _ = writeln!(text, " {sense} {right}");
}

fn write_terms(text: &mut String, terms: &[(f64, String)]) {
    for (index, (factor, variable)) in terms.iter().filter(|(factor, _)| *factor != 0.0).enumerate() {
        if index > 0 && index % TERMS_PER_LINE == 0 {
            text.push_str("\n  ");
        }
        let sign = if *factor < 0.0 { '-' } else { '+' };
        let _ = write!(text, " {sign} {} {variable}", factor.abs());
    }
}
