//! A file as it was written: entries, expressions, and the comments between them.
//!
//! Nothing here is resolved: names are words, units are text, numbers are digits. Two trees are equal
//! when they say the same, wherever it stands: places and blank lines are not compared.

use ent_plan::diagnostic::{FileId, Span};

/// One file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ast {
    /// The entries, comments on their own lines included, in the order written.
    pub items: Vec<Item>,
    /// The file's id.
    pub file: FileId,
}

macro_rules! same_wherever_it_stands {
    ($($type:ty { $($field:ident),+ })*) => {
        $(impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                $(self.$field == other.$field)&&+
            }
        })*
    };
}

same_wherever_it_stands! {
    Item { kind, trailing }
    Comment { text }
    Name { text, is_quoted }
    Unit { text }
    Expr { kind }
}

/// One entry of a file or a block.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// All of it, without its comment.
    pub span: Span,
    /// At least one empty line stands before it.
    pub follows_blank_line: bool,
    /// The comment behind it on its line; behind the closing brace of a block.
    pub trailing: Option<Comment>,
}

/// A comment, `//` included, spaces at its end left out.
#[derive(Clone, Debug)]
pub struct Comment {
    /// The text.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    /// A comment on its own line.
    Comment(Comment),
    /// `import "path"`, `import "path" as name`.
    Import {
        /// The path.
        path: Name,
        /// The name it is bound to.
        alias: Option<Name>,
    },
    /// `param name = value`.
    Param {
        /// The name.
        name: Name,
        /// Its value unless set from outside.
        value: Expr,
    },
    /// `let name = value`.
    Let {
        /// The name.
        name: Name,
        /// The value.
        value: Expr,
    },
    /// `limit metric <= value`.
    Limit {
        /// The metric.
        metric: Name,
        /// The value.
        at_most: Expr,
    },
    /// `minimize metric`.
    Minimize {
        /// The metric.
        metric: Name,
    },
    /// `name = value`.
    Attribute {
        /// The name.
        name: Name,
        /// The value.
        value: Expr,
    },
    /// `kind name { … }`.
    Block(Block),
    /// Something that could not be understood and has been reported.
    Broken {
        /// What it seems to declare, as far as its first words say: an attribute's or block's name.
        names: Vec<String>,
        /// The entries of its block, when only the line that opens one could not be understood.
        items: Vec<Item>,
    },
}

/// `kind name { … }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// `service`, `model`, …
    pub kind: Name,
    /// Its name.
    pub name: Option<Name>,
    /// Its entries.
    pub items: Vec<Item>,
    /// The comment behind its opening brace.
    pub opening_comment: Option<Comment>,
    /// It was written on one line, and can be.
    pub is_inline: bool,
}

/// A name, or a text in a place of a name.
#[derive(Clone, Debug)]
pub struct Name {
    /// The name, quotes removed.
    pub text: String,
    /// It was written in quotes.
    pub is_quoted: bool,
    /// Where, quotes included.
    pub span: Span,
}

/// A unit as written, spaces made single: `req/s`, `USD per hour`, `%`.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The text.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// A value.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A number and its unit.
    Number {
        /// The digits as written.
        digits: String,
        /// The unit.
        unit: Option<Unit>,
    },
    /// `"text"`.
    Text(String),
    /// `name`, `name.entry`.
    Path(Vec<Name>),
    /// `1g.10gb`.
    Profile(String),
    /// `float32[3, 224, 224]`.
    Tensor {
        /// The element type.
        element: Name,
        /// The extents.
        extents: Vec<Expr>,
    },
    /// `[a, b]`, `[a: b]`.
    List(List),
    /// `min(a, b)`, `csv("file", step = 1 h)`.
    Call {
        /// The function.
        function: Name,
        /// The arguments.
        arguments: Vec<Argument>,
    },
    /// `-a`.
    Negative(Box<Expr>),
    /// `(a)`.
    Paren(Box<Expr>),
    /// `a + b - c`, or `a * b / c`: flat, so that a long chain is not a deep tree.
    Chain {
        /// The first operand.
        first: Box<Expr>,
        /// The others; all sums or all products.
        rest: Vec<(Operator, Expr)>,
    },
    /// `p99 <= bound`.
    Promise {
        /// `p99`.
        percentile: Name,
        /// The bound.
        bound: Box<Expr>,
    },
    /// `from..to`, `from..to step step`.
    Range {
        /// First.
        from: Box<Expr>,
        /// Last.
        to: Box<Expr>,
        /// Between two.
        step: Option<Box<Expr>>,
    },
    /// `amount over time`.
    Over {
        /// The amount.
        amount: Box<Expr>,
        /// The time.
        time: Box<Expr>,
    },
    /// `item x count`.
    Times {
        /// The thing.
        item: Box<Expr>,
        /// How many.
        count: Box<Expr>,
    },
}

/// A list, with the comments between its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// The elements.
    pub elements: Vec<Element>,
    /// Comments before the closing bracket.
    pub closing_comments: Vec<Comment>,
    /// It was written on several lines.
    pub is_multiline: bool,
}

/// An element of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// Comments on the lines before it.
    pub comments: Vec<Comment>,
    /// The key, for `key: value`.
    pub key: Option<Expr>,
    /// The value.
    pub value: Expr,
    /// The comment behind it.
    pub trailing: Option<Comment>,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its name, for `name = value`.
    pub name: Option<Name>,
    /// Its value.
    pub value: Expr,
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

impl Operator {
    /// The sign.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
        }
    }
}

impl Item {
    /// Whether it is a comment on its own line.
    #[must_use]
    pub fn is_comment(&self) -> bool {
        matches!(self.kind, ItemKind::Comment(_))
    }
}
