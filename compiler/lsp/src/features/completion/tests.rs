//! What is offered where, in texts that are whole and in texts that are not.

use super::completion;
use crate::fixture::World;
use lsp_types::{CompletionItem, CompletionTextEdit};

const HEAD: &str = "import \"catalog:nvidia/a100-80gb-pcie\"\nimport \"catalog:performance/a100-80gb-pcie\"\n\
                    param load = 50%\nlet peak = 300 req/s\nlet slo = p99 <= 50 ms\nmodel bert { performance = a100_80gb_pcie.vgg11 }\n\
                    hardware { node \"box-0\" { gpu = a100_80gb_pcie x 2 } }\n";

fn items(world: &World) -> Vec<CompletionItem> {
    let mut items = completion(&world.snapshot(), world.file, world.offset, true).items;
    items.sort_by(|a, b| a.sort_text.cmp(&b.sort_text));
    items
}

/// What is offered at `$0` behind the head, the likeliest first.
fn offered(marked: &str) -> Vec<String> {
    items(&World::of(&format!("{HEAD}{marked}"))).into_iter().map(|i| i.label).collect()
}

#[track_caller]
fn begins(marked: &str, expected: &[&str]) {
    let offered = offered(marked);
    assert_eq!(
        offered.iter().take(expected.len()).map(String::as_str).collect::<Vec<_>>(),
        expected,
        "{marked}"
    );
}

#[track_caller]
fn has(marked: &str, expected: &[&str], absent: &[&str]) {
    let offered = offered(marked);
    for word in expected {
        assert!(offered.iter().any(|o| o == word), "{marked}: {word} is not in {offered:?}");
    }
    for word in absent {
        assert!(!offered.iter().any(|o| o == word), "{marked}: {word} is in {offered:?}");
    }
}

/// The text after taking the item with this label.
fn taken(marked: &str, label: &str) -> String {
    let world = World::of(&format!("{HEAD}{marked}"));
    let item = items(&world).into_iter().find(|i| i.label == label).unwrap();
    let Some(CompletionTextEdit::Edit(edit)) = item.text_edit else { panic!("{item:?}") };
    let edits: Vec<_> = item.additional_text_edits.into_iter().flatten().chain([edit]).collect();
    world.edited(world.file, &edits)
}

#[test]
fn a_file_begins_with_blocks_and_declarations() {
    begins("$0", &["service", "model", "hardware"]);
    has("obj$0", &["objective", "carbon", "board", "let", "param", "import"], &["rate"]);
    has("carbon { intensity = 1 gCO2/kWh }\n$0", &["objective"], &["carbon"]);
}

#[test]
fn a_block_offers_what_is_not_there_yet_the_required_first() {
    begins("service s { $0 }", &["model", "rate", "latency", "arrivals"]);
    begins("service s {\n  rate = 5 req/s\n  $0\n}", &["model", "latency", "arrivals"]);
    has("service s { rate = = , $0", &["model", "pin"], &["rate"]);
    has("service s { pin { batch = 1, $0 } }", &["profile", "clock"], &["batch", "rate"]);
    has("service s { pin { batch = 1 }, $0 }", &["rate"], &["pin"]);
    begins("hardware { $0 }", &["node"]);
    begins("hardware { node \"a\" {\n$0", &["gpu"]);
    has("objective {\n  minimize energy\n  $0\n}", &["limit", "horizon"], &["minimize"]);
    has("service s {\n  $0\n\nmodel later { memory = 1 GiB }\n", &["rate", "model"], &["memory"]);
}

