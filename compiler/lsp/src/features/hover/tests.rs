//! What is said of each kind of place.

use super::hover;
use crate::fixture::{QUICKSTART, World};
use crate::planning::Planned;
use lsp_types::HoverContents;

const HEAD: &str = "import \"catalog:nvidia/a100-80gb-pcie\"\nimport \"catalog:performance/a100-80gb-pcie\"\n\
                    param load = 50%\nlet peak = 300 req/s\nmodel bert { performance = a100_80gb_pcie.vgg11 }\n\
                    hardware { node \"box-0\" { gpu = a100_80gb_pcie x 2 } }\n";

fn said_with(world: &World, planned: Option<&Planned>) -> Option<String> {
    let hover = hover(&world.snapshot(), planned, world.file, world.offset)?;
    let HoverContents::Markup(markup) = hover.contents else { panic!("{hover:?}") };
    Some(markup.value)
}

#[track_caller]
fn says(marked: &str, parts: &[&str]) {
    let said = said_with(&World::of(&format!("{HEAD}{marked}")), None).unwrap_or_default();
    for part in parts {
        assert!(said.contains(part), "{marked}: `{part}` is not in\n{said}");
    }
}

#[test]
fn values_and_expressions_are_worked_out() {
    says("service s { rate = lo$0ad * peak }", &["param load = 50%", "`0.5`, a plain number", "--set load"]);
    says("service s { rate = load $0* peak }", &["`load * peak` = `150 req/s`, a rate"]);
    says("service s { ra$0te = load * peak }", &["offered rate, above zero", "Required", "`150 req/s`"]);
    says("service s { latency = p99 <= 4$07.6 ms }", &["`47.6 ms`, a time"]);
    says("let x = 0.0476 $0s", &["`0.0476 s` = `47.6 ms`"]);
    says("let pe$0ak2 = peak * 2", &["`600 req/s`, a rate"]);
}

#[test]
fn the_reference_is_quoted_with_its_defaults() {
    says("service s { arriv$0als = poisson }", &["Unless given: `poisson`"]);
    says("servi$0ce s { }", &["A promise", "```ent"]);
    says("service s { p$0in { } }", &["operating point"]);
    says("objective { horiz$0on = 24 h }", &["one hour unless given", "`1 day`"]);
    says("objective { mini$0mize energy }", &["minimize"]);
    says("objective { minimize ener$0gy }", &["offered load"]);
    says("hardware { node n { unused = o$0ff } }", &["an unused board draws nothing"]);
    says("let x = mi$0n(1, 2)", &["min(a, b)", "least"]);
}

#[test]
fn boards_profiles_and_models_are_described() {
    says(
        "hardware { node n { gpu = a100$0_80gb_pcie } }",
        &["NVIDIA A100 80GB PCIe", "Base power 43.8 W at 210 MHz", "7g.80gb"],
    );
    says("import \"catalog:nvi$0dia/a30-24gb\"", &["A30", "a30_24gb"]);
    says("import \"catalog:perf$0ormance/a100-80gb-pcie\"", &["resnet50"]);
    says("service s { pin { profile = 3g$0.40gb } }", &["3 of 7 compute slices", "at most 2 on a board"]);
    says("service s { pin { profile = 9g$0.40gb } }", &["no MIG profile of a100-80gb-pcie"]);
    says("model m { performance = a100_80gb_pcie.resn$0et50 }", &["EnerTune", "error band", "batch 32"]);
    says("service s { model = be$0rt }", &["**vgg11** on a100-80gb-pcie"]);
    says("service s { pin { node = \"bo$0x-0\" } }", &["2 × a100_80gb_pcie"]);
}

#[test]
fn a_service_tells_its_promises_defaults_and_what_the_plan_gives_it() {
    let marked = QUICKSTART.replace("service classify", "service clas$0sify");
    let world = World::of(&marked);
    let alone = said_with(&world, None).unwrap();
    assert!(alone.contains("- rate: `300 req/s`") && alone.contains("arrivals `poisson`"), "{alone}");
    let mut plan = ent_plan::plan::sample::plan();
    let planned =
        Planned { plan: Some(plan.clone()), revision: world.analysis().revision(), ..Planned::default() };
    let with_plan = said_with(&world, Some(&planned)).unwrap();
    assert!(with_plan.contains("1 × 3g.40gb · 1050 MHz · batch 2"), "{with_plan}");
    assert!(with_plan.contains("of the promise is used") && !with_plan.contains("before the last change"));
    plan.services.clear();
    let older = Planned { revision: 0, ..planned };
    assert!(said_with(&world, Some(&older)).unwrap().contains("before the last change"));
}

#[test]
fn broken_text_still_says_what_it_can() {
    says("service s {\n  rate = = 3\n  model = be$0rt\n", &["**vgg11**"]);
    says("service s {\n  rate = lo$0ad *\n", &["`0.5`"]);
    assert_eq!(said_with(&World::of("service s { } // co$0mment"), None), None);
}
