//! What boards draw, read once a second → metrics beside the gateway's.
//!
//! A board's watts are measured, by its own sensor or by a simulated driver's, and labelled so. No sensor sees a
//! slice: a slice's watts are attributed. What the board drew above its base power since the last look is shared
//! out in proportion to the energy that the plan predicts for the batches that each slice ran meanwhile.

use crate::deployment::Deployment;
use crate::gateway::Stats;
use prometheus::{CounterVec, GaugeVec, Opts, Registry};
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often boards are read.
const EVERY: Duration = Duration::from_secs(1);

/// What was read of a board.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardReading {
    /// Its index.
    pub index: u32,
    /// Its UUID.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// `measured`, or `simulated` where the driver is.
    pub source: &'static str,
    /// Power (W).
    pub power_w: Option<f64>,
    /// Energy since the driver was loaded (J).
    pub energy_j: Option<f64>,
    /// SM clock (MHz).
    pub sm_clock_mhz: Option<f64>,
    /// Mean power that the plan predicts (W).
    pub predicted_power_w: Option<f64>,
    /// Base power that the plan knows (W): what the board draws at its clock when nothing runs.
    pub base_power_w: Option<f64>,
}

/// How slices' watts are attributed, as the label `method`.
const METHOD: &str = "batch-energy";

/// Reads boards.
pub struct Meter(pub Box<dyn FnMut() -> Vec<BoardReading> + Send>);

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meter")
    }
}

/// A thread that reads boards until it is dropped.
#[derive(Debug)]
pub(super) struct Reader {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Gauges {
    power: GaugeVec,
    energy: CounterVec,
    clock: GaugeVec,
    predicted: GaugeVec,
    slices: GaugeVec,
}

impl Gauges {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            let gauge = GaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let read = ["gpu", "uuid", "board", "source"].as_slice();
        let joules =
            Opts::new("entc_gpu_energy_joules_total", "Energy of a whole board since its driver was loaded");
        let energy = CounterVec::new(joules, read)?;
        registry.register(Box::new(energy.clone()))?;
        Ok(Self {
            power: gauge("entc_gpu_power_watts", "Power of a whole board, as its driver says", read)?,
            energy,
            clock: gauge("entc_gpu_sm_clock_hertz", "SM clock of a board", read)?,
            predicted: gauge(
                "entc_gpu_predicted_power_watts",
                "Mean power of a board at the planned load, as the plan predicts",
                &["gpu", "uuid", "board"],
            )?,
            slices: gauge(
                "entc_slice_power_watts",
                "Share of a board's power above its base, attributed by the predicted energy of the batches that ran",
                &["service", "replica", "method"],
            )?,
        })
    }

    fn set(&self, readings: &[BoardReading]) {
        [&self.power, &self.clock, &self.predicted].into_iter().for_each(GaugeVec::reset);
        // The counter is the board's own, and may begin again with its driver.
        self.energy.reset();
        for board in readings {
            let index = board.index.to_string();
            let labels = [index.as_str(), &board.uuid, &board.name, board.source];
            let set = |gauge: &GaugeVec, value: Option<f64>| {
                if let Some(value) = value {
                    gauge.with_label_values(&labels).set(value);
                }
            };
            set(&self.power, board.power_w);
            if let Some(joules) = board.energy_j {
                self.energy.with_label_values(&labels).inc_by(joules);
            }
            set(&self.clock, board.sm_clock_mhz.map(|mhz| mhz * 1e6));
            if let Some(watts) = board.predicted_power_w {
                self.predicted.with_label_values(&[index.as_str(), &board.uuid, &board.name]).set(watts);
            }
        }
    }
}

