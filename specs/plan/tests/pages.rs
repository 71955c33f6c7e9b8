//! Boards, performance models, diagnostics → the pages of the book that list them.
//!
//! The pages are committed and held to the data; `ENT_BLESS=1` rewrites them.

#![expect(clippy::unwrap_used, reason = "a page that cannot be written is a failed test")]

use ent_plan::device::{Board, Confidence, GpuInstanceProfile, board, board_ids, maximal_multisets};
use ent_plan::diagnostic::Code;
use ent_plan::performance::{FittedModel, FittedModels, catalogue};
use ent_plan::units::Megahertz;
use std::fmt::Write as _;
use std::path::Path;

/// What stands where nobody captured anything.
const UNKNOWN: &str = "–";

const MEBIBYTE: f64 = 1_048_576.0;
const GIBIBYTE: f64 = 1024.0 * MEBIBYTE;

#[track_caller]
fn hold(page: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    if std::env::var_os("ENT_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "docs/{page} is stale; ENT_BLESS=1 rewrites it");
}

fn all_boards() -> impl Iterator<Item = Board> {
    board_ids().map(|id| board(id).unwrap())
}

/// A number with a few digits, without zeros at its end.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn or_unknown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| value.to_string())
}

fn clocks(board: &Board) -> String {
    match (board.clocks.first(), board.clocks.last(), board.clocks.get(1)) {
        (Some(first), Some(last), Some(second)) => {
            format!("{}–{}, step {}", first.0, last.0, second.0 - first.0)
        }
        (Some(only), _, None) => only.0.to_string(),
        _ => UNKNOWN.to_owned(),
    }
}

fn confidence(known: Confidence) -> &'static str {
    match known {
        Confidence::Captured => "captured",
        Confidence::InferredSameDie => "inferred, same die",
        Confidence::Unverified => "unverified",
        Confidence::User => "the user's",
        Confidence::Illustration => "invented",
    }
}

/// How a profile is known, and which of its facts are not.
fn how_known(profile: &GpuInstanceProfile) -> String {
    if profile.unverified.is_empty() {
        confidence(profile.confidence).to_owned()
    } else {
        format!("{}; not captured: {}", confidence(profile.confidence), profile.unverified.join(", "))
    }
}

