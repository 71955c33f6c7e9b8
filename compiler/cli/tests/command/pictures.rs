//! Pages and pictures of plans: what `entc plan` and `entc show` draw, read back with a real parser.

use crate::run::{SPEC, names, run, told};
use roxmltree::{Document, Node};
use std::path::Path;

fn folder(spec: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ent"), spec).unwrap();
    folder
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// A page as XML, which is stricter than HTML: only elements that HTML never closes are closed.
pub(crate) fn xml(page: &str) -> String {
    let mut text = page.trim_start_matches("<!DOCTYPE html>").to_owned();
    for void in ["<meta ", "<link "] {
        let close = |(n, part): (usize, &str)| match n {
            0 => part.to_owned(),
            _ => void.to_owned() + &part.replacen('>', "/>", 1),
        };
        text = text.split(void).enumerate().map(close).collect();
    }
    text.replace("<wbr>", "<wbr/>")
}

/// Texts of the elements with a tag, in the part of the page with an id, or anywhere.
fn all(page: &Document<'_>, id: &str, tag: &str) -> Vec<String> {
    let is_in =
        |node: &Node<'_, '_>| id.is_empty() || node.ancestors().any(|a| a.attribute("id") == Some(id));
    let text =
        |node: Node<'_, '_>| node.descendants().filter(Node::is_text).filter_map(|n| n.text()).collect();
    page.descendants().filter(|node| node.tag_name().name() == tag).filter(is_in).map(text).collect()
}

const QUICK: [&str; 3] = ["--latency-rule", "execution", "--quiet"];

#[test]
fn a_plan_is_drawn_with_what_its_models_know_and_a_saved_one_without() {
    let folder = folder(SPEC);
    let plan = ["plan", "a.ent", "--html", "p.html", "--svg", "p.svg", "-o", "plan.json"];
    let (code, _, err) = told(&run(folder.path(), &[&plan[..], &QUICK].concat()));
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(names(folder.path()), ["a.ent", "p.html", "p.svg", "plan.json"]);
    let text = read(folder.path(), "p.html");
    let source = xml(&text);
    let page = Document::parse(&source).unwrap();
    let plan: serde_json::Value = serde_json::from_str(&read(folder.path(), "plan.json")).unwrap();
    // The page is of the very plan that was written.
    assert!(text.contains(plan["checksum"].as_str().unwrap()));
    let instances: Vec<&serde_json::Value> = plan["gpus"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|gpu| gpu["instances"].as_array().unwrap())
        .collect();
    assert_eq!(all(&page, "slices", "tr").len(), 1 + instances.len());
    // The marked point of the curve is the plan's own clock and watts.
    let clock = plan["gpus"][0]["sm_clock_mhz"].as_u64().unwrap();
    let watts = instances[0]["dynamic_power_w"].as_f64().unwrap();
    let told_watts = all(&page, "clocks", "desc").join("");
    assert!(told_watts.contains(&format!("Chosen: {watts:.1} W at {clock} MHz")), "{told_watts}");
    assert!(text.contains("--fronts") && text.contains("--alternatives"), "what was not looked for is said");

    let svg = read(folder.path(), "p.svg");
    let tree = roxmltree::Document::parse(&svg).unwrap();
    let slices: Vec<(f64, f64)> = tree
        .descendants()
        .filter(|n| n.attribute("class") == Some("slice"))
        .map(|n| {
            let units = n.parent().unwrap().attribute("data-units").unwrap().parse::<f64>().unwrap();
            (n.attribute("height").unwrap().parse::<f64>().unwrap() + 3.0, units)
        })
        .collect();
    assert_eq!(slices.len(), instances.len());
    for (height, units) in &slices {
        assert!((height / units - 44.0).abs() < 0.02, "{slices:?}");
    }

    let show = ["show", "plan.json", "--html", "s.html", "--svg", "s.svg", "--quiet"];
    assert_eq!(told(&run(folder.path(), &show)).0, 0);
    assert_eq!(read(folder.path(), "s.svg"), svg, "the same plan is the same picture");
    let source = xml(&read(folder.path(), "s.html"));
    let page = Document::parse(&source).unwrap();
    assert_eq!(all(&page, "clocks", "svg").len(), 0);
    assert!(all(&page, "clocks", "p").join("").contains("no performance models"));
}

#[test]
fn the_same_program_gives_the_same_page() {
    let folder = folder(SPEC);
    let page = |name: &str| {
        let (code, _, err) =
            told(&run(folder.path(), &[&["plan", "a.ent", "--html", name], &QUICK[..]].concat()));
        assert_eq!((code, err.as_str()), (0, ""));
        read(folder.path(), name)
    };
    assert_eq!(page("a.html"), page("b.html"));
}

#[test]
fn fronts_and_alternatives_are_on_the_page_when_they_are_asked_for() {
    let folder = folder(SPEC);
    let asked = ["plan", "a.ent", "--html", "p.html", "--fronts", "--alternatives", "--time-limit", "20s"];
    let (code, _, err) = told(&run(folder.path(), &[&asked[..], &QUICK].concat()));
    assert_eq!((code, err.as_str()), (0, ""));
    let source = xml(&read(folder.path(), "p.html"));
    let page = Document::parse(&source).unwrap();
    assert_eq!(all(&page, "fronts", "svg").len(), 2);
    let marked = all(&page, "fronts", "th").join("|");
    assert!(marked.contains("the spec as it is") && marked.contains("this plan"), "{marked}");
    let rows = all(&page, "alternatives", "tr");
    assert!(rows.iter().any(|row| row.contains("proven")), "{rows:?}");
    for wrong in [&["--fronts"][..], &["--html", "x.html", "--fronts", "--planner", "greedy"]] {
        let (code, out, err) = told(&run(folder.path(), &[&["plan", "a.ent"], wrong].concat()));
        assert_eq!((code, out.as_str()), (1, ""), "{wrong:?}");
        assert!(err.contains("--html") || err.contains("optimal"), "{err}");
    }
}

#[test]
fn a_program_without_a_plan_has_a_page_that_says_why() {
    let folder = folder(&SPEC.replace("400 req/s", "90000 req/s"));
    let plan = ["plan", "a.ent", "--html", "p.html", "--svg", "p.svg", "-o", "plan.json"];
    let (code, out, err) = told(&run(folder.path(), &[&plan[..], &QUICK].concat()));
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert_eq!(names(folder.path()), ["a.ent", "p.html", "p.svg"]);
    let source = xml(&read(folder.path(), "p.html"));
    let page = Document::parse(&source).unwrap();
    assert!(all(&page, "", "header")[0].contains("no plan keeps all promises"));
    assert!(all(&page, "warnings", "li").join("").contains("conflicting-requirements"));
    roxmltree::Document::parse(&read(folder.path(), "p.svg")).unwrap();
}

#[test]
fn names_of_the_spec_are_text() {
    let folder = folder(&SPEC.replace("node \"box\"", "node \"<script>alert('&')</script>\""));
    let plan = ["plan", "a.ent", "--html", "p.html", "--svg", "p.svg"];
    assert_eq!(told(&run(folder.path(), &[&plan[..], &QUICK].concat())).0, 0);
    let text = read(folder.path(), "p.html");
    let source = xml(&text);
    let page = Document::parse(&source).unwrap();
    assert!(all(&page, "", "script").is_empty());
    let headings = all(&page, "", "h3");
    assert!(headings.iter().any(|h| h.contains("<script>alert('&')</script>")), "{headings:?}");
    let svg = read(folder.path(), "p.svg");
    let tree = roxmltree::Document::parse(&svg).unwrap();
    assert!(!tree.descendants().any(|n| n.has_tag_name("script")));
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_is_planned() {
    let folder = folder(SPEC);
    std::fs::write(folder.path().join("plan.json"), "{}").unwrap();
    for arguments in [
        &["plan", "a.ent", "--html", "no/such/p.html"][..],
        &["plan", "a.ent", "--svg", "."],
        &["show", "plan.json", "--svg", "no/such/p.svg"],
        &["explore", "a.ent", "--over", "power,gpus", "--html", "no/p.html"],
    ] {
        let (code, out, err) = told(&run(folder.path(), arguments));
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}");
        assert!(err.contains("cannot-write"), "{err}");
    }
}