#[test]
fn units_of_what_is_expected_come_first() {
    begins("service s { rate = 5 $0 }", &["req/s", "req/min", "req/h", "/s"]);
    begins("service s { rate = load * 5 r$0", &["req/s"]);
    begins("service s { latency = p99 <= 50 $0 }", &["ms", "s"]);
    begins("model m { memory = 4 $0 }", &["GiB"]);
    begins("carbon { intensity = 490 $0 }", &["gCO2/kWh"]);
    begins("carbon { embodied = 150 kgCO2 per gpu over 4 $0 }", &["ms"]);
    begins("hardware { node n { price = 2.1 $0 } }", &["USD per hour"]);
    begins("objective { limit power <= 1.1 $0 }", &["W", "kW"]);
    begins("board b { base_power = [210 $0", &["MHz"]);
    begins("board b { base_power = [210 MHz: 5 $0", &["W"]);
    begins("carbon { intensity = csv(\"x.csv\", step = 1 $0", &["ms", "s"]);
    begins("service s { rate = min(5 $0", &["req/s"]);
    has("let x = 5 $0", &["ms", "req/s", "W", "%"], &[]);
    // What a value is used for says what it is.
    begins("let x = 5 $0\nobjective { horizon = x }", &["ms", "s"]);
    begins("service s { rate = 1 req/s + (x) }\nlet x = 5 $0", &["req/s"]);
}

#[test]
fn a_unit_replaces_what_was_typed_of_it() {
    assert!(taken("service s { rate = 5 req/$0 }", "req/s").ends_with("rate = 5 req/s }"));
    assert!(taken("service s { rate = 5$0 }", "req/s").ends_with("rate = 5 req/s }"));
    assert!(taken("let x = 5$0", "%").ends_with("let x = 5%"));
}

#[test]
fn names_are_offered_where_they_fit() {
    begins("service s { model = $0 }", &["bert"]);
    begins("service s { rate = $0 }", &["peak", "load"]);
    begins("service s { latency = $0 }", &["p99"]);
    has("service s { latency = $0 }", &["slo", "p95", "p99.9"], &[]);
    has("let y = $0", &["load", "peak", "min", "round"], &["y", "bert"]);
    begins("hardware { node n { gpu = $0 } }", &["a100_80gb_pcie"]);
    begins("hardware { node n { gpu = a100_80gb_pcie $0 } }", &["x"]);
    has("service s { pin { node = $0 } }", &["box-0"], &["bert"]);
    begins("service s { pin { node = \"$0\" } }", &["box-0"]);
    has("model m { performance = $0 }", &["a100_80gb_pcie.resnet50", "a100_80gb_pcie"], &["peak"]);
    has("model m { performance = a100_80gb_pcie.re$0 }", &["resnet50", "whisper"], &["bert_large"]);
}

#[test]
fn words_of_the_language_are_offered_with_their_meaning() {
    begins("hardware { node n { unused = $0 } }", &["idle", "off"]);
    begins("hardware { node n { sharing = $0 } }", &["mig", "mps", "whole"]);
    begins("service s { arrivals = $0 }", &["poisson", "uniform", "gamma", "trace"]);
    begins("objective { minimize $0 }", &["energy", "power", "carbon", "gpus", "cost"]);
    has("objective { limit power <= 1 W\n limit $0 }", &["gpus"], &["power"]);
    has("service s { isolate = $0 }", &["true", "false"], &[]);
    begins("model m { input = $0 }", &["float32"]);
    let world = World::of(&format!("{HEAD}service s {{ $0 }}"));
    let items = items(&world);
    let arrivals = items.iter().find(|i| i.label == "arrivals").unwrap();
    assert!(format!("{:?}", arrivals.documentation).contains("Unless given: `poisson`"), "{arrivals:?}");
}

#[test]
fn profiles_and_clocks_are_those_of_the_boards() {
    begins("service s { pin { profile = $0 } }", &["1g.10gb"]);
    has("service s { pin { profile = 3$0 } }", &["3g.40gb", "7g.80gb"], &["1g.5gb", "1g.6gb"]);
    assert!(taken("service s { pin { profile = 3g.$0 } }", "3g.40gb").ends_with("profile = 3g.40gb } }"));
    let other = "import \"catalog:nvidia/a30-24gb\"\nhardware { node \"small\" { gpu = a30_24gb } }\n";
    has(
        &format!("{other}service s {{ pin {{ node = \"small\", profile = $0 }} }}"),
        &["1g.6gb"],
        &["1g.10gb"],
    );
    has(&format!("{other}service s {{ pin {{ profile = $0 }} }}"), &["1g.6gb", "1g.10gb"], &[]);
    begins("service s { pin { clock = $0 } }", &["1410 MHz", "1320 MHz"]);
    has("board b {\n  base = a100_80gb_pcie\n  profile $0", &["1g.10gb"], &["1g.6gb"]);
}

