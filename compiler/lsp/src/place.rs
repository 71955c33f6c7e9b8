//! Text, offset → what stands there: the blocks around it, and what may be written.
//!
//! Reads tokens, not the tree: the entry that is being typed is broken, and the entries before it may be.
//! A line at the margin that can only stand at the top of a file ends the blocks that were left open, as
//! in the grammar.

mod machine;

use crate::token::{Kind, Token, tokens};
use machine::Machine;
use std::ops::Range;

/// What a token is to its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Comment,
    /// `import`, `as`, `let`, `limit`, `x`, `over`, …
    Keyword,
    BlockKind,
    BlockName,
    Attribute,
    ImportPath,
    /// The name behind `as`.
    Alias,
    /// The name behind `let` or `param`.
    Declared,
    Metric,
    Number,
    Unit,
    Text,
    Profile,
    Percentile,
    Function,
    /// `float32` of a tensor.
    ElementType,
    ArgumentName,
    Name,
    /// What is behind a dot.
    Member,
    Operator,
    /// The first word of an entry of which nothing else is there.
    Unfinished,
    /// Brackets, commas, line ends, and signs that mean nothing.
    Other,
}

/// A block that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenBlock {
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
    /// Just behind the brace.
    pub(crate) start: usize,
}

/// What stands at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The blocks around it, the outermost first.
    pub(crate) blocks: Vec<OpenBlock>,
    /// What may be written.
    pub(crate) position: Position,
    /// The word that is being written, to be replaced.
    pub(crate) replace: Range<usize>,
    /// Where its entry begins.
    pub(crate) entry_start: usize,
}

impl Place {
    /// The kinds of the blocks around it.
    pub(crate) fn path(&self) -> Vec<&str> {
        self.blocks.iter().map(|b| b.kind.as_str()).collect()
    }
}

/// What may be written at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// The first word of an entry.
    Entry,
    BlockName {
        kind: String,
    },
    /// Between the quotes of an import.
    ImportPath,
    /// Behind an import's path.
    AfterImportPath,
    /// A new name: nothing can be offered.
    NewName,
    /// Behind `minimize` or `limit`.
    Metric,
    Value(ValuePlace),
    Comment,
    /// Where only a sign can follow, or nothing is known.
    Nothing,
}

/// What a value is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Attribute(String),
    Limit(String),
    Definition(String),
}

/// A place in a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValuePlace {
    pub(crate) subject: Subject,
    pub(crate) part: Part,
    /// The call it is in: the function, the argument's number, and its name if it has one.
    pub(crate) call: Option<(String, usize, Option<String>)>,
    /// It is in a list.
    pub(crate) is_in_list: bool,
    /// Nothing of the value stands before it; in a list, of the element.
    pub(crate) is_first: bool,
    /// The sign or keyword of the value that it follows most lately, outside brackets: `<=`, `x`, `over`, `step`, `..`.
    pub(crate) after: Option<String>,
}

/// What part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A number, a name, a text.
    Operand,
    /// Behind a number; `is_glued` when no space is between them.
    Unit { is_glued: bool },
    /// Behind a dot: the names before it.
    Member(String),
    /// Between quotes.
    Text,
    /// Behind something whole: an operator may follow.
    AfterOperand,
}

/// The tokens of a text, each with its role. Line ends are left out.
pub(crate) fn roles(text: &str) -> Vec<(Token, Role)> {
    let all = tokens(text);
    let mut machine = Machine::new(text);
    let mut found = Vec::with_capacity(all.len());
    for (i, token) in all.iter().enumerate() {
        let role = machine.take(token, all.get(i + 1..).unwrap_or_default());
        if token.kind != Kind::Newline {
            found.push((token.clone(), role));
        }
    }
    found
}

/// What stands at an offset.
pub(crate) fn place(text: &str, offset: usize) -> Place {
    let all = tokens(text);
    let mut machine = Machine::new(text);
    let mut current: Option<(usize, &Token)> = None;
    for (i, token) in all.iter().enumerate() {
        if token.start >= offset {
            break;
        }
        let is_open_text = token.kind == Kind::Text && !is_closed(token.text(text));
        let is_inside = match token.kind {
            Kind::Word | Kind::Number | Kind::Profile | Kind::Comment => offset <= token.end,
            Kind::Text => offset < token.end || (is_open_text && offset == token.end),
            Kind::Newline | Kind::Sign => false,
        };
        if is_inside {
            current = Some((i, token));
            break;
        }
        machine.take(token, all.get(i + 1..).unwrap_or_default());
    }
    let following = match current {
        Some((i, _)) => all.get(i + 1..).unwrap_or_default(),
        None => {
            let from = all.partition_point(|t| t.start < offset);
            all.get(from..).unwrap_or_default()
        }
    };
    machine.place(current.map(|(_, token)| token), following, offset)
}

/// Whether a text has its last quote.
pub(crate) fn is_closed(quoted: &str) -> bool {
    let mut chars = quoted.chars().skip(1);
    while let Some(c) = chars.next() {
        match c {
            '"' => return true,
            '\\' => {
                chars.next();
            }
            _ => {}
        }
    }
    false
}

pub(crate) fn unquoted(word: &str) -> &str {
    let inside = word.strip_prefix('"').unwrap_or(word);
    inside.strip_suffix('"').unwrap_or(inside)
}

#[cfg(test)]
mod tests;
