//! `entc serve`: a deployment → its gateway and workers; and questions to those that run.

use crate::arguments::{self, Action, Format, Serve};
use crate::exit::{Exit, Stop, Trouble};
use crate::machine::{self, Machine};
use crate::render;
use crate::terminal::Terminal;
use ent_machine::Library;
use ent_serve::gateway::{Options, Tracing};
use ent_serve::supervisor::{
    self, Answer, BoardReading, Client, Meter, Question, Settings, SimulatedMachine, SupervisorError,
};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Runs one, or asks the one that runs.
pub(super) fn run(arguments: &Serve, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::bug::processing("deployment");
    let library = machine::choose(&arguments.machine.library)?;
    let folder = machine::state_folder(&arguments.machine, &library);
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    match arguments.action {
        Action::Run => supervise(arguments, library, &folder, terminal),
        Action::Status => {
            let status = connect(&folder)?.status().map_err(|error| unreachable(&error))?;
            let text = match arguments.format {
                Format::Json => render::json::text(&serde_json::json!(status)),
                Format::Human => render::serving::status(&status, &super::canvas_out(terminal, false, false)),
            };
            terminal.result(&text)?;
            Ok(Exit::Done)
        }
        Action::Reload => {
            // It waits for new workers as long as it was told to, and then for old ones.
            let patience = arguments.gateway.readiness + Duration::from_secs(600);
            let answer = connect(&folder)?.ask(&Question::Reload, patience);
            match answer.map_err(|error| unreachable(&error))? {
                Answer::Reloaded(reloaded) if reloaded.is_done => {
                    terminal.message("the deployment serves\n");
                    Ok(Exit::Done)
                }
                Answer::Reloaded(reloaded) => Err(Trouble::new(
                    "not-serving",
                    reloaded.reason.unwrap_or_else(|| "the deployment does not serve".to_owned()),
                    "see why with `entc serve status`; the deployment before stays, as far as its instances are there",
                )
                .into()),
                other @ (Answer::Status(_) | Answer::Vacated | Answer::Ending | Answer::Refused { .. }) => {
                    Err(refused(&other))
                }
            }
        }
        Action::Drain => end(&folder, arguments.patience, terminal),
        Action::Stop => end(&folder, Duration::ZERO, terminal),
    }
}

fn end(folder: &Path, patience: Duration, terminal: &Terminal) -> Result<Exit, Stop> {
    drop(connect(folder)?);
    supervisor::stop(folder, patience).map_err(|error| unreachable(&error))?;
    terminal.message("ended\n");
    Ok(Exit::Done)
}

fn connect(folder: &Path) -> Result<Client, Stop> {
    match Client::connect(folder) {
        Ok(Some(client)) => Ok(client),
        Ok(None) => Err(Trouble::new(
            "nothing-serves",
            format!("no supervisor runs in `{}`", folder.display()),
            "start one with `entc apply`, or name its folder with `--state DIR`",
        )
        .into()),
        Err(error) => Err(unreachable(&error)),
    }
}

fn unreachable(error: &std::io::Error) -> Stop {
    let why = crate::write::reason(error);
    let help = "ask as the user that it runs as, or as root";
    Trouble::new("supervisor-unreachable", format!("the supervisor cannot be asked: {why}"), help).into()
}

fn refused(answer: &Answer) -> Stop {
    let why = match answer {
        Answer::Refused { reason } => reason.clone(),
        Answer::Status(_) | Answer::Reloaded(_) | Answer::Vacated | Answer::Ending => {
            "its answer is to another question".to_owned()
        }
    };
    Trouble::new("supervisor-refused", format!("the supervisor refused: {why}"), "try again").into()
}

