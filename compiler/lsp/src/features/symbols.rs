//! A file or all programs → what they declare.

use crate::Snapshot;
use crate::names::{Form, Names, Sort};
use ent_lang::ast::{Block, Item, ItemKind, Name};
use ent_lang::print_expr;
use ent_plan::diagnostic::{FileId, Span};
use lsp_types::{DocumentSymbol, OneOf, SymbolKind, WorkspaceSymbol};

/// Details longer than this are cut.
const MAX_DETAIL: usize = 60;

/// At most this many symbols are given for one query.
const MAX_SYMBOLS: usize = 500;

/// What a file declares, as a tree.
#[must_use]
pub fn document(snapshot: &Snapshot<'_>, file: FileId) -> Vec<DocumentSymbol> {
    let Some(ast) = snapshot.ast(file) else { return Vec::new() };
    ast.items.iter().filter_map(|item| symbol(snapshot, item)).collect()
}

/// What all programs declare that is like a query: its letters in their order.
#[must_use]
pub fn workspace(snapshots: &[Snapshot<'_>], query: &str) -> Vec<WorkspaceSymbol> {
    let query = query.to_lowercase();
    let is_like = |name: &str| {
        let name = name.to_lowercase();
        let mut letters = name.chars();
        query.chars().all(|c| letters.any(|l| l == c))
    };
    let mut seen: Vec<Span> = Vec::new();
    let mut found: Vec<WorkspaceSymbol> = Vec::new();
    for snapshot in snapshots {
        let names = Names::of(snapshot);
        for one in names.declared().iter().filter(|o| o.form != Form::Implied && is_like(&o.name)) {
            if found.len() >= MAX_SYMBOLS || seen.contains(&one.span) {
                continue;
            }
            seen.push(one.span);
            let Some(location) = snapshot.location(one.span) else { continue };
            let path = snapshot.name(one.span.file);
            found.push(WorkspaceSymbol {
                name: one.name.to_string(),
                kind: kind(one.sort),
                tags: None,
                container_name: Some(path.rsplit('/').next().unwrap_or(path).to_owned()),
                location: OneOf::Left(location),
                data: None,
            });
        }
    }
    found
}

fn kind(sort: Sort) -> SymbolKind {
    match sort {
        Sort::Value => SymbolKind::VARIABLE,
        Sort::Model => SymbolKind::CLASS,
        Sort::Service => SymbolKind::FUNCTION,
        Sort::Node => SymbolKind::OBJECT,
        Sort::Board => SymbolKind::STRUCT,
        Sort::Performance => SymbolKind::MODULE,
    }
}

fn symbol(snapshot: &Snapshot<'_>, item: &Item) -> Option<DocumentSymbol> {
    let named = |name: &Name, kind: SymbolKind, detail: String| {
        made(snapshot, item.span, name.span, name.text.clone(), kind, detail, Vec::new())
    };
    Some(match &item.kind {
        ItemKind::Param { name, value } => {
            named(name, SymbolKind::VARIABLE, format!("param = {}", print_expr(value)))
        }
        ItemKind::Let { name, value } => {
            named(name, SymbolKind::CONSTANT, format!("= {}", print_expr(value)))
        }
        ItemKind::Import { path, alias } => {
            let detail =
                alias.as_ref().map_or_else(|| "import".to_owned(), |a| format!("import as {}", a.text));
            named(path, SymbolKind::MODULE, detail)
        }
        ItemKind::Attribute { name, value } => named(name, SymbolKind::PROPERTY, print_expr(value)),
        ItemKind::Minimize { metric } => named(metric, SymbolKind::PROPERTY, "minimize".to_owned()),
        ItemKind::Limit { metric, at_most } => {
            named(metric, SymbolKind::PROPERTY, format!("limit <= {}", print_expr(at_most)))
        }
        ItemKind::Block(block) => block_symbol(snapshot, item, block),
        ItemKind::Comment(_) | ItemKind::Broken { .. } => return None,
    })
}

fn block_symbol(snapshot: &Snapshot<'_>, item: &Item, block: &Block) -> DocumentSymbol {
    let kind = match block.kind.text.as_str() {
        "model" => SymbolKind::CLASS,
        "service" => SymbolKind::FUNCTION,
        "board" => SymbolKind::STRUCT,
        "hardware" => SymbolKind::NAMESPACE,
        "profile" => SymbolKind::ENUM_MEMBER,
        _ => SymbolKind::OBJECT,
    };
    let children = block.items.iter().filter_map(|inner| symbol(snapshot, inner)).collect();
    match &block.name {
        // A symbol must have a name that can be seen.
        Some(name) if !name.text.trim().is_empty() => {
            made(snapshot, item.span, name.span, name.text.clone(), kind, block.kind.text.clone(), children)
        }
        _ => {
            made(snapshot, item.span, block.kind.span, block.kind.text.clone(), kind, String::new(), children)
        }
    }
}

#[expect(deprecated, reason = "the protocol's own type has a field that is not to be used")]
fn made(
    snapshot: &Snapshot<'_>,
    whole: Span,
    name_span: Span,
    name: String,
    kind: SymbolKind,
    mut detail: String,
    children: Vec<DocumentSymbol>,
) -> DocumentSymbol {
    if let Some((cut, _)) = detail.char_indices().nth(MAX_DETAIL) {
        detail.truncate(cut);
        detail.push('…');
    }
    let name = if name.trim().is_empty() { "?".to_owned() } else { name };
    DocumentSymbol {
        name,
        detail: Some(detail.replace('\n', " ")).filter(|d| !d.is_empty()),
        kind,
        tags: None,
        deprecated: None,
        range: snapshot.range(whole.to(name_span)),
        selection_range: snapshot.range(name_span),
        children: Some(children).filter(|c| !c.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;

    fn tree(symbols: &[DocumentSymbol]) -> Vec<String> {
        let one = |s: &DocumentSymbol| {
            let children = tree(s.children.as_deref().unwrap_or_default());
            let detail = s.detail.as_deref().unwrap_or("");
            format!("{}|{detail}|{}", s.name, children.join(","))
        };
        symbols.iter().map(one).collect()
    }

    #[test]
    fn a_file_is_a_tree_of_what_it_declares_and_broken_lines_are_left_out() {
        let world = World::of(
            "import \"x.json\" as x\nlet a = 2 * 3\nservice \"front door\" { rate = = 5\n  latency = p99 <= 1 s }\n\
             hardware { node n { gpu = b x 2 } }\nobjective { minimize energy\n limit gpus <= 2 }\n",
        );
        assert_eq!(
            tree(&document(&world.snapshot(), world.file)),
            [
                "x.json|import as x|",
                "a|= 2 * 3|",
                "front door|service|latency|p99 <= 1 s|",
                "hardware||n|node|gpu|b x 2|",
                "objective||energy|minimize|,gpus|limit <= 2|",
            ]
        );
    }

    #[test]
    fn all_programs_are_searched_by_letters_in_their_order() {
        let files =
            [("a.ent", "model resnet50 {}\nlet rate = 1\n"), ("b.ent", "model bert {}\nlet peak = 2\n")];
        let world = World::of_mains(&files, &["a.ent", "b.ent"]);
        let found = |query: &str| -> Vec<String> {
            workspace(&world.snapshots(), query).into_iter().map(|s| s.name).collect()
        };
        assert_eq!(found("bt"), ["bert"]);
        assert_eq!(found("RSN"), ["resnet50"]);
        assert_eq!(found("").len(), 4);
    }
}
