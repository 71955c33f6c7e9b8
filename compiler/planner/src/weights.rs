//! Program + metric → what each board, instance and rate costs in that metric.
//!
//! One definition of every metric, in the unit the solver works in: W for power and for energy (mean
//! power at the offered load), g/h for carbon, boards, USD/h for cost.

use crate::problem::{Class, ClassWeights, Weights};
use ent_lang::Program;
use ent_lang::program::{Intensity, Node, UnusedBoards};
use ent_plan::diagnostic::{Code, Diagnostic};
use ent_plan::plan::Metric;

/// Watts that an unused board of a node draws: its base power at the lowest clock, or nothing. `None`
/// when it is left idle and its base power is not known.
pub(crate) fn idle_power(program: &Program, node: &Node) -> Option<f64> {
    match node.unused {
        UnusedBoards::Off => Some(0.0),
        UnusedBoards::Idle => {
            let base = program.boards[node.board.value].base_power.as_ref()?;
            base.points.first().map(|(_, watts)| watts.get())
        }
    }
}

/// Mean carbon intensity over the horizon (g/kWh), the series repeated when it is shorter.
pub(crate) fn mean_intensity(program: &Program) -> Option<f64> {
    match &program.carbon.intensity.as_ref()?.value {
        Intensity::Constant(value) => Some(value.get()),
        Intensity::Series { step, values, .. } => {
            if values.is_empty() || step.get() <= 0.0 {
                return None;
            }
            let horizon = program.objective.horizon.get();
            let whole = (horizon / step.get()).floor();
            let cycle: f64 = values.iter().map(|v| v.get()).sum();
            let n = values.len() as f64;
            let cycles = (whole / n).floor();
            let rest = whole - cycles * n;
            let head: f64 = values.iter().take(rest as usize).map(|v| v.get()).sum();
            let part = horizon / step.get() - whole;
            let next = values.get(rest as usize % values.len()).map_or(0.0, |v| v.get());
            Some((cycles * cycle + head + part * next) * step.get() / horizon)
        }
    }
}

/// Embodied carbon of a board per hour of use (g/h).
pub(crate) fn embodied_per_hour(program: &Program) -> f64 {
    program
        .carbon
        .embodied
        .as_ref()
        .map_or(0.0, |e| e.value.per_gpu.get() / (e.value.lifetime.get() / 3600.0))
}

/// How the unit of a metric over the horizon becomes the unit the solver works in.
pub(crate) fn per_solver_unit(program: &Program, metric: Metric) -> f64 {
    let horizon = program.objective.horizon.get();
    match metric {
        Metric::Power | Metric::Gpus => 1.0,
        Metric::Energy => horizon,
        Metric::Carbon | Metric::Cost => horizon / 3600.0,
    }
}

/// The weights of a metric; a diagnostic for each fact it needs and nobody has supplied.
pub(crate) fn weights(
    program: &Program,
    classes: &[Class],
    metric: Metric,
    diagnostics: &mut Vec<Diagnostic>,
) -> Weights {
    let mut constant = 0.0;
    let mut all = Vec::new();
    for class in classes {
        let Some(node) = class.nodes.first().map(|&n| &program.nodes[n]) else { continue };
        let idle = || idle_power(program, node).unwrap_or_default();
        let count = f64::from(class.count);
        let own = match metric {
            Metric::Power => {
                constant += idle() * count;
                ClassWeights { board: -idle(), base: 1.0, dynamic: 1.0, mean: 0.0 }
            }
            Metric::Energy => {
                constant += idle() * count;
                ClassWeights { board: -idle(), base: 1.0, dynamic: 0.0, mean: 1.0 }
            }
            Metric::Carbon => {
                let grams_per_watt_hour = node.pue * mean_intensity(program).unwrap_or_default() / 1000.0;
                constant += idle() * count * grams_per_watt_hour;
                ClassWeights {
                    board: embodied_per_hour(program) - idle() * grams_per_watt_hour,
                    base: grams_per_watt_hour,
                    dynamic: 0.0,
                    mean: grams_per_watt_hour,
                }
            }
            Metric::Gpus => ClassWeights { board: 1.0, ..ClassWeights::default() },
            Metric::Cost => {
                if node.price.is_none() {
                    diagnostics.push(
                        Diagnostic::error(Code::MissingAttribute, node.name.span, "the plan needs a price")
                            .label("no `price`")
                            .help("write `price = 2.1 USD per hour` in the node"),
                    );
                }
                ClassWeights {
                    board: node.price.as_ref().map_or(0.0, |p| p.value.get()),
                    ..ClassWeights::default()
                }
            }
        };
        all.push(own);
    }
    if metric == Metric::Carbon && mean_intensity(program).is_none() {
        diagnostics.push(
            Diagnostic::error(
                Code::MissingAttribute,
                program.objective.minimize.span,
                "the plan needs a carbon intensity",
            )
            .label("carbon is counted here")
            .help("add a block like `carbon { intensity = 490 gCO2/kWh }`"),
        );
    }
    Weights { constant, classes: all }
}
