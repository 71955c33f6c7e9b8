//! Random machines, random plans, and something going wrong at a random moment: at the end the machine is
//! the plan or what it was before.
//!
//! Two thousand runs with a fixed seed, always; `ENT_CAMPAIGN=N` makes it N runs, and `ENT_CAMPAIGN_RUN=I`
//! only the one with number I.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod draw;
mod judge;
mod single;
mod ways;
mod worker;
mod world;

use draw::Draw;
use ent_machine::journal::Ending;
use judge::{Start, is_explained};
use std::collections::BTreeMap;
use worker::{Action, Job, Said};
use world::{Lab, World};

/// Runs when nobody asks for another number.
const N_RUNS: u64 = 2_000;

/// Everything about a run follows from this and its number.
const SEED: u64 = 0x656e_7463;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().expect("a number"))
}

#[test]
fn whatever_goes_wrong_the_machine_is_the_plan_or_what_it_was() {
    let runs = match number("ENT_CAMPAIGN_RUN") {
        Some(run) => run..run + 1,
        None => 0..number("ENT_CAMPAIGN").unwrap_or(N_RUNS),
    };
    let n_runs = runs.end - runs.start;
    let lanes = std::thread::available_parallelism().map_or(1, usize::from).min(4) as u64;
    let counts = std::thread::scope(|scope| {
        let runs = &runs;
        let lane = move |lane: u64| {
            let lab = Lab::new();
            let mut counts = Counts::default();
            for run in runs.clone().filter(|run| run % lanes == lane) {
                let mine = std::panic::AssertUnwindSafe(|| one(&lab, run, &mut counts));
                if let Err(panic) = std::panic::catch_unwind(mine) {
                    eprintln!("run {run} failed; alone: ENT_CAMPAIGN_RUN={run}");
                    std::panic::resume_unwind(panic);
                }
            }
            counts
        };
        let lanes: Vec<_> = (0..lanes).map(|number| scope.spawn(move || lane(number))).collect();
        let mut all = Counts::default();
        lanes.into_iter().for_each(|lane| all.add(lane.join().expect("a run failed")));
        all
    });
    println!("{counts}");
    assert_eq!(counts.of("apply"), n_runs, "each run is one apply with a fault");
    if n_runs >= N_RUNS {
        // A campaign that nothing happens in proves nothing.
        for what in [
            "fault: error",
            "fault: kill",
            "fault: reboot",
            "fault: lost",
            "fault: death",
            "apply: done",
            "apply: rolled-back",
            "apply: open",
            "apply: killed",
            "apply: unchanged",
            "then: resume",
            "then: rollback",
            "then: second fault",
            "end: plan",
            "end: before",
            "with foreign instances",
            "with instances of an earlier apply",
            "undone after its end",
        ] {
            assert!(counts.of(what) >= n_runs / 200, "{what}: {}\n{counts}", counts.of(what));
        }
    }
}

/// How often what happened.
#[derive(Default)]
struct Counts(BTreeMap<String, u64>);

impl Counts {
    fn count(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    fn add(&mut self, other: Self) {
        for (what, count) in other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|(what, count)| writeln!(f, "{count:>6}  {what}"))
    }
}

/// One run: a machine, a plan that has steps on it, a fault, and what follows.
fn one(lab: &Lab, run: u64, counts: &mut Counts) {
    let mut draw = Draw::new(SEED, run);
    let (world, target, calls) = loop {
        let world = lab.world(&draw.description());
        if draw.chance(60) {
            // Something of ours is there already; foreign instances may come between ours.
            let earlier = draw.target(&world);
            let said = Job::new(&world, Action::Apply(earlier)).run();
            assert!(said.error.is_none() || !said.codes.is_empty(), "{said:?}");
        }
        let target = draw.target(&world);
        if let Some(calls) = draw.calls(lab, &world, &target) {
            break (world, target, calls);
        }
    };
    counts.count("apply");
    let start = Start::of(&world);
    if !start.foreign.is_empty() {
        counts.count("with foreign instances");
    }
    if !start.state.ours().is_empty() {
        counts.count("with instances of an earlier apply");
    }
    let mut job = Job::new(&world, Action::Apply(target.clone()));
    job.keep_going = draw.chance(25);
    let said = faulty(&mut draw, &world, job, calls, "fault", counts);
    counts.count(format!("apply: {}", said.as_ref().map_or("killed", |said| said.outcome.as_str())));
    let mut last = said;
    look(&start, &world, last.as_ref());
    // Until it is over: on, or back; sometimes something goes wrong again.
    for attempt in 0.. {
        assert!(attempt < 12, "it does not come to an end: {last:?}");
        if world.is_open() {
            let is_faulty = attempt < 2 && draw.chance(40);
            let is_lost = world.snapshot().gpus.iter().any(|gpu| gpu.is_lost);
            if !is_faulty && (is_lost || draw.chance(8)) {
                world.change(ent_nvml_sim::silicon::Silicon::reboot);
            }
            // What cannot go on can go back.
            let action = if attempt >= 3 || draw.chance(50) { Action::Rollback } else { Action::Resume };
            counts.count(if matches!(action, Action::Resume) { "then: resume" } else { "then: rollback" });
            let job = Job::new(&world, action);
            last = if is_faulty {
                counts.count("then: second fault");
                faulty(&mut draw, &world, job, calls, "second fault", counts)
            } else {
                world.set_faults(&serde_json::json!([]));
                let said = job.run();
                let is_refused = said.error.is_some() && matches!(job.action, Action::Resume);
                assert!(is_refused || said.error.is_none(), "without a fault: {said:?}");
                if is_refused {
                    counts.count("then: resume was not possible");
                }
                Some(said)
            };
            look(&start, &world, last.as_ref());
            continue;
        }
        break;
    }
    world.set_faults(&serde_json::json!([]));
    end(&mut draw, &start, &world, &target, last.as_ref(), counts);
}

