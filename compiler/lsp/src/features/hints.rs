//! A plan → what is shown beside the text: slice, clock, batch and watts of each service, and what
//! expressions are worth.

#![expect(clippy::wildcard_enum_match_arm, reason = "most values say themselves what they are worth")]

use crate::Snapshot;
use crate::placement;
use crate::planning::Planned;
use ent_lang::ast::{Expr, ExprKind, Item, ItemKind};
use ent_lang::meaning::Meaning;
use ent_plan::diagnostic::FileId;
use lsp_types::{InlayHint, InlayHintKind, InlayHintLabel, InlayHintTooltip, MarkupContent, MarkupKind};
use std::ops::Range;

/// The hints in a range of bytes.
#[must_use]
pub fn hints(
    snapshot: &Snapshot<'_>,
    planned: Option<&Planned>,
    file: FileId,
    bytes: Range<usize>,
) -> Vec<InlayHint> {
    let Some(ast) = snapshot.ast(file) else { return Vec::new() };
    let mut worth: Vec<&Expr> = Vec::new();
    let mut hints = Vec::new();
    for item in &ast.items {
        if !touches(item, &bytes) {
            continue;
        }
        gather(item, &bytes, &mut worth);
        if let ItemKind::Block(block) = &item.kind
            && block.kind.text == "service"
            && let (Some(name), Some(planned)) = (&block.name, planned)
        {
            hints.extend(service(snapshot, planned, file, &name.text, name.span.end as usize));
        }
    }
    if !worth.is_empty() {
        let meaning =
            Meaning::of(snapshot.sources(), snapshot.files().iter().filter_map(|file| snapshot.ast(*file)));
        for expr in worth {
            let Some(resolved) = meaning.value(expr) else { continue };
            hints.push(hint(snapshot, file, expr.span.end as usize, format!("= {}", resolved.text), None));
        }
    }
    hints.sort_by_key(|hint| (hint.position.line, hint.position.character));
    hints
}

fn service(
    snapshot: &Snapshot<'_>,
    planned: &Planned,
    file: FileId,
    name: &str,
    at: usize,
) -> Option<InlayHint> {
    let plan = planned.plan.as_ref()?;
    let line = placement::line(plan, name)?;
    let is_current = planned.is_of(snapshot);
    let label = if is_current { line } else { format!("{line} (before the last change)") };
    Some(hint(snapshot, file, at, label, placement::describe(plan, name)))
}

fn hint(
    snapshot: &Snapshot<'_>,
    file: FileId,
    at: usize,
    label: String,
    tooltip: Option<String>,
) -> InlayHint {
    let markdown =
        |value| InlayHintTooltip::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value });
    InlayHint {
        position: snapshot.workspace.range(file, at..at).start,
        label: InlayHintLabel::String(label),
        kind: Some(InlayHintKind::TYPE),
        text_edits: None,
        tooltip: tooltip.map(markdown),
        padding_left: Some(true),
        padding_right: None,
        data: None,
    }
}

fn touches(item: &Item, bytes: &Range<usize>) -> bool {
    (item.span.start as usize) < bytes.end.max(bytes.start + 1) && bytes.start <= item.span.end as usize
}

/// The values whose worth is not plain to see.
fn gather<'a>(item: &'a Item, bytes: &Range<usize>, found: &mut Vec<&'a Expr>) {
    if !touches(item, bytes) {
        return;
    }
    match &item.kind {
        ItemKind::Param { value, .. }
        | ItemKind::Let { value, .. }
        | ItemKind::Limit { at_most: value, .. }
        | ItemKind::Attribute { value, .. } => {
            let value = match &value.kind {
                ExprKind::Promise { bound, .. } => bound,
                ExprKind::Times { count, .. } => count,
                _ => value,
            };
            if is_worth_saying(value) {
                found.push(value);
            }
        }
        ItemKind::Block(block) => block.items.iter().for_each(|inner| gather(inner, bytes, found)),
        ItemKind::Comment(_) | ItemKind::Import { .. } => {}
        ItemKind::Minimize { .. } | ItemKind::Broken { .. } => {}
    }
}

fn is_worth_saying(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Chain { .. } => true,
        ExprKind::Paren(inner) | ExprKind::Negative(inner) => is_worth_saying(inner),
        ExprKind::Call { function, .. } => matches!(function.text.as_str(), "min" | "max" | "round"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{QUICKSTART, World};

    fn labels(world: &World, planned: Option<&Planned>, bytes: Range<usize>) -> Vec<String> {
        let label = |hint: InlayHint| match hint.label {
            InlayHintLabel::String(label) => label,
            InlayHintLabel::LabelParts(_) => panic!("one part"),
        };
        hints(&world.snapshot(), planned, world.file, bytes).into_iter().map(label).collect()
    }

    #[test]
    fn calculations_show_what_they_are_worth() {
        let text = "param load = 50%\nlet peak = 10 req/s\nlet more = peak * 3\n\
                    service s { rate = load * more, latency = p99 <= 2 * 10 ms }\n";
        let world = World::of(text);
        assert_eq!(labels(&world, None, 0..text.len()), ["= 30 req/s", "= 15 req/s", "= 20 ms"]);
        let service = text.find("service").unwrap();
        assert_eq!(labels(&world, None, service..text.len()), ["= 15 req/s", "= 20 ms"]);
    }

    #[test]
    fn services_show_what_the_plan_gives_them_and_how_old_that_is() {
        let world = World::of(QUICKSTART);
        let plan = ent_plan::plan::sample::plan();
        let planned =
            Planned { plan: Some(plan), revision: world.analysis().revision(), ..Planned::default() };
        let found = labels(&world, Some(&planned), 0..QUICKSTART.len());
        assert_eq!(found.len(), 1, "the sample has `classify` only: {found:?}");
        assert!(found[0].starts_with("1 × 3g.40gb · 1050 MHz · batch 2 · ") && found[0].ends_with(" W"));
        let older = Planned { revision: 0, ..planned };
        let found = labels(&world, Some(&older), 0..QUICKSTART.len());
        assert!(found[0].ends_with("(before the last change)"), "{found:?}");
    }
}
