//! What a transaction adds to the driver's own calls: journal, state, and reading the machine again.
//!
//! `cargo bench -p ent-machine --bench apply`, with `TMPDIR` for another disk. The same steps are done in turn
//! by the driver alone and by `apply`, on a simulated board; the difference, by step, is what is looked for. A
//! line of the journal waits for its disk, so the disk counts: what it takes for that alone is told first.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark")]

use ent_machine::apply::{Means, Request, apply};
use ent_machine::changes::Changes;
use ent_machine::diff::diff;
use ent_machine::journal::Transaction;
use ent_machine::observed::Observed;
use ent_machine::preflight::Allowed;
use ent_machine::state::State;
use ent_machine::store::{Locked, Store};
use ent_machine::target::{ClockTarget, Target, TargetGpu, TargetInstance};
use ent_machine::{Driver, Library};
use ent_nvml_sim::description::{DescribedGpu, Description};
use ent_nvml_sim::machine::SimulatedMachine;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// Rounds of each case: there and back.
const N_ROUNDS: usize = 40;

/// Profile and first memory slice, on an A100 80GB.
type At = (&'static str, u32);

const SEVEN: [At; 7] = [
    ("1g.10gb", 0),
    ("1g.10gb", 1),
    ("1g.10gb", 2),
    ("1g.10gb", 3),
    ("1g.10gb", 4),
    ("1g.10gb", 5),
    ("1g.10gb", 6),
];

struct Bench {
    driver: Driver,
    store: Locked,
    // Dropped last: the driver has its library open.
    _machine: SimulatedMachine,
}

impl Bench {
    fn new(n_gpus: u32, store: &Path) -> Self {
        let gpu = DescribedGpu {
            board: "a100-80gb-pcie".to_owned(),
            count: n_gpus,
            mig: true,
            ..DescribedGpu::default()
        };
        let description = Description { gpu: vec![gpu], ..Description::of("575.57.08", &[]) };
        let machine = SimulatedMachine::new(&description).expect("the simulated library is built");
        let library = Library::Simulated { library: machine.library(), state: machine.state().to_owned() };
        let driver = Driver::open(&library).expect("a simulated machine runs");
        let store = Store::open(store).and_then(|store| store.lock("benchmark", Duration::ZERO));
        Self { driver, store: store.expect("a folder that can be written"), _machine: machine }
    }

    fn observe(&self) -> Observed {
        self.driver.observe().expect("a simulated machine can be read")
    }

    /// All GPUs cut alike, at these very places.
    fn wish(&self, places: &[At]) -> Target {
        let size = |profile: &str| match profile {
            "1g.10gb" => 1,
            "3g.40gb" => 4,
            _ => 8,
        };
        let instance = |(profile, start): &At| TargetInstance {
            profile: (*profile).to_owned(),
            start: *start,
            size: size(profile),
            is_fixed: true,
            service: None,
        };
        let gpu = TargetGpu {
            mig: Some(true),
            services: Vec::new(),
            persistence: None,
            instances: places.iter().map(instance).collect(),
            sm_clock: ClockTarget::Leave,
            power_limit_mw: None,
        };
        let gpus = self.observe().gpus.into_iter().map(|observed| (observed.uuid, gpu.clone()));
        Target { gpus: gpus.collect() }
    }

    fn state(&self) -> State {
        self.store.state().expect("a state that this program wrote")
    }

    fn changes(&self, target: &Target, observed: &Observed) -> Changes {
        diff(target, observed, &self.state().on(observed)).expect("there is room")
    }

    /// A transaction; its steps and how long it took.
    fn apply(&self, target: &Target) -> (usize, Duration) {
        let observed = self.observe();
        let changes = self.changes(target, &observed);
        let mut means = Means {
            driver: &self.driver,
            store: &self.store,
            allowed: Allowed::default(),
            is_privileged: true,
            keep_going: false,
            is_interrupted: &|| false,
            tell: &mut |_| (),
        };
        let request = Request {
            transaction: Transaction::Apply,
            plan: None,
            node: None,
            observed: &observed,
            target,
            changes: &changes,
        };
        let begin = Instant::now();
        let (_, result) = apply(&mut means, &request);
        let took = begin.elapsed();
        result.expect("nothing stands in the way");
        (changes.steps.len(), took)
    }

    /// The steps of `changes` by the driver alone.
    fn perform(&self, changes: &Changes) -> Duration {
        let begin = Instant::now();
        changes.steps.iter().for_each(|step| self.driver.perform(step).expect("nothing stands in the way"));
        begin.elapsed()
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// There and back in turn by the driver and by `apply`.
fn case(name: &str, n_gpus: u32, store: &Path, from: &[At], to: &[At]) {
    let bench = Bench::new(n_gpus, store);
    let (from, to) = (bench.wish(from), bench.wish(to));
    bench.apply(&from);
    let (mut n_steps, mut alone, mut added) = (0, Duration::ZERO, Vec::new());
    for _ in 0..N_ROUNDS {
        let observed = bench.observe();
        let there = bench.changes(&to, &observed);
        // The driver goes there and back, and so the state is true again.
        let mut by_driver = bench.perform(&there);
        let observed = bench.observe();
        let state = to_state(&bench, &observed);
        let back = diff(&from, &observed, &state).expect("there is room");
        by_driver += bench.perform(&back);
        let (n_there, by_apply) = bench.apply(&to);
        let (n_back, and_back) = bench.apply(&from);
        assert_eq!((n_there, n_back), (there.steps.len(), back.steps.len()), "the same steps");
        n_steps += n_there + n_back;
        alone += by_driver;
        let steps = f64::from(u32::try_from(n_there + n_back).unwrap_or(u32::MAX));
        added.push((milliseconds(by_apply + and_back) - milliseconds(by_driver)) / steps);
    }
    added.sort_by(f64::total_cmp);
    let mean = added.iter().sum::<f64>() / f64::from(u32::try_from(added.len()).unwrap_or(u32::MAX));
    let steps = f64::from(u32::try_from(n_steps).unwrap_or(u32::MAX));
    println!(
        "{name:44} {n_steps:6} steps {:8.3} {:8.3} {:8.3} {:8.3}",
        milliseconds(alone) / steps,
        mean,
        added[added.len() / 2],
        added[added.len() - 1],
    );
}

/// All that is there is ours.
fn to_state(bench: &Bench, observed: &Observed) -> State {
    let mut state = bench.state().on(observed);
    for gpu in &observed.gpus {
        let ours = &mut state.gpus.get_mut(&gpu.uuid).expect("it was applied to").instances;
        *ours = gpu
            .instances
            .iter()
            .map(|i| ent_machine::state::InstanceState {
                profile: i.profile.clone(),
                start: i.start,
                size: i.size,
                service: None,
            })
            .collect();
    }
    state
}

/// How long this folder's disk takes for a line as long as a journal's (ms): the median of some.
fn line(folder: &Path) -> f64 {
    let mut file = std::fs::File::create(folder.join("line")).expect("a folder that can be written");
    let mut took: Vec<f64> = (0..200)
        .map(|_| {
            let begin = Instant::now();
            file.write_all(&[b' '; 200]).and_then(|()| file.sync_data()).expect("there is room");
            milliseconds(begin.elapsed())
        })
        .collect();
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}

fn main() {
    let memory = tempfile::tempdir_in("/dev/shm").ok();
    let disk = tempfile::tempdir().expect("a temporary folder");
    println!(
        "{:44} {:6}       {:>8} {:>8} {:>8} {:>8}",
        "ms a step", "", "driver", "added", "median", "most"
    );
    let folders = [("disk", Some(disk.path())), ("memory", memory.as_ref().map(tempfile::TempDir::path))];
    for (place, folder) in folders {
        let Some(folder) = folder else { continue };
        println!("{place}: a line that waits for it takes {:.3} ms (median), one a step", line(folder));
        let cases: [(&str, u32, &[At], &[At]); 4] = [
            ("one instance comes and goes", 1, &[], &[("3g.40gb", 4)]),
            ("seven instances and one in turn", 1, &SEVEN, &[("7g.80gb", 0)]),
            ("8 GPUs, one instance each", 8, &[], &[("3g.40gb", 4)]),
            ("8 GPUs, seven instances and one in turn", 8, &SEVEN, &[("7g.80gb", 0)]),
        ];
        for (number, (name, n_gpus, from, to)) in cases.into_iter().enumerate() {
            case(&format!("{place}: {name}"), n_gpus, &folder.join(number.to_string()), from, to);
        }
    }
}
