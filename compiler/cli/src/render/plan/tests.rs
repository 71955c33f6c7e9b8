//! What plans look like: at many widths, with and without colour, and word for word at three.

use super::*;
use crate::render::symbols::{ASCII, UNICODE};
use ent_plan::plan::*;
use ent_plan::units::Megahertz;
use unicode_width::UnicodeWidthStr;

fn instance(profile: &str, start: u32, size: u32, service: &str) -> Instance {
    Instance {
        profile: Some(profile.to_owned()),
        start: Some(start),
        size: Some(size),
        mps_percent: None,
        service: service.to_owned(),
        model: service.to_owned(),
        processes: 1,
        batch: 16,
        max_wait_ms: 0.0,
        batch_times_ms: vec![10.0, 12.5],
        batch_energy_j: vec![0.5, 0.7],
        rate_rps: 695.985,
        capacity_rps: 900.0,
        admissible_rps: 850.0,
        utilisation: 0.7733,
        predicted_latency_ms: 43.1234,
        promised_latency_ms: 47.6,
        dynamic_power_w: Some(61.234),
        mean_dynamic_power_w: Some(47.36),
        memory_bytes: None,
        time_error: 0.02,
        power_error: 0.013,
        source: "fitted".to_owned(),
    }
}

fn gpu(index: u32, instances: Vec<Instance>) -> Gpu {
    Gpu {
        node: "box-0".to_owned(),
        index,
        uuid: None,
        board: "a100-80gb-pcie".to_owned(),
        sharing: Sharing::Mig,
        sm_clock_mhz: Megahertz(1050),
        base_power_w: Some(58.1),
        mean_power_w: Some(142.34),
        power_w: Some(178.02),
        instances,
    }
}

fn service(name: &str, replicas: u32) -> Service {
    Service {
        name: name.to_owned(),
        rate_rps: 1391.97,
        served_rps: 1391.97,
        percentile: 0.99,
        arrivals: "poisson".to_owned(),
        predicted_latency_ms: Some(43.1234),
        promised_latency_ms: 47.6,
        replicas,
    }
}

fn sample() -> Plan {
    let mut late = instance("2g.20gb", 4, 2, "diffusion_1024_1024");
    late.promised_latency_ms = 25_000.0;
    late.predicted_latency_ms = 26_500.0;
    late.processes = 2;
    late.source = "table".to_owned();
    late.power_error = 0.0;
    let first = gpu(0, vec![instance("4g.40gb", 0, 4, "resnet50"), late]);
    let small = || (0..7).map(|i| instance("1g.10gb", i, 1, "bert")).collect();
    let mut third = gpu(2, small());
    third.instances[0].utilisation = 0.61;
    let mut mps = gpu(3, vec![instance("", 0, 0, "vgg16"), instance("", 0, 0, "gpt")]);
    mps.sharing = Sharing::Mps;
    for (share, instance) in [30, 50].into_iter().zip(&mut mps.instances) {
        (instance.profile, instance.start, instance.size) = (None, None, None);
        instance.mps_percent = Some(share);
    }
    Plan {
        format_version: FORMAT_VERSION.to_owned(),
        entc_version: "0.1.0".to_owned(),
        program: "vision.ent".to_owned(),
        params: [("load".to_owned(), "50%".to_owned())].into(),
        status: Status::Feasible,
        stopped_by: Some("time limit".to_owned()),
        objective: Objective {
            metric: Metric::Energy,
            value: Some(1_315_733.0),
            bound: Some(1_313_100.0),
            gap: Some(0.002),
        },
        planner: "optimal".to_owned(),
        latency_rule: LatencyRule::Queueing,
        metrics: Metrics {
            power_w: Some(477.0),
            mean_power_w: Some(365.48),
            energy_j_per_hour: Some(1_315_733.0),
            carbon_g_per_hour: Some(179.1),
            gpus: 4,
            cost_per_hour: Some(8.4),
        },
        limits: vec![Limit { metric: Metric::Power, at_most: 1100.0 }],
        accounting: Accounting { horizon_s: 3600.0, ..Accounting::default() },
        boards: ent_plan::device::board("a100-80gb-pcie").into_iter().collect(),
        gpus: vec![first, gpu(1, small()), third, mps],
        unused: vec![Unused {
            node: "box-0".to_owned(),
            board: "a100-80gb-pcie".to_owned(),
            count: 4,
            is_off: false,
            power_w: Some(42.5),
        }],
        services: vec![
            service("resnet50", 1),
            service("bert", 14),
            Service {
                served_rps: 3.5,
                rate_rps: 4.0,
                predicted_latency_ms: Some(26_500.0),
                promised_latency_ms: 25_000.0,
                ..service("diffusion_1024_1024", 1)
            },
        ],
        models: Vec::new(),
        assumptions: vec!["arrivals are poisson where the spec does not say".to_owned()],
        diagnostics: vec![Note {
            severity: "warning".to_owned(),
            code: "unverified-board-fact".to_owned(),
            message: "a fact of the catalogue that nobody captured is used".to_owned(),
            location: Some("vision.ent:7:9".to_owned()),
            help: Some("run `nvidia-smi mig -lgip` on the board and compare".to_owned()),
        }],
        machine: None,
        checksum: None,
    }
}

