//! Description → what each GPU is: its board's facts, its family's habits, its names. None of it changes.

use crate::description::{Description, Sensor};
use ent_plan::device::{Board, board};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A machine's unchanging half.
#[derive(Debug, PartialEq)]
pub(crate) struct Machine {
    pub(crate) driver_version: String,
    pub(crate) is_privileged: bool,
    pub(crate) is_persistent_at_boot: bool,
    pub(crate) seed: u64,
    pub(crate) sensor: Option<Sensor>,
    pub(crate) gpus: Vec<Gpu>,
    /// As it was described, for what holds at first boot only.
    pub(crate) description: Description,
}

/// A GPU's unchanging half.
#[derive(Debug, PartialEq)]
pub(crate) struct Gpu {
    pub(crate) board: Arc<Board>,
    pub(crate) family: Family,
    pub(crate) uuid: String,
    pub(crate) serial: String,
    pub(crate) is_in_vm: bool,
    pub(crate) idle_power_w: Option<f64>,
    /// Index into [`Description::gpu`].
    pub(crate) described: usize,
}

/// A generation of boards: they differ in how MIG mode changes and in what they call themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Ampere,
    Hopper,
    Blackwell,
}

impl Family {
    fn of(board: &str) -> Self {
        if board.starts_with("a100") || board.starts_with("a30") {
            Self::Ampere
        } else if board.starts_with("h100") || board.starts_with("h200") || board.starts_with("gh200") {
            Self::Hopper
        } else {
            Self::Blackwell
        }
    }

    /// Whether MIG mode needs a reset to change, and is kept in the board's own memory (NVIDIA MIG User
    /// Guide, Getting Started: Ampere; from Hopper on neither).
    pub(crate) fn mig_mode_needs_reset(self) -> bool {
        self == Self::Ampere
    }

    /// `NVML_DEVICE_ARCH_*` of nvml.h.
    pub(crate) fn architecture(self) -> u32 {
        match self {
            Self::Ampere => 7,
            Self::Hopper => 9,
            Self::Blackwell => 10,
        }
    }
}

impl Gpu {
    /// CUDA's compute capability (NVIDIA, CUDA GPU Compute Capability: A100 and A30 8.0, Hopper 9.0, B200
    /// and GB200 10.0, B300 and GB300 10.3, RTX PRO 6000 Blackwell 12.0).
    pub(crate) fn compute_capability(&self) -> (i32, i32) {
        match self.family {
            Family::Ampere => (8, 0),
            Family::Hopper => (9, 0),
            Family::Blackwell if self.board.id.starts_with("rtx") => (12, 0),
            Family::Blackwell if self.board.id.contains("300") => (10, 3),
            Family::Blackwell => (10, 0),
        }
    }

    /// The oldest driver that cuts this board (NVIDIA MIG User Guide 620, Deployment Considerations); `None`
    /// for boards that the guide does not list.
    pub(crate) fn oldest_mig_driver(&self) -> Option<&'static str> {
        let id = self.board.id.as_str();
        [
            ("a100", "450.80.02"),
            ("a30", "460.73"),
            ("h100", "525.85.12"),
            ("h200", "550.90.07"),
            ("b200", "570.133.20"),
            ("gb200", "570.133.20"),
            ("b300", "580.82.07"),
            ("rtx-pro-6000", "575.51.03"),
        ]
        .into_iter()
        .find_map(|(start, oldest)| id.starts_with(start).then_some(oldest))
    }
}

/// A driver's version as numbers, to compare: `575.57.08`.
pub(crate) fn version(text: &str) -> Vec<u32> {
    text.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

/// 128 bits that follow from a seed and a name, in the form of a UUID.
pub(crate) fn uuid(prefix: &str, seed: u64, name: &str) -> String {
    let hash = Sha256::digest(format!("{prefix}\0{seed}\0{name}"));
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..32]];
    format!("{prefix}-{}", parts.join("-"))
}

