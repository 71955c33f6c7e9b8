//! Parsed files → what they declare, by kind.

use crate::ast::{Ast, Block, Expr, Item, ItemKind, Name};
use crate::context::Context;
use crate::definitions::{Declared, duplicate};
use crate::fields::head;
use crate::files::{is_spec, stem};
use crate::fixes::change;
use crate::suggest::{choices, similar};
use ent_plan::device;
use ent_plan::diagnostic::{Code, Diagnostic, Fix, Span};
use std::collections::BTreeMap;

/// The kinds of blocks at the top of a file.
pub(crate) const BLOCKS: &[&str] = &["model", "service", "hardware", "board", "carbon", "objective"];

/// Performance data that an import gives a name.
#[derive(Clone)]
pub(crate) struct Namespace {
    /// The file, as in `PerformanceRef`.
    pub(crate) file: String,
    pub(crate) span: Span,
}

/// A catalogue board that an import gives a name.
#[derive(Clone)]
pub(crate) struct ImportedBoard {
    pub(crate) id: String,
    pub(crate) span: Span,
}

/// What all files of a program declare.
#[derive(Default)]
pub(crate) struct Declarations<'a> {
    pub(crate) values: Vec<Declared<'a>>,
    pub(crate) namespaces: BTreeMap<String, Namespace>,
    pub(crate) imported_boards: BTreeMap<String, ImportedBoard>,
    pub(crate) boards: Vec<(&'a Name, &'a Block)>,
    pub(crate) models: Vec<(&'a Name, &'a Block)>,
    pub(crate) services: Vec<(&'a Name, &'a Block)>,
    pub(crate) hardware: Vec<&'a Block>,
    pub(crate) carbon: Option<&'a Block>,
    pub(crate) objective: Option<&'a Block>,
    /// Something could not be read: what is missing may be there.
    pub(crate) is_broken: bool,
}

