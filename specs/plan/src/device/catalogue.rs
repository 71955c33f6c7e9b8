//! Embedded TOML → the built-in boards.
//!
//! `specs/devices/*.toml` is the one place the facts are written. A board's file says what was captured,
//! what is inferred and what nobody has looked at; nothing is added here but the words of the types.

use super::{BasePower, Board, Confidence, GpuInstanceProfile, PowerLimits};
use crate::units::{Bytes, Megahertz, Watts};
use serde::Deserialize;

macro_rules! boards {
    ($($id:literal),* $(,)?) => {
        /// The built-in boards' files, embedded: id and TOML text.
        pub const BOARDS: &[(&str, &str)] =
            &[$(($id, include_str!(concat!("../../../devices/", $id, ".toml")))),*];
    };
}

boards! {
    "a100-40gb",
    "a100-80gb-pcie",
    "a100-80gb-sxm",
    "a30-24gb",
    "b200-180gb",
    "b300",
    "gb200-186gb",
    "gb300",
    "gh200-144gb",
    "gh200-96gb",
    "h100-80gb-pcie",
    "h100-80gb-sxm",
    "h100-nvl-94gb",
    "h200-141gb",
    "rtx-pro-6000-blackwell",
}

/// The built-in board with this id.
#[must_use]
pub fn board(id: &str) -> Option<Board> {
    let (_, text) = BOARDS.iter().find(|(known, _)| *known == id)?;
    parse(text).ok()
}

/// The ids of the built-in boards, in alphabetical order.
pub fn board_ids() -> impl Iterator<Item = &'static str> {
    BOARDS.iter().map(|(id, _)| *id)
}

/// Bytes in a mebibyte, the driver's unit of memory.
const MEBIBYTE: f64 = 1_048_576.0;

/// A board as its file holds it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BoardFile {
    id: String,
    title: String,
    pci_device_ids: Vec<String>,
    memory_slices: u32,
    sms: Option<u32>,
    memory_mib: Option<u32>,
    sm_clocks_mhz: Option<Ladder>,
    memory_clock_mhz: Option<u32>,
    power_limits_w: Option<Limits>,
    #[serde(default)]
    unverified: Vec<String>,
    sources: Vec<String>,
    base_power: Option<Base>,
    #[serde(rename = "profile")]
    profiles: Vec<Profile>,
}

/// A ladder of clocks with one step throughout.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ladder {
    min: u32,
    max: u32,
    step: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    min: Option<f64>,
    default: f64,
    max: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Base {
    source: String,
    confidence: Confidence,
    watts_by_mhz: Vec<(u32, f64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    name: String,
    gi_profile_id: Option<u32>,
    compute_slices: u32,
    memory_slices: u32,
    starts: Vec<u32>,
    max_instances: u32,
    sms: Option<u32>,
    memory_mib: Option<u32>,
    confidence: Confidence,
    #[serde(default)]
    unverified: Vec<String>,
}

/// Reads one board's file.
fn parse(text: &str) -> Result<Board, toml::de::Error> {
    let file: BoardFile = toml::from_str(text)?;
    let memory = |mib: Option<u32>| mib.map(|m| Bytes(f64::from(m) * MEBIBYTE));
    let clocks = file.sm_clocks_mhz.map_or_else(Vec::new, |ladder| {
        let step = usize::try_from(ladder.step).unwrap_or(usize::MAX).max(1);
        (ladder.min..=ladder.max).step_by(step).map(Megahertz).collect()
    });
    let profiles = file
        .profiles
        .into_iter()
        .map(|p| GpuInstanceProfile {
            // A base profile is named by its size alone: `1g.10gb`; variants add `+me`, `+gfx`, `-me`.
            is_base: !p.name.contains(['+', '-']),
            name: p.name,
            gi_profile_id: p.gi_profile_id,
            n_compute_slices: p.compute_slices,
            n_memory_slices: p.memory_slices,
            starts: p.starts,
            max_instances: p.max_instances,
            n_sms: p.sms,
            memory: memory(p.memory_mib),
            confidence: p.confidence,
            unverified: p.unverified,
        })
        .collect();
    Ok(Board {
        id: file.id,
        title: file.title,
        pci_device_ids: file.pci_device_ids,
        n_memory_slices: file.memory_slices,
        profiles,
        n_sms: file.sms,
        memory: memory(file.memory_mib),
        clocks,
        memory_clock: file.memory_clock_mhz.map(Megahertz),
        power_limits: file.power_limits_w.map(|l| PowerLimits {
            min: l.min.map(Watts),
            default: Watts(l.default),
            max: Watts(l.max),
        }),
        base_power: file.base_power.map(|b| BasePower {
            points: b.watts_by_mhz.into_iter().map(|(mhz, watts)| (Megahertz(mhz), Watts(watts))).collect(),
            source: b.source,
            confidence: b.confidence,
        }),
        sources: file.sources,
        unverified: file.unverified,
        is_illustration: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_board_parses_under_its_own_id_and_is_consistent() {
        assert_eq!(BOARDS.len(), 15);
        assert!(BOARDS.is_sorted());
        for (id, text) in BOARDS {
            let board = parse(text).unwrap();
            assert_eq!(board.id, *id);
            assert_eq!(board.faults(), Vec::<String>::new(), "{id}");
            assert!(!board.sources.is_empty() && !board.pci_device_ids.is_empty(), "{id}");
        }
    }

    #[test]
    fn only_the_measured_board_has_base_power_and_only_at_its_fifteen_clocks() {
        let known: Vec<Board> = board_ids().filter_map(board).filter(|b| b.base_power.is_some()).collect();
        assert_eq!(known.iter().map(|b| b.id.as_str()).collect::<Vec<_>>(), ["a100-80gb-pcie"]);
        let base = known[0].base_power.as_ref().unwrap();
        assert_eq!(base.points.len(), 15);
        assert!((base.at(Megahertz(210)).unwrap().get() - 43.790_476_035).abs() < 1e-8);
        assert!((base.at(Megahertz(1410)).unwrap().get() - 73.433_536_789).abs() < 1e-8);
        assert_eq!(base.at(Megahertz(225)), None);
    }

    #[test]
    fn a_fact_nobody_captured_is_absent() {
        let b300 = board("b300").unwrap();
        assert_eq!((b300.n_sms, b300.memory, b300.memory_clock), (None, None, None));
        assert!(b300.clocks.is_empty() && b300.profiles.iter().all(|p| p.n_sms.is_none()));
        assert!(b300.profiles.iter().all(|p| p.confidence == Confidence::Unverified));
        assert!(board("a100-80gb").is_none());
    }

    #[test]
    fn streaming_multiprocessors_are_not_computed_from_slices() {
        let sms = |board_id: &str| -> Vec<Option<u32>> {
            let board = board(board_id).unwrap();
            board.profiles.iter().filter(|p| p.is_base).map(|p| p.n_sms).collect()
        };
        // nvidia-smi mig -lgip: H100 80GB HBM3 and H100 PCIe.
        assert_eq!(sms("h100-80gb-sxm"), [16, 26, 32, 60, 64, 132].map(Some));
        assert_eq!(sms("h100-80gb-pcie"), [14, 14, 30, 46, 62, 114].map(Some));
    }
}
