//! The worker's command line; written by the supervisor, readable by people.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Run the batches of one replica.
#[derive(Debug, Parser)]
#[command(name = "ent-worker", version)]
pub(crate) struct Arguments {
    /// The gateway's socket for workers.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: PathBuf,
    /// The service.
    #[arg(long, value_name = "NAME")]
    pub(crate) service: String,
    /// The replica, `gpu0/1g.10gb@3`.
    #[arg(long, value_name = "ID")]
    pub(crate) replica: String,
    /// Which making of the replica.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) epoch: u64,
    /// Which of the replica's processes, from 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) process: u32,
    /// What runs the batches.
    #[arg(long, value_enum)]
    pub(crate) executor: Kind,
    /// Where torch runs: `CUDA_VISIBLE_DEVICES` says which device `cuda` is.
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) device: Place,
    /// Threads of torch on a CPU.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: u32,
    /// The simulated NVML library: the worker then sits on `--board` as a process, and its batches' energy
    /// is spent there.
    #[arg(long, value_name = "PATH", requires = "board")]
    pub(crate) simulated: Option<PathBuf>,
    /// The folder of the simulated machine.
    #[arg(long, value_name = "DIR", requires = "simulated")]
    pub(crate) sim_state: Option<PathBuf>,
    /// The MIG device or GPU that it is on, by UUID.
    #[arg(long, value_name = "UUID")]
    pub(crate) board: Option<String>,
}

/// What runs batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Takes the predicted time, and computes nothing.
    Modelled,
    /// Runs TorchScript.
    Torch,
}

/// Where torch runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    /// On CUDA if there is any, else on the CPU.
    Auto,
    /// On the CPU.
    Cpu,
    /// On CUDA, or not at all.
    Cuda,
}
