//! Temporary probe.
use ent_performance::operate::*;
use ent_plan::diagnostic::*;
use ent_plan::plan::*;
fn main() {
    let mut sources = Sources::default();
    let mut load = |p: &str| std::fs::read(p).map_err(|_| ent_plan::text::LoadError::Missing);
    let program = ent_lang::compile("examples/enertune/program.ent", &ent_lang::Options::default(), &mut load, &mut sources).value.unwrap();
    let set = ent_performance::load(&program, &mut load, &mut sources).value;
    let board = &program.boards[0];
    for s in &program.services {
        let m = set.get(s.model.value, 0).unwrap();
        let t = std::time::Instant::now();
        let points = m.points(board);
        let preds: Vec<_> = points.iter().map(|k| (k, m.predict(board, *k).unwrap())).collect();
        let tp = t.elapsed().as_secs_f64();
        let promise = Promise { rule: LatencyRule::Queueing, arrivals: &s.arrivals.value, percentile: 0.99, bound: s.slo.value.bound.get() };
        let t = std::time::Instant::now();
        let adm: Vec<_> = preds.iter().map(|(k, p)| (k, p, admissible(p, k.processes, promise))).filter(|x| x.2 > 0.0).collect();
        let ta = t.elapsed().as_secs_f64();
        let t = std::time::Instant::now();
        let mut n = 0;
        for (k, p, a) in adm.iter() { if *a >= s.rate.value.get() { n += 1; mean_dynamic_power(p, k.processes, promise, s.rate.value.get()); } }
        let tm = t.elapsed().as_secs_f64();
        println!("{} points {} predict {:.3}s admissible {:.3}s ({:.3} ms) usable {} mean {} {:.3}s ({:.3} ms)", s.name.value, points.len(), tp, ta, ta / points.len() as f64 * 1e3, adm.len(), n, tm, tm / n as f64 * 1e3);
    }
}