fn supervise(arguments: &Serve, library: Library, folder: &Path, terminal: &Terminal) -> Result<Exit, Stop> {
    if arguments.detached {
        // It fails only for the leader of a group, which is no part of the terminal's then.
        let _ignored = rustix::process::setsid();
    }
    let mut settings = Settings::new(folder.to_path_buf(), machine::worker()?);
    settings.gateway = options(&arguments.gateway)?;
    settings.readiness = arguments.gateway.readiness;
    settings.drain = arguments.patience;
    settings.is_watched = !arguments.detached;
    if let Library::Simulated { library, state } = &library {
        let (library, folder) = (absolute(library), absolute(state));
        settings.simulated = Some(SimulatedMachine { library, folder });
    }
    // The deployment is served also where its boards cannot be read: only watts are missing then.
    let meter = Machine::of(&arguments.machine.library).map(|machine| meter(machine, folder));
    let meter = match meter {
        Ok(meter) => Some(meter),
        Err(stop) => {
            super::report(&stop, terminal);
            None
        }
    };
    match supervisor::run(settings, meter, |_| ()) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => Err(not_run(&error)),
    }
}

fn absolute(path: &Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

fn not_run(error: &SupervisorError) -> Stop {
    let (code, help) = match error {
        SupervisorError::Running { .. } => {
            ("supervisor-runs", "ask it with `entc serve status`, or end it with `entc serve drain`")
        }
        SupervisorError::NoDeployment(_) => ("no-deployment", "make one with `entc apply`"),
        SupervisorError::Damaged { .. } => ("damaged-deployment", "apply the plan again with `entc apply`"),
        SupervisorError::File { .. } => {
            ("cannot-write", "make room, or name a folder that you may write with `--state DIR`")
        }
        SupervisorError::Gateway(_) | SupervisorError::Io(_) => (
            "cannot-listen",
            "see who listens there, or choose other addresses with `--http`, `--grpc` and `--metrics`",
        ),
    };
    Trouble::new(code, error.to_string(), help).into()
}

/// Whether a gateway could start, looked at before anything is changed for it.
///
/// # Errors
/// When its token cannot be read, an address that others reach has none, or somebody listens there already.
pub(super) fn can_start(arguments: &arguments::Gateway) -> Result<(), Stop> {
    let options = options(arguments)?;
    let addresses = [("--http", options.http), ("--grpc", options.grpc), ("--metrics", options.metrics)];
    for (option, address) in addresses.into_iter().filter_map(|(o, a)| Some((o, a?))) {
        let trouble = if options.token.is_none() && !address.ip().is_loopback() {
            Trouble::new(
                "no-token",
                format!("{address} can be reached from other machines, and no token is set"),
                "set one with `--token-file FILE`, or listen on 127.0.0.1",
            )
        } else {
            match std::net::TcpListener::bind(address) {
                Ok(_) => continue,
                Err(error) => Trouble::new(
                    "cannot-listen",
                    format!("the gateway cannot listen on {address}: {error}"),
                    format!("choose another address with `{option} 127.0.0.1:0`, or apply with `--no-serve`"),
                ),
            }
        };
        return Err(trouble.into());
    }
    Ok(())
}

/// What was asked of a gateway that runs already, and is not done.
pub(super) fn unheeded(
    arguments: &arguments::Gateway,
    status: &ent_serve::supervisor::Status,
) -> Vec<String> {
    let mut told = Vec::new();
    // The ports that are used unless told otherwise are no wish.
    let asked = |listen: arguments::Listen, usual: u16| {
        listen.address().filter(|a| a.port() != 0 && !(a.port() == usual && a.ip().is_loopback()))
    };
    for (option, wanted, present) in [
        ("--http", asked(arguments.http, 8000), status.http),
        ("--grpc", asked(arguments.grpc, 8001), status.grpc),
        ("--metrics", asked(arguments.metrics, 8002), status.metrics),
    ] {
        if let Some(address) = wanted.filter(|address| Some(*address) != present) {
            told.push(format!("`{option} {address}`"));
        }
    }
    if let Some(file) = &arguments.token_file {
        told.push(format!("`--token-file {}`", file.display()));
    }
    told
}

/// How the gateway is to run.
///
/// # Errors
/// When the token's file cannot be read.
fn options(arguments: &arguments::Gateway) -> Result<Options, Stop> {
    let mut options = Options::new(std::path::PathBuf::new());
    options.http = arguments.http.address();
    options.grpc = arguments.grpc.address();
    options.metrics = arguments.metrics.address();
    options.token = token(arguments.token_file.as_deref())?;
    options.tracing =
        arguments.otlp.clone().map(|endpoint| Tracing { endpoint, ratio: arguments.trace_ratio });
    Ok(options)
}

/// What a token's file holds.
///
/// # Errors
/// When it cannot be read, or holds nothing.
pub(super) fn token(file: Option<&Path>) -> Result<Option<String>, Stop> {
    let Some(file) = file else { return Ok(None) };
    let text = crate::load::text(&file.display().to_string())?;
    let token = text.trim();
    if token.is_empty() || token.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Stop::Refused {
            code: "usage",
            message: format!("`{}` holds no token", file.display()),
            help: Some("write one word into it".to_owned()),
        });
    }
    Ok(Some(token.to_owned()))
}

