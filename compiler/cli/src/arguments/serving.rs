//! The command line of what runs on an applied machine: `serve`, `bench`, `top`.

use super::machine::{Machine, ThisNode};
use super::{Format, Question, Who, values};
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The heading of these options in the help.
const SERVING: &str = "Serving";

/// Where a gateway listens, or that it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    /// There; port 0 lets the system choose.
    At(SocketAddr),
    /// Nowhere.
    Off,
}

impl Listen {
    /// The address, if any.
    pub(crate) fn address(self) -> Option<SocketAddr> {
        match self {
            Self::At(address) => Some(address),
            Self::Off => None,
        }
    }
}

/// How the gateway is reached; the same for whoever starts it.
#[derive(Clone, Debug, Args)]
pub(crate) struct Gateway {
    /// Where the Open Inference Protocol is spoken over HTTP: an address, or `off`.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000", value_parser = values::listen, env = "ENTC_HTTP", help_heading = SERVING)]
    pub(crate) http: Listen,
    /// Where it is spoken over gRPC.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8001", value_parser = values::listen, env = "ENTC_GRPC", help_heading = SERVING)]
    pub(crate) grpc: Listen,
    /// Where metrics are given.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8002", value_parser = values::listen, env = "ENTC_METRICS", help_heading = SERVING)]
    pub(crate) metrics: Listen,
    /// A file with the token that clients have to send; needed where an address is not a loopback one.
    #[arg(long, value_name = "FILE", env = "ENTC_TOKEN_FILE", help_heading = SERVING)]
    pub(crate) token_file: Option<PathBuf>,
    /// Send spans of requests to this OpenTelemetry collector (OTLP over gRPC): `http://127.0.0.1:4317`.
    #[arg(long, value_name = "URL", value_parser = values::http_url, env = "OTEL_EXPORTER_OTLP_ENDPOINT", help_heading = SERVING)]
    pub(crate) otlp: Option<String>,
    /// Share of the requests that are traced; those that their clients trace are in any case.
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = values::gap, help_heading = SERVING)]
    pub(crate) trace_ratio: f64,
    /// Every worker has to be ready within this.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = values::time_limit, help_heading = SERVING)]
    pub(crate) readiness: Duration,
}

/// What is asked of a supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Action {
    /// Be one, in the foreground.
    #[default]
    Run,
    /// Say what the one that runs has.
    Status,
    /// Have it run what `deployment.json` says now.
    Reload,
    /// Have it answer what it has, and end.
    Drain,
    /// Have it end at once.
    Stop,
}

/// `entc serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
`entc apply` starts a supervisor and changes it; this is for looking after it, or running one under another
service manager.

Examples:
  entc serve status
  entc serve drain
  entc serve --http 127.0.0.1:9000 --grpc off")]
pub(crate) struct Serve {
    /// What to do.
    #[arg(value_enum, default_value = "run", value_name = "ACTION")]
    pub(crate) action: Action,
    /// Which machine.
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// How it is reached.
    #[command(flatten)]
    pub(crate) gateway: Gateway,
    /// How long requests that are there may take when it is told to end.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::wait, help_heading = SERVING)]
    pub(crate) patience: Duration,
    /// Leave the terminal and the session: how `entc apply` starts it.
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
    /// How `status` reports.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
}

/// `entc bench`.
#[derive(Debug, Args)]
#[command(after_help = "\
Requests are sent at the planned rates, open-loop: each at its own time, whether or not the one before is
answered, and its latency counts from that time. The same seed gives the same arrivals, here and in
`entc simulate`.

Examples:
  entc bench --duration 60s --seed 1
  entc bench plan.json --service classify --load 50%
  entc bench --format json --svg measured.svg > measured.json")]
pub(crate) struct Bench {
    /// The plan or spec that is served; the one that is applied when not given.
    #[arg(value_name = "plan.json|FILE")]
    pub(crate) file: Option<String>,
    /// What is asked of a spec.
    #[command(flatten)]
    pub(crate) question: Question,
    /// Who plans a spec.
    #[command(flatten)]
    pub(crate) who: Who,
    /// Which machine.
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// Which node.
    #[command(flatten)]
    pub(crate) node: ThisNode,
    /// Send requests for so long.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time_limit)]
    pub(crate) duration: Duration,
    /// Same seed, same arrivals.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where the gateway is; the one of the supervisor that runs when not given.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A file with the token that the gateway wants.
    #[arg(long, value_name = "FILE", env = "ENTC_TOKEN_FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// This service only; may be repeated.
    #[arg(long = "service", value_name = "NAME")]
    pub(crate) services: Vec<String>,
    /// Offered load over the planned one.
    #[arg(long, value_name = "LOAD", value_parser = values::load, default_value = "100%")]
    pub(crate) load: (String, f64),
    /// A request that is not answered within this counts as failed.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time_limit)]
    pub(crate) timeout: Duration,
    /// How to report.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
    /// Write a picture of each service's latency beside its promise.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Exit with 2 when a request failed or a promise was broken.
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
}

/// `entc top`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  entc top\n  entc top --once\n  entc top --url http://gpu-1:8002/metrics"
)]
pub(crate) struct Top {
    /// Which machine.
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// Where the metrics are; those of the supervisor that runs when not given.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A file with the token that they want.
    #[arg(long, value_name = "FILE", env = "ENTC_TOKEN_FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// How often to look.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = values::time_limit)]
    pub(crate) every: Duration,
    /// Print one view as text and end.
    #[arg(long)]
    pub(crate) once: bool,
}
