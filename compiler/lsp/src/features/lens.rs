//! A file → the commands that are shown above its lines: "plan this file".

use crate::Snapshot;
use crate::placement;
use crate::planning::Planned;
use ent_lang::ast::{Item, ItemKind};
use ent_plan::diagnostic::FileId;
use lsp_types::{CodeLens, Command};

/// The lenses of a file: above the first entry of a program's main file.
#[must_use]
pub fn lenses(snapshot: &Snapshot<'_>, planned: Option<&Planned>, file: FileId) -> Vec<CodeLens> {
    let is_main = snapshot.files().first() == Some(&file);
    let Some(ast) = snapshot.ast(file).filter(|_| is_main) else { return Vec::new() };
    let is_program = |item: &Item| matches!(&item.kind, ItemKind::Block(b) if matches!(b.kind.text.as_str(), "service" | "hardware"));
    if !ast.items.iter().any(is_program) {
        return Vec::new();
    }
    let Some(first) = ast.items.iter().find(|item| !item.is_comment()) else { return Vec::new() };
    let (Some(uri), range) = (snapshot.uri(file), snapshot.range(first.span)) else { return Vec::new() };
    let range = lsp_types::Range { start: range.start, end: range.start };
    let lens = |title: String, command: &str| CodeLens {
        range,
        command: Some(Command {
            title,
            command: command.to_owned(),
            arguments: Some(vec![serde_json::Value::String(uri.as_str().to_owned())]),
        }),
        data: None,
    };
    let mut lenses = vec![lens("plan this file".to_owned(), crate::planning::PLAN)];
    if let Some((planned, summary)) = planned.and_then(|p| Some((p, placement::summary(p.plan.as_ref()?)?))) {
        let age = if planned.is_of(snapshot) { "" } else { " (before the last change)" };
        lenses.push(lens(format!("show plan: {summary}{age}"), crate::planning::SHOW_PLAN));
    }
    lenses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{QUICKSTART, World};

    fn titles(world: &World, planned: Option<&Planned>) -> Vec<String> {
        let lenses = lenses(&world.snapshot(), planned, world.file);
        lenses.into_iter().filter_map(|l| Some(l.command?.title)).collect()
    }

    #[test]
    fn a_program_can_be_planned_and_its_plan_shown() {
        let world = World::of(QUICKSTART);
        assert_eq!(titles(&world, None), ["plan this file"]);
        let plan = Some(ent_plan::plan::sample::plan());
        let planned = Planned { plan, revision: world.analysis().revision(), ..Planned::default() };
        let shown = titles(&world, Some(&planned));
        assert!(
            shown.len() == 2 && shown[1].starts_with("show plan: ") && shown[1].ends_with("1 board"),
            "{shown:?}"
        );
    }

    #[test]
    fn a_file_that_is_no_program_has_no_lens() {
        assert!(titles(&World::of("model m {}\n"), None).is_empty());
        let files = [("main.ent", "import \"part.ent\"\n"), ("part.ent", "$0service s {}\n")];
        assert!(titles(&World::new(&files), None).is_empty());
    }
}