/// Runs a command in which something goes wrong; `None` when it was killed.
fn faulty(
    draw: &mut Draw,
    world: &World,
    mut job: Job,
    calls: draw::Calls,
    name: &str,
    counts: &mut Counts,
) -> Option<Said> {
    let fault = draw.fault(calls, world.uuids.len());
    counts.count(format!("{name}: {}", fault.word()));
    world.set_faults(&fault.file());
    job.death = fault.death();
    if fault.is_apart() { job.run_apart(&[]) } else { Some(job.run()) }
}

/// What must hold after every command, however it ended.
fn look(start: &Start, world: &World, said: Option<&Said>) {
    let now = world.snapshot();
    start.is_foreign_unharmed(&now);
    let journal = world.store().journal().unwrap();
    match journal.as_ref().filter(|journal| start.is_begun(journal)) {
        Some(journal) if now.boot == start.machine.boot => is_explained(&start.machine, journal, &now),
        Some(_) => {}
        None => assert!(now.boot != start.machine.boot || start.is_same(&now), "changed without a journal"),
    }
    if let Some(said) = said {
        let is_open = journal.is_some_and(|journal| journal.is_open());
        // A command that could not even begin says nothing of a journal that is open.
        assert!(is_open == (said.outcome == "open") || said.outcome == "unchanged", "{said:?}");
        assert!(said.error.is_some() || said.outcome != "open", "{said:?}");
    }
}

/// What must hold when it is over.
fn end(
    draw: &mut Draw,
    start: &Start,
    world: &World,
    target: &ent_machine::target::Target,
    last: Option<&Said>,
    counts: &mut Counts,
) {
    let now = world.snapshot();
    let is_rebooted = now.boot != start.machine.boot;
    let journal = world.store().journal().unwrap().filter(|journal| start.is_begun(journal));
    let Some(journal) = journal else {
        // Nothing was begun.
        counts.count("end: nothing begun");
        assert!(is_rebooted || start.is_same(&now), "{last:?}");
        return;
    };
    if judge::last_boot(&journal) != world.boot_id() {
        counts.count("end: rebooted after it");
        return;
    }
    start.is_clean(&now);
    match journal.ending().unwrap() {
        Ending::Done => {
            counts.count("end: plan");
            start.is_plan(target, &now);
        }
        Ending::RolledBack => {
            counts.count("end: before");
            start.is_before(&journal, &now);
        }
    }
    start.is_state_true(&world.state(), &now, &world.boot_id());
    if journal.ending() == Some(Ending::Done) && draw.chance(30) {
        // The last apply can be taken back after it has ended, too; also when its end was lost in a crash.
        if draw.chance(30) {
            world.tear_end();
        }
        let is_rebooted = is_rebooted || now.gpus.iter().any(|gpu| gpu.is_lost);
        if is_rebooted {
            world.change(ent_nvml_sim::silicon::Silicon::reboot);
        }
        let said = Job::new(world, Action::Rollback).run();
        assert_eq!((said.outcome.as_str(), &said.error), ("rolled-back", &None), "{said:?}");
        let now = world.snapshot();
        let journal = world.store().journal().unwrap().unwrap();
        start.is_clean(&now);
        start.is_before(&journal, &now);
        start.is_state_true(&world.state(), &now, &world.boot_id());
        if !is_rebooted {
            is_explained(&start.machine, &journal, &now);
            assert_eq!(world.state(), start.state);
        }
        counts.count("undone after its end");
    }
}
