//! Places in whole and in broken texts.

#![expect(clippy::wildcard_enum_match_arm, reason = "every other position is wrong")]

use super::*;

/// The place of `$0` in a text.
fn at(marked: &str) -> Place {
    let offset = marked.find("$0").unwrap();
    place(&marked.replace("$0", ""), offset)
}

#[track_caller]
fn value(marked: &str) -> ValuePlace {
    match at(marked).position {
        Position::Value(value) => value,
        other => panic!("{marked}: {other:?}"),
    }
}

#[test]
fn the_blocks_around_a_place_are_known_in_broken_text() {
    let text = "service a { rate = = }\nhardware {\n  node \"b\" {\n    gp";
    let place = place(text, text.len());
    assert_eq!(place.path(), ["hardware", "node"]);
    assert_eq!(place.blocks[1].name.as_deref(), Some("b"));
    assert_eq!((place.position, &text[place.replace]), (Position::Entry, "gp"));
}

#[test]
fn a_line_at_the_margin_ends_blocks_that_were_left_open() {
    assert_eq!(at("service a {\n  rate = 5 req/s\nmodel b {\n  $0").path(), ["model"]);
    assert!(at("service a {\n  rate = 5\nlet x = $0").blocks.is_empty());
    assert_eq!(at("service a {\n  rate = 5\n$0").path(), ["service"]);
}

#[test]
fn entries_end_where_the_grammar_says() {
    assert_eq!(at("service a { model = m, $0 }").position, Position::Entry);
    assert_eq!(at("let x = 5 +\n$0").position, value_position("let x = 5 +\n$0"));
    assert_eq!(at("let x = 5\n$0").position, Position::Entry);
    assert_eq!(
        at("model m { performance = [\n  $0").position,
        value_position("model m { performance = [\n$0")
    );
    assert_eq!(at("model m { performance = [a.b,\n  memory = 4 GiB\n  $0 }").position, Position::Entry);
}

fn value_position(marked: &str) -> Position {
    Position::Value(value(marked))
}

#[test]
fn names_and_keywords_have_their_positions() {
    assert_eq!(at("import \"cat$0\"").position, Position::ImportPath);
    assert_eq!(at("import \"cat$0").replace, 8..11);
    assert_eq!(at("import \"x.ent\" $0").position, Position::AfterImportPath);
    assert_eq!(at("let $0").position, Position::NewName);
    assert_eq!(at("objective { minimize $0 }").position, Position::Metric);
    assert_eq!(at("objective { limit $0 }").position, Position::Metric);
    assert_eq!(at("service $0").position, Position::BlockName { kind: "service".to_owned() });
    assert_eq!(at("// let $0").position, Position::Comment);
    assert_eq!(at("service a { rate $0").position, Position::Nothing);
}

#[test]
fn a_unit_follows_a_number() {
    for marked in
        ["let x = 5 $0", "let x = 5 re$0", "let x = a * 5 $0", "let x = 5 req/$0", "let x = 5 USD per $0"]
    {
        assert_eq!(value(marked).part, Part::Unit { is_glued: false }, "{marked}");
    }
    assert_eq!(value("let x = 5$0").part, Part::Unit { is_glued: true });
    assert_eq!(at("let x = 5 req/$0").replace, 10..14);
    assert_eq!(at("let x = 5 req/se$0c").replace, 10..17);
    assert_eq!(at("let x = 5 USD per ho$0").replace, 10..20);
    assert_eq!(value("let x = 5 s $0").part, Part::AfterOperand);
    assert_eq!(value("let x = 5 s / $0").part, Part::Operand);
}

#[test]
fn members_texts_calls_and_lists_are_known() {
    assert_eq!(value("model m { performance = a100.$0 }").part, Part::Member("a100".to_owned()));
    assert_eq!(value("model m { artifact = \"x$0\" }").part, Part::Text);
    let call = value("carbon { intensity = csv(\"x.csv\", step = $0");
    assert_eq!(call.call, Some(("csv".to_owned(), 1, Some("step".to_owned()))));
    assert!(call.is_first);
    assert!(value("model m { performance = [a.b, $0] }").is_in_list);
    assert_eq!(value("service s { latency = p99 <= $0 }").after.as_deref(), Some("<="));
    assert_eq!(value("hardware { node n { gpu = a x $0 } }").after.as_deref(), Some("x"));
    assert_eq!(value("service s { latency = p99 $0 }").part, Part::AfterOperand);
}

#[test]
fn each_token_has_its_role() {
    let text = "import \"a.ent\" as b\nservice \"c d\" { rate = 2 * e + 5 req/s, pin { profile = 1g.5gb } } // f\n\
                let g = min(h.i, 3 USD per hour)\nlimit power <= 1 kW\nhardware { node n { gpu = o x8 } }";
    let shown: Vec<(&str, Role)> = roles(text)
        .iter()
        .filter(|(_, role)| !matches!(role, Role::Other | Role::Operator))
        .map(|(token, role)| (token.text(text), *role))
        .collect();
    use Role::*;
    assert_eq!(
        shown,
        [
            ("import", Keyword),
            ("\"a.ent\"", ImportPath),
            ("as", Keyword),
            ("b", Alias),
            ("service", BlockKind),
            ("\"c d\"", BlockName),
            ("rate", Attribute),
            ("2", Number),
            ("e", Name),
            ("5", Number),
            ("req", Unit),
            ("/", Unit),
            ("s", Unit),
            ("pin", BlockKind),
            ("profile", Attribute),
            ("1g.5gb", Profile),
            ("// f", Comment),
            ("let", Keyword),
            ("g", Declared),
            ("min", Function),
            ("h", Name),
            ("i", Member),
            ("3", Number),
            ("USD", Unit),
            ("per", Unit),
            ("hour", Unit),
            ("limit", Keyword),
            ("power", Metric),
            ("1", Number),
            ("kW", Unit),
            ("hardware", BlockKind),
            ("node", BlockKind),
            ("n", BlockName),
            ("gpu", Attribute),
            ("o", Name),
            ("x8", Keyword),
        ]
    );
}
