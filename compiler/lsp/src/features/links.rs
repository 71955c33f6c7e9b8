//! A file → its imports and named files as links.

use crate::Snapshot;
use ent_lang::ast::{Expr, ExprKind, Item, ItemKind};
use ent_plan::diagnostic::{FileId, Span};
use lsp_types::DocumentLink;

/// The links of a file: imports, and texts that name files which exist.
#[must_use]
pub fn links(snapshot: &Snapshot<'_>, file: FileId) -> Vec<DocumentLink> {
    let Some(ast) = snapshot.ast(file) else { return Vec::new() };
    let mut found: Vec<(Span, String)> = Vec::new();
    for item in &ast.items {
        gather(item, &mut found);
    }
    let link = |(span, path): (Span, String)| {
        let name = target(snapshot, file, &path)?;
        let inside = Span { start: span.start + 1, end: span.end.saturating_sub(1), ..span };
        Some(DocumentLink {
            range: snapshot.range(inside),
            target: Some(crate::uri_of(&name)?),
            tooltip: Some(name),
            data: None,
        })
    };
    found.into_iter().filter_map(link).collect()
}

/// The path of a file that a program names in `file`, if there is such a file.
pub(crate) fn target(snapshot: &Snapshot<'_>, file: FileId, path: &str) -> Option<String> {
    if path.starts_with("catalog:") || path.starts_with("data:") {
        return None;
    }
    let name = ent_lang::joined(snapshot.name(file), path);
    let is_there = snapshot.workspace.named(&name).is_some_and(|id| snapshot.ast(id).is_some())
        || std::path::Path::new(&name).is_file();
    is_there.then_some(name)
}

fn gather(item: &Item, found: &mut Vec<(Span, String)>) {
    match &item.kind {
        ItemKind::Import { path, .. } => found.push((path.span, path.text.clone())),
        ItemKind::Attribute { value, .. } | ItemKind::Let { value, .. } | ItemKind::Param { value, .. } => {
            texts(value, found);
        }
        ItemKind::Block(block) => block.items.iter().for_each(|inner| gather(inner, found)),
        ItemKind::Comment(_) | ItemKind::Limit { .. } => {}
        ItemKind::Minimize { .. } | ItemKind::Broken { .. } => {}
    }
}

/// The texts that look like files.
fn texts(expr: &Expr, found: &mut Vec<(Span, String)>) {
    let is_file =
        |text: &str| [".csv", ".json", ".pt", ".pth", ".ts"].iter().any(|ending| text.ends_with(ending));
    match &expr.kind {
        ExprKind::Text(text) if is_file(text) => found.push((expr.span, text.clone())),
        ExprKind::List(list) => list.elements.iter().for_each(|e| texts(&e.value, found)),
        ExprKind::Call { arguments, .. } => arguments.iter().for_each(|a| texts(&a.value, found)),
        ExprKind::Text(_) | ExprKind::Number { .. } | ExprKind::Path(_) | ExprKind::Profile(_) => {}
        ExprKind::Tensor { .. } | ExprKind::Negative(_) | ExprKind::Paren(_) | ExprKind::Chain { .. } => {}
        ExprKind::Promise { .. }
        | ExprKind::Range { .. }
        | ExprKind::Over { .. }
        | ExprKind::Times { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;

    #[test]
    fn imports_of_files_that_exist_are_links() {
        let files = [
            (
                "a/main.ent",
                "$0import \"part.ent\"\nimport \"catalog:nvidia/a30-24gb\"\nimport \"none.ent\"\n",
            ),
            ("a/part.ent", "let x = 1\n"),
        ];
        let world = World::new(&files);
        let links = links(&world.snapshot(), world.file);
        let shown: Vec<(&str, &str)> = links
            .iter()
            .map(|l| (world.text(world.file, l.range), l.target.as_ref().unwrap().as_str()))
            .collect();
        assert_eq!(shown, [("part.ent", "file:///a/part.ent")]);
    }
}
