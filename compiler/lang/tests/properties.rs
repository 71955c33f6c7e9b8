//! Any text → no panic, places inside the text, and a formatter that changes nothing but the layout.

#![expect(clippy::unwrap_used, reason = "a test stops where a property does not hold")]

use ent_lang::ast::{
    Argument, Ast, Block, Comment, Element, Expr, ExprKind, Item, ItemKind, List, Name, Operator, Unit,
};
use ent_lang::{Options, compile, format, parse, print};
use ent_plan::diagnostic::{FileId, Sources, Span};
use ent_plan::text::LoadError;
use proptest::prelude::*;

/// A program that uses every part of the language.
const PROGRAM: &str = include_str!("every_part.ent");

/// Pieces that programs are made of, well and badly put together.
const PIECES: [&str; 72] = [
    "import",
    "param",
    "let",
    "model",
    "service",
    "hardware",
    "node",
    "board",
    "carbon",
    "objective",
    "pin",
    "limit",
    "minimize",
    "energy",
    "power",
    "rate",
    "latency",
    "gpu",
    "x",
    "x8",
    "per",
    "over",
    "step",
    "as",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "=",
    "==",
    "<=",
    "<",
    ",",
    ":",
    ".",
    "..",
    "+",
    "-",
    "*",
    "/",
    "//",
    "// a comment",
    "#",
    "'",
    "\"",
    "\"text\"",
    "\"a.ent\"",
    "\"main.ent\"",
    "\"catalog:nvidia/a100-80gb-pcie\"",
    "\\",
    "p99",
    "p99.9",
    "1",
    "0",
    "2.5",
    "1e999",
    "1_000",
    "50%",
    "47.6 ms",
    "5 req/s",
    "1 /s",
    "3g.40gb",
    "1g.10gb+me",
    "float32[3, 4]",
    "a100_80gb_pcie",
    "min(",
    "csv(",
    "é",
    "\u{0}",
    "🦀",
];

fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(&PIECES[..]).prop_map(str::to_owned),
        1 => "[a-z_0-9]{1,4}",
        1 => any::<char>().prop_map(String::from),
    ];
    let gap = prop::sample::select(&[" ", "", "\n", "\n\n", "\r\n", "\t", "\r", " \n  "][..]);
    prop::collection::vec((piece, gap), 0..60)
        .prop_map(|pieces| pieces.into_iter().fold(String::new(), |text, (piece, gap)| text + &piece + gap))
}

/// The whole program with some places cut out, doubled, or filled with something else.
fn mutated() -> impl Strategy<Value = String> {
    let change = (any::<prop::sample::Index>(), 0usize..30, prop::sample::select(&PIECES[..]), 0u8..3);
    prop::collection::vec(change, 1..6).prop_map(|changes| {
        let mut text = PROGRAM.to_owned();
        for (at, length, piece, kind) in changes {
            let floor = |mut i: usize, text: &str| {
                while !text.is_char_boundary(i) {
                    i -= 1;
                }
                i
            };
            let start = floor(at.index(text.len() + 1), &text);
            let end = floor((start + length).min(text.len()), &text);
            match kind {
                0 => text.replace_range(start..end, ""),
                1 => text.insert_str(start, piece),
                _ => text.replace_range(end..end, &text.clone()[start..end]),
            }
        }
        text
    })
}

/// Compiles a text and holds it to what must be true of any.
fn hold(text: &str) -> Result<(), TestCaseError> {
    // What reads files drops a byte-order mark; what is parsed has none.
    let text = text.trim_start_matches('\u{feff}');
    let mut sources = Sources::default();
    let mut load =
        |name: &str| if name == "main.ent" { Ok(text.as_bytes().to_vec()) } else { Err(LoadError::Missing) };
    let outcome = compile("main.ent", &Options::default(), &mut load, &mut sources);
    prop_assert_eq!(outcome.value.is_none(), outcome.has_errors());
    for diagnostic in &outcome.diagnostics {
        for label in std::iter::once(&diagnostic.primary).chain(&diagnostic.secondary) {
            let file = sources.get(label.span.file).unwrap();
            let is_inside = file.text.get(label.span.start as usize..label.span.end as usize).is_some();
            prop_assert!(is_inside, "{:?}", diagnostic);
        }
        prop_assert!(!diagnostic.message.is_empty());
        for fix in &diagnostic.fixes {
            prop_assert!(!fix.title.is_empty() && !fix.edits.is_empty(), "{:?}", diagnostic);
            for edit in &fix.edits {
                let file = sources.get(edit.span.file).unwrap();
                let is_inside = file.text.get(edit.span.start as usize..edit.span.end as usize).is_some();
                prop_assert!(is_inside, "{:?}\n{}", diagnostic, text);
            }
        }
    }
    let ast = parse(FileId(0), text);
    match format(text) {
        Err(problems) => prop_assert_eq!(problems, ast.diagnostics),
        Ok(formatted) => {
            let again = parse(FileId(0), &formatted);
            prop_assert!(!again.has_errors(), "{:?}\n{}", again.diagnostics, formatted);
            prop_assert_eq!(&again.value, &ast.value, "{}", formatted);
            prop_assert_eq!(print(&again.value), formatted.clone());
            prop_assert_eq!(comments(&formatted), comments(text));
        }
    }
    Ok(())
}

