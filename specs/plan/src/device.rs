//! Boards: what a GPU can be cut into, how it can be clocked, what it draws when nothing runs.
//!
//! The built-in boards live in `specs/devices/*.toml` and are embedded. A table is for planning
//! offline; on a real machine the driver's own answers override it. A fact nobody captured is `None`
//! and never guessed: a plan that needs it says how to supply it.

use crate::units::{Bytes, Megahertz, Watts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod catalogue;
mod layout;

pub(crate) use layout::{carries_media, tolerates};

pub use catalogue::{BOARDS, board, board_ids};
pub use layout::{
    Layout, MAX_MEMORY_SLICES, PlacedProfile, layouts, maximal_layouts, maximal_multisets, place,
};

/// How a fact of the catalogue is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Seen in output of a real board.
    Captured,
    /// The same silicon was captured on a sibling board.
    InferredSameDie,
    /// A rule of the board's family; nobody has looked.
    Unverified,
    /// Supplied by the user's own spec.
    User,
    /// Invented to illustrate; not a property of any real board.
    Illustration,
}

/// One entry of a board's MIG menu.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuInstanceProfile {
    /// NVIDIA's name: `1g.10gb`, `1g.10gb+me`.
    pub name: String,
    /// The id NVML returns and `CreateGpuInstance` takes; not the profile enum.
    pub gi_profile_id: Option<u32>,
    /// Compute slices (the `g`).
    pub n_compute_slices: u32,
    /// Memory slices an instance occupies.
    pub n_memory_slices: u32,
    /// Legal first memory slices.
    pub starts: Vec<u32>,
    /// At most this many on one board.
    pub max_instances: u32,
    /// Streaming multiprocessors; per board, never computed from slices.
    pub n_sms: Option<u32>,
    /// Usable memory as the driver reports it.
    pub memory: Option<Bytes>,
    /// Whether it carries the media engines (`+me`, `+me.all`, `+gfx`, `-me` variants are not base).
    pub is_base: bool,
    /// How the placements and ids are known.
    pub confidence: Confidence,
    /// Names of fields that are not `captured`, for warnings: `sm_count`, `memory`, `placements`, …
    pub unverified: Vec<String>,
}

/// What a board draws when nothing runs on it, by SM clock: static, fan and resident context.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BasePower {
    /// Clock and watts, ascending by clock. Used only at these clocks; never extrapolated.
    pub points: Vec<(Megahertz, Watts)>,
    /// Where the figures come from.
    pub source: String,
    /// How they are known.
    pub confidence: Confidence,
}

impl BasePower {
    /// The base power at a listed clock.
    #[must_use]
    pub fn at(&self, clock: Megahertz) -> Option<Watts> {
        self.points.iter().find(|(c, _)| *c == clock).map(|(_, w)| *w)
    }
}

/// The board's power management limits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PowerLimits {
    /// Lowest settable.
    pub min: Option<Watts>,
    /// As shipped.
    pub default: Watts,
    /// Highest settable.
    pub max: Watts,
}

/// A GPU model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Board {
    /// Catalogue id, `a100-80gb-pcie`; as a name in a spec, `a100_80gb_pcie`.
    pub id: String,
    /// NVIDIA's name.
    pub title: String,
    /// PCI device ids, `0x20B510DE`.
    pub pci_device_ids: Vec<String>,
    /// Length of the placement axis.
    pub n_memory_slices: u32,
    /// The MIG menu.
    pub profiles: Vec<GpuInstanceProfile>,
    /// Streaming multiprocessors of the whole board, MIG off.
    pub n_sms: Option<u32>,
    /// Memory of the whole board, MIG off.
    pub memory: Option<Bytes>,
    /// Supported SM clocks, ascending; empty when not known.
    pub clocks: Vec<Megahertz>,
    /// The memory clock.
    pub memory_clock: Option<Megahertz>,
    /// Power limits.
    pub power_limits: Option<PowerLimits>,
    /// Base power by clock.
    pub base_power: Option<BasePower>,
    /// Where the facts come from.
    pub sources: Vec<String>,
    /// Names of facts of the whole board that nobody captured in full, for warnings: `clocks`,
    /// `power_limits`.
    #[serde(default)]
    pub unverified: Vec<String>,
    /// Invented to illustrate: no such numbers were measured.
    pub is_illustration: bool,
}

