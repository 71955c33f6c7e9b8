//! The steps between a machine and a target, in order, each with its reason: what `entc diff` shows and
//! `entc apply` does, neither more nor less.
//!
//! INVARIANT: `apply` performs exactly these steps; it never decides.

use crate::observed::GpuUuid;
use serde::{Deserialize, Serialize};

/// All there is to do on a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// What to do, in this order.
    pub steps: Vec<Step>,
    /// Instances that stay as they are, and whatever runs on them.
    pub kept: Vec<Kept>,
    /// Instances that come, one for each step that creates, with the services they are for.
    #[serde(default)]
    pub created: Vec<Kept>,
    /// GPUs that nothing is done to, by index.
    pub untouched: Vec<GpuUuid>,
}

impl Changes {
    /// Whether the machine is already as it should be.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Instances that go.
    #[must_use]
    pub fn n_destroyed(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.operation, Operation::DestroyInstance { .. })).count()
    }
}

impl std::fmt::Display for Changes {
    /// The steps by number, each with its reason; then what stays, and which GPUs are left alone.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_empty() {
            writeln!(f, "nothing to do")?;
        }
        let rows: Vec<(String, String)> = self
            .steps
            .iter()
            .map(|step| (format!("gpu {}", step.index), step.operation.to_string()))
            .collect();
        let width = |column: fn(&(String, String)) -> &String| {
            rows.iter().map(|row| column(row).chars().count()).max().unwrap_or(0)
        };
        let (gpu, what, number) = (width(|row| &row.0), width(|row| &row.1), rows.len().to_string().len());
        for (index, ((on, operation), step)) in rows.iter().zip(&self.steps).enumerate() {
            writeln!(f, "{:>number$}  {on:gpu$}  {operation:what$}  {}", index + 1, step.reason)?;
        }
        for stay in &self.kept {
            write!(f, "kept on {}: {} at slice {}", stay.gpu, stay.profile, stay.start)?;
            match &stay.service {
                Some(service) => writeln!(f, ", service {service}")?,
                None => writeln!(f)?,
            }
        }
        for gpu in &self.untouched {
            writeln!(f, "untouched: {gpu}")?;
        }
        Ok(())
    }
}

/// An instance that is there when all is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its GPU.
    pub gpu: GpuUuid,
    /// Its profile.
    pub profile: String,
    /// First memory slice.
    pub start: u32,
    /// Memory slices.
    pub size: u32,
    /// The service it carries from now on.
    pub service: Option<String>,
}

/// One operation on one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The GPU.
    pub gpu: GpuUuid,
    /// Its index when the changes were made, for people.
    pub index: u32,
    /// What is done.
    pub operation: Operation,
    /// Why, in words: `service classify needs it`.
    pub reason: String,
}

/// What is done to a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Operation {
    /// Turn MIG mode on or off.
    SetMigMode {
        /// On or off.
        enabled: bool,
        /// Whether the driver resets the GPU for it (Ampere).
        resets: bool,
    },
    /// Turn persistence mode on or off.
    SetPersistence {
        /// On or off.
        enabled: bool,
    },
    /// Destroy a GPU instance with its compute instances.
    DestroyInstance {
        /// Its profile.
        profile: String,
        /// First memory slice.
        start: u32,
        /// Memory slices.
        size: u32,
    },
    /// Create a GPU instance with one compute instance as wide as itself. Where the GPU instance is there
    /// without one, only the compute instance is created.
    CreateInstance {
        /// Its profile.
        profile: String,
        /// First memory slice.
        start: u32,
        /// Memory slices.
        size: u32,
    },
    /// Lock the SM clock to a range.
    LockClocks {
        /// Lowest (MHz).
        min: u32,
        /// Highest (MHz).
        max: u32,
    },
    /// Let the driver choose the SM clock again.
    UnlockClocks,
    /// Set the power management limit.
    SetPowerLimit {
        /// The limit (mW).
        milliwatts: u32,
    },
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let on = |enabled: bool| if enabled { "on" } else { "off" };
        match self {
            Self::SetMigMode { enabled, resets: false } => write!(f, "turn MIG mode {}", on(*enabled)),
            Self::SetMigMode { enabled, resets: true } => {
                write!(f, "turn MIG mode {} (the board resets)", on(*enabled))
            }
            Self::SetPersistence { enabled } => write!(f, "turn persistence mode {}", on(*enabled)),
            Self::DestroyInstance { profile, start, .. } => write!(f, "destroy {profile} at slice {start}"),
            Self::CreateInstance { profile, start, .. } => write!(f, "create {profile} at slice {start}"),
            Self::LockClocks { min, max } if min == max => write!(f, "lock the SM clock to {min} MHz"),
            Self::LockClocks { min, max } => write!(f, "lock the SM clock to {min}..{max} MHz"),
            Self::UnlockClocks => f.write_str("unlock the SM clock"),
            Self::SetPowerLimit { milliwatts } => {
                write!(f, "set the power limit to {} W", f64::from(*milliwatts) / 1000.0)
            }
        }
    }
}
