//! A small board and program for this crate's tests.

use ent_lang::Program;
use ent_lang::program::{Arrivals, Model, Node, Service, Slo, UnusedBoards};
use ent_plan::device::{BasePower, Board, Confidence, GpuInstanceProfile, PowerLimits};
use ent_plan::diagnostic::{Located, Span};
use ent_plan::plan::Sharing;
use ent_plan::units::{Megahertz, PerSecond, Seconds, Watts};

fn profile(name: &str, compute: u32, memory: u32, is_base: bool) -> GpuInstanceProfile {
    GpuInstanceProfile {
        name: name.to_owned(),
        gi_profile_id: None,
        n_compute_slices: compute,
        n_memory_slices: memory,
        starts: vec![0],
        max_instances: 1,
        n_sms: Some(14 * compute.min(7)),
        memory: None,
        is_base,
        confidence: Confidence::Captured,
        unverified: Vec::new(),
    }
}

/// An eight-slice board with the A100's menu.
pub(crate) fn board() -> Board {
    Board {
        id: "test-board".to_owned(),
        title: "Test board".to_owned(),
        pci_device_ids: Vec::new(),
        n_memory_slices: 8,
        profiles: vec![
            profile("1g.10gb", 1, 1, true),
            profile("1g.10gb+me", 1, 1, false),
            profile("1g.20gb", 1, 2, true),
            profile("2g.20gb", 2, 2, true),
            profile("3g.40gb", 3, 4, true),
            profile("4g.40gb", 4, 4, true),
            profile("7g.80gb", 7, 8, true),
        ],
        n_sms: Some(108),
        memory: None,
        clocks: (0..81).map(|i| Megahertz(210 + 15 * i)).collect(),
        memory_clock: None,
        power_limits: Some(PowerLimits { min: None, default: Watts(300.0), max: Watts(300.0) }),
        base_power: Some(BasePower {
            points: vec![
                (Megahertz(210), Watts(44.0)),
                (Megahertz(600), Watts(46.0)),
                (Megahertz(1050), Watts(50.0)),
                (Megahertz(1410), Watts(74.0)),
            ],
            source: "test".to_owned(),
            confidence: Confidence::Captured,
        }),
        sources: Vec::new(),
        unverified: Vec::new(),
        is_illustration: false,
    }
}

/// A program whose services use one model each, of these names, on one node of [`board`].
pub(crate) fn program(models: &[&str]) -> Program {
    let at = |value| Located::new(value, Span::default());
    Program {
        models: models
            .iter()
            .map(|name| Model {
                name: Located::new((*name).to_owned(), Span::default()),
                performance: Vec::new(),
                artifact: None,
                memory: None,
            })
            .collect(),
        services: models
            .iter()
            .enumerate()
            .map(|(index, name)| Service {
                name: Located::new(format!("serve_{name}"), Span::default()),
                model: at(index),
                rate: Located::new(PerSecond(10.0), Span::default()),
                slo: Located::new(Slo { percentile: 0.99, bound: Seconds(0.1) }, Span::default()),
                arrivals: Located::new(Arrivals::Poisson, Span::default()),
                replicas: None,
                pin: None,
                isolate: None,
                spread: None,
            })
            .collect(),
        nodes: vec![Node {
            name: Located::new("rack".to_owned(), Span::default()),
            board: at(0),
            count: Located::new(2, Span::default()),
            unused: UnusedBoards::Idle,
            sharing: Sharing::Mig,
            price: None,
            pue: 1.0,
            clocks: None,
        }],
        boards: vec![board()],
        ..Program::default()
    }
}