impl Reader {
    /// Starts to read; without metrics when they cannot be made. `ran` says what runs and what it did so far.
    pub(super) fn start(
        meter: Meter,
        registry: &Registry,
        ran: impl Fn() -> Option<(Deployment, Stats)> + Send + 'static,
    ) -> Self {
        let (end, is_ended) = channel::<()>();
        let Ok(gauges) = Gauges::new(registry) else { return Self { end: None, thread: None } };
        let mut meter = meter;
        let read = move || {
            let mut before: Option<Moment> = None;
            loop {
                let readings = (meter.0)();
                gauges.set(&readings);
                if let Some((deployment, stats)) = ran() {
                    let now = Moment::of(&deployment, &stats, &readings);
                    gauges.slices.reset();
                    for (slice, watts) in before.iter().flat_map(|before| attributed(before, &now)) {
                        let labels = [slice.service.as_str(), &slice.replica, METHOD];
                        gauges.slices.with_label_values(&labels).set(watts);
                    }
                    before = Some(now);
                }
                if is_ended.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("entc-watts".to_owned()).spawn(read).ok();
        Self { end: Some(end), thread }
    }
}

/// A slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slice {
    service: String,
    replica: String,
    epoch: u64,
}

/// What boards have drawn and slices have done, at one moment.
#[derive(Clone, Debug)]
struct Moment {
    at: std::time::Instant,
    /// Energy (J) and base power (W) of each board, by UUID.
    boards: BTreeMap<String, (f64, f64)>,
    /// The board of each slice, and the predicted energy of its batches so far (J).
    slices: BTreeMap<Slice, (String, f64)>,
}

impl Moment {
    fn of(deployment: &Deployment, stats: &Stats, readings: &[BoardReading]) -> Self {
        let board = |b: &BoardReading| Some((b.uuid.clone(), (b.energy_j?, b.base_power_w?)));
        let mut slices = BTreeMap::new();
        for service in &deployment.services {
            let all = stats.services.iter().filter(|s| s.name == service.name).flat_map(|s| &s.replicas);
            for done in all {
                let planned = service.replicas.iter().find(|r| r.id == done.id && r.epoch == done.epoch);
                let Some((planned, gpu)) = planned.and_then(|p| Some((p, p.gpu.clone()?))) else { continue };
                let energies = planned.batch_energy_j.iter().chain(std::iter::repeat(&0.0));
                let joules = done.batch_sizes.iter().zip(energies).map(|(n, j)| *n as f64 * j).sum();
                let slice =
                    Slice { service: service.name.clone(), replica: done.id.clone(), epoch: done.epoch };
                slices.insert(slice, (gpu, joules));
            }
        }
        Self { at: std::time::Instant::now(), boards: readings.iter().filter_map(board).collect(), slices }
    }
}

/// Watts of each slice between two moments.
fn attributed(before: &Moment, now: &Moment) -> Vec<(Slice, f64)> {
    let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
    let ran = |slice: &Slice, joules: f64| {
        let earlier = before.slices.get(slice).map_or(0.0, |(_, joules)| *joules);
        (joules - earlier).max(0.0)
    };
    let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
    for (slice, (board, joules)) in &now.slices {
        *totals.entry(board).or_default() += ran(slice, *joules);
    }
    let watts = |board: &str| {
        let ((then, _), (joules, base)) = (before.boards.get(board)?, now.boards.get(board)?);
        (seconds > 0.0).then(|| ((joules - then) / seconds - base).max(0.0))
    };
    let share = |(slice, (board, joules)): (&Slice, &(String, f64))| {
        let total = totals.get(board.as_str()).copied().unwrap_or(0.0);
        let part = if total > 0.0 { ran(slice, *joules) / total } else { 0.0 };
        Some((slice.clone(), watts(board)? * part))
    };
    now.slices.iter().filter_map(share).collect()
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn moment(at: Instant, board_j: f64, slices: &[(&str, &str, f64)]) -> Moment {
        let slice = |(replica, board, joules): &(&str, &str, f64)| {
            let slice = Slice { service: "s".into(), replica: (*replica).to_owned(), epoch: 0 };
            (slice, ((*board).to_owned(), *joules))
        };
        let boards = [("GPU-1".to_owned(), (board_j, 50.0))].into();
        Moment { at, boards, slices: slices.iter().map(slice).collect() }
    }

    #[test]
    fn what_a_board_draws_above_its_base_is_shared_by_what_its_slices_ran() {
        let start = Instant::now();
        let before = moment(start, 1000.0, &[("a", "GPU-1", 10.0), ("b", "GPU-1", 5.0)]);
        // 80 W for two seconds: 30 W above the base, of which `a` ran three quarters.
        let later = start + Duration::from_secs(2);
        let now = moment(later, 1160.0, &[("a", "GPU-1", 40.0), ("b", "GPU-1", 15.0), ("c", "GPU-2", 9.0)]);
        let told: Vec<(String, f64)> =
            attributed(&before, &now).into_iter().map(|(slice, watts)| (slice.replica, watts)).collect();
        // Nothing is known of the other board, and so nothing is said of its slice.
        assert_eq!(told, [("a".to_owned(), 22.5), ("b".to_owned(), 7.5)]);
    }

    #[test]
    fn an_idle_board_attributes_nothing() {
        let start = Instant::now();
        let before = moment(start, 1000.0, &[("a", "GPU-1", 10.0)]);
        let now = moment(start + Duration::from_secs(1), 1049.0, &[("a", "GPU-1", 10.0)]);
        assert_eq!(attributed(&before, &now)[0].1, 0.0);
        assert!(attributed(&before, &moment(start, 1000.0, &[("a", "GPU-1", 10.0)])).is_empty());
    }
}