fn canvas(width: usize, color: bool, detail: Detail) -> Canvas {
    Canvas { width, color, symbols: &UNICODE, detail }
}

fn strip(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in 40..=300 {
        for detail in [Detail::Summary, Detail::Boards, Detail::Explain] {
            let text = super::plan(&sample(), Some(1.25), &canvas(width, false, detail));
            for line in text.lines() {
                assert!(line.width() <= width, "{} columns of {width}: {line}", line.width());
            }
        }
    }
}

#[test]
fn colour_carries_no_meaning_of_its_own() {
    for width in [40, 80, 160] {
        let plain = super::plan(&sample(), None, &canvas(width, false, Detail::Boards));
        let colored = super::plan(&sample(), None, &canvas(width, true, Detail::Boards));
        assert!(!plain.contains('\u{1b}') && colored.contains('\u{1b}'));
        assert_eq!(strip(&colored), plain);
        for word in ["OVER", "SHORT", "free", "stopped by the time limit", "gap 0.2 %", "predicted"] {
            let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(word), "{word} is missing at {width}:\n{plain}");
        }
    }
}

#[test]
fn ascii_is_ascii_and_as_wide() {
    for width in [40, 80, 120] {
        let canvas = Canvas { width, color: false, symbols: &ASCII, detail: Detail::Explain };
        let text = super::plan(&sample(), Some(1.0), &canvas);
        assert!(text.is_ascii(), "{text}");
        assert!(text.lines().all(|line| line.len() <= width), "{text}");
    }
}

#[test]
fn slices_are_drawn_to_scale() {
    let text = super::plan(&sample(), None, &canvas(81, false, Detail::Boards));
    let edge = text.lines().find(|line| line.starts_with('┌')).unwrap();
    let cells: Vec<usize> = edge.trim_matches(['┌', '┐']).split('┬').map(|cell| cell.width() + 1).collect();
    // Eighty columns for eight memory slices: four, two, and two free.
    assert_eq!(cells, [40, 20, 20]);
}

#[test]
fn boards_that_are_alike_are_drawn_once_with_the_range_of_their_numbers() {
    let text = super::plan(&sample(), None, &canvas(100, false, Detail::Boards));
    assert!(text.contains("box-0 gpus 1–2 (× 2)"), "{text}");
    assert!(text.contains("61–77 %"), "{text}");
    assert_eq!(text.matches("a100-80gb-pcie · MIG").count(), 2, "{text}");
}

#[test]
fn a_plan_without_boards_or_power_can_be_drawn() {
    let mut plan = sample();
    plan.gpus.clear();
    plan.services.clear();
    plan.objective = Objective { value: None, bound: None, gap: None, ..plan.objective };
    plan.status = Status::Infeasible;
    let text = super::plan(&plan, None, &canvas(80, false, Detail::Boards));
    assert!(text.contains("infeasible"), "{text}");
    let mut plan = sample();
    for gpu in &mut plan.gpus {
        (gpu.power_w, gpu.mean_power_w, gpu.base_power_w) = (None, None, None);
        for instance in &mut gpu.instances {
            (instance.dynamic_power_w, instance.mean_dynamic_power_w) = (None, None);
            instance.batch_energy_j.clear();
        }
    }
    (plan.metrics.power_w, plan.metrics.mean_power_w) = (None, None);
    let text = super::plan(&plan, None, &canvas(80, false, Detail::Explain));
    assert!(text.contains("unknown"), "{text}");
}

#[test]
fn names_of_any_script_and_length_stay_inside() {
    let mut plan = sample();
    for gpu in &mut plan.gpus {
        gpu.node = "机架".repeat(40);
        for instance in &mut gpu.instances {
            instance.service = "模型".repeat(60);
        }
    }
    plan.services[0].name = "x".repeat(500);
    for width in [40, 77, 300] {
        let text = super::plan(&plan, None, &canvas(width, false, Detail::Boards));
        assert!(text.lines().all(|line| line.width() <= width), "{text}");
    }
}

/// The words themselves. `ENT_BLESS=1` rewrites them; a change that nobody blessed fails.
#[test]
fn the_picture_is_the_one_that_was_agreed_on() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/render/plan/snapshots");
    for width in [60, 80, 120] {
        for (color, kind) in [(false, "plain"), (true, "color")] {
            let text = super::plan(&sample(), Some(1.25), &canvas(width, color, Detail::Boards));
            let path = folder.join(format!("{width}-{kind}.txt"));
            if std::env::var_os("ENT_BLESS").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            let agreed = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(text, agreed, "{} differs; ENT_BLESS=1 rewrites it", path.display());
        }
    }
}
