//! Temporary probe.
use ent_lang::program::*;
use ent_plan::diagnostic::*;
use ent_plan::plan::*;
use ent_plan::units::*;
use std::ops::ControlFlow;
fn at<T>(v: T) -> Located<T> { Located::new(v, Span::default()) }
fn main() {
    let data = std::env::var("ENT_DATA").unwrap();
    let a: Vec<String> = std::env::args().collect();
    let load: f64 = a[1].parse().unwrap();
    let boards: u32 = a[2].parse().unwrap();
    let metric = match a[3].as_str() { "power" => Metric::Power, "energy" => Metric::Energy, "gpus" => Metric::Gpus, _ => Metric::Carbon };
    let rule = if a.get(4).is_some_and(|s| s == "q") { LatencyRule::Queueing } else { LatencyRule::Execution };
    let tl: f64 = a.get(5).map_or(60.0, |s| s.parse().unwrap());
    let fixed = ["resnet50", "diffusion_1024_1024", "diffusion_256_256", "gpt"];
    let mut program = Program::default();
    program.boards.push(ent_plan::device::board("a100-80gb-pcie").unwrap());
    program.nodes.push(Node { name: at("box".into()), board: at(0), count: at(boards), unused: UnusedBoards::Off, sharing: Sharing::Mig, price: None, pue: 1.0, clocks: None });
    for line in std::fs::read_to_string(format!("{data}/enertune/scheduler_inputs.csv")).unwrap().lines().skip(1) {
        let c: Vec<&str> = line.split(',').collect();
        if ["efficientnet_b5", "inception_v3"].contains(&c[0]) { continue; }
        let l = if fixed.contains(&c[0]) { load.min(1.0) } else { load };
        program.models.push(Model { name: at(c[0].into()), performance: vec![], artifact: None, memory: None });
        program.services.push(Service {
            name: at(c[0].into()), model: at(program.models.len() - 1), rate: at(PerSecond(l * c[1].parse::<f64>().unwrap())),
            slo: at(Slo { percentile: 0.99, bound: Seconds(c[2].parse::<f64>().unwrap() / 1e3) }), arrivals: at(Arrivals::Poisson),
            replicas: None, pin: None, isolate: None, spread: None });
    }
    let mut sources = Sources::default();
    let bytes = std::fs::read(format!("{data}/enertune/model_datastore.csv")).unwrap();
    let set = ent_performance::PerformanceSet::from_table(&program, "t.csv", &bytes, &mut sources);
    for d in &set.diagnostics { println!("{:?} {}", d.code, d.message); }
    let t0 = std::time::Instant::now();
    let elapsed = || t0.elapsed().as_secs_f64();
    for planner in [ent_planner::Planner::Greedy, ent_planner::Planner::Optimal] {
        let t1 = elapsed();
        let mut progress = |p: ent_planner::Progress| { eprintln!("{:.2} {p:?}", elapsed()); ControlFlow::Continue(()) };
        let mut control = ent_planner::Control { gap: 0.0, time_limit: Some(tl), node_limit: None, elapsed: &elapsed, progress: &mut progress, is_stopped: false };
        let options = ent_planner::PlanOptions { planner, metric: Some(metric), rule };
        let out = ent_planner::plan(&program, &set.value, options, &mut control).unwrap();
        let plan = out.value;
        for d in &out.diagnostics { println!("{:?} {} {}", d.code, d.message, d.primary.text); }
        println!("{} {load} {metric:?} {:?} {:?} power {:?} mean {:?} gpus {} t {:.2}", plan.planner, plan.status, plan.objective, plan.metrics.power_w, plan.metrics.mean_power_w, plan.metrics.gpus, elapsed() - t1);
        match check(plan.clone()) { Ok(_) => {}, Err(f) => for f in f.iter().take(10) { println!("FAULT {f}") } }
    }
}