impl<'a> Declarations<'a> {
    /// Collects what files declare.
    pub(crate) fn collect(context: &mut Context<'_>, asts: &[&'a Ast]) -> Self {
        let mut found = Self::default();
        for ast in asts.iter().copied() {
            for item in &ast.items {
                found.take(context, item);
            }
        }
        found
    }

    fn take(&mut self, context: &mut Context<'_>, item: &'a Item) {
        match &item.kind {
            ItemKind::Comment(_) => {}
            ItemKind::Import { path, alias } => self.import(context, path, alias.as_ref()),
            ItemKind::Param { name, value } => self.value(context, name, value, true),
            ItemKind::Let { name, value } => self.value(context, name, value, false),
            ItemKind::Block(block) => self.block(context, block),
            ItemKind::Broken { names, .. } => {
                self.is_broken = true;
                match names.as_slice() {
                    [] => context.is_all_poisoned = true,
                    [word, ..] if word == "import" => context.is_all_poisoned = true,
                    names => context.poisoned.extend(names.iter().cloned()),
                }
            }
            ItemKind::Attribute { name, value } => {
                context.evaluate(value);
                context.report(
                    Diagnostic::error(
                        Code::UnknownAttribute,
                        name.span,
                        format!("attribute `{}` outside a block", name.text),
                    )
                    .label("in no block")
                    .help(format!("write `let {} = …`, or move it into a block", name.text))
                    .fix(Fix::insert(
                        format!("write `let {}`", name.text),
                        name.span,
                        "let ",
                    )),
                );
            }
            ItemKind::Limit { .. } | ItemKind::Minimize { .. } => {
                context.report(
                    Diagnostic::error(Code::UnknownAttribute, item.span, "objective outside its block")
                        .label("in no block")
                        .help("move it into an `objective` block"),
                );
            }
        }
    }

    fn value(&mut self, context: &mut Context<'_>, name: &'a Name, value: &'a Expr, is_param: bool) {
        if matches!(name.text.as_str(), "true" | "false") {
            context.report(
                Diagnostic::error(
                    Code::Duplicate,
                    name.span,
                    format!("`{}` has a meaning already", name.text),
                )
                .label("a word of the language")
                .help("choose another name"),
            );
            return;
        }
        self.values.push(Declared { name, value, is_param });
    }

    fn block(&mut self, context: &mut Context<'_>, block: &'a Block) {
        let kind = block.kind.text.as_str();
        let list = match kind {
            "model" => &mut self.models,
            "service" => &mut self.services,
            "board" => &mut self.boards,
            "hardware" | "carbon" | "objective" => return self.nameless(context, block),
            other => return self.unknown_block(context, block, other),
        };
        let Some(name) = &block.name else {
            self.is_broken = true;
            context.report(
                Diagnostic::error(
                    Code::MissingAttribute,
                    block.kind.span,
                    format!("missing name of a `{kind}`"),
                )
                .label("no name behind this word")
                .help(format!("write `{kind} some_name {{ … }}`"))
                .fix(
                    Fix::insert(
                        "add a name",
                        Span { start: block.kind.span.end, ..block.kind.span },
                        format!(" some_{kind}"),
                    )
                    .example(),
                ),
            );
            return;
        };
        if name.text.is_empty() {
            self.is_broken = true;
            context.report(
                Diagnostic::error(Code::MissingAttribute, name.span, format!("missing name of a `{kind}`"))
                    .label("this name is empty")
                    .help("write a name between the quotes"),
            );
            return;
        }
        list.push((name, block));
    }

    fn nameless(&mut self, context: &mut Context<'_>, block: &'a Block) {
        let kind = block.kind.text.as_str();
        if let Some(name) = &block.name {
            let help = if kind == "hardware" {
                format!("name the nodes inside it: `node \"{}\" {{ … }}`", name.text)
            } else {
                "remove the name".to_owned()
            };
            context.report(
                Diagnostic::error(Code::UnknownName, name.span, format!("`{kind}` has no name"))
                    .label("no name is used here")
                    .help(help),
            );
        }
        let once = match kind {
            "hardware" => return self.hardware.push(block),
            "carbon" => &mut self.carbon,
            _ => &mut self.objective,
        };
        match once {
            Some(first) => context.report(
                Diagnostic::error(Code::Duplicate, head(block), format!("second `{kind}` block"))
                    .label("declared again here")
                    .and(head(first), "first declared here")
                    .help("put everything into one of them"),
            ),
            None => *once = Some(block),
        }
    }

    fn unknown_block(&mut self, context: &mut Context<'_>, block: &Block, kind: &str) {
        if let Some(name) = &block.name {
            context.poisoned.insert(name.text.clone());
        }
        self.is_broken = true;
        let problem =
            Diagnostic::error(Code::UnknownBlock, block.kind.span, format!("unknown block `{kind}`"))
                .label("no such block");
        let help = match kind {
            "node" => "put it inside `hardware { … }`".to_owned(),
            "pin" => "put it inside a `service`".to_owned(),
            _ => match similar(kind, BLOCKS.iter().copied()) {
                Some(meant) => {
                    context.report(context.did_you_mean(problem, block.kind.span, kind, meant));
                    return;
                }
                None => format!("use {}", choices(BLOCKS.iter().copied())),
            },
        };
        context.report(problem.help(help));
    }

    fn import(&mut self, context: &mut Context<'_>, path: &'a Name, alias: Option<&'a Name>) {
        let text = path.text.as_str();
        if is_spec(text) {
            if let Some(alias) = alias {
                context.report(
                    Diagnostic::error(Code::UnknownName, alias.span, "a program is imported without a name")
                        .label("this name would mean nothing")
                        .help("remove `as …`; what the file declares can be used by its own names")
                        .fix(Fix::replace(
                            "remove the name",
                            Span { start: path.span.end, ..alias.span },
                            "",
                        )),
                );
            }
        } else if let Some(id) = text.strip_prefix("catalog:nvidia/") {
            self.import_board(context, path, id, alias);
        } else if let Some(id) = text.strip_prefix("catalog:performance/") {
            let name = alias.map_or_else(|| id.replace('-', "_"), |a| a.text.clone());
            self.namespace(context, name, text.to_owned(), path.span);
        } else if text.starts_with("catalog:") {
            context.is_all_poisoned = true;
            context.report(
                Diagnostic::error(Code::MissingFile, path.span, format!("no `{text}` in the catalogue"))
                    .label("not in the catalogue")
                    .help("write `catalog:nvidia/BOARD` or `catalog:performance/BOARD`"),
            );
        } else if text.ends_with(".json") || text.ends_with(".csv") {
            let name = alias.map_or_else(|| stem(text), |a| a.text.clone());
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(is_word) || name.starts_with(|c: char| c.is_ascii_digit())
            {
                context.report(
                    Diagnostic::error(
                        Code::UnknownName,
                        path.span,
                        "file name is not a name of the language",
                    )
                    .label(format!("`{name}` cannot be written as a name"))
                    .help(format!("add a name: `import \"{text}\" as measured`"))
                    .fix(
                        Fix::insert("add a name", Span { start: path.span.end, ..path.span }, " as measured")
                            .example(),
                    ),
                );
                return;
            }
            let file = context.join(path.span.file, text);
            self.namespace(context, name, file, path.span);
        } else {
            context.is_all_poisoned = true;
            context.report(
                Diagnostic::error(Code::MissingFile, path.span, "unknown kind of import")
                    .label("neither a program, nor performance data, nor from the catalogue")
                    .help("import a file that ends in `.ent`, `.json` or `.csv`, or from `catalog:`"),
            );
        }
    }

    fn namespace(&mut self, context: &mut Context<'_>, name: String, file: String, span: Span) {
        match self.namespaces.get(&name) {
            Some(first) if first.file != file => {
                context.report(duplicate("performance data", &name, span, first.span));
            }
            Some(_) => {}
            None => {
                self.namespaces.insert(name, Namespace { file, span });
            }
        }
    }

    fn import_board(&mut self, context: &mut Context<'_>, path: &Name, id: &str, alias: Option<&Name>) {
        let name = alias.map_or_else(|| id.replace('-', "_"), |a| a.text.clone());
        if !device::board_ids().any(|known| known == id) {
            context.poisoned.insert(name);
            let variants: Vec<&str> = device::board_ids().filter(|known| known.starts_with(id)).collect();
            let problem = Diagnostic::error(Code::UnknownBoard, path.span, format!("unknown board `{id}`"))
                .label("not in the catalogue");
            let named = |id: &str| change(path.span, &format!("\"catalog:nvidia/{id}\""));
            let problem = if !id.is_empty() && !variants.is_empty() {
                let help = format!("name the variant: {}", choices(variants.iter().copied()));
                variants.iter().take(4).fold(problem.help(help), |problem, id| problem.fix(named(id)))
            } else {
                match similar(id, device::board_ids()) {
                    Some(meant) => {
                        problem.help(format!("did you mean `catalog:nvidia/{meant}`?")).fix(named(meant))
                    }
                    None => problem.help(format!("use one of {}", choices(device::board_ids()))),
                }
            };
            context.report(problem);
            return;
        }
        match self.imported_boards.get(&name) {
            Some(first) if first.id != id => {
                context.report(duplicate("board", &name, path.span, first.span));
            }
            Some(_) => {}
            None => {
                self.imported_boards.insert(name, ImportedBoard { id: id.to_owned(), span: path.span });
            }
        }
    }
}