fn starts(profile: &GpuInstanceProfile) -> String {
    profile.starts.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

/// A text that may hold characters that mean something in Markdown, as it is.
fn plain(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

fn board_section(page: &mut String, board: &Board) {
    writeln!(page, "\n## {}\n", board.id).unwrap();
    writeln!(page, "{}. In a spec:\n", board.title).unwrap();
    let name = board.id.replace('-', "_");
    writeln!(page, "```text\nimport \"catalog:nvidia/{}\"   // as `{name}`\n```\n", board.id).unwrap();
    writeln!(page, "| fact | value |\n|---|---|").unwrap();
    writeln!(page, "| PCI device ids | {} |", board.pci_device_ids.join(", ")).unwrap();
    writeln!(
        page,
        "| memory | {} |",
        or_unknown(board.memory.map(|b| format!("{} GiB", short(b.get() / GIBIBYTE))))
    )
    .unwrap();
    writeln!(page, "| SMs | {} |", or_unknown(board.n_sms)).unwrap();
    writeln!(page, "| memory slices | {} |", board.n_memory_slices).unwrap();
    writeln!(page, "| SM clocks (MHz) | {} |", clocks(board)).unwrap();
    writeln!(page, "| memory clock (MHz) | {} |", or_unknown(board.memory_clock.map(|c| c.0))).unwrap();
    let limits = board.power_limits.map(|limits| {
        let least = limits.min.map_or_else(|| UNKNOWN.to_owned(), |w| short(w.get()));
        format!("{least} to {}, {} as shipped", short(limits.max.get()), short(limits.default.get()))
    });
    writeln!(page, "| power limit (W) | {} |", or_unknown(limits)).unwrap();
    let cuts = maximal_multisets(board, |at| board.profiles[at].is_base).len();
    writeln!(page, "| ways to cut it that leave no room for one more instance | {cuts} |").unwrap();
    if !board.unverified.is_empty() {
        writeln!(page, "| not captured in full | {} |", board.unverified.join(", ")).unwrap();
    }
    page.push_str(
        "\n| profile | compute slices | memory slices | SMs | memory (GiB) | starts | at most | known |\n",
    );
    page.push_str("|---|---:|---:|---:|---:|---|---:|---|\n");
    for profile in &board.profiles {
        writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | {} | {} | {} |",
            profile.name,
            profile.n_compute_slices,
            profile.n_memory_slices,
            or_unknown(profile.n_sms),
            or_unknown(profile.memory.map(|b| short(b.get() / GIBIBYTE))),
            starts(profile),
            profile.max_instances,
            how_known(profile)
        )
        .unwrap();
    }
    if let Some(base) = &board.base_power {
        writeln!(page, "\nBase power ({}; {}):\n", confidence(base.confidence), plain(&base.source)).unwrap();
        page.push_str("| SM clock (MHz) | base power (W) |\n|---:|---:|\n");
        for (clock, watts) in &base.points {
            writeln!(page, "| {} | {:.2} |", clock.0, watts.get()).unwrap();
        }
    }
    page.push_str("\nSources:\n\n");
    for source in &board.sources {
        writeln!(page, "- {}", plain(source)).unwrap();
    }
}

#[test]
fn the_page_of_boards_is_current() {
    let mut page = String::from(
        "# Boards\n\n\
         This page is written from `specs/devices` by a test, which fails when it is not current.\n\n\
         A dash means that nobody captured the fact.\n\
         entc does not guess it: a spec that needs it gets [`missing-board-fact`](../specs/diagnostics/missing-board-fact.md), and supplies it in a [`board`](../specs/language.md#board-name) block.\n\
         On a real machine the driver's own answers override this catalogue.\n\n\
         *Known* says how placements and ids are known: *captured* from a real board, *inferred* from the same silicon on a sibling board, or *unverified*, by the rule of the family.\n\
         What is not captured is warned about when a plan uses it.\n\n\
         | board | name in a spec | memory (GiB) | SMs | SM clocks (MHz) | base power | MIG profiles |\n\
         |---|---|---:|---:|---|---|---:|\n",
    );
    for board in all_boards() {
        writeln!(
            page,
            "| [{}](#{}) | `{}` | {} | {} | {} | {} | {} |",
            board.title,
            board.id,
            board.id.replace('-', "_"),
            or_unknown(board.memory.map(|b| short(b.get() / GIBIBYTE))),
            or_unknown(board.n_sms),
            clocks(&board),
            board
                .base_power
                .as_ref()
                .map_or_else(|| UNKNOWN.to_owned(), |base| format!("at {} clocks", base.points.len())),
            board.profiles.len()
        )
        .unwrap();
    }
    for board in all_boards() {
        board_section(&mut page, &board);
    }
    hold("boards.md", &page);
}

fn list(values: &[u32]) -> String {
    values.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn curve(page: &mut String, unit: &str, means: &str, points: impl Iterator<Item = (u32, f64)>) {
    writeln!(page, "\n| {unit} | {means} |\n|---:|---:|").unwrap();
    for (at, value) in points {
        writeln!(page, "| {at} | {value:.3} |").unwrap();
    }
}

fn models_section(page: &mut String, id: &str, file: &FittedModels) {
    let name = id.replace('-', "_");
    writeln!(page, "\n## On {id}\n\n```text\nimport \"catalog:performance/{id}\"   // as `{name}`, its models as `{name}.NAME`\n```\n").unwrap();
    page.push_str(
        "Error is the mean absolute error, in per cent, on measurements that the fit had not seen: ",
    );
    let mut methods: Vec<&str> = file.models.iter().map(|model| model.errors.method.as_str()).collect();
    methods.sort_unstable();
    methods.dedup();
    writeln!(page, "{}.\n", methods.join("; or, where there are few, ")).unwrap();
    page.push_str("| model | measurements | slices | batches | clocks (MHz) | throughput error | p99 error | board power error | dynamic power error |\n");
    page.push_str("|---|---:|---|---|---|---:|---:|---:|---:|\n");
    for model in &file.models {
        let FittedModel { model: name, n_measurements, slices, batches, clocks: [low, high], errors, .. } =
            model;
        writeln!(
            page,
            "| `{name}` | {n_measurements} | {} | {} | {}–{} | {} | {} | {} | {} |",
            list(slices),
            list(batches),
            low.0,
            high.0,
            percent(errors.throughput_mean),
            percent(errors.latency_mean),
            or_unknown(errors.power_mean.map(percent)),
            or_unknown(errors.dynamic_power_mean.map(percent))
        )
        .unwrap();
    }
    page.push_str("\nCoefficients of [the form](models.md#time-and-power-of-a-batch):\n\n");
    page.push_str("| model | c₀ | w₀ | w₁ | m₀ | m₁ | h₀ | h₁ | e₀ | e₁ | p₁ |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for model in &file.models {
        let c = &model.coefficients;
        let all = [
            c.serial,
            c.work_batch,
            c.work_each,
            c.memory_batch,
            c.memory_each,
            c.host_batch,
            c.host_each,
            c.energy_batch,
            c.energy_each,
            c.slice_power,
        ];
        let all: Vec<String> = all.iter().map(|value| format!("{value:.3}")).collect();
        writeln!(page, "| `{}` | {} |", model.model, all.join(" | ")).unwrap();
    }
    if let Some(knowledge) = &file.knowledge {
        page.push_str("\nCurves of the board, which all its models share:\n");
        let of_clock =
            |points: &[(Megahertz, f64)]| points.iter().map(|(c, v)| (c.0, *v)).collect::<Vec<_>>();
        let curves = &knowledge.curves;
        curve(page, "compute slices", "ψ: compute time, of one slice", curves.compute.iter().copied());
        curve(page, "compute slices", "μ: memory time, of one memory slice", curves.memory.iter().copied());
        curve(
            page,
            "SM clock (MHz)",
            "v: energy of a batch, relative",
            of_clock(&curves.voltage).into_iter(),
        );
        curve(
            page,
            "SM clock (MHz)",
            "w: power of a busy slice, relative",
            of_clock(&curves.overhead).into_iter(),
        );
    }
    let mut sources: Vec<&str> = file.models.iter().map(|model| model.source.as_str()).collect();
    sources.sort_unstable();
    sources.dedup();
    writeln!(page, "\nSource: {}.", plain(&sources.join("; "))).unwrap();
}

#[test]
fn the_page_of_performance_models_is_current() {
    let mut page = String::from(
        "# Performance models\n\n\
         This page is written from `specs/performance` by a test, which fails when it is not current.\n\
         [How the models work](models.md) says what the numbers mean.\n\n\
         Of a model only the slices that were measured are used, because a measurement is the proof that it fits into their memory.\n\
         Batches and clocks between measured ones are predicted; nothing is extrapolated beyond them.\n",
    );
    let mut count = 0;
    for id in board_ids() {
        let Some(text) = catalogue(id) else { continue };
        let file: FittedModels = serde_json::from_str(text).unwrap();
        models_section(&mut page, id, &file);
        count += 1;
    }
    assert!(count > 0, "the catalogue has models");
    hold("performance-models.md", &page);
}

/// The first paragraph of a page.
fn gist(page: &str) -> String {
    let lines = page.lines().skip(1).skip_while(|line| line.trim().is_empty());
    lines.take_while(|line| !line.trim().is_empty() && !line.starts_with("```")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_of_diagnostics_is_current() {
    let mut page = String::from(
        "# Diagnostics\n\n\
         What entc says about a spec or a plan has a code in words and a page.\n\
         `entc explain CODE` prints the page; this list is written from `specs/diagnostics` by a test.\n\
         Every example on these pages is run, and reports what it says it does.\n\n\
         | code | what is wrong |\n\
         |---|---|\n",
    );
    let mut codes = Code::ALL.to_vec();
    codes.sort_unstable_by_key(|code| code.word());
    for code in codes {
        let word = code.word();
        writeln!(page, "| [`{word}`](../specs/diagnostics/{word}.md) | {} |", plain(&gist(code.page())))
            .unwrap();
    }
    page.push_str(
        "\nErrors about machines (`reset-required`, `no-permission`, …) have no page: the message itself says what happened, what state the machine is in now, and what to do.\n",
    );
    hold("diagnostics.md", &page);
}