/// A number in [0, 1) that follows from a seed and a name.
pub(crate) fn fraction(seed: u64, name: &str) -> f64 {
    let hash = Sha256::digest(format!("fraction\0{seed}\0{name}"));
    let bits = hash.iter().take(6).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    // 48 bits are exact in a double.
    #[expect(clippy::cast_precision_loss, reason = "48 bits fit the 52 of a double")]
    let numerator = bits as f64;
    numerator / 281_474_976_710_656.0
}

impl Machine {
    /// Looks every board up in the catalogue. A board that is not there was refused with the description;
    /// it would be left out here.
    pub(crate) fn new(description: Description) -> Self {
        let mut boards: BTreeMap<&str, Arc<Board>> = BTreeMap::new();
        let mut gpus = Vec::new();
        for (index, described) in description.gpu.iter().enumerate() {
            let known = boards.get(described.board.as_str()).cloned();
            let Some(board) = known.or_else(|| board(&described.board).map(Arc::new)) else { continue };
            boards.insert(&described.board, Arc::clone(&board));
            for _ in 0..described.count {
                let name = gpus.len().to_string();
                let made_up = uuid("GPU", description.seed, &name);
                gpus.push(Gpu {
                    family: Family::of(&board.id),
                    board: Arc::clone(&board),
                    // 13 digits, as printed on boards of this class.
                    serial: format!("1{:012.0}", fraction(description.seed, &made_up) * 1e12),
                    uuid: described.uuid.clone().unwrap_or(made_up),
                    is_in_vm: described.vm,
                    idle_power_w: described.idle_power_w,
                    described: index,
                });
            }
        }
        Self {
            driver_version: description.driver_version.clone(),
            is_privileged: description.privileged,
            is_persistent_at_boot: description.persistenced,
            seed: description.seed,
            sensor: description.sensor,
            gpus,
            description,
        }
    }

    /// As it was described.
    pub(crate) fn description(&self) -> &Description {
        &self.description
    }

    /// Whether the driver is at least this new.
    pub(crate) fn has_driver(&self, oldest: &str) -> bool {
        version(&self.driver_version) >= version(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_follow_from_the_seed_and_differ() {
        let mut description = Description::of("575.57.08", &[("a100-40gb", 1000)]);
        let first = Machine::new(description.clone());
        assert_eq!(first, Machine::new(description.clone()));
        let uuids: BTreeSet<&String> = first.gpus.iter().map(|g| &g.uuid).collect();
        let serials: BTreeSet<&String> = first.gpus.iter().map(|g| &g.serial).collect();
        assert_eq!((uuids.len(), serials.len()), (1000, 1000));
        assert!(uuids.iter().all(|u| u.len() == "GPU-01234567-0123-0123-0123-0123456789ab".len()));
        assert!(serials.iter().all(|s| s.len() == 13));
        description.seed = 1;
        assert_ne!(first.gpus[0].uuid, Machine::new(description).gpus[0].uuid);
    }

    #[test]
    fn versions_compare_as_numbers() {
        let machine = |v| Machine::new(Description::of(v, &[("a30-24gb", 1)]));
        assert!(machine("575.57.08").has_driver("575.51.03"));
        assert!(machine("1000.1").has_driver("575.51.03"));
        assert!(!machine("450.80").has_driver("450.80.02"));
        assert!(machine("460.73.01").has_driver("460.73"));
    }

    #[test]
    fn every_board_of_the_catalogue_has_a_family() {
        for id in ent_plan::device::board_ids() {
            let gpu = &Machine::new(Description::of("590.1", &[(id, 1)])).gpus[0];
            let is_hopper = id.contains("h100") || id.contains("h200");
            assert_eq!(gpu.family == Family::Hopper, is_hopper, "{id}");
            assert_eq!(gpu.family == Family::Ampere, id.starts_with('a'), "{id}");
        }
    }
}
