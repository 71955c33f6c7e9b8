//! `entc bench`: a plan that is served → what its services measure under the planned load, beside what was
//! predicted and what the very same arrivals do in simulation.

use super::planners::{is_plan, nothing_asked};
use super::replay::Traces;
use super::{canvas_out, kept, serve, show, simulate};
use crate::arguments::{Bench, Format};
use crate::exit::{Exit, Stop, Trouble};
use crate::machine::{self, Machine};
use crate::render::{self, json};
use crate::terminal::{Terminal, Verbosity};
use ent_lang::program::Arrivals;
use ent_machine::store::Store;
use ent_performance::simulate::{Options, arrivals};
use ent_plan::plan::Plan;
use ent_serve::deployment::Deployment;
use ent_serve::load::{self, LoadError, Measured, Progress, Stream, Target};
use ent_serve::supervisor::{Client, Status};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

mod energy;
mod report;

pub(crate) use report::{BenchedService, Benchmark, Threefold};

/// Workers on simulated boards spend their batches' energy a moment after the batches.
const SETTLING: Duration = Duration::from_millis(400);

/// Measures and reports.
pub(super) fn run(arguments: &Bench, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::interrupt::listen();
    if let Some(path) = &arguments.svg {
        // Not after a minute of measuring.
        crate::write::possible(path)?;
    }
    let library = machine::choose(&arguments.machine.library)?;
    let folder = machine::state_folder(&arguments.machine, &library);
    let (plan, node, traces) = match planned(arguments, &folder, terminal)? {
        Ok(planned) => planned,
        Err(exit) => return Ok(exit),
    };
    let plan = on_node(plan, &node);
    is_known(&arguments.services, &plan)?;
    let status = || Client::connect(&folder).ok().flatten().and_then(|mut client| client.status().ok());
    let before = status().filter(|_| arguments.url.is_none());
    if let Some(before) = &before {
        is_served(&plan, before, &folder)?;
    }
    let target = target(arguments, before.as_ref(), &folder)?;
    let options = Options {
        seed: arguments.seed,
        until: Some(arguments.duration.as_secs_f64()),
        arrivals: traces.keys().map(|name| (name.clone(), Arrivals::Trace { file: String::new() })).collect(),
        traces,
        load: Some(arguments.load.1),
        ..Options::default()
    };
    let streams = streams(&plan, &options, &arguments.services, &target)?;
    let machine = Machine::of(&arguments.machine.library).ok();
    let boards: Vec<String> = serve::used_boards(&folder).into_iter().collect();
    let load_before = load_average();
    crate::interrupt::has_incumbent();
    let begin = machine.as_ref().and_then(|machine| energy::read(machine, &boards));
    let measured = send(&target, &streams, terminal)?;
    std::thread::sleep(SETTLING);
    let end = machine.as_ref().and_then(|machine| energy::read(machine, &boards));
    let after = status().filter(|_| before.is_some());
    crate::bug::processing("simulation");
    let simulated = ent_performance::simulate::simulate(&plan, &options);
    let benchmark = report::benchmark(&report::Seen {
        plan: &plan,
        node: &node,
        options: &options,
        duration: arguments.duration,
        chosen: &arguments.services,
        measured: &measured,
        simulated: &simulated,
        energy: begin.zip(end),
        gateway: before.as_ref().zip(after.as_ref()),
        load_average: [load_before, load_average()],
        is_interrupted: crate::interrupt::is_interrupted(),
    });
    if let Some(path) = &arguments.svg {
        crate::write::atomically(path, &render::benchmark::picture::svg(&benchmark)?)?;
    }
    let text = match arguments.format {
        Format::Json => json::text(&serde_json::json!(benchmark)),
        Format::Human => render::benchmark::benchmark(&benchmark, &canvas_out(terminal, false, false)),
    };
    terminal.result(&text)?;
    let is_broken = benchmark.failed > 0 || benchmark.services.iter().any(|s| s.is_kept == Some(false));
    Ok(match (crate::interrupt::is_interrupted(), is_broken && arguments.detailed_exitcode) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Changes,
        (false, false) => Exit::Done,
    })
}

