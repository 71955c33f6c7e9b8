// The TextMate grammar: each construct by its scopes, and the repository's specs as a whole.

import assert from "node:assert/strict";
import test from "node:test";
import { brief, depthAtEnd, tokens } from "./scopes.mjs";
import { examples, fences } from "./specs.mjs";

const of = (text, word) => {
  const token = tokens(text).find((t) => t.text === word);
  assert.ok(token, `no token \`${word}\` in ${JSON.stringify(tokens(text).map((t) => t.text))}`);
  return token.scopes.at(-1).replace(/\.ent$/, "");
};

test("imports name a path and another name", () => {
  assert.deepEqual(brief('import "catalog:nvidia/a100-80gb-pcie" as a100 // board'), [
    "import keyword.control.import",
    '" punctuation.definition.string.begin',
    "catalog:nvidia/a100-80gb-pcie string.quoted.double",
    '" punctuation.definition.string.end',
    "as keyword.control.as",
    "a100 entity.name.namespace",
    "// punctuation.definition.comment",
    "board comment.line.double-slash",
  ]);
});

test("values have names", () => {
  assert.deepEqual(brief("param load = 50%\nlet peak = 1391.97 req/s"), [
    "param keyword.declaration.param",
    "load variable.other.constant",
    "= keyword.operator.assignment",
    "50 constant.numeric",
    "% keyword.other.unit",
    "let keyword.declaration.let",
    "peak variable.other.constant",
    "= keyword.operator.assignment",
    "1391.97 constant.numeric",
    "req/s keyword.other.unit",
  ]);
});

test("a block has a kind and a name", () => {
  assert.deepEqual(brief('service classify { model = m, rate = 3 req/s }\nnode "box-0" {}\npin { }\nprofile 1g.10gb+me {}'), [
    "service keyword.declaration.block",
    "classify entity.name.type",
    "{ punctuation.section.block.begin",
    "model support.type.property-name",
    "= keyword.operator.assignment",
    "m variable.other",
    ", punctuation.separator.comma",
    "rate support.type.property-name",
    "= keyword.operator.assignment",
    "3 constant.numeric",
    "req/s keyword.other.unit",
    "} punctuation.section.block.end",
    "node keyword.declaration.block",
    '"box-0" entity.name.type',
    "{ punctuation.section.block.begin",
    "} punctuation.section.block.end",
    "pin keyword.declaration.block",
    "{ punctuation.section.block.begin",
    "} punctuation.section.block.end",
    "profile keyword.declaration.block",
    "1g.10gb+me constant.other.profile",
    "{ punctuation.section.block.begin",
    "} punctuation.section.block.end",
  ]);
});

test("a promise is a percentile and a time", () => {
  assert.deepEqual(brief("latency = p99.9 <= 47.6 ms").slice(2), [
    "p99.9 constant.language.percentile",
    "<= keyword.operator.comparison",
    "47.6 constant.numeric",
    "ms keyword.other.unit",
  ]);
});

test("units take `per` and `/`, and stop at words of the language", () => {
  const units = (value) => tokens(`a = ${value}`).filter((t) => t.scopes.at(-1) === "keyword.other.unit.ent").map((t) => t.text);
  assert.deepEqual(units("2.1 USD per hour"), ["USD per hour"]);
  assert.deepEqual(units("150 kgCO2 per gpu over 4 years"), ["kgCO2 per gpu", "years"]);
  assert.deepEqual(units("490 gCO2/kWh * 1 MWh"), ["gCO2/kWh", "MWh"]);
  assert.deepEqual(units("5 /s + 1/s"), ["/s", "/s"]);
  assert.deepEqual(units("1 µs"), ["µs"]);
  assert.deepEqual(units("210 MHz .. 1410 MHz step 15 MHz"), ["MHz", "MHz", "MHz"]);
  assert.deepEqual(units("2..6 step 2"), []);
  assert.deepEqual(units("6 x 8"), []);
  assert.deepEqual(units("300 / two"), []);
  assert.deepEqual(units("1e-3 + 1_000"), []);
});

test("words between values are operators only there", () => {
  assert.equal(of("gpu = a100_80gb_pcie x 8", "x"), "keyword.operator.word");
  assert.equal(of("gpu = a100_80gb_pcie x8", "x"), "keyword.operator.word");
  assert.equal(of("clocks = 1 MHz .. 9 MHz step 2 MHz", "step"), "keyword.operator.word");
  assert.equal(of("let step = 2", "step"), "variable.other.constant");
  assert.equal(of("let a = step * 2", "step"), "variable.other");
  assert.equal(of("service x { }", "x"), "entity.name.type");
});

