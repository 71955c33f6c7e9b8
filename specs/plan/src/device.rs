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

pub use catalogue::{BOARDS, board, board_ids};
pub use layout::{Layout, PlacedProfile, layouts, maximal_layouts, place};

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerLimits {
    /// Lowest settable.
    pub min: Option<Watts>,
    /// As shipped.
    pub default: Watts,
    /// Highest settable.
    pub max: Watts,
}

/// A GPU model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Invented to illustrate: no such numbers were measured.
    pub is_illustration: bool,
}

impl Board {
    /// The profile with this name.
    #[must_use]
    pub fn profile(&self, name: &str) -> Option<&GpuInstanceProfile> {
        self.profiles.iter().find(|p| p.name == name)
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
}
