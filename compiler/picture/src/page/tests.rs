//! Pages of hand-made plans, read back with a real parser.

use super::*;
use crate::curve::tests::sample as curve;
use crate::front::tests::sample as front;
use crate::{Alternative, Alternatives, Answer, plan_svg};
use ent_plan::plan::{Metrics, Note, sample};
use roxmltree::{Document, Node};

/// The page as XML, which is stricter than HTML: only elements that HTML never closes are closed.
fn xml(page: &str) -> String {
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

/// The elements with a tag, in the part of the page with an id, or anywhere.
fn all<'a, 'i>(page: &'a Document<'i>, id: &str, tag: &str) -> Vec<Node<'a, 'i>> {
    let is_in =
        |node: &Node<'_, '_>| id.is_empty() || node.ancestors().any(|a| a.attribute("id") == Some(id));
    page.descendants().filter(|node| node.tag_name().name() == tag).filter(is_in).collect()
}

fn text(node: &Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|n| n.text()).collect()
}

/// Texts of the cells in a column of the tables in a part of the page.
fn column(page: &Document<'_>, id: &str, index: usize) -> Vec<String> {
    let body = all(page, id, "tbody");
    let rows = body.iter().flat_map(|b| b.children().filter(Node::is_element));
    rows.filter_map(|row| row.children().filter(Node::is_element).nth(index).map(|cell| text(&cell)))
        .collect()
}

fn full() -> Findings {
    let choice = |choice: &str, answer| Alternative { choice: choice.to_owned(), answer };
    Findings {
        curves: Some(vec![curve()]),
        alternatives: Some(vec![Alternatives {
            service: "classify".to_owned(),
            choices: vec![
                choice("on 1g.10gb", Answer::Impossible),
                choice("at 510 MHz", Answer::Proven(4e5)),
            ],
        }]),
        fronts: Some(vec![front()]),
    }
}

#[test]
fn a_page_is_one_file_without_scripts_or_network() {
    let page = plan_page(&sample::plan(), &full()).unwrap();
    let source = xml(&page);
    let tree = Document::parse(&source).unwrap();
    for element in tree.descendants().filter(Node::is_element) {
        let name = element.tag_name().name();
        assert!(!["script", "iframe", "img", "object", "embed", "form"].contains(&name), "{name}");
        for attribute in element.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(!value.contains("://") && !name.starts_with("on"), "{name}={value}");
            if name == "href" {
                assert!(value.starts_with('#') || value == "data:,", "{value}");
            }
        }
    }
    assert!(!page.contains("url(") && !page.contains("@import"));
}

#[test]
fn headings_landmarks_and_names_are_there_for_those_who_listen() {
    let source = xml(&plan_page(&sample::plan(), &full()).unwrap());
    let page = Document::parse(&source).unwrap();
    for (tag, n) in [("h1", 1), ("main", 1), ("header", 1), ("nav", 1), ("footer", 1)] {
        assert_eq!(all(&page, "", tag).len(), n, "{tag}");
    }
    let ids: Vec<&str> = page.descendants().filter_map(|n| n.attribute("id")).collect();
    let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    let pictures = all(&page, "", "svg");
    assert!(pictures.len() >= 5, "{}", pictures.len());
    for svg in pictures {
        assert_eq!(svg.attribute("role"), Some("img"));
        for id in svg.attribute("aria-labelledby").unwrap().split(' ') {
            assert!(ids.contains(&id), "{id}");
        }
    }
    for link in all(&page, "", "a") {
        let target = link.attribute("href").unwrap().trim_start_matches('#');
        assert!(ids.contains(&target), "{target}");
    }
    let tables = all(&page, "", "table");
    assert!(tables.len() >= 4);
    for table in tables {
        assert!(table.first_element_child().is_some_and(|c| c.tag_name().name() == "caption"));
    }
    assert!(all(&page, "", "th").iter().all(|th| th.attribute("scope").is_some()));
}

