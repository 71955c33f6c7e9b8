//! Boards and site facts → the metrics of a plan: the one definition, for every planner and report.
//!
//! A metric is `None` as soon as one fact it needs is missing: nothing is left out of a sum in silence.

use super::{Accounting, Gpu, Metric, Metrics, Unused};

/// Seconds in an hour.
const HOUR: f64 = 3600.0;

impl Metrics {
    /// The metrics of these boards.
    ///
    /// Power and mean power include unused boards that stay on. Carbon is, per node, PUE times mean power
    /// times the mean intensity, and the embodied carbon of the used boards. Cost counts used boards.
    #[must_use]
    pub fn of(gpus: &[Gpu], unused: &[Unused], accounting: &Accounting) -> Self {
        let idle = |node: Option<&str>| -> Option<f64> {
            unused
                .iter()
                .filter(|u| u.count > 0 && node.is_none_or(|n| n == u.node))
                .map(|u| u.power_w.map(|w| w * f64::from(u.count)))
                .sum()
        };
        let add = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        let power_w = add(gpus.iter().map(|g| g.power_w).sum(), idle(None));
        let mean_power_w = add(gpus.iter().map(|g| g.mean_power_w).sum(), idle(None));

        let nodes: std::collections::BTreeSet<&str> =
            gpus.iter().map(|g| g.node.as_str()).chain(unused.iter().map(|u| u.node.as_str())).collect();
        let operational = |node: &&str| -> Option<f64> {
            let used: Option<f64> = gpus.iter().filter(|g| g.node == *node).map(|g| g.mean_power_w).sum();
            let kilowatts = add(used, idle(Some(node)))? / 1e3;
            let pue = accounting.pue.get(*node).copied().unwrap_or(1.0);
            Some(pue * kilowatts * accounting.carbon_intensity_g_per_kwh?)
        };
        let embodied = accounting.embodied_g_per_gpu_hour * gpus.len() as f64;
        let carbon_g_per_hour = match accounting.carbon_intensity_g_per_kwh {
            Some(_) => add(nodes.iter().map(operational).sum(), Some(embodied)),
            None => None,
        };
        let is_priced = !accounting.price_per_gpu_hour.is_empty();
        let price = |g: &Gpu| accounting.price_per_gpu_hour.get(&g.node).copied();
        let cost_per_hour = if is_priced { gpus.iter().map(price).sum() } else { None };
        Self {
            power_w,
            mean_power_w,
            energy_j_per_hour: mean_power_w.map(|w| w * HOUR),
            carbon_g_per_hour,
            gpus: u32::try_from(gpus.len()).unwrap_or(u32::MAX),
            cost_per_hour,
        }
    }

    /// One metric in the unit of objectives and limits: W for power, J, g and USD over the horizon, boards.
    #[must_use]
    pub fn value(&self, metric: Metric, horizon_s: f64) -> Option<f64> {
        match metric {
            Metric::Power => self.power_w,
            Metric::Energy => self.mean_power_w.map(|w| w * horizon_s),
            Metric::Carbon => self.carbon_g_per_hour.map(|g| g * horizon_s / HOUR),
            Metric::Gpus => Some(f64::from(self.gpus)),
            Metric::Cost => self.cost_per_hour.map(|c| c * horizon_s / HOUR),
        }
    }
}

/// The relative gap `|value - bound| / |value|`: 0 when both are 0, infinite when only the value is.
#[must_use]
pub fn gap(value: f64, bound: f64) -> f64 {
    let distance = (value - bound).abs();
    if distance == 0.0 { 0.0 } else { distance / value.abs() }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_gap_is_relative_to_the_value() {
        assert_eq!(gap(200.0, 199.0), 0.005);
        assert_eq!(gap(0.0, 0.0), 0.0);
        assert_eq!(gap(0.0, -1.0), f64::INFINITY);
    }

    #[test]
    fn metrics_add_up_boards_idle_ones_and_the_site() {
        let mut plan = sample::plan();
        plan.gpus.truncate(1);
        plan.gpus[0].power_w = Some(200.0);
        plan.gpus[0].mean_power_w = Some(100.0);
        plan.unused[0].count = 3;
        plan.unused[0].is_off = false;
        plan.unused[0].power_w = Some(50.0);
        plan.accounting.carbon_intensity_g_per_kwh = Some(400.0);
        plan.accounting.embodied_g_per_gpu_hour = 4.0;
        plan.accounting.pue.insert("box".to_owned(), 1.5);
        plan.accounting.price_per_gpu_hour.insert("box".to_owned(), 2.0);
        let metrics = Metrics::of(&plan.gpus, &plan.unused, &plan.accounting);
        assert_eq!(metrics.power_w, Some(350.0));
        assert_eq!(metrics.mean_power_w, Some(250.0));
        assert_eq!(metrics.energy_j_per_hour, Some(900_000.0));
        // 1.5 * 0.25 kW * 400 g/kWh + 4 g, one used board.
        assert_eq!(metrics.carbon_g_per_hour, Some(154.0));
        assert_eq!(metrics.cost_per_hour, Some(2.0));
        assert_eq!(metrics.value(Metric::Carbon, 7200.0), Some(308.0));
        assert_eq!(metrics.value(Metric::Energy, 10.0), Some(2500.0));
        assert_eq!(metrics.value(Metric::Gpus, 10.0), Some(1.0));
    }

    #[test]
    fn a_missing_fact_makes_the_metric_unknown() {
        let mut plan = sample::plan();
        plan.gpus[0].mean_power_w = None;
        let metrics = Metrics::of(&plan.gpus, &plan.unused, &plan.accounting);
        assert!(metrics.power_w.is_some() && metrics.mean_power_w.is_none());
        assert!(metrics.energy_j_per_hour.is_none() && metrics.cost_per_hour.is_none());
    }
}