/// The comments of a text without syntax errors, sorted.
fn comments(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.split(['\n', '\r']) {
        let mut is_text = false;
        let mut escaped = false;
        for (i, c) in line.char_indices() {
            if escaped {
                escaped = false;
            } else if is_text && c == '\\' {
                escaped = true;
            } else if c == '"' {
                is_text = !is_text;
            } else if !is_text && line[i..].starts_with("//") {
                found.push(line[i..].trim_end().to_owned());
                break;
            }
        }
    }
    found.sort();
    found
}

fn nowhere() -> Span {
    Span::default()
}

fn word() -> impl Strategy<Value = String> {
    let free = "[a-z_][a-z0-9_]{0,6}".prop_filter("no word of the language", |w: &String| {
        let is_reserved =
            matches!(w.as_str(), "let" | "param" | "import" | "x" | "per" | "over" | "step" | "as");
        let is_times = w.starts_with('x') && w[1..].starts_with(|c: char| c.is_ascii_digit());
        !is_reserved && !is_times
    });
    prop_oneof![free, Just("rate".to_owned()), Just("p99".to_owned())]
}

fn name() -> impl Strategy<Value = Name> {
    word().prop_map(|text| Name { text, is_quoted: false, span: nowhere() })
}

fn any_name() -> impl Strategy<Value = Name> {
    let quoted = "[ -~é\n\t]{0,8}".prop_map(|text| Name { text, is_quoted: true, span: nowhere() });
    prop_oneof![name(), quoted]
}

fn comment() -> impl Strategy<Value = Comment> {
    "[ -~]{0,12}"
        .prop_map(|text| Comment { text: std::format!("//{text}").trim_end().to_owned(), span: nowhere() })
}

fn expr_of(kind: ExprKind) -> Expr {
    Expr { kind, span: nowhere() }
}

fn number() -> impl Strategy<Value = ExprKind> {
    let unit = prop::sample::select(&["%", "ms", "req/s", "/s", "USD per hour", "gCO2/kWh", "zorks"][..]);
    let unit = prop::option::of(unit.prop_map(|u| Unit { text: u.to_owned(), span: nowhere() }));
    ("[0-9]{1,3}(\\.[0-9]{1,2})?(e-?[0-9])?", unit)
        .prop_map(|(digits, unit)| ExprKind::Number { digits, unit })
}

/// What may be an operand.
fn factor() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        number(),
        "[ -~]{0,6}".prop_map(ExprKind::Text),
        prop::sample::select(&["1g.10gb", "3g.40gb", "1g.10gb+me"][..])
            .prop_map(|p| ExprKind::Profile(p.to_owned())),
        (name(), prop::collection::vec(any_name(), 0..2))
            .prop_map(|(first, rest)| ExprKind::Path(std::iter::once(first).chain(rest).collect())),
    ]
    .prop_map(expr_of);
    leaf.prop_recursive(3, 24, 4, |inner| {
        let sum = sum(inner.clone()).boxed();
        let value = value(sum.clone()).boxed();
        let element = (
            prop::option::of(value.clone()),
            value.clone(),
            prop::option::of(comment()),
            prop::collection::vec(comment(), 0..2),
        )
            .prop_map(|(key, value, trailing, comments)| Element { comments, key, value, trailing });
        let list =
            (prop::collection::vec(element, 0..3), prop::collection::vec(comment(), 0..2), any::<bool>())
                .prop_map(|(mut elements, closing_comments, is_multiline)| {
                    if !is_multiline {
                        for element in &mut elements {
                            element.comments.clear();
                            element.trailing = None;
                        }
                    }
                    let closing_comments = if is_multiline { closing_comments } else { Vec::new() };
                    ExprKind::List(List { elements, closing_comments, is_multiline })
                });
        let argument = (prop::option::of(name()), value).prop_map(|(name, value)| Argument { name, value });
        prop_oneof![
            sum.clone().prop_map(|e| ExprKind::Paren(Box::new(e))),
            inner
                .prop_filter("one sign", |e| !matches!(e.kind, ExprKind::Negative(_)))
                .prop_map(|e| ExprKind::Negative(Box::new(e))),
            list,
            (name(), prop::collection::vec(argument, 0..3))
                .prop_map(|(function, arguments)| ExprKind::Call { function, arguments }),
            (name(), prop::collection::vec(sum, 0..3))
                .prop_map(|(element, extents)| ExprKind::Tensor { element, extents }),
        ]
        .prop_map(expr_of)
    })
}

