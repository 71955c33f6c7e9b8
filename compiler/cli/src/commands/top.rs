//! `entc top`: metrics, twice → what happens between, drawn again and again.

use super::serve;
use crate::arguments::Top;
use crate::exit::{Exit, Stop, Trouble};
use crate::machine;
use crate::render::top as drawn;
use crate::terminal::Terminal;
use ent_serve::load::{self, Target};
use ent_serve::supervisor::Client;
use std::time::{Duration, Instant};

mod sample;
mod view;

pub(crate) use view::{BoardRow, ServiceRow, View};

use sample::Sample;

/// The metrics have to come within this.
const PATIENCE: Duration = Duration::from_secs(10);

/// Draws until it is told to end, or once.
pub(super) fn run(arguments: &Top, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::bug::processing("metrics");
    let (target, path, url) = source(arguments)?;
    let read = || -> Result<Sample, Stop> {
        let (status, body) =
            load::get(&target, &path).map_err(|error| unreachable(&url, &error.to_string()))?;
        if status != 200 {
            return Err(unreachable(&url, &format!("the answer is HTTP {status}")));
        }
        Ok(Sample::read(&String::from_utf8_lossy(&body), Instant::now()))
    };
    let mut before = read()?;
    if arguments.once {
        std::thread::sleep(arguments.every);
        let view = view::view(&before, &read()?, &url);
        terminal.result(&drawn::text(&view, u16::try_from(terminal.width).unwrap_or(u16::MAX)))?;
        return Ok(Exit::Done);
    }
    let mut screen = drawn::Screen::open()?;
    let mut view = view::view(&before, &before, &url);
    let mut trouble: Option<String> = None;
    loop {
        screen.draw(&view, trouble.as_deref())?;
        if screen.is_left(arguments.every)? {
            return Ok(Exit::Done);
        }
        match read() {
            Ok(now) => {
                view = view::view(&before, &now, &url);
                before = now;
                trouble = None;
            }
            // A supervisor that is changed or started again comes back.
            Err(Stop::World(troubles)) => trouble = troubles.first().map(|t| t.message.clone()),
            Err(other) => return Err(other),
        }
    }
}

/// Where the metrics are.
fn source(arguments: &Top) -> Result<(Target, String, String), Stop> {
    let url = match &arguments.url {
        Some(url) => url.clone(),
        None => {
            let library = machine::choose(&arguments.machine.library)?;
            let folder = machine::state_folder(&arguments.machine, &library);
            let status = Client::connect(&folder).ok().flatten().and_then(|mut client| client.status().ok());
            match status.map(|status| status.metrics) {
                Some(Some(address)) => format!("http://{address}/metrics"),
                Some(None) => {
                    return Err(Trouble::new(
                        "no-metrics",
                        "the supervisor that runs gives no metrics",
                        "apply again with `--metrics 127.0.0.1:8002`",
                    )
                    .into());
                }
                None => {
                    return Err(Trouble::new(
                        "nothing-serves",
                        format!("no supervisor runs in `{}`", folder.display()),
                        "start one with `entc apply`, or name metrics with `--url http://HOST:8002/metrics`",
                    )
                    .into());
                }
            }
        }
    };
    let (address, host) = super::bench::resolve(&url)?;
    let rest = url.strip_prefix("http://").unwrap_or_default();
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/metrics").to_owned();
    let token = serve::token(arguments.token_file.as_deref())?;
    Ok((Target { address, host, token, timeout: PATIENCE }, path, url))
}

fn unreachable(url: &str, why: &str) -> Stop {
    Trouble::new(
        "metrics-unreachable",
        format!("no metrics from {url}: {why}"),
        "see whether it runs with `entc serve status`, or name it with `--url`",
    )
    .into()
}