/// The command that starts a supervisor as this one would be.
pub(super) fn command(
    machine: &arguments::Machine,
    library: &Library,
    gateway: &arguments::Gateway,
    is_detached: bool,
) -> Vec<OsString> {
    let executable = std::env::current_exe().unwrap_or_else(|_| "entc".into());
    let folder = machine::state_folder(machine, library);
    let mut words: Vec<OsString> = vec![executable.into(), "serve".into(), "run".into()];
    let mut add = |name: &str, value: OsString| words.extend([name.into(), value]);
    match library {
        Library::System => add("--nvml", "system".into()),
        Library::Path(path) => add("--nvml", absolute(path).into()),
        Library::Simulated { library, state } => {
            add("--nvml", absolute(library).into());
            add("--sim-state", absolute(state).into());
        }
    }
    add("--state", absolute(&folder).into());
    let at = |listen: arguments::Listen| match listen.address() {
        Some(address) => OsString::from(address.to_string()),
        None => "off".into(),
    };
    add("--http", at(gateway.http));
    add("--grpc", at(gateway.grpc));
    add("--metrics", at(gateway.metrics));
    if let Some(file) = &gateway.token_file {
        add("--token-file", absolute(file).into());
    }
    if let Some(endpoint) = &gateway.otlp {
        add("--otlp", endpoint.into());
        add("--trace-ratio", gateway.trace_ratio.to_string().into());
    }
    add("--readiness", format!("{}ms", gateway.readiness.as_millis()).into());
    if is_detached {
        words.push("--detached".into());
    }
    words
}

/// Reads the boards that the deployment is on.
fn meter(machine: Machine, folder: &Path) -> Meter {
    let folder = folder.to_path_buf();
    Meter(Box::new(move || {
        let Ok(observed) = machine.driver.observe() else { return Vec::new() };
        let ours = used_boards(&folder);
        let source = if observed.is_simulated { "simulated" } else { "measured" };
        let predicted = super::kept::predicted_watts(&folder);
        let is_ours = |gpu: &&ent_machine::observed::ObservedGpu| ours.contains(&gpu.uuid.0);
        let read = |gpu: &ent_machine::observed::ObservedGpu| BoardReading {
            index: gpu.index,
            uuid: gpu.uuid.0.clone(),
            name: gpu.name.clone(),
            source,
            power_w: gpu.power_mw.map(|mw| f64::from(mw) * 1e-3),
            energy_j: gpu.energy_mj.map(|mj| mj as f64 * 1e-3),
            sm_clock_mhz: gpu.sm_clock_mhz.map(f64::from),
            predicted_power_w: predicted.get(&gpu.index).and_then(|[mean, _]| *mean),
            base_power_w: predicted.get(&gpu.index).and_then(|[_, base]| *base),
        };
        observed.gpus.iter().filter(is_ours).map(read).collect()
    }))
}

/// The boards of the deployment in a folder, by UUID.
pub(super) fn used_boards(folder: &Path) -> std::collections::BTreeSet<String> {
    let deployment = supervisor::deployment(folder).ok().flatten();
    let services = deployment.into_iter().flat_map(|d| d.services);
    services.flat_map(|s| s.replicas).filter_map(|r| r.gpu).collect()
}