fn chain(
    operand: impl Strategy<Value = Expr> + 'static,
    operators: &'static [Operator],
) -> impl Strategy<Value = Expr> {
    let operand = operand.boxed();
    (operand.clone(), prop::collection::vec((prop::sample::select(operators), operand), 0..3)).prop_map(
        |(first, rest)| {
            if rest.is_empty() { first } else { expr_of(ExprKind::Chain { first: Box::new(first), rest }) }
        },
    )
}

fn sum(factor: impl Strategy<Value = Expr> + 'static) -> impl Strategy<Value = Expr> {
    chain(chain(factor, &[Operator::Multiply, Operator::Divide]), &[Operator::Add, Operator::Subtract])
}

fn value(sum: BoxedStrategy<Expr>) -> impl Strategy<Value = Expr> {
    let pair = || (sum.clone().prop_map(Box::new), sum.clone().prop_map(Box::new));
    prop_oneof![
        4 => sum.clone(),
        1 => (prop::sample::select(&["p50", "p99.9"][..]), sum.clone().prop_map(Box::new)).prop_map(|(p, bound)| {
            let percentile = Name { text: p.to_owned(), is_quoted: false, span: nowhere() };
            expr_of(ExprKind::Promise { percentile, bound })
        }),
        1 => (pair(), prop::option::of(sum.clone().prop_map(Box::new)))
            .prop_map(|((from, to), step)| expr_of(ExprKind::Range { from, to, step })),
        1 => pair().prop_map(|(amount, time)| expr_of(ExprKind::Over { amount, time })),
        1 => pair().prop_map(|(item, count)| expr_of(ExprKind::Times { item, count })),
    ]
}

fn items(is_inline: bool) -> impl Strategy<Value = Vec<Item>> {
    let value = || value(sum(factor()).boxed());
    let attribute = (name(), value()).prop_map(|(name, value)| ItemKind::Attribute { name, value });
    let limit = (name(), value()).prop_map(|(metric, at_most)| ItemKind::Limit { metric, at_most });
    let minimize = name().prop_map(|metric| ItemKind::Minimize { metric });
    let kind = if is_inline {
        prop_oneof![4 => attribute, 1 => limit, 1 => minimize].boxed()
    } else {
        prop_oneof![4 => attribute, 1 => limit, 1 => minimize, 1 => comment().prop_map(ItemKind::Comment)]
            .boxed()
    };
    let item = (kind, any::<bool>(), prop::option::of(comment())).prop_map(move |(kind, gap, trailing)| {
        let trailing = if is_inline || matches!(kind, ItemKind::Comment(_)) { None } else { trailing };
        Item { kind, span: nowhere(), follows_blank_line: gap && !is_inline, trailing }
    });
    prop::collection::vec(item, 0..4)
}

fn ast() -> impl Strategy<Value = Ast> {
    let block = |is_inline: bool| {
        (name(), prop::option::of(any_name()), items(is_inline), prop::option::of(comment())).prop_map(
            move |(kind, name, items, opening_comment)| {
                let opening_comment = if is_inline { None } else { opening_comment };
                ItemKind::Block(Block { kind, name, items, opening_comment, is_inline })
            },
        )
    };
    let value = || value(sum(factor()).boxed());
    let kind = prop_oneof![
        1 => (any_name(), prop::option::of(name())).prop_map(|(mut path, alias)| {
            path.is_quoted = true;
            ItemKind::Import { path, alias }
        }),
        2 => (name(), value()).prop_map(|(name, value)| ItemKind::Param { name, value }),
        2 => (name(), value()).prop_map(|(name, value)| ItemKind::Let { name, value }),
        2 => block(true),
        2 => block(false),
    ];
    let item = (kind, any::<bool>(), prop::option::of(comment())).prop_map(
        |(kind, follows_blank_line, trailing)| Item { kind, span: nowhere(), follows_blank_line, trailing },
    );
    prop::collection::vec(item, 0..5).prop_map(|items| Ast { items, file: FileId(0) })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_soup_of_words_is_survived(text in soup()) {
        hold(&text)?;
    }

    #[test]
    fn any_characters_are_survived(text in any::<String>()) {
        hold(&text)?;
    }

    #[test]
    fn a_program_with_slips_is_survived(text in mutated()) {
        hold(&text)?;
    }

    #[test]
    fn what_is_printed_reads_back(ast in ast()) {
        let text = print(&ast);
        let again = parse(FileId(0), &text);
        prop_assert!(again.diagnostics.is_empty(), "{:?}\n{}", again.diagnostics, text);
        prop_assert_eq!(&again.value, &ast, "{}", text);
        prop_assert_eq!(print(&again.value), text);
    }
}

#[test]
fn the_program_with_every_part_has_no_mistake_and_is_laid_out() {
    let mut sources = Sources::default();
    let mut load = |_: &str| Ok(PROGRAM.as_bytes().to_vec());
    let outcome = compile("main.ent", &Options::default(), &mut load, &mut sources);
    assert_eq!(outcome.diagnostics, []);
    assert_eq!(format(PROGRAM).unwrap(), PROGRAM);
}
