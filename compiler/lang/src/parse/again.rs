//! Entries of a text, and what was replaced in it → the entries of the new text.
//!
//! Reading starts behind an entry before the change that cannot depend on it, and ends where an entry
//! behind the change begins again, so that a keystroke in a long file costs the block it is in. What comes
//! out is what reading everything would give; a property test holds it to that.
//!
//! Why an entry before the change may stay: blocks, imports, params and lets that have no error stop
//! every look ahead of the parser, because no value may contain a `}` or one of these words.

use super::{Entries, Found, MAX_SYNTAX_ERRORS, Reader, beginning, entries};
use crate::ast::{Item, ItemKind};
use crate::depth;
use crate::parsed::Edit;
use crate::spans::{move_diagnostic, move_spans};
use ent_plan::diagnostic::FileId;

/// Brings entries up to date with the new text of their file.
pub(crate) fn reparse(file: FileId, old: &mut Entries, text: &str, edit: Edit) {
    if old.reports.len() >= MAX_SYNTAX_ERRORS || depth::too_deep(text).is_some() {
        *old = entries(file, text);
        return;
    }
    let n_kept = kept(old, text, edit);
    let behind = old.items.partition_point(|item| start(item) < edit.old_end);
    let mut rest = old.items.split_off(n_kept);
    let mut resumable = resumable(&rest, behind.saturating_sub(n_kept), edit);
    let mut reader = Reader::new(file, text);
    let mut found = Found { items: std::mem::take(&mut old.items), ..Found::default() };
    let (mut at, mut n_reports) = (beginning(text), 0);
    if let Some(last) = found.items.last_mut() {
        last.trailing = None;
        at = last.span.end as usize;
        n_reports = old.reports.partition_point(|r| r.entry < at);
    }
    let mut resumed = None;
    loop {
        let spaces = text.get(at..).map_or(0, |rest| rest.len() - rest.trim_start_matches([' ', '\t']).len());
        while resumable.last().is_some_and(|(start, _)| *start < at + spaces) {
            resumable.pop();
        }
        if let Some((start, index)) = resumable.last().copied().filter(|(start, _)| *start == at + spaces) {
            resumed = Some((start, index));
            break;
        }
        let Some(next) = reader.step(&mut found, at) else { break };
        at = next;
    }
    let mut reports: Vec<_> = old.reports.drain(..).collect();
    let behind = resumed.map_or(Vec::new(), |(start, _)| {
        let old_start = start - edit.new_end + edit.old_end;
        reports.split_off(reports.partition_point(|r| r.entry < old_start))
    });
    reports.truncate(n_reports);
    reports.append(&mut reader.reports);
    old.reports = reports;
    if let Some((_, index)) = resumed {
        let mut rest = rest.split_off(index);
        if let Some(first) = rest.first_mut() {
            first.follows_blank_line = found.is_after_blank_line();
        }
        let delta = edit.new_end.wrapping_sub(edit.old_end);
        if delta != 0 {
            rest.iter_mut().for_each(|item| move_spans(item, delta));
        }
        found.items.append(&mut rest);
        for mut report in behind {
            report.entry = report.entry.wrapping_add(delta);
            move_diagnostic(&mut report.problem, delta);
            old.reports.push(report);
        }
    }
    old.items = found.items;
    if old.reports.len() >= MAX_SYNTAX_ERRORS {
        *old = entries(file, text);
    }
}

/// How many of the entries stay as they are: up to the last one that the change cannot reach.
fn kept(old: &Entries, text: &str, edit: Edit) -> usize {
    let before = old.items.partition_point(|item| start(item) < edit.start);
    let stays = |item: &Item| {
        let end = item.span.end as usize;
        is_firm(item)
            && text.get(end..edit.start).is_some_and(|gap| gap.contains(['\n', '\r']))
            && old.reports.binary_search_by_key(&start(item), |r| r.entry).is_err()
    };
    (0..before).rev().find(|i| old.items.get(*i).is_some_and(stays)).map_or(0, |i| i + 1)
}

/// Where entries behind the change begin in the new text, and their indices with their comments, last
/// first. Only of kinds that nothing before them has a say in.
fn resumable(rest: &[Item], behind: usize, edit: Edit) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut first = behind;
    for (i, item) in rest.iter().enumerate().skip(behind) {
        // Comments from inside a value stand before its entry.
        let is_inside = item.is_comment()
            && rest[i..].iter().find(|i| !i.is_comment()).is_some_and(|entry| start(entry) < start(item));
        if is_inside {
            continue;
        }
        if is_firm(item) && start(item) >= edit.old_end {
            found.push((start(item) - edit.old_end + edit.new_end, first));
        }
        first = i + 1;
    }
    found.reverse();
    found
}

fn start(item: &Item) -> usize {
    item.span.start as usize
}

fn is_firm(item: &Item) -> bool {
    match item.kind {
        ItemKind::Block(_) | ItemKind::Import { .. } | ItemKind::Param { .. } | ItemKind::Let { .. } => true,
        ItemKind::Comment(_)
        | ItemKind::Limit { .. }
        | ItemKind::Minimize { .. }
        | ItemKind::Attribute { .. }
        | ItemKind::Broken { .. } => false,
    }
}