/// The plan that is measured, this machine's node of it, and recorded arrivals.
fn planned(
    arguments: &Bench,
    folder: &Path,
    terminal: &Terminal,
) -> Result<Result<(Plan, String, Traces), Exit>, Stop> {
    let (plan, traces) = match &arguments.file {
        None => {
            let (plan, node) = kept::last(&Store::at(folder))?;
            return Ok(Ok((plan.into_plan(), node, Traces::new())));
        }
        Some(file) if is_plan(file) => {
            nothing_asked(&arguments.question, &arguments.who)?;
            let saved = show::read(file)?;
            saved.warn(terminal);
            (saved.plan.into_plan(), Traces::new())
        }
        Some(file) => {
            let (question, who) = (&arguments.question, &arguments.who);
            match simulate::planned(file, question, who, arguments.format, terminal)? {
                Ok(planned) => planned,
                Err(exit) => return Ok(Err(exit)),
            }
        }
    };
    let node = machine::this_node(&machine::of_plan(&plan), arguments.node.node.as_deref())?;
    Ok(Ok((plan, node, traces)))
}

/// What of a plan is on one node: its boards, and the services that have an instance there, at the rates that
/// they have there.
fn on_node(mut plan: Plan, node: &str) -> Plan {
    plan.gpus.retain(|gpu| gpu.node == node);
    for service in &mut plan.services {
        let instances = plan.gpus.iter().flat_map(|gpu| &gpu.instances);
        let here: Vec<f64> = instances.filter(|i| i.service == service.name).map(|i| i.rate_rps).collect();
        let rate: f64 = here.iter().sum();
        // The same number up to rounding, where all of it is here.
        if here.is_empty() || (rate / service.rate_rps - 1.0).abs() > 1e-9 {
            service.rate_rps = rate;
        }
    }
    plan
}

fn is_known(services: &[String], plan: &Plan) -> Result<(), Stop> {
    let is_there = |name: &String| plan.services.iter().any(|s| s.name == *name && s.rate_rps > 0.0);
    match services.iter().find(|name| !is_there(name)) {
        None => Ok(()),
        Some(name) => {
            let known: Vec<&str> = plan.services.iter().map(|s| s.name.as_str()).collect();
            Err(Stop::Refused {
                code: "unknown-name",
                message: format!("no instance of this machine has a service `{name}`"),
                help: Some(format!("use one of: {}", known.join(", "))),
            })
        }
    }
}

/// Refuses to measure one plan and to show another's predictions beside.
fn is_served(plan: &Plan, status: &Status, folder: &Path) -> Result<(), Stop> {
    let is_another = match (&plan.checksum, &status.stats.plan) {
        (Some(wanted), Some(served)) => wanted != served,
        // A spec was just planned: what it promises and runs has to be what is served.
        _ => ent_serve::supervisor::deployment(folder).ok().flatten().is_some_and(|d| differs(plan, &d)),
    };
    if !is_another {
        return Ok(());
    }
    let served = status.stats.plan.as_deref().unwrap_or("one without a checksum");
    Err(Trouble::new(
        "another-plan",
        format!("the plan that is served is another one: {served}"),
        "apply this one first with `entc apply`, or measure the one that is served: `entc bench` without a file",
    )
    .into())
}

/// Whether a plan promises or runs something else than a deployment.
fn differs(plan: &Plan, deployment: &Deployment) -> bool {
    let planned: BTreeMap<&str, (u64, Vec<u32>)> = plan
        .services
        .iter()
        .map(|service| {
            let here = plan.gpus.iter().flat_map(|gpu| &gpu.instances).filter(|i| i.service == service.name);
            let mut batches: Vec<u32> = here.map(|instance| instance.batch).collect();
            batches.sort_unstable();
            (service.name.as_str(), (service.promised_latency_ms.to_bits(), batches))
        })
        .filter(|(_, (_, batches))| !batches.is_empty())
        .collect();
    let served: BTreeMap<&str, (u64, Vec<u32>)> = deployment
        .services
        .iter()
        .map(|service| {
            let mut batches: Vec<u32> = service.replicas.iter().map(|replica| replica.batch).collect();
            batches.sort_unstable();
            (service.name.as_str(), (service.promised_latency_ms.to_bits(), batches))
        })
        .collect();
    planned != served
}

/// Where to send.
fn target(arguments: &Bench, status: Option<&Status>, folder: &Path) -> Result<Target, Stop> {
    let (address, host) = match (&arguments.url, status) {
        (Some(url), _) => resolve(url)?,
        (None, Some(status)) => match status.http {
            Some(address) => (address, address.to_string()),
            None => {
                return Err(Trouble::new(
                    "no-http",
                    "the gateway that runs does not listen for HTTP",
                    "apply again with `--http 127.0.0.1:8000`",
                )
                .into());
            }
        },
        (None, None) => {
            return Err(Trouble::new(
                "nothing-serves",
                format!("no supervisor runs in `{}`", folder.display()),
                "start one with `entc apply`, or name a gateway with `--url http://HOST:8000`",
            )
            .into());
        }
    };
    let token = serve::token(arguments.token_file.as_deref())?;
    Ok(Target { address, host, token, timeout: arguments.timeout })
}

