//! Tokens, one after the other → what each is to its entry, and what stands behind them.

#![expect(clippy::wildcard_enum_match_arm, reason = "most tokens change nothing")]

use super::{OpenBlock, Part, Place, Position, Role, Subject, ValuePlace, is_closed, unquoted};
use crate::token::{Kind, Token};
use ent_lang::vocabulary::BLOCKS;
use std::ops::Range;

/// What entry is being read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Statement {
    /// Nothing of it yet.
    Empty,
    Import,
    Definition,
    Limit,
    Minimize,
    Attribute,
    Block,
    Unfinished,
}

#[derive(Clone, Debug)]
struct Bracket {
    is_call: bool,
    function: String,
    n_arguments: usize,
    argument_name: Option<String>,
    /// Tokens of the element or argument so far.
    n_tokens: usize,
}

/// Reads tokens one after the other and knows what each is.
pub(super) struct Machine<'t> {
    text: &'t str,
    blocks: Vec<OpenBlock>,
    statement: Statement,
    /// The tokens of the entry, with their roles.
    entry: Vec<(Token, Role)>,
    brackets: Vec<Bracket>,
}

impl<'t> Machine<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            blocks: Vec::new(),
            statement: Statement::Empty,
            entry: Vec::new(),
            brackets: Vec::new(),
        }
    }

    fn end_entry(&mut self) {
        self.statement = Statement::Empty;
        self.entry.clear();
        self.brackets.clear();
    }

    /// Reads one token; `next` are those behind it.
    pub(super) fn take(&mut self, token: &Token, next: &[Token]) -> Role {
        match token.kind {
            Kind::Comment => return Role::Comment,
            Kind::Newline => {
                let goes_on = !self.brackets.is_empty() && !begins_entry(self.text, next, self.is_in_call())
                    || self.brackets.is_empty() && self.ends_with_operator();
                if !goes_on {
                    self.end_entry();
                }
                return Role::Other;
            }
            _ => {}
        }
        if self.entry.is_empty() && self.is_at_margin(token) && begins_file_entry(self.text, token, next) {
            self.blocks.clear();
        }
        let role = match token.text(self.text) {
            "{" if token.kind == Kind::Sign => {
                self.open_block(token);
                return Role::Other;
            }
            "}" if token.kind == Kind::Sign => {
                self.blocks.pop();
                self.end_entry();
                return Role::Other;
            }
            "," if token.kind == Kind::Sign && self.brackets.is_empty() => {
                self.end_entry();
                return Role::Other;
            }
            _ => self.role(token, next),
        };
        self.note_brackets(token, role);
        self.entry.push((token.clone(), role));
        role
    }

    fn is_in_call(&self) -> bool {
        self.brackets.last().is_some_and(|b| b.is_call)
    }

    fn ends_with_operator(&self) -> bool {
        self.entry.last().is_some_and(|(t, role)| {
            *role == Role::Operator && matches!(t.text(self.text), "+" | "-" | "*" | "/")
        })
    }

    fn is_at_margin(&self, token: &Token) -> bool {
        self.text.get(..token.start).is_none_or(|before| before.is_empty() || before.ends_with(['\n', '\r']))
    }

    fn open_block(&mut self, brace: &Token) {
        let words = || self.entry.iter().map(|(t, _)| t.text(self.text));
        let kind = words().next().unwrap_or("").to_owned();
        let name = words().nth(1).filter(|w| *w != "=").map(|w| unquoted(w).to_owned());
        self.blocks.push(OpenBlock { kind, name, start: brace.end });
        self.end_entry();
    }

    fn note_brackets(&mut self, token: &Token, role: Role) {
        if token.kind == Kind::Sign {
            match token.text(self.text) {
                sign @ ("(" | "[") => {
                    let function = self.entry.last().filter(|(_, role)| *role == Role::Function);
                    let function = function.map_or("", |(t, _)| t.text(self.text)).to_owned();
                    let is_call = sign == "(" && !function.is_empty();
                    self.brackets.push(Bracket {
                        is_call,
                        function,
                        n_arguments: 0,
                        argument_name: None,
                        n_tokens: 0,
                    });
                    return;
                }
                ")" | "]" => {
                    self.brackets.pop();
                }
                "," => {
                    if let Some(bracket) = self.brackets.last_mut() {
                        bracket.n_arguments += 1;
                        bracket.argument_name = None;
                        bracket.n_tokens = 0;
                    }
                    return;
                }
                _ => {}
            }
        }
        if let Some(bracket) = self.brackets.last_mut() {
            if role == Role::ArgumentName {
                bracket.argument_name = Some(token.text(self.text).to_owned());
            } else if !token.is(self.text, "=") {
                bracket.n_tokens += 1;
            }
        }
    }

    fn role(&mut self, token: &Token, next: &[Token]) -> Role {
        let word = token.text(self.text);
        let follows = |sign: &str| next.first().is_some_and(|t| t.is(self.text, sign));
        let is_word = token.kind == Kind::Word;
        match (&self.statement, self.entry.len()) {
            (Statement::Empty, _) => {
                let statement = match word {
                    _ if follows("=") && is_word => Statement::Attribute,
                    "import" => Statement::Import,
                    "let" | "param" => Statement::Definition,
                    "limit" => Statement::Limit,
                    "minimize" => Statement::Minimize,
                    _ if is_word && (begins_block(self.text, next) || follows("{")) => Statement::Block,
                    _ => Statement::Unfinished,
                };
                let role = match statement {
                    Statement::Attribute => Role::Attribute,
                    Statement::Block => Role::BlockKind,
                    Statement::Unfinished if is_word => Role::Unfinished,
                    Statement::Unfinished | Statement::Empty => plain(token),
                    Statement::Import | Statement::Definition | Statement::Limit | Statement::Minimize => {
                        Role::Keyword
                    }
                };
                self.statement = statement;
                role
            }
            (Statement::Import, 1) if token.kind == Kind::Text => Role::ImportPath,
            (Statement::Import, 2) if word == "as" => Role::Keyword,
            (Statement::Import, 3) if is_word => Role::Alias,
            (Statement::Definition, 1) if is_word => Role::Declared,
            (Statement::Limit | Statement::Minimize, 1) if is_word => Role::Metric,
            (Statement::Block, 1) if is_word || token.kind == Kind::Text || token.kind == Kind::Profile => {
                Role::BlockName
            }
            (Statement::Attribute, 1) | (Statement::Definition | Statement::Limit, 2) => Role::Operator,
            (Statement::Attribute | Statement::Definition | Statement::Limit, _) => {
                self.value_role(token, next)
            }
            _ => plain(token),
        }
    }

    fn value_role(&self, token: &Token, next: &[Token]) -> Role {
        let word = token.text(self.text);
        let before = self.entry.last();
        let role_before = before.map(|(_, role)| *role);
        let is_adjacent = before.is_some_and(|(t, _)| t.end == token.start);
        let follows = |sign: &str| next.first().is_some_and(|t| t.is(self.text, sign));
        match token.kind {
            Kind::Number => Role::Number,
            Kind::Text => Role::Text,
            Kind::Profile => Role::Profile,
            Kind::Comment => Role::Comment,
            Kind::Newline => Role::Other,
            Kind::Sign => {
                let joins = next.first().is_some_and(|t| t.kind == Kind::Word && t.start == token.end);
                match word {
                    "%" if role_before == Some(Role::Number) => Role::Unit,
                    "/" if joins && role_before == Some(Role::Unit) && is_adjacent => Role::Unit,
                    "/" if joins && role_before == Some(Role::Number) => Role::Unit,
                    "+" | "-" | "*" | "/" | ".." | "<=" => Role::Operator,
                    _ => Role::Other,
                }
            }
            Kind::Word => {
                let is_joint = word == "x" || word == "over" || word == "step" || is_times(word);
                if is_joint && self.ends_operand() {
                    return Role::Keyword;
                }
                let is_unit = match role_before {
                    Some(Role::Number) => word != "per",
                    Some(Role::Unit) => {
                        let sign = before.map_or("", |(t, _)| t.text(self.text));
                        (sign == "/" && is_adjacent) || sign == "per" || word == "per"
                    }
                    _ => false,
                };
                if is_unit {
                    return Role::Unit;
                }
                if before.is_some_and(|(t, _)| t.is(self.text, ".")) {
                    return Role::Member;
                }
                if follows("(") {
                    return Role::Function;
                }
                if follows("[") && next.first().is_some_and(|t| t.start == token.end) {
                    return Role::ElementType;
                }
                if self.is_in_call() && follows("=") {
                    return Role::ArgumentName;
                }
                if is_percentile(word) && (follows("<=") || self.entry.len() == 2) {
                    return Role::Percentile;
                }
                Role::Name
            }
        }
    }

    fn ends_operand(&self) -> bool {
        self.entry.last().is_some_and(|(t, role)| match role {
            Role::Number | Role::Unit | Role::Text | Role::Profile | Role::Name | Role::Member => true,
            Role::Other => matches!(t.text(self.text), ")" | "]"),
            _ => false,
        })
    }

    pub(super) fn place(&self, current: Option<&Token>, next: &[Token], offset: usize) -> Place {
        let replace = match current {
            Some(token) if token.kind == Kind::Text => {
                let end = token.end - usize::from(is_closed(token.text(self.text)));
                token.start + 1..end.max(token.start + 1)
            }
            Some(token) => token.range(),
            None => offset..offset,
        };
        let entry_start =
            self.entry.first().map_or_else(|| current.map_or(offset, |t| t.start), |(first, _)| first.start);
        let mut place =
            Place { blocks: self.blocks.clone(), position: Position::Nothing, replace, entry_start };
        if current.is_some_and(|t| t.kind == Kind::Comment) {
            place.position = Position::Comment;
            return place;
        }
        let is_text = current.is_some_and(|t| t.kind == Kind::Text);
        let word = |i: usize| self.entry.get(i).map_or("", |(t, _)| t.text(self.text));
        let mut subject = None;
        place.position = match (&self.statement, self.entry.len()) {
            (Statement::Empty, _) => {
                // At the margin inside a block that was left open, the file's own entries may stand.
                if current.is_some_and(|t| self.is_at_margin(t) && begins_file_entry(self.text, t, next)) {
                    place.blocks.clear();
                }
                Position::Entry
            }
            (Statement::Import, 1) if is_text => Position::ImportPath,
            (Statement::Import, 2) => Position::AfterImportPath,
            (Statement::Import, 3) | (Statement::Definition, 1) => Position::NewName,
            (Statement::Limit | Statement::Minimize, 1) => Position::Metric,
            (Statement::Block, 1) => Position::BlockName { kind: word(0).to_owned() },
            (Statement::Unfinished, 1) if BLOCKS.contains(&word(0)) || is_inner(word(0)) => {
                Position::BlockName { kind: word(0).to_owned() }
            }
            (Statement::Attribute, 2..) => {
                subject = Some(Subject::Attribute(word(0).to_owned()));
                Position::Nothing
            }
            (Statement::Definition, 3..) => {
                subject = Some(Subject::Definition(word(1).to_owned()));
                Position::Nothing
            }
            (Statement::Limit, 3..) => {
                subject = Some(Subject::Limit(word(1).to_owned()));
                Position::Nothing
            }
            _ => Position::Nothing,
        };
        if let Some(subject) = subject {
            let (value, replace) = self.value_place(subject, current, place.replace.clone(), offset);
            place.position = Position::Value(value);
            place.replace = replace;
        }
        place
    }

    fn value_place(
        &self,
        subject: Subject,
        current: Option<&Token>,
        replace: Range<usize>,
        offset: usize,
    ) -> (ValuePlace, Range<usize>) {
        let head = if matches!(subject, Subject::Attribute(_)) { 2 } else { 3 };
        let value = self.entry.get(head..).unwrap_or_default();
        let (mut part, mut replace) = (Part::Operand, replace);
        let last = value.last().map(|(t, role)| (t, *role));
        match (current.map(|t| t.kind), last) {
            (Some(Kind::Text), _) => part = Part::Text,
            (Some(Kind::Number), _) => {
                part = Part::Unit { is_glued: true };
                replace = offset..offset;
            }
            (_, Some((token, Role::Number))) => {
                part = Part::Unit { is_glued: token.end == replace.start };
            }
            (_, Some((token, Role::Unit)))
                if token.end == replace.start || token.text(self.text) == "per" =>
            {
                // More of the same unit: all of it is replaced.
                let run = value.iter().rev().take_while(|(_, role)| *role == Role::Unit).last();
                part = Part::Unit { is_glued: false };
                replace.start = run.map_or(replace.start, |(t, _)| t.start);
            }
            (_, Some((token, Role::Operator)))
                if token.text(self.text) == "/" && token.end == replace.start =>
            {
                // `req/` and nothing behind it yet: the sign would be a division.
                if let [.., (number, Role::Number), (slash, _)] = value {
                    part = Part::Unit { is_glued: number.end == slash.start };
                    replace.start = token.start;
                } else if let [.., (unit, Role::Unit), (slash, _)] = value
                    && unit.end == slash.start
                {
                    part = Part::Unit { is_glued: false };
                    let run = value.iter().rev().skip(1).take_while(|(_, role)| *role == Role::Unit).last();
                    replace.start = run.map_or(replace.start, |(t, _)| t.start);
                }
            }
            (_, Some((token, _))) if token.is(self.text, ".") => {
                let name = value.iter().rev().nth(1).map_or("", |(t, _)| t.text(self.text));
                part = Part::Member(unquoted(name).to_owned());
            }
            (_, Some(_)) if self.ends_operand() || last.is_some_and(|(_, role)| role == Role::Percentile) => {
                part = Part::AfterOperand;
            }
            _ => {}
        }
        let joints = value.iter().rev().find(|(t, role)| {
            matches!(role, Role::Keyword)
                || matches!(t.text(self.text), "<=" | ".." | ":") && t.kind == Kind::Sign
        });
        let bracket = self.brackets.last();
        let place = ValuePlace {
            subject,
            part,
            call: bracket
                .filter(|b| b.is_call)
                .map(|b| (b.function.clone(), b.n_arguments, b.argument_name.clone())),
            is_in_list: bracket.is_some_and(|b| !b.is_call),
            is_first: bracket.map_or(value.is_empty(), |b| b.n_tokens == 0),
            after: joints
                .map(|(t, _)| if is_times(t.text(self.text)) { "x" } else { t.text(self.text) }.to_owned()),
        };
        (place, replace)
    }
}

