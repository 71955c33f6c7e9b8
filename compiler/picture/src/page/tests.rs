//! Pages of hand-made plans, read back with a real parser.

use super::*;
use crate::curve::tests::sample as curve;
use crate::front::tests::sample as front;
use crate::{Alternative, Alternatives, Answer, plan_svg};
use ent_plan::plan::{Metrics, Note, sample};
use scraper::{Html, Selector};

fn all(page: &Html, selector: &str) -> Vec<String> {
    let texts = |e: scraper::ElementRef<'_>| e.text().collect::<Vec<_>>().join("");
    page.select(&Selector::parse(selector).unwrap()).map(texts).collect()
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
    let text = plan_page(&sample::plan(), &full()).unwrap();
    let page = Html::parse_document(&text);
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    for forbidden in ["script", "iframe", "img", "object", "embed", "link[rel=stylesheet]", "form"] {
        assert!(all(&page, forbidden).is_empty(), "{forbidden}");
    }
    for element in page.select(&Selector::parse("*").unwrap()) {
        for (name, value) in element.value().attrs() {
            let is_name_of_namespace = name == "xmlns";
            assert!(is_name_of_namespace || !value.contains("://"), "{name}={value}");
            assert!(!name.starts_with("on"), "{name}");
            if name == "href" {
                assert!(value.starts_with('#') || value == "data:,", "{value}");
            }
        }
    }
    assert!(!text.contains("url(") && !text.contains("@import"));
}

#[test]
fn headings_landmarks_and_names_are_there_for_those_who_listen() {
    let page = Html::parse_document(&plan_page(&sample::plan(), &full()).unwrap());
    assert_eq!(all(&page, "h1").len(), 1);
    assert_eq!((all(&page, "main").len(), all(&page, "header").len(), all(&page, "nav").len()), (1, 1, 1));
    let ids: Vec<&str> =
        page.select(&Selector::parse("[id]").unwrap()).filter_map(|e| e.value().attr("id")).collect();
    let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    let pictures = page.select(&Selector::parse("svg").unwrap()).count();
    assert!(pictures >= 5, "{pictures}");
    for svg in page.select(&Selector::parse("svg").unwrap()) {
        assert_eq!(svg.value().attr("role"), Some("img"));
        for id in svg.value().attr("aria-labelledby").unwrap().split(' ') {
            assert!(ids.contains(&id), "{id}");
        }
    }
    for link in page.select(&Selector::parse("a").unwrap()) {
        let target = link.value().attr("href").unwrap().trim_start_matches('#');
        assert!(ids.contains(&target), "{target}");
    }
    assert_eq!(all(&page, "table").len(), all(&page, "table > caption").len());
    assert!(all(&page, "th:not([scope])").is_empty());
}

#[test]
fn areas_of_slices_are_their_memory_slices_and_squares_their_compute_slices() {
    let plan = sample::plan();
    let page = Html::parse_document(&plan_page(&plan, &Findings::default()).unwrap());
    let number =
        |e: &scraper::ElementRef<'_>, name: &str| e.value().attr(name).unwrap().parse::<f64>().unwrap();
    let groups = Selector::parse("#boards figure:first-child g[data-service]").unwrap();
    let slice = Selector::parse("rect.slice").unwrap();
    let compute = Selector::parse("rect.compute").unwrap();
    let mut areas = Vec::new();
    for (group, instance) in page.select(&groups).zip(&plan.gpus[0].instances) {
        let rect = group.select(&slice).next().unwrap();
        // The seam of three units belongs to the slice.
        areas.push((number(&rect, "width") * (number(&rect, "height") + 3.0), instance.size.unwrap()));
        let n_compute = plan.boards[0].profile(instance.profile.as_ref().unwrap()).unwrap().n_compute_slices;
        assert_eq!(group.select(&compute).count(), n_compute as usize);
    }
    assert_eq!(areas.len(), 2);
    assert!((areas[0].0 / areas[1].0 - f64::from(areas[0].1) / f64::from(areas[1].1)).abs() < 1e-9);
    let free = page.select(&Selector::parse("#boards g[data-free]").unwrap()).next().unwrap();
    assert_eq!(free.value().attr("data-free"), Some("2"));
}

#[test]
fn watts_in_the_table_are_those_of_the_plan() {
    let plan = sample::plan();
    let page = Html::parse_document(&plan_page(&plan, &Findings::default()).unwrap());
    let watts = |text: &str| text.split(' ').next().unwrap().parse::<f64>().unwrap();
    let cells: Vec<f64> = all(&page, "#watts tbody td:nth-child(2)").iter().map(|t| watts(t)).collect();
    let (together, causes) = cells.split_last().unwrap();
    // Each is rounded to a tenth.
    assert!((causes.iter().sum::<f64>() - together).abs() < 0.051 * cells.len() as f64);
    assert!((together - plan.metrics.mean_power_w.unwrap()).abs() <= 0.05);
    for known in all(&page, "#watts tbody td:nth-child(5)") {
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
    let text = plan_page(&plan, &findings).unwrap();
    let page = Html::parse_document(&text);
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    assert!(all(&page, "script, b").is_empty() && all(&page, "[onclick]").is_empty());
    assert_eq!(all(&page, "head title").len(), 1);
    assert!(all(&page, "h1")[0].contains("<script>alert(1)</script>\"'&<b"), "{:?}", all(&page, "h1"));
    assert!(!text.contains(['\u{0}', '\u{202e}']));
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
    let page = Html::parse_document(&text);
    for words in ["no plan keeps all promises", "not served", "add a board", "What stands in the way"] {
        assert!(text.contains(words), "{words}");
    }
    assert!(all(&page, "#boards, #watts, #slices").is_empty());
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
    let page = Html::parse_document(&text);
    assert_eq!(all(&page, "#slices tbody tr").len(), 2000);
    assert_eq!(all(&page, "#boards figure").len(), 97);
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
        let page = Html::parse_document(&plan_page(&plan, &Findings::default()).unwrap());
        let rects: Vec<f64> = page
            .select(&Selector::parse("#boards g[data-service] rect.slice").unwrap())
            .map(|e| e.value().attr("height").unwrap().parse::<f64>().unwrap() + 3.0)
            .collect();
        match percents {
            Some(_) => {
                assert!((rects[0] / rects[1] - 6.0).abs() < 0.01, "{rects:?}");
                assert_eq!(all(&page, "#boards g[data-free]").len(), 1);
            }
            None => assert_eq!(rects, [352.0]),
        }
    }
}

#[test]
fn a_front_has_a_page_of_its_own() {
    let text = front_page("<a>.ent", &front(), "0.1.0").unwrap();
    let page = Html::parse_document(&text);
    assert_eq!(all(&page, "tbody tr").len(), 3);
    assert!(text.contains("with 0 boards no plan keeps all promises") && text.contains("&lt;a&gt;.ent"));
}
