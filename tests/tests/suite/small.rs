//! Small worlds of our own invention: a board with round numbers, services, a measured table.

use ent_tests::planning::Question;
use std::fmt::Write as _;

/// A board cut like an A100 80GB that draws 40 W at 500 MHz and 60 W at 1000 MHz.
pub(crate) const BOARD: &str = "\
import \"catalog:nvidia/a100-80gb-pcie\"

board round {
  base       = a100_80gb_pcie
  clocks     = [500 MHz, 1000 MHz]
  base_power = [500 MHz: 40 W, 1000 MHz: 60 W]
}
";

/// One measured row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) model: usize,
    pub(crate) slices: u32,
    pub(crate) batch: u32,
    pub(crate) clock: u32,
    /// Requests per second.
    pub(crate) throughput: f64,
    /// Watts.
    pub(crate) dynamic: f64,
}

/// A service of the model with its number.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    /// Requests per second.
    pub(crate) rate: f64,
    /// p99, milliseconds.
    pub(crate) promise: f64,
    /// What else it says: `, replicas = 2..2`.
    pub(crate) more: &'static str,
}

/// A service that promises 1 s, which every row of these tables keeps.
pub(crate) fn service(rate: f64, more: &'static str) -> Service {
    Service { rate, promise: 1000.0, more }
}

/// A world to plan in.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) services: Vec<Service>,
    pub(crate) rows: Vec<Row>,
    /// Inside of the block `hardware`.
    pub(crate) hardware: String,
    /// Inside of the block `objective`.
    pub(crate) objective: String,
}

/// This many boards in one node, off when they are not used.
pub(crate) fn boards(count: u32) -> String {
    format!("node \"box\" {{ gpu = round x {count}, unused = off }}")
}

impl World {
    /// The question about this world: its program is `small.ent`.
    pub(crate) fn question(&self) -> Question<'static> {
        let mut program = BOARD.to_owned();
        for (index, service) in self.services.iter().enumerate() {
            let Service { rate, promise, more } = service;
            writeln!(program, "model m{index} {{ performance = \"table.csv\", source = table }}").unwrap();
            writeln!(
                program,
                "service s{index} {{ model = m{index}, rate = {rate} req/s, latency = p99 <= {promise} ms{more} }}"
            )
            .unwrap();
        }
        writeln!(program, "hardware {{ {} }}\nobjective {{ {} }}", self.hardware, self.objective).unwrap();
        let mut table =
            "model,slices,batch,clock_mhz,throughput_rps,latency_p99_ms,dynamic_power_w\n".to_owned();
        for row in &self.rows {
            let Row { model, slices, batch, clock, throughput, dynamic } = row;
            let latency = f64::from(*batch) / throughput * 1e3;
            writeln!(table, "m{model},{slices},{batch},{clock},{throughput},{latency},{dynamic}").unwrap();
        }
        let texts = [("small.ent".to_owned(), program), ("table.csv".to_owned(), table)];
        Question { texts: texts.into_iter().collect(), ..Question::default() }
    }
}