/// What a token is where nothing is known of its entry.
fn plain(token: &Token) -> Role {
    match token.kind {
        Kind::Number => Role::Number,
        Kind::Text => Role::Text,
        Kind::Profile => Role::Profile,
        Kind::Word => Role::Name,
        Kind::Comment => Role::Comment,
        Kind::Sign | Kind::Newline => Role::Other,
    }
}

/// `x8`: the keyword and its number in one word.
fn is_times(word: &str) -> bool {
    word == "x" || word.strip_prefix('x').is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
}

fn is_percentile(word: &str) -> bool {
    word.strip_prefix('p')
        .is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}

/// Blocks inside blocks.
fn is_inner(kind: &str) -> bool {
    matches!(kind, "node" | "pin" | "profile")
}

/// Whether a name and a brace follow.
fn begins_block(text: &str, next: &[Token]) -> bool {
    match next {
        [name, brace, ..] => {
            matches!(name.kind, Kind::Word | Kind::Text | Kind::Profile) && brace.is(text, "{")
        }
        _ => false,
    }
}

/// Whether the line that follows is an entry of its own, and not the rest of a bracket.
fn begins_entry(text: &str, next: &[Token], is_in_call: bool) -> bool {
    match next {
        [brace, ..] if brace.is(text, "}") => true,
        [word, rest @ ..] if word.kind == Kind::Word => {
            let is_assigned = rest.first().is_some_and(|t| t.is(text, "=")) && !is_in_call;
            let is_declared = matches!(word.text(text), "let" | "param" | "import");
            is_assigned
                || is_declared
                || begins_block(text, rest)
                || rest.first().is_some_and(|t| t.is(text, "{"))
        }
        _ => false,
    }
}

/// Whether a token at the margin begins what can only stand at the top of a file.
fn begins_file_entry(text: &str, token: &Token, next: &[Token]) -> bool {
    let word = token.text(text);
    if token.kind != Kind::Word {
        return false;
    }
    let is_next = |i: usize, signs: &[&str]| next.get(i).is_some_and(|t| signs.iter().any(|s| t.is(text, s)));
    let is_name = next.first().is_some_and(|t| matches!(t.kind, Kind::Word | Kind::Text));
    match word {
        "import" => next.first().is_some_and(|t| t.kind == Kind::Text),
        "let" | "param" => is_name && is_next(1, &["="]),
        _ if BLOCKS.contains(&word) => is_next(0, &["{"]) || (is_name && is_next(1, &["{"])),
        _ => false,
    }
}