#[test]
fn imports_offer_the_catalogue_and_add_their_line() {
    has("import \"$0", &["catalog:nvidia/h100-80gb-sxm", "catalog:performance/a100-80gb-pcie"], &[]);
    has("import \"catalog:nv$0\"", &["catalog:nvidia/a30-24gb"], &[]);
    assert!(
        taken("import \"ca$0", "catalog:nvidia/a30-24gb").ends_with("import \"catalog:nvidia/a30-24gb\"")
    );
    let text = taken("hardware { node n { gpu = h100$0 } }", "h100_80gb_sxm");
    assert!(text.contains("a100-80gb-pcie\"\nimport \"catalog:nvidia/h100-80gb-sxm\"\nparam"), "{text}");
    assert!(text.ends_with("gpu = h100_80gb_sxm } }"), "{text}");
}

#[test]
fn files_beside_the_program_are_offered() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["models.ent", "rows.csv", "notes.txt", "main.ent"] {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    std::fs::create_dir(folder.path().join("perf")).unwrap();
    std::fs::write(folder.path().join("perf/a.json"), "{}").unwrap();
    let main = folder.path().join("main.ent");
    let main = main.to_str().unwrap().trim_start_matches('/');
    let labels = |text: &str| -> Vec<String> {
        let world = World::new(&[(main, text)]);
        items(&world).into_iter().map(|i| i.label).filter(|l| !l.starts_with("catalog:")).collect()
    };
    assert_eq!(labels("import \"$0\""), ["models.ent", "rows.csv", "perf/"]);
    assert_eq!(labels("import \"perf/$0"), ["perf/a.json"]);
    assert_eq!(labels("carbon { intensity = csv(\"$0\") }"), ["rows.csv", "perf/"]);
}

#[test]
fn nothing_is_offered_where_a_new_name_or_a_comment_is_written() {
    for marked in ["let $0", "// service $0", "service s { rate $0", "import \"x.ent\" as $0"] {
        assert_eq!(offered(marked), Vec::<String>::new(), "{marked}");
    }
}

#[test]
fn a_space_asks_in_values_only() {
    for (marked, is_asked) in [
        ("service s {\n  $0", false),
        ("service s { rate = 5 $0", true),
        ("minimize $0", true),
        ("// a $0", false),
        ("import \"a $0\"", false),
    ] {
        let offset = marked.find("$0").unwrap();
        assert_eq!(super::is_asked_by_space(&marked.replace("$0", ""), offset), is_asked, "{marked}");
    }
}

#[test]
fn every_place_of_a_program_can_be_asked_about() {
    let whole = format!("{HEAD}{}", crate::fixture::QUICKSTART);
    for text in
        [whole.clone(), whole.replace('}', ""), whole.replace('\n', "\r\n"), whole.replace('=', "= =")]
    {
        for (offset, _) in text.char_indices().step_by(7) {
            let mut world = World::of(&text);
            world.offset = offset;
            let _ = items(&world);
        }
    }
}

#[test]
fn plain_text_has_no_marks_of_snippets() {
    for (snippet, text) in [
        ("rate = ${1:100} req/s", "rate = 100 req/s"),
        ("x = ${1|a,b|} $0", "x = a "),
        ("float32[${1:3, 224, 224}]", "float32[3, 224, 224]"),
        ("p${1:99} <= $2", "p99 <= "),
    ] {
        assert_eq!(super::plain(snippet), text);
    }
    let world = World::of("$0");
    for item in completion(&world.snapshot(), world.file, 0, false).items {
        let Some(CompletionTextEdit::Edit(edit)) = item.text_edit else { panic!("{}", item.label) };
        assert!(!edit.new_text.contains('$'), "{edit:?}");
    }
}
