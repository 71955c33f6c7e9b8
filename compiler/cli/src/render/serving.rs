//! What serves → a few lines, or a table of replicas.

use super::line::{Line, Role, page};
use super::plan::Canvas;
use super::table::{Column, table};
use ent_serve::supervisor::{Phase, ReplicaStatus, Report, Status};

/// Draws what an apply ended with.
pub(crate) fn served(report: &Report, canvas: &Canvas) -> String {
    let status = &report.status;
    let n = status.replicas.len();
    let word = if report.is_new { "Serving" } else { "Serving on" };
    let services = distinct(status);
    let text = format!(
        ": {} on {}, every one healthy and routed",
        counted(services, "service"),
        counted(n, "replica")
    );
    let mut lines = Line::of(Role::Good, word).and(Role::Plain, text).wrapped(canvas.width, 2);
    lines.extend(Line::plain(format!("  {}", addresses(status))).wrapped(canvas.width, 4));
    if !report.paused.is_empty() {
        let text = format!("  paused meanwhile: {}", report.paused.join(", "));
        lines.extend(Line::of(Role::Warn, text).wrapped(canvas.width, 4));
    }
    page(&lines, canvas.color)
}

fn distinct(status: &Status) -> usize {
    status.replicas.iter().map(|r| &r.service).collect::<std::collections::BTreeSet<_>>().len()
}

fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn addresses(status: &Status) -> String {
    let one = |word: &str, at: Option<std::net::SocketAddr>| at.map(|at| format!("{word} {at}"));
    let all = [one("http", status.http), one("grpc", status.grpc), one("metrics", status.metrics)];
    let listens: Vec<String> = all.into_iter().flatten().collect();
    format!("process {}: {}", status.pid, listens.join(", "))
}

/// Draws a supervisor and its replicas.
pub(crate) fn status(status: &Status, canvas: &Canvas) -> String {
    let phase = match status.phase {
        Phase::Serving => "serving",
        Phase::Changing => "changing",
        Phase::Draining => "draining",
    };
    let n = (status.n_healthy(), status.replicas.len());
    let role = if n.0 == n.1 { Role::Good } else { Role::Bad };
    let heading = Line::of(Role::Heading, phase)
        .and(role, format!("  {} of {} healthy", n.0, counted(n.1, "replica")))
        .and(Role::Faint, format!("  ({})", addresses(status)));
    let mut lines = heading.wrapped(canvas.width, 2);
    lines.push(Line::new());
    let columns = [
        Column::name("service"),
        Column::word("replica"),
        Column::word("executor"),
        Column::number("workers"),
        Column::number("requests"),
        Column::number("queued"),
        Column::name("state"),
    ];
    let rows: Vec<Vec<Line>> = status.replicas.iter().map(|replica| row(replica, status)).collect();
    lines.extend(table(&columns, &rows, canvas.width, 2, canvas.symbols));
    for other in status.others.iter().filter(|other| other.pid.is_none()) {
        let why = other.reason.as_deref().unwrap_or("it is starting");
        lines.extend(Line::of(Role::Bad, format!("  {}: {why}", other.name)).wrapped(canvas.width, 4));
    }
    page(&lines, canvas.color)
}

fn row(replica: &ReplicaStatus, status: &Status) -> Vec<Line> {
    let all = status.stats.services.iter().filter(|s| s.name == replica.service).flat_map(|s| &s.replicas);
    let known = all.into_iter().find(|r| r.id == replica.id && r.epoch == replica.epoch);
    let rows: u64 = known.map_or(0, |r| r.batch_sizes.iter().zip(1..).map(|(n, k): (&u64, u64)| n * k).sum());
    let state = match &replica.reason {
        _ if replica.is_healthy => Line::of(Role::Good, "healthy"),
        Some(reason) => Line::of(Role::Bad, reason.clone()),
        None => Line::of(Role::Warn, "starting"),
    };
    vec![
        Line::plain(replica.service.clone()),
        Line::plain(replica.id.clone()),
        Line::plain(replica.executor.word()),
        Line::plain(format!("{}/{}", replica.workers, replica.processes)),
        Line::plain(rows.to_string()),
        Line::plain(known.map_or(0, |r| r.queued).to_string()),
        state,
    ]
}
