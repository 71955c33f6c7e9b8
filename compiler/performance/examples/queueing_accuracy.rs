//! Predicted against simulated latency percentiles over a grid, and the simulator's speed.
//!
//! `cargo run --release -p ent-performance --example queueing_accuracy [-- full]`

#![expect(clippy::print_stdout, reason = "an example prints")]

use ent_lang::program::Arrivals;
use ent_performance::queueing::{BatchServer, admissible_rate, behaviour};
use ent_performance::simulate::simulate_server;
use std::time::Instant;

const PERCENTILES: [f64; 4] = [0.5, 0.95, 0.99, 0.999];

#[derive(Default)]
struct Spread {
    n: u32,
    low: f64,
    high: f64,
    absolute: f64,
}

impl Spread {
    fn add(&mut self, error: f64) {
        self.n += 1;
        self.low = self.low.min(error);
        self.high = self.high.max(error);
        self.absolute += error.abs();
    }
}

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let requests = if mode == "full" { 1_000_000 } else { 300_000 };
    let batches: &[usize] = if mode == "full" { &[1, 2, 4, 8, 16, 32] } else { &[1, 4, 16, 32] };
    let loads: &[f64] = if mode == "full" { &[0.1, 0.3, 0.5, 0.7, 0.8, 0.9] } else { &[0.1, 0.3, 0.6, 0.9] };
    let processes: Vec<u32> =
        std::env::args().nth(2).map_or(vec![1], |a| a.split(',').filter_map(|p| p.parse().ok()).collect());
    let waits: Vec<f64> = std::env::args()
        .nth(3)
        .map_or(vec![0.0, 0.3, 1.5], |a| a.split(',').filter_map(|p| p.parse().ok()).collect());
    let families = [
        ("poisson", Arrivals::Poisson),
        ("gamma 0.5", Arrivals::Gamma { cv: 0.5 }),
        ("gamma 0.7", Arrivals::Gamma { cv: 0.7 }),
        ("gamma 1.5", Arrivals::Gamma { cv: 1.5 }),
        ("gamma 2", Arrivals::Gamma { cv: 2.0 }),
        ("uniform", Arrivals::Uniform),
    ];
    let (mut simulated, mut simulating) = (0, 0.0);
    for (name, arrivals) in &families {
        let mut spreads: Vec<Spread> = PERCENTILES.iter().map(|_| Spread::default()).collect();
        let mut energy = Spread::default();
        let (mut predicting, mut predictions) = (0.0, 0);
        for &batch in batches {
            for shape in [0.05, 0.4, 0.8] {
                // From nearly proportional to nearly constant batch times; a full batch takes 1.
                let times: Vec<f64> =
                    (1..=batch).map(|k| shape + (1.0 - shape) * k as f64 / batch as f64).collect();
                for &processes in &processes {
                    for &wait in if batch == 1 { &waits[..1] } else { &waits[..] } {
                        for &load in loads {
                            let server = BatchServer { batch_times: &times, processes, max_wait: wait };
                            let rate = load * batch as f64 * f64::from(processes);
                            // Queues at high load take long to forget; so does the simulation's scatter.
                            let requests = if load > 0.85 { requests * 10 } else { requests };
                            let start = Instant::now();
                            let seen = simulate_server(server, arrivals, rate, requests, 1);
                            simulating += start.elapsed().as_secs_f64();
                            simulated += requests;
                            for (p, spread) in PERCENTILES.iter().zip(&mut spreads) {
                                let start = Instant::now();
                                let predicted = behaviour(server, arrivals, rate, *p);
                                predicting += start.elapsed().as_secs_f64();
                                predictions += 1;
                                let truth = seen.latencies.percentile(*p);
                                let error = predicted.latency / truth - 1.0;
                                spread.add(error);
                                if !(-0.04..0.08).contains(&error) && *p < 0.995 {
                                    println!(
                                        "{name}: batch {batch} shape {shape} processes {processes} wait {wait} load {load}: p{} predicted {:.4} simulated {truth:.4} ({:+.1} %)",
                                        p * 100.0,
                                        predicted.latency,
                                        error * 100.0
                                    );
                                }
                                if *p == 0.99 {
                                    energy.add(predicted.busy / seen.busy - 1.0);
                                }
                            }
                        }
                    }
                }
            }
        }
        for (p, spread) in PERCENTILES.iter().zip(&spreads) {
            println!(
                "{name}: p{}: {} points, error {:+.1} % .. {:+.1} %, mean {:.1} %",
                p * 100.0,
                spread.n,
                spread.low * 100.0,
                spread.high * 100.0,
                spread.absolute / f64::from(spread.n) * 100.0
            );
        }
        println!(
            "{name}: busy {:+.1} % .. {:+.1} %; {:.2} ms a prediction",
            energy.low * 100.0,
            energy.high * 100.0,
            predicting * 1e3 / f64::from(predictions)
        );
    }
    println!("simulator: {:.1} million requests a second", simulated as f64 / simulating / 1e6);
    for (name, arrivals) in &families[..5] {
        for batch in [1_usize, 4, 16, 32] {
            let start = Instant::now();
            let mut n = 0;
            for shape in [0.05, 0.4, 0.8] {
                let times: Vec<f64> =
                    (1..=batch).map(|k| shape + (1.0 - shape) * k as f64 / batch as f64).collect();
                for bound in [1.2, 2.0, 4.0, 10.0] {
                    let server = BatchServer { batch_times: &times, processes: 1, max_wait: 0.0 };
                    let rate = admissible_rate(server, arrivals, 0.99, bound);
                    let check = behaviour(server, arrivals, rate, 0.99).latency;
                    if mode == "full" {
                        println!(
                            "  batch {batch} shape {shape} bound {bound}: {:.3} of capacity, p99 {check:.3}",
                            rate / batch as f64
                        );
                    }
                    n += 1;
                }
            }
            println!(
                "{name}: batch {batch}: {:.2} ms an admissible rate and its behaviour",
                start.elapsed().as_secs_f64() * 1e3 / f64::from(n)
            );
        }
    }
}