/// `http://host:port` → an address, and what the `Host` header says.
pub(super) fn resolve(url: &str) -> Result<(SocketAddr, String), Stop> {
    let usage = |message: String| Stop::Refused {
        code: "usage",
        message,
        help: Some("write it like `http://127.0.0.1:8000`".to_owned()),
    };
    let rest =
        url.strip_prefix("http://").ok_or_else(|| usage(format!("`{url}` is no `http://` address")))?;
    let authority = rest.split('/').next().unwrap_or_default();
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let with_port = if has_port { authority.to_owned() } else { format!("{authority}:80") };
    let found = with_port.to_socket_addrs().ok().and_then(|mut all| all.next());
    let address = found.ok_or_else(|| usage(format!("`{authority}` is no host that can be found")))?;
    Ok((address, authority.to_owned()))
}

/// What is sent to each service.
fn streams(plan: &Plan, options: &Options, chosen: &[String], target: &Target) -> Result<Vec<Stream>, Stop> {
    let mut streams = Vec::new();
    for (service, told) in plan.services.iter().zip(arrivals(plan, options)) {
        let is_chosen = chosen.is_empty() || chosen.contains(&service.name);
        if service.rate_rps <= 0.0 || !is_chosen {
            continue;
        }
        let metadata = load::metadata(target, &service.name).map_err(|error| not_sent(&error))?;
        let body = load::body(&metadata)
            .map_err(|reason| not_sent(&LoadError::Service { service: service.name.clone(), reason }))?;
        streams.push(Stream {
            service: service.name.clone(),
            body,
            at: told.at,
            from: told.from,
            promise: Duration::try_from_secs_f64(service.promised_latency_ms * 1e-3).unwrap_or(Duration::MAX),
        });
    }
    Ok(streams)
}

fn not_sent(error: &LoadError) -> Stop {
    let (code, help) = match error {
        LoadError::Unreachable { .. } => {
            ("gateway-unreachable", "see whether it runs with `entc serve status`, or name it with `--url`")
        }
        LoadError::Service { .. } => ("not-served", "see what is served with `entc serve status`"),
        LoadError::Io(_) => ("cannot-send", "see what the system says"),
    };
    Trouble::new(code, error.to_string(), help).into()
}

/// Sends, with a bar on a terminal.
fn send(target: &Target, streams: &[Stream], terminal: &Terminal) -> Result<Measured, Stop> {
    let moves = terminal.is_interactive() && terminal.verbosity == Verbosity::Normal;
    let bar = moves.then(|| {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
        let (template, characters) = if terminal.symbols.is_unicode {
            ("{bar:24} {pos}/{len}  {msg}, {elapsed}", "━╸─")
        } else {
            ("[{bar:24}] {pos}/{len}  {msg}, {elapsed}", "=> ")
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars(characters));
        }
        bar
    });
    let has_lines = terminal.verbosity == Verbosity::Verbose;
    let measured = load::run(target, streams, |Progress { sent, answered, failed, total }| {
        let words = format!("{answered} answered, {failed} failed");
        if let Some(bar) = &bar {
            bar.set_length(total);
            bar.set_position(sent);
            bar.set_message(words);
        } else if has_lines {
            terminal.message(&format!("{sent} of {total} sent, {words}\n"));
        }
        !crate::interrupt::is_interrupted()
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    measured.map_err(|error| not_sent(&error))
}

/// The machine's load over the last minute (proc_loadavg(5)); a number measured on a busy machine says so.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string(PathBuf::from("/proc/loadavg")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_addresses() {
        let of = |url: &str| resolve(url).map(|(address, host)| (address.to_string(), host)).ok();
        assert_eq!(of("http://127.0.0.1:9000/"), Some(("127.0.0.1:9000".into(), "127.0.0.1:9000".into())));
        assert_eq!(of("http://127.0.0.1"), Some(("127.0.0.1:80".into(), "127.0.0.1".into())));
        assert_eq!(of("http://[::1]:8000/v2"), Some(("[::1]:8000".into(), "[::1]:8000".into())));
        for wrong in ["", "127.0.0.1:8000", "https://127.0.0.1", "http://", "http://:x"] {
            assert!(resolve(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_node_has_its_own_boards_and_rates() {
        let plan = ent_plan::plan::sample::plan();
        let node = plan.gpus[0].node.clone();
        let here = on_node(plan.clone(), &node);
        assert_eq!(here.services, plan.services);
        let elsewhere = on_node(plan, "elsewhere");
        assert!(elsewhere.gpus.is_empty() && elsewhere.services.iter().all(|s| s.rate_rps == 0.0));
    }
}