test("calls, tensors, paths, profiles, words", () => {
  assert.equal(of("a = gamma(cv = 2)", "gamma"), "support.function");
  assert.equal(of("a = gamma(cv = 2)", "cv"), "variable.parameter");
  assert.equal(of("a = mix(2)", "mix"), "entity.name.function");
  assert.equal(of("input = float32[3, 224, 224]", "float32"), "support.type.tensor");
  assert.equal(of("performance = a100_80gb_pcie.resnet50", "a100_80gb_pcie"), "entity.name.namespace");
  assert.equal(of("performance = a100_80gb_pcie.resnet50", "resnet50"), "variable.other.member");
  assert.equal(of("pin { profile = 3g.40gb, batch = 8 }", "3g.40gb"), "constant.other.profile");
  assert.equal(of("unused = off", "off"), "support.constant");
  assert.equal(of("isolate = true", "true"), "constant.language.boolean");
  assert.equal(of("replicas = 2..6", ".."), "keyword.operator.range");
  assert.equal(of("objective { minimize energy }", "minimize"), "keyword.other.minimize");
  assert.equal(of("objective { minimize energy }", "energy"), "support.constant.metric");
  assert.equal(of("objective { limit power <= 1.1 kW }", "power"), "support.constant.metric");
  assert.equal(of('a = "x\\ny"', "\\n"), "constant.character.escape");
  assert.equal(of('a = "x\\qy"', "\\q"), "invalid.illegal.escape");
});

test("values go on after operators and inside brackets", () => {
  const text = "let b = min(\n  a, // first\n  4 W\n)\nlet c = 1 +\n  2 s";
  assert.equal(of(text, "a"), "variable.other");
  assert.equal(of(text, "W"), "keyword.other.unit");
  assert.equal(of(text, "c"), "variable.other.constant");
  assert.equal(of(text, "s"), "keyword.other.unit");
});

test("what is not closed ends where the next declaration starts", () => {
  for (const open of ["service a {\n  rate = 5 req/s", "let a = [\n  1,", "let a = min(1,", "service a {\n  b = (1", 'model a { artifact = "x']) {
    const text = `${open}\nservice b { rate = 1 req/s }\n`;
    assert.equal(depthAtEnd(text), 1, open);
    const service = tokens(text).findLast((t) => t.text === "service");
    assert.deepEqual(service.scopes, ["source.ent", "meta.block.ent", "keyword.declaration.block.ent"], open);
  }
});

test("every example is coloured whole, and its brackets are closed", async () => {
  for (const { name, text } of await examples()) {
    for (const token of tokens(text)) {
      assert.ok(token.scopes.length > 1 && !/^meta/.test(token.scopes.at(-1)), `${name}:${token.line}: \`${token.text}\` has no scope`);
      assert.ok(!token.scopes.some((s) => s.startsWith("invalid")), `${name}:${token.line}: \`${token.text}\` is called wrong`);
    }
    assert.equal(depthAtEnd(text), 1, name);
  }
});

test("every text of the language's pages without a syntax error is coloured whole", async () => {
  const sound = (await fences()).filter((f) => !f.mistakes.includes("syntax"));
  assert.ok(sound.length > 60, `${sound.length} texts`);
  for (const { name, text } of sound) {
    for (const token of tokens(text)) {
      assert.ok(token.scopes.length > 1 && !/^meta/.test(token.scopes.at(-1)), `${name}: \`${token.text}\` has no scope`);
    }
    assert.equal(depthAtEnd(text), 1, name);
  }
});

test("the number of words that are only names is small in the flagship", async () => {
  const text = (await examples()).find((e) => e.name === "examples/enertune").text;
  const plain = new Set(tokens(text).filter((t) => t.scopes.at(-1) === "variable.other.ent").map((t) => t.text));
  // What is left to the server's semantic tokens: uses of declared names.
  const declared = new Set([...text.matchAll(/^(?:param|let|model|service)\s+(\w+)/gm)].map((m) => m[1]));
  assert.deepEqual([...plain].filter((w) => !declared.has(w) && w !== "a100_80gb_pcie"), []);
});
