//! The background with a planner that does as it is told.

use super::{Background, Event, Happening, Planned, Planning, Settings};
use crate::fixture::World;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use ent_plan::diagnostic::Sources;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A planner that says when it begins, and waits for leave to end or to be stopped.
struct Led {
    begun: Sender<String>,
    leave: Receiver<()>,
}

impl Planning for Led {
    fn plan(&self, main: &str, sources: &Sources, stop: &AtomicBool) -> Planned {
        let text = sources.find(main).and_then(|id| sources.get(id)).map_or("", |f| f.text.as_str());
        self.begun.send(text.to_owned()).unwrap();
        while !stop.load(Ordering::Relaxed) {
            match self.leave.recv_timeout(Duration::from_millis(1)) {
                Ok(()) => {
                    return Planned { plan: Some(ent_plan::plan::sample::plan()), ..Planned::default() };
                }
                Err(crossbeam_channel::RecvTimeoutError::Timeout) => {}
                Err(crossbeam_channel::RecvTimeoutError::Disconnected) => panic!("nobody leads"),
            }
        }
        Planned::default()
    }
}

fn led() -> (Background, Receiver<String>, Sender<()>) {
    let (begun, begins) = unbounded();
    let (lead, leave) = bounded(0);
    let mut background = Background::start(Some(Arc::new(Led { begun, leave })));
    background.settings.rest = Duration::ZERO;
    (background, begins, lead)
}

const PROGRAM: &str = "import \"catalog:nvidia/a100-80gb-pcie\"\nmodel m {}\n\
                       service s { model = m, rate = 1 req/s, latency = p99 <= 1 s }\n\
                       hardware { node \"a\" { gpu = a100_80gb_pcie } }\n";

fn next(background: &Background) -> Event {
    background.results().recv().unwrap()
}

#[test]
fn a_program_is_planned_on_a_copy_and_the_result_is_kept() {
    let (mut background, begins, lead) = led();
    let world = World::of(PROGRAM);
    let analysis = world.analysis();
    assert!(!analysis.has_errors(), "{:?}", analysis.diagnostics);
    background.changed(&world.workspace, world.file, analysis);
    assert_eq!(begins.recv().unwrap(), PROGRAM);
    assert!(matches!(next(&background).happening, Happening::Started));
    lead.send(()).unwrap();
    let event = next(&background);
    assert!(background.take(event, analysis));
    let planned = background.planned(world.file).unwrap();
    assert!(planned.is_of(&world.snapshot()));
    assert_eq!(planned.state(), "planned");
    assert_eq!(planned.summary()["boards"], 1);
    assert!(background.plan_now(&world.workspace, world.file, analysis), "it is planned already");
}

#[test]
fn a_change_stops_the_planner_and_the_older_plan_stays() {
    let (mut background, begins, lead) = led();
    let mut world = World::of(PROGRAM);
    background.changed(&world.workspace, world.file, world.analysis());
    begins.recv().unwrap();
    lead.send(()).unwrap();
    let _started = next(&background);
    let finished = next(&background);
    background.take(finished, world.analysis());
    // Typing goes on: what is being planned is stopped, what is planned stays and is old.
    world = World::of(&PROGRAM.replace("1 req/s", "2 req/s"));
    world.workspace.change(world.file, 2, Vec::new());
    background.changed(&world.workspace, world.file, world.analysis());
    assert!(begins.recv().unwrap().contains("2 req/s"));
    background.changed(&world.workspace, world.file, world.analysis());
    assert!(begins.recv().unwrap().contains("2 req/s"), "the stopped one gives way to the next");
    lead.send(()).unwrap();
    let mut n_finished = 0;
    while n_finished == 0 {
        n_finished += usize::from(matches!(next(&background).happening, Happening::Finished(_)));
    }
    assert!(background.results().is_empty(), "what was stopped does not come back");
}

#[test]
fn an_answer_about_an_older_text_is_not_taken() {
    let (mut background, _begins, _lead) = led();
    let world = World::of(PROGRAM);
    let event = Event {
        main: world.file,
        revision: world.analysis().revision() + 1,
        happening: Happening::Finished(Box::default()),
    };
    assert!(!background.take(event, world.analysis()));
    assert!(background.planned(world.file).is_none());
}

#[test]
fn programs_with_errors_are_not_planned_nor_any_when_that_is_off() {
    let (mut background, begins, lead) = led();
    let broken = World::of("service s { rate = }");
    background.changed(&broken.workspace, broken.file, broken.analysis());
    background.settings.is_automatic = false;
    let world = World::of(PROGRAM);
    background.changed(&world.workspace, world.file, world.analysis());
    // What is asked for is planned all the same, and nothing was before it.
    assert!(!background.plan_now(&world.workspace, world.file, world.analysis()));
    assert_eq!(begins.recv().unwrap(), PROGRAM);
    lead.send(()).unwrap();
}

struct Failing;

impl Planning for Failing {
    fn plan(&self, _: &str, _: &Sources, _: &AtomicBool) -> Planned {
        panic!("as a test")
    }
}

#[test]
fn a_planner_that_fails_is_told_and_the_background_lives_on() {
    let mut background = Background::start(Some(Arc::new(Failing)));
    background.settings.rest = Duration::ZERO;
    let world = World::of(PROGRAM);
    for _ in 0..2 {
        background.plan_now(&world.workspace, world.file, world.analysis());
        assert!(matches!(next(&background).happening, Happening::Started));
        let event = next(&background);
        background.take(event, world.analysis());
        let planned = background.planned(world.file).unwrap();
        assert_eq!(planned.state(), "failed");
        assert!(planned.summary()["summary"].as_str().unwrap().contains("bug in entc"));
    }
}

#[test]
fn without_a_planner_nothing_happens() {
    let mut background = Background::start(None);
    let world = World::of(PROGRAM);
    background.changed(&world.workspace, world.file, world.analysis());
    assert!(!background.can_plan() && background.planned(world.file).is_none());
}

#[test]
fn settings_are_taken_from_either_place() {
    let mut settings = Settings::default();
    settings.take(&serde_json::json!({ "planning": false }));
    assert!(!settings.is_automatic);
    settings.take(&serde_json::json!({ "entc": { "planning": true, "planningDelay": 50 } }));
    assert_eq!(settings, Settings { is_automatic: true, rest: Duration::from_millis(50) });
    settings.take(&serde_json::json!(null));
    assert!(settings.is_automatic);
}