impl Board {
    /// The profile with this name.
    #[must_use]
    pub fn profile(&self, name: &str) -> Option<&GpuInstanceProfile> {
        self.profiles.iter().find(|p| p.name == name)
    }

    /// Compute slices of the whole board: those of its largest profile.
    #[must_use]
    pub fn n_compute_slices(&self) -> u32 {
        self.profiles.iter().map(|p| p.n_compute_slices).max().unwrap_or(0)
    }

    /// The base profile (no `+me`, no double memory) with this many compute slices: the one with the
    /// fewest memory slices, `1` → `1g.10gb` on an A100 80GB.
    #[must_use]
    pub fn base_profile(&self, n_compute_slices: u32) -> Option<&GpuInstanceProfile> {
        self.profiles
            .iter()
            .filter(|p| p.is_base && p.n_compute_slices == n_compute_slices)
            .min_by_key(|p| p.n_memory_slices)
    }

    /// What makes this no possible board, in words; empty for every built-in one. A board that a user
    /// describes must pass before it is planned with: nothing downstream asks again.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.n_memory_slices == 0 || self.n_memory_slices > MAX_MEMORY_SLICES {
            faults.push(format!(
                "{} memory slices; 1 to {MAX_MEMORY_SLICES} are possible",
                self.n_memory_slices
            ));
        }
        for (index, profile) in self.profiles.iter().enumerate() {
            let name = &profile.name;
            if self.profiles.iter().take(index).any(|other| other.name == *name) {
                faults.push(format!("`{name}` is there twice"));
            }
            if profile.n_compute_slices == 0 || profile.n_memory_slices == 0 || profile.max_instances == 0 {
                faults.push(format!("`{name}` has no slices or no instances"));
            }
            if profile.starts.is_empty() || !profile.starts.is_sorted_by(|a, b| a < b) {
                faults.push(format!("the starts of `{name}` are empty or not ascending"));
            }
            let is_outside = |start: &u32| {
                start.checked_add(profile.n_memory_slices).is_none_or(|end| end > self.n_memory_slices)
            };
            if profile.starts.iter().any(is_outside) {
                faults.push(format!("`{name}` reaches beyond the last memory slice"));
            }
            if self.n_sms.zip(profile.n_sms).is_some_and(|(board, own)| own > board) {
                faults.push(format!("`{name}` has more SMs than the board"));
            }
            let is_too_large = |own: Bytes| !own.get().is_finite() || own.get() <= 0.0;
            if profile.memory.is_some_and(is_too_large)
                || self.memory.zip(profile.memory).is_some_and(|(board, own)| own > board)
            {
                faults.push(format!("`{name}` has more memory than the board, or none"));
            }
        }
        if !self.clocks.is_sorted_by(|a, b| a < b) {
            faults.push("the clocks are not ascending".to_owned());
        }
        if let Some(limits) = self.power_limits {
            let min = limits.min.unwrap_or(Watts(0.0));
            let is_ordered = min.get() >= 0.0 && min <= limits.default && limits.default <= limits.max;
            if !is_ordered || !limits.max.get().is_finite() {
                faults.push("the power limits are not in the order min, default, max".to_owned());
            }
        }
        if let Some(base) = &self.base_power {
            if !base.points.is_sorted_by(|a, b| a.0 < b.0) {
                faults.push("the base power is not ascending by clock".to_owned());
            }
            for (clock, watts) in &base.points {
                if !watts.get().is_finite() || watts.get() < 0.0 {
                    faults.push(format!("the base power at {clock} is not a power"));
                }
                if !self.clocks.is_empty() && !self.clocks.contains(clock) {
                    faults.push(format!("base power is given at {clock}, which is not one of its clocks"));
                }
            }
        }
        faults
    }
}
