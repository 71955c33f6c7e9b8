//! A board and its MIG profiles → their geometry in words and as a picture of slices.

use ent_plan::device::{Board, Confidence, GpuInstanceProfile};
use std::fmt::Write as _;

/// A profile: its slices, memory, how many fit and where they may stand. Markdown.
pub(crate) fn profile(board: &Board, profile: &GpuInstanceProfile) -> String {
    let mut text = format!("**{}** on {}\n\n", profile.name, board.id);
    let of = |part: u32, whole: u32, what: &str| format!("{part} of {whole} {what}");
    let mut facts = vec![
        of(profile.n_compute_slices, board.n_compute_slices(), "compute slices"),
        of(profile.n_memory_slices, board.n_memory_slices, "memory slices"),
    ];
    match (profile.n_sms, board.n_sms) {
        (Some(own), Some(all)) => facts.push(of(own, all, "SMs")),
        (Some(own), None) => facts.push(format!("{own} SMs")),
        (None, _) => {}
    }
    facts.extend(profile.memory.map(|memory| format!("{} of memory", gibibytes(memory.get()))));
    let _ = writeln!(text, "{}; at most {} on a board.\n", facts.join(", "), profile.max_instances);
    text.push_str("```text\nmemory slices ");
    let column = |slice: u32| format!("{slice:>2} ");
    text.extend((0..board.n_memory_slices).map(column));
    text.push('\n');
    for start in &profile.starts {
        let _ = write!(text, "from {start:>2}       ");
        let is_taken = |slice: u32| slice >= *start && slice - start < profile.n_memory_slices;
        text.extend((0..board.n_memory_slices).map(|s| if is_taken(s) { " █ " } else { " · " }));
        text.push('\n');
    }
    text.push_str("```\n");
    let known = match profile.confidence {
        Confidence::Captured => "",
        Confidence::InferredSameDie => "Inferred from a sibling board with the same silicon.",
        Confidence::Unverified => "Not verified: a rule of the board's family; nobody has looked.",
        Confidence::User => "Supplied by the program.",
        Confidence::Illustration => "Invented to illustrate.",
    };
    text.push_str(known);
    if !profile.unverified.is_empty() {
        let _ = write!(text, " Not verified: {}.", profile.unverified.join(", "));
    }
    text.trim_end().to_owned()
}

/// A board: what is known of it, and its profiles. Markdown.
pub(crate) fn menu(board: &Board) -> String {
    let mut text = format!("**{}** ({})\n\n", board.title, board.id);
    let mut facts = vec![format!("{} memory slices", board.n_memory_slices)];
    facts.extend(board.n_sms.map(|sms| format!("{sms} SMs")));
    facts.extend(board.memory.map(|memory| format!("{} of memory", gibibytes(memory.get()))));
    if let (Some(low), Some(high)) = (board.clocks.first(), board.clocks.last()) {
        facts.push(format!("{} clocks from {low} to {high}", board.clocks.len()));
    }
    facts.extend(board.power_limits.map(|limits| format!("power limit {}", limits.default)));
    let _ = writeln!(text, "{}\n", facts.join(", "));
    match board.base_power.as_ref().map(|base| (base, base.points.first(), base.points.last())) {
        Some((base, Some((low, least)), Some((high, most)))) => {
            let _ = writeln!(
                text,
                "Base power {:.1} W at {low} to {:.1} W at {high}, from {}.\n",
                least.get(),
                most.get(),
                base.source
            );
        }
        _ => text.push_str("Its base power is not known: plans for power or energy need `base_power`.\n\n"),
    }
    if board.is_illustration {
        text.push_str("Some of its facts are invented.\n\n");
    }
    if !board.unverified.is_empty() {
        let _ = writeln!(text, "Not verified: {}.\n", board.unverified.join(", "));
    }
    text.push_str("| profile | compute | memory slices | memory | at most |\n|---|---|---|---|---|\n");
    for p in &board.profiles {
        let memory = p.memory.map_or_else(|| "?".to_owned(), |m| gibibytes(m.get()));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {memory} | {} |",
            p.name, p.n_compute_slices, p.n_memory_slices, p.max_instances
        );
    }
    text.trim_end().to_owned()
}

fn gibibytes(bytes: f64) -> String {
    let value = bytes / f64::from(1u32 << 30);
    let text = format!("{value:.2}");
    format!("{} GiB", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_shows_where_it_may_stand() {
        let board = ent_plan::device::board("a100-80gb-pcie").unwrap();
        let text = profile(&board, board.profile("3g.40gb").unwrap());
        assert!(text.contains("3 of 7 compute slices, 4 of 8 memory slices, 42 of 108 SMs"), "{text}");
        assert!(text.contains("39.25 GiB of memory; at most 2 on a board"), "{text}");
        assert!(text.contains("from  0        █  █  █  █  ·  ·  ·  · "), "{text}");
        assert!(text.contains("from  4        ·  ·  ·  ·  █  █  █  █ "), "{text}");
    }

    #[test]
    fn a_board_without_base_power_says_so() {
        let board = ent_plan::device::board("h100-80gb-sxm").unwrap();
        assert!(menu(&board).contains("base power is not known"));
    }
}