#[test]
fn areas_of_slices_are_their_memory_slices_and_squares_their_compute_slices() {
    let plan = sample::plan();
    let source = xml(&plan_page(&plan, &Findings::default()).unwrap());
    let page = Document::parse(&source).unwrap();
    let number = |n: &Node<'_, '_>, name: &str| n.attribute(name).unwrap().parse::<f64>().unwrap();
    let mut areas = Vec::new();
    let groups = all(&page, "boards", "g");
    let slices = groups.iter().filter(|g| g.has_attribute("data-service"));
    for (group, instance) in slices.zip(&plan.gpus[0].instances) {
        let of = |class: &str| {
            group.children().filter(|n| n.attribute("class") == Some(class)).collect::<Vec<_>>()
        };
        let rect = of("slice")[0];
        // The seam of three units belongs to the slice.
        areas.push((number(&rect, "width") * (number(&rect, "height") + 3.0), instance.size.unwrap()));
        let n_compute = plan.boards[0].profile(instance.profile.as_ref().unwrap()).unwrap().n_compute_slices;
        assert_eq!(of("compute").len(), n_compute as usize);
        let share = number(&of("busy")[0], "width") / 315.0;
        assert!((share - instance.utilisation).abs() < 1e-3, "{share}");
    }
    assert_eq!(areas.len(), 2);
    assert!((areas[0].0 / areas[1].0 - f64::from(areas[0].1) / f64::from(areas[1].1)).abs() < 1e-9);
    let free: Vec<&str> = groups.iter().filter_map(|g| g.attribute("data-free")).collect();
    assert_eq!(free, ["2"]);
}

#[test]
fn watts_in_the_table_are_those_of_the_plan() {
    let plan = sample::plan();
    let source = xml(&plan_page(&plan, &Findings::default()).unwrap());
    let page = Document::parse(&source).unwrap();
    let watts = |text: &String| text.split(' ').next().unwrap().parse::<f64>().unwrap();
    let cells: Vec<f64> = column(&page, "watts", 1).iter().map(watts).collect();
    let (together, causes) = cells.split_last().unwrap();
    assert_eq!(causes.len(), 3);
    // Each is rounded to a tenth.
    assert!((causes.iter().sum::<f64>() - together).abs() < 0.051 * cells.len() as f64);
    assert!((together - plan.metrics.mean_power_w.unwrap()).abs() <= 0.05);
    for known in column(&page, "watts", 4) {
        assert!(["measured", "predicted", "attributed"].iter().any(|word| known.contains(word)), "{known}");
    }
}

#[test]
fn names_are_text_whatever_they_hold() {
    let hostile = "</title><script>alert(1)</script>\"'&<b onclick='x()'>\u{0}\u{202e}]]>";
    let mut plan = sample::plan();
    plan.program = hostile.to_owned();
    plan.gpus[0].node = hostile.to_owned();
    plan.unused[0].node = hostile.to_owned();
    plan.services[0].name = hostile.to_owned();
    plan.gpus[0].instances[0].service = hostile.to_owned();
    plan.gpus[0].uuid = Some(hostile.to_owned());
    plan.assumptions.push(hostile.to_owned());
    plan.params.insert(hostile.to_owned(), hostile.to_owned());
    plan.planner = hostile.to_owned();
    plan.diagnostics.push(Note {
        severity: hostile.to_owned(),
        code: hostile.to_owned(),
        message: hostile.to_owned(),
        location: Some(hostile.to_owned()),
        help: Some(hostile.to_owned()),
    });
    let mut findings = full();
    for curve in findings.curves.iter_mut().flatten() {
        curve.service = hostile.to_owned();
        curve.point = hostile.to_owned();
    }
    for one in findings.alternatives.iter_mut().flatten() {
        one.service = hostile.to_owned();
        one.choices[0].choice = hostile.to_owned();
    }
    for front in findings.fronts.iter_mut().flatten() {
        front.notes.push(hostile.to_owned());
    }
    let html = plan_page(&plan, &findings).unwrap();
    let source = xml(&html);
    let page = Document::parse(&source).unwrap();
    assert!(all(&page, "", "script").is_empty() && all(&page, "", "b").is_empty());
    assert!(!page.descendants().any(|n| n.has_attribute("onclick")));
    let heading = text(&all(&page, "", "h1")[0]);
    assert!(heading.contains("<script>alert(1)</script>\"'&<b"), "{heading}");
    assert!(!html.contains(['\u{0}', '\u{202e}']));
    for svg in [plan_svg(&plan), crate::front_svg(&front()).unwrap()] {
        let tree = roxmltree::Document::parse(&svg).unwrap();
        assert!(!tree.descendants().any(|n| n.has_tag_name("script")));
    }
}

