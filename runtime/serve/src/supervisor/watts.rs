//! What boards draw, read once a second → metrics beside the gateway's.
//!
//! A board's watts are measured, by its own sensor or by a simulated driver's, and labelled so.

use prometheus::{GaugeVec, Opts, Registry};
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
}

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
    energy: GaugeVec,
    clock: GaugeVec,
    predicted: GaugeVec,
}

impl Gauges {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            let gauge = GaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let read = ["gpu", "uuid", "board", "source"].as_slice();
        Ok(Self {
            power: gauge("entc_gpu_power_watts", "Power of a whole board, as its driver says", read)?,
            energy: gauge(
                "entc_gpu_energy_joules_total",
                "Energy of a whole board since its driver was loaded",
                read,
            )?,
            clock: gauge("entc_gpu_sm_clock_hertz", "SM clock of a board", read)?,
            predicted: gauge(
                "entc_gpu_predicted_power_watts",
                "Mean power of a board at the planned load, as the plan predicts",
                &["gpu", "uuid", "board"],
            )?,
        })
    }

    fn set(&self, readings: &[BoardReading]) {
        [&self.power, &self.energy, &self.clock, &self.predicted].into_iter().for_each(GaugeVec::reset);
        for board in readings {
            let index = board.index.to_string();
            let labels = [index.as_str(), &board.uuid, &board.name, board.source];
            let set = |gauge: &GaugeVec, value: Option<f64>| {
                if let Some(value) = value {
                    gauge.with_label_values(&labels).set(value);
                }
            };
            set(&self.power, board.power_w);
            set(&self.energy, board.energy_j);
            set(&self.clock, board.sm_clock_mhz.map(|mhz| mhz * 1e6));
            if let Some(watts) = board.predicted_power_w {
                self.predicted.with_label_values(&[index.as_str(), &board.uuid, &board.name]).set(watts);
            }
        }
    }
}

impl Reader {
    /// Starts to read; without metrics when they cannot be made.
    pub(super) fn start(meter: Meter, registry: &Registry) -> Self {
        let (end, is_ended) = channel::<()>();
        let Ok(gauges) = Gauges::new(registry) else { return Self { end: None, thread: None } };
        let mut meter = meter;
        let read = move || {
            loop {
                let readings = (meter.0)();
                gauges.set(&readings);
                if is_ended.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("entc-watts".to_owned()).spawn(read).ok();
        Self { end: Some(end), thread }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
