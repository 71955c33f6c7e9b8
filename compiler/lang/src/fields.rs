//! A block → its attributes and inner blocks by name, everything else reported.

use crate::ast::{Block, Expr, Item, ItemKind, Name};
use crate::context::Context;
use crate::suggest::{choices, similar};
use crate::value::Value;
use ent_plan::diagnostic::{Code, Diagnostic, Located, Span};

/// What a kind of block may contain.
pub(crate) struct Shape {
    /// In words: `a service`.
    pub(crate) words: &'static str,
    /// Its attributes.
    pub(crate) attributes: &'static [&'static str],
    /// Inner blocks that may be given at most once, and those that may be repeated.
    pub(crate) blocks: &'static [&'static str],
    pub(crate) repeated_blocks: &'static [&'static str],
    /// Whether it holds `minimize` and `limit`.
    pub(crate) has_objective: bool,
}

/// The entries of a block.
pub(crate) struct Fields<'a> {
    shape: &'static Shape,
    /// The block's first line, without the brace.
    pub(crate) head: Span,
    attributes: Vec<(&'a Name, &'a Expr)>,
    pub(crate) blocks: Vec<&'a Block>,
    pub(crate) limits: Vec<(&'a Name, &'a Expr, Span)>,
    pub(crate) minimize: Option<(&'a Name, Span)>,
    /// Names of entries that are there and could not be read.
    broken: Vec<&'a str>,
    /// Attributes that are there under a misspelled name.
    meant: Vec<&'static str>,
    block: &'a Block,
}

/// The span of a block's first line.
pub(crate) fn head(block: &Block) -> Span {
    block.name.as_ref().map_or(block.kind.span, |name| block.kind.span.to(name.span))
}

impl<'a> Fields<'a> {
    /// Sorts the entries of a block.
    pub(crate) fn read(context: &mut Context<'_>, block: &'a Block, shape: &'static Shape) -> Self {
        let mut fields = Self {
            shape,
            head: head(block),
            attributes: Vec::new(),
            blocks: Vec::new(),
            limits: Vec::new(),
            minimize: None,
            broken: Vec::new(),
            meant: Vec::new(),
            block,
        };
        for item in &block.items {
            fields.take(context, item);
        }
        fields
    }

    fn take(&mut self, context: &mut Context<'_>, item: &'a Item) {
        match &item.kind {
            ItemKind::Comment(_) => {}
            ItemKind::Broken { names, .. } if names.is_empty() => self.broken.push(""),
            ItemKind::Broken { names, .. } => self.broken.extend(names.iter().map(String::as_str)),
            ItemKind::Attribute { name, value } => self.attribute(context, name, value),
            ItemKind::Block(inner) => self.block(context, item, inner),
            ItemKind::Minimize { metric } if self.shape.has_objective => match self.minimize {
                Some((_, first)) => self.again(context, "minimize", item.span, item.span, first),
                None => self.minimize = Some((metric, item.span)),
            },
            ItemKind::Limit { metric, at_most } if self.shape.has_objective => {
                match self.limits.iter().find(|(m, ..)| m.text == metric.text) {
                    Some((_, _, first)) => {
                        self.again(context, &format!("limit {}", metric.text), item.span, item.span, *first);
                    }
                    None => self.limits.push((metric, at_most, item.span)),
                }
            }
            ItemKind::Minimize { .. } | ItemKind::Limit { .. } => {
                let word = if matches!(item.kind, ItemKind::Limit { .. }) { "limit" } else { "minimize" };
                context.report(
                    Diagnostic::error(
                        Code::UnknownAttribute,
                        item.span,
                        format!("`{word}` in {}", self.shape.words),
                    )
                    .label("not here")
                    .help("move it into the `objective` block"),
                );
            }
            ItemKind::Import { .. } | ItemKind::Param { .. } | ItemKind::Let { .. } => {
                context.report(
                    Diagnostic::error(
                        Code::UnknownAttribute,
                        item.span,
                        format!("declaration inside {}", self.shape.words),
                    )
                    .label("not here")
                    .help("move it to the top of the file"),
                );
            }
        }
    }

    /// Reports an entry that is given again, all of it being `whole`.
    fn again(&self, context: &mut Context<'_>, name: &str, second: Span, whole: Span, first: Span) {
        let problem = Diagnostic::error(Code::Duplicate, second, format!("second `{name}` in one block"))
            .label("given again here")
            .and(first, "first given here")
            .help("remove one of them");
        context.report(context.remove(problem, whole, "the second one"));
    }

