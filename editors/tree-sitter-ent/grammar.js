/// <reference types="tree-sitter-cli/dsl" />
// Follows grammar/ent.pest, rule by rule; the rules named `e_…` there are tree-sitter's own error recovery here.
//
// Words of the language are names as well (`let step = 2`), so there are no reserved words: what a word is follows
// from where it stands. Line ends are tokens: they may stand between others only after an operator, inside brackets
// and between entries. The unit of a number is read by src/scanner.c, because it ends before a word like `step`.
// @ts-check

module.exports = grammar({
  name: "ent",

  extras: ($) => [/[ \t]/, $.comment],

  // The last is in no rule: it is valid only while recovering from an error.
  externals: ($) => [$.unit, $._times, $._recovering],

  rules: {
    source_file: ($) => entries($),

    // ---- entries

    _ended_entry: ($) =>
      choice(seq($._line_entry, $._newline), seq($._comma_entry, choice($._newline, ","))),
    _line_entry: ($) => choice($.import, $.param, $.let),
    _comma_entry: ($) => choice($.attribute, $.limit, $.minimize),

    import: ($) => seq("import", field("path", $.string), optional(seq("as", field("alias", $.identifier)))),
    param: ($) => seq("param", field("name", $.identifier), "=", field("value", $._value)),
    let: ($) => seq("let", field("name", $.identifier), "=", field("value", $._value)),
    limit: ($) => seq("limit", field("metric", $.identifier), "<=", field("bound", $._value)),
    minimize: ($) => seq("minimize", field("metric", $.identifier)),
    attribute: ($) => seq(field("name", $.identifier), "=", field("value", $._value)),
    block: ($) =>
      seq(
        field("kind", $.identifier),
        optional(field("name", choice($.identifier, $.string, $.profile))),
        field("body", $.body),
      ),
    body: ($) => seq("{", entries($), "}"),

    // ---- values

    _value: ($) => choice($.promise, $.range, $.over, $.times, $._sum),
    promise: ($) => seq(field("percentile", $.percentile), "<=", field("bound", $._sum)),
    range: ($) => seq(field("from", $._sum), "..", field("to", $._sum), optional(seq("step", field("step", $._sum)))),
    over: ($) => seq(field("amount", $._sum), "over", field("time", $._sum)),
    times: ($) => seq(field("what", $._sum), alias($._times, "x"), field("count", $._sum)),

    _sum: ($) => choice($.binary, $.negative, $._atom),
    binary: ($) =>
      choice(
        ...["+", "-"].map((sign) => prec.left(1, operation($, sign))),
        ...["*", "/"].map((sign) => prec.left(2, operation($, sign))),
      ),
    negative: ($) => prec(3, seq("-", field("operand", $._atom))),
    _atom: ($) => choice($._named, $.profile, $.quantity, $.string, $.group, $.list),

    _named: ($) => choice($._name, $.call, $.tensor, $.path),
    // `p99` is a percentile before `<=`, and a name elsewhere.
    _name: ($) => choice($.identifier, alias($.percentile, $.identifier)),
    call: ($) => seq(field("function", $._name), "(", sequence($, $.argument), ")"),
    argument: ($) => seq(optional(seq(field("name", $.identifier), "=")), field("value", $._value)),
    tensor: ($) => seq(field("type", $._name), "[", sequence($, $._sum), "]"),
    path: ($) => seq(field("root", $._name), repeat1(seq(".", field("member", choice($.identifier, $.string))))),

    group: ($) => seq("(", gap($), $._sum, gap($), ")"),
    list: ($) => seq("[", sequence($, $.element), "]"),
    element: ($) => seq(field("value", $._value), optional(seq(":", field("of", $._value)))),

    quantity: ($) => prec.right(seq($.number, optional($.unit))),

    // ---- tokens

    _newline: () => /\r\n|\n|\r/,
    comment: () => token(seq("//", /[^\n\r]*/)),
    // Before `identifier`, which matches as much: the first one is taken.
    percentile: () => /p[0-9]+(\.[0-9]+)?/,
    identifier: () => /[A-Za-z_][A-Za-z0-9_]*/,
    string: ($) => seq('"', repeat(choice($._text, $.escape)), token.immediate('"')),
    _text: () => token.immediate(prec(1, /[^"\\\n\r]+/)),
    escape: () => token.immediate(/\\["\\nt]/),
    number: () => /[0-9][0-9_]*(\.[0-9][0-9_]*)?([eE][+-]?[0-9]+)?/,
    profile: () => /[0-9]+g\.[0-9]+gb([+-][A-Za-z]+(\.[A-Za-z]+)*)?/,
  },
});

function entries($) {
  return seq(
    repeat(choice($._newline, $.block, $._ended_entry)),
    optional(choice($._line_entry, $._comma_entry)),
  );
}

function gap($) {
  return repeat($._newline);
}

function operation($, sign) {
  return seq(field("left", $._sum), field("operator", sign), gap($), field("right", $._sum));
}

// Members inside brackets: commas between, one more after the last if wished, line ends anywhere.
function sequence($, member) {
  return seq(
    gap($),
    optional(seq(member, gap($), repeat(seq(",", gap($), member, gap($))), optional(seq(",", gap($))))),
  );
}