#[test]
fn a_program_without_a_plan_has_a_page_that_says_why() {
    let mut plan = sample::plan();
    plan.status = Status::Infeasible;
    plan.gpus.clear();
    plan.unused.clear();
    plan.objective.value = None;
    plan.objective.gap = None;
    plan.metrics = Metrics::default();
    for service in &mut plan.services {
        service.predicted_latency_ms = None;
    }
    plan.diagnostics.push(Note {
        severity: "error".to_owned(),
        code: "conflicting-requirements".to_owned(),
        message: "these requirements cannot hold together".to_owned(),
        location: Some("a.ent:3:1".to_owned()),
        help: Some("add a board".to_owned()),
    });
    let text = plan_page(&plan, &Findings::default()).unwrap();
    let source = xml(&text);
    let page = Document::parse(&source).unwrap();
    for words in ["no plan keeps all promises", "not served", "add a board", "What stands in the way"] {
        assert!(text.contains(words), "{words}");
    }
    let ids: Vec<&str> = all(&page, "", "section").iter().filter_map(|n| n.attribute("id")).collect();
    assert_eq!(ids, ["promises", "warnings", "assumptions", "identity"]);
    assert!(!text.contains("NaN") && !text.contains("inf "));
    roxmltree::Document::parse(&plan_svg(&plan)).unwrap();
}

#[test]
fn a_thousand_boards_are_a_small_page() {
    let mut plan = sample::plan();
    let gpu = plan.gpus[0].clone();
    plan.gpus = (0..1000)
        .map(|index| {
            let mut gpu = gpu.clone();
            gpu.index = index;
            gpu.instances[0].utilisation = 0.2 + f64::from(index % 7) / 10.0;
            gpu
        })
        .collect();
    plan.metrics = Metrics::of(&plan.gpus, &plan.unused, &plan.accounting);
    let text = plan_page(&plan, &full()).unwrap();
    assert!(text.len() < 200_000, "{} bytes", text.len());
    assert!(text.contains("× 1000") && text.contains("gpus 0–999"));
    // All of them different, even: still a page that opens.
    for (gpu, batch) in plan.gpus.iter_mut().zip(1..) {
        gpu.instances[0].batch = batch;
    }
    let text = plan_page(&plan, &full()).unwrap();
    assert!(text.len() < 3_000_000, "{} bytes", text.len());
    assert!(text.contains("904 more kinds of boards"), "what is left out is said");
    let source = xml(&text);
    let page = Document::parse(&source).unwrap();
    assert_eq!(column(&page, "slices", 0).len(), 2000);
    assert_eq!(all(&page, "boards", "figure").len(), 97);
}

#[test]
fn the_same_plan_is_the_same_page() {
    let plan = sample::plan();
    assert_eq!(plan_page(&plan, &full()).unwrap(), plan_page(&plan, &full()).unwrap());
    assert_eq!(plan_svg(&plan), plan_svg(&plan));
}

#[test]
fn every_way_to_share_a_board_has_its_picture() {
    let mut plan = sample::plan();
    for (sharing, percents) in
        [(ent_plan::plan::Sharing::Mps, Some([30, 5])), (ent_plan::plan::Sharing::Whole, None)]
    {
        plan.gpus[0].sharing = sharing;
        for (n, instance) in plan.gpus[0].instances.iter_mut().enumerate() {
            instance.profile = None;
            instance.start = None;
            instance.size = None;
            instance.mps_percent = percents.map(|p| p[n]);
        }
        if percents.is_none() {
            plan.gpus[0].instances.truncate(1);
        }
        let source = xml(&plan_page(&plan, &Findings::default()).unwrap());
        let page = Document::parse(&source).unwrap();
        let rects: Vec<f64> = all(&page, "boards", "rect")
            .iter()
            .filter(|n| n.attribute("class") == Some("slice"))
            .map(|n| n.attribute("height").unwrap().parse::<f64>().unwrap() + 3.0)
            .collect();
        match percents {
            Some(_) => {
                assert!((rects[0] / rects[1] - 6.0).abs() < 0.01, "{rects:?}");
                let is_free = |n: &&Node<'_, '_>| n.has_attribute("data-free");
                assert_eq!(all(&page, "boards", "g").iter().filter(is_free).count(), 1);
            }
            None => assert_eq!(rects, [352.0]),
        }
    }
}

#[test]
fn a_front_has_a_page_of_its_own() {
    let text = front_page("<a>.ent", &front(), "0.1.0").unwrap();
    let source = xml(&text);
    assert_eq!(column(&Document::parse(&source).unwrap(), "front", 0).len(), 3);
    assert!(text.contains("with 0 boards no plan keeps all promises") && text.contains("&lt;a&gt;.ent"));
}
