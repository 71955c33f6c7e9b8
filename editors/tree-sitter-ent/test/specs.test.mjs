// The repository's specs → parsed without an error exactly where entc finds no syntax error.
//
// Needs ENTC and TREE_SITTER, the two commands; setup/editors.sh sets them.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { examples, fences } from "../../vscode/test/specs.mjs";

const grammar = fileURLToPath(new URL("..", import.meta.url));
const { ENTC: entc, TREE_SITTER: treeSitter } = process.env;
assert.ok(entc && treeSitter, "set ENTC and TREE_SITTER");

/** Texts → of each, whether tree-sitter finds an error in it. */
function haveErrors(texts) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "ent-trees-"));
  try {
    const files = texts.map((text, i) => {
      const file = path.join(folder, `${i}.ent`);
      writeFileSync(file, text);
      return file;
    });
    writeFileSync(path.join(folder, "list"), files.join("\n"));
    const args = ["parse", "--quiet", "--json-summary", "--paths", path.join(folder, "list")];
    const answer = spawnSync(treeSitter, args, { cwd: grammar, encoding: "utf8", maxBuffer: 1 << 28 });
    const summary = JSON.parse(answer.stdout.slice(answer.stdout.indexOf("{")));
    const found = new Map(summary.parse_summaries.map((s) => [path.basename(s.file), !s.successful]));
    return files.map((f) => {
      assert.ok(found.has(path.basename(f)), `${f} was not parsed: ${answer.stderr}`);
      return found.get(path.basename(f));
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Whether entc finds a syntax error in a text. */
function isRefused(text) {
  const answer = spawnSync(entc, ["check", "--format", "json", "-"], { input: text, encoding: "utf8" });
  return /"code":\s*"syntax"/.test(answer.stdout);
}

test("every spec that entc reads has a tree without errors", async () => {
  const specs = [...(await examples()), ...(await fences())];
  const read = specs.filter((s) => !isRefused(s.text));
  assert.ok(read.length > 70, `${read.length} specs`);
  const errors = haveErrors(read.map((s) => s.text));
  assert.deepEqual(read.filter((_, i) => errors[i]).map((s) => s.name), []);
});

test("the same, with Windows line ends, tabs and a byte-order mark", async () => {
  const specs = await examples();
  const texts = specs.map((s) => `\uFEFF${s.text.replace(/\n/g, "\r\n").replace(/ {2}/g, "\t")}`);
  const errors = haveErrors(texts);
  assert.deepEqual(specs.filter((_, i) => errors[i]).map((s) => s.name), []);
});

test("a text that entc refuses for its syntax has an error in its tree", async () => {
  const refused = (await fences()).filter((s) => isRefused(s.text));
  assert.ok(refused.length >= 10, `${refused.length} texts`);
  const errors = haveErrors(refused.map((s) => s.text));
  assert.deepEqual(refused.filter((_, i) => !errors[i]).map((s) => s.name), []);
});

test("one mistake leaves the rest of the file a tree", async () => {
  const { text } = (await examples()).find((e) => e.name === "examples/enertune");
  const services = (tree) => tree.split("(block ").length - 1;
  const parse = (source) => spawnSync(treeSitter, ["parse", "-"], { cwd: grammar, input: source, encoding: "utf8" }).stdout;
  const whole = services(parse(text));
  for (const mistake of [
    ["rate     = capped * 1391.97 req/s", "rate     = = 1391.97"],
    ["latency  = p99 <= 47.57630825042726 ms", "latency  = p99 <"],
    ["param load   = 100%", "param load"],
  ]) {
    assert.ok(text.includes(mistake[0]));
    const left = services(parse(text.replace(...mistake)));
    assert.ok(left >= whole - 1, `${mistake[1]}: ${left} of ${whole} blocks`);
  }
});

test("the parser is the one that the grammar makes", () => {
  const before = execFileSync("git", ["status", "--porcelain", "src"], { cwd: grammar, encoding: "utf8" });
  const folder = mkdtempSync(path.join(os.tmpdir(), "ent-parser-"));
  try {
    execFileSync(treeSitter, ["generate", "--output", folder, "grammar.js"], { cwd: grammar });
    const differences = spawnSync("diff", ["-q", path.join(folder, "parser.c"), path.join(grammar, "src/parser.c")]);
    assert.equal(differences.status, 0, `run \`tree-sitter generate\` in editors/tree-sitter-ent\n${before}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