    fn attribute(&mut self, context: &mut Context<'_>, name: &'a Name, value: &'a Expr) {
        let word = name.text.as_str();
        if self.shape.attributes.contains(&word) {
            match self.attributes.iter().find(|(n, _)| n.text == word) {
                Some((first, _)) => {
                    self.again(context, word, name.span, name.span.to(value.span), first.span);
                }
                None => self.attributes.push((name, value)),
            }
            return;
        }
        // Its value is checked too: that is a mistake of its own.
        context.evaluate(value);
        let problem = Diagnostic::error(
            Code::UnknownAttribute,
            name.span,
            format!("unknown attribute `{word}` of {}", self.shape.words),
        )
        .label("no such attribute");
        let is_block = self.shape.blocks.contains(&word) || self.shape.repeated_blocks.contains(&word);
        let help = if is_block {
            format!("write it as a block: `{word} {{ … }}`")
        } else if self.shape.has_objective && (word == "minimize" || word == "limit") {
            format!(
                "leave out the `=`: `{}`",
                if word == "limit" { "limit power <= 1.1 kW" } else { "minimize energy" }
            )
        } else {
            match similar(word, self.shape.attributes.iter().copied()) {
                Some(meant) => {
                    self.meant.push(meant);
                    context.report(context.did_you_mean(problem, name.span, word, meant));
                    return;
                }
                None if self.shape.attributes.is_empty() => {
                    format!("remove it; {} has no attributes", self.shape.words)
                }
                None => format!("use {}", choices(self.shape.attributes.iter().copied())),
            }
        };
        context.report(problem.help(help));
    }

    fn block(&mut self, context: &mut Context<'_>, item: &Item, inner: &'a Block) {
        let kind = inner.kind.text.as_str();
        if self.shape.repeated_blocks.contains(&kind) {
            self.blocks.push(inner);
            return;
        }
        if self.shape.blocks.contains(&kind) {
            match self.blocks.iter().find(|b| b.kind.text == kind) {
                Some(first) => self.again(context, kind, head(inner), item.span, head(first)),
                None => self.blocks.push(inner),
            }
            return;
        }
        let known = || self.shape.blocks.iter().chain(self.shape.repeated_blocks).copied();
        let problem = Diagnostic::error(
            Code::UnknownBlock,
            inner.kind.span,
            format!("unknown block `{kind}` in {}", self.shape.words),
        )
        .label("no such block here");
        let help = match similar(kind, known()) {
            Some(meant) => {
                context.report(context.did_you_mean(problem, inner.kind.span, kind, meant));
                return;
            }
            None if self.shape.attributes.contains(&kind) => {
                format!("write it as an attribute: `{kind} = …`")
            }
            None if crate::declarations::BLOCKS.contains(&kind) => {
                "move it to the top of the file".to_owned()
            }
            None if known().next().is_none() => {
                format!("remove it; {} has no inner blocks", self.shape.words)
            }
            None => format!("use {}", choices(known())),
        };
        context.report(problem.help(help));
    }

    /// The inner block of a kind.
    pub(crate) fn inner(&self, kind: &str) -> Option<&'a Block> {
        self.blocks.iter().find(|b| b.kind.text == kind).copied()
    }

    /// The expression of an attribute.
    pub(crate) fn expr(&self, name: &str) -> Option<&'a Expr> {
        self.attributes.iter().find(|(n, _)| n.text == name).map(|(_, value)| *value)
    }

    /// The value of an attribute.
    pub(crate) fn value(&self, context: &mut Context<'_>, name: &str) -> Option<Located<Value>> {
        self.expr(name).map(|value| context.evaluate(value))
    }

    /// The value of an attribute that must be there.
    pub(crate) fn required(
        &self,
        context: &mut Context<'_>,
        name: &str,
        example: &str,
    ) -> Option<Located<Value>> {
        let value = self.value(context, name);
        if value.is_none() {
            self.missing(context, name, example);
        }
        value
    }

    /// Reports an attribute that is not there, unless a broken line may be it.
    pub(crate) fn missing(&self, context: &mut Context<'_>, name: &str, example: &str) {
        let may_be = |b: &&str| b.is_empty() || *b == name || similar(b, [name]).is_some();
        if self.broken.iter().any(may_be) || self.meant.contains(&name) {
            return;
        }
        let problem = Diagnostic::error(
            Code::MissingAttribute,
            self.head,
            format!("missing `{name}` of {}", self.shape.words),
        )
        .label(format!("no `{name}` in this block"))
        .help(format!("add `{example}`"));
        // A name is no entry of the block.
        let is_entry = name != "name" && !example.contains('…');
        let problem = if is_entry { context.add_entry(problem, self.block, example) } else { problem };
        context.report(problem);
    }

    /// Whether some entry of the block could not be read.
    pub(crate) fn is_broken(&self) -> bool {
        !self.broken.is_empty()
    }
}
