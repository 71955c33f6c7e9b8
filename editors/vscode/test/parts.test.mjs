// The parts that know no editor: what a file is, where entc is, what is said of a plan, what a page may do.

import assert from "node:assert/strict";
import { chmod, mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { contentOf } from "../dist/content.mjs";
import { find } from "../dist/executable.mjs";
import { pageOf, POLICY, problemPage } from "../dist/page.mjs";
import { asSummary, summaryOf, words } from "../dist/summary.mjs";
import { examples, fences } from "./specs.mjs";

test("specs are specs, whatever they begin with", async () => {
  for (const { name, text } of [...(await examples()), ...(await fences())]) {
    assert.equal(contentOf(text), "spec", name);
  }
  for (const text of ["", "\n\n", "\uFEFF// a comment", "HEADER = 3", "MODEL 1g {}", "ATOM { }", "model ATOM {}", "a < b", "50% x"]) {
    assert.equal(contentOf(text), "spec", text);
  }
});

test("XML entities are XML", () => {
  for (const text of [
    '<?xml version="1.0"?>',
    "\uFEFF\r\n  <!ENTITY nbsp '&#160;'>",
    "<!-- ISO entities -->",
    "<para>text</para>",
    "</para>",
    "%isolat1;",
    "%ISO.num;\n",
  ]) {
    assert.equal(contentOf(text), "xml", text);
  }
});

test("proteins are PDB", () => {
  for (const text of [
    "HEADER    HYDROLASE                               01-JAN-99   1ABC",
    "REMARK   1 REFERENCE 1",
    "\nATOM      1  N   MET A   1      27.340  24.430   2.614  1.00  9.67           N",
    "HETATM 1407  O   HOH A 301",
    "CRYST1   52.000   58.600   61.900  90.00  90.00  90.00 P 21 21 21    8",
    "MODEL        1",
    "TITLE     A STRUCTURE",
    "COMPND    MOL_ID: 1;",
    "SEQRES   1 A   21  GLY ILE VAL",
  ]) {
    assert.equal(contentOf(text), "pdb", text);
  }
});

test("entc is found by path and by name, and said to be missing", async () => {
  const home = await mkdtemp(path.join(os.tmpdir(), "ent-find-"));
  try {
    const folder = path.join(home, "project");
    await mkdir(path.join(folder, "bin"), { recursive: true });
    const file = path.join(folder, "bin", "entc");
    await writeFile(file, "#!/bin/sh\n");
    const where = { environment: { PATH: `relative:${home}:${folder}/bin` }, home, folder, platform: "linux" };
    assert.match((await find("entc", where)).problem, /`entc` is not on PATH/, "a file that cannot be run is not found");
    await chmod(file, 0o755);
    for (const setting of ["entc", "", " entc ", file, "bin/entc", "./bin/entc", "~/project/bin/entc", "${workspaceFolder}/bin/entc"]) {
      assert.deepEqual(await find(setting, where), { file }, setting);
    }
    assert.match((await find("./nothing", where)).problem, /nothing` is not a file that can be run/);
    assert.match((await find("bin", { ...where, environment: { PATH: folder } })).problem, /not on PATH/, "a folder is no command");
    assert.match((await find("entc", { ...where, environment: {} })).problem, /not on PATH/);
  } finally {
    await rm(home, { recursive: true });
  }
});

test("the status bar says watts and gap", () => {
  const plan = { metrics: { mean_power_w: 75.0613, power_w: 106, gpus: 1 }, objective: { gap: 0 } };
  assert.deepEqual(summaryOf(plan), { state: "planned", watts: 75.0613, gap: 0, boards: 1 });
  assert.equal(words(summaryOf(plan)), "$(graph) entc 75.1 W · gap 0 %");
  assert.equal(words({ state: "planned", watts: 12_345, gap: 0.00123 }), "$(graph) entc 12.35 kW · gap 0.12 %");
  assert.equal(words(summaryOf({ metrics: { power_w: 90, mean_power_w: null }, objective: { gap: null } })), "$(graph) entc 90.0 W · no bound");
  assert.equal(words(summaryOf("nothing")), "$(graph) entc · no bound");
  assert.equal(words(undefined), "entc");
  assert.match(words({ state: "infeasible" }), /no plan/);
});

test("only summaries are taken for summaries", () => {
  assert.deepEqual(asSummary({ state: "planned", watts: 3, gap: "x", uri: "u", summary: "s" }), { state: "planned", watts: 3, summary: "s" });
  for (const message of [undefined, null, 3, "planned", {}, { state: "other" }]) {
    assert.equal(asSummary(message), undefined);
  }
});

test("a page fetches nothing, runs nothing, and follows the theme", () => {
  const report = '<!doctype html><html><head lang="en"><style>a{}@media screen and (prefers-color-scheme:dark){a{b:c}}</style></head><body>(prefers-color-scheme:dark)</body></html>';
  const dark = pageOf(report, true);
  assert.ok(dark.startsWith(`<!doctype html><html><head lang="en"><meta http-equiv="Content-Security-Policy" content="${POLICY}">`));
  assert.match(dark, /@media screen and \(min-width:0\)/);
  assert.match(pageOf(report, false), /@media screen and \(max-width:0\)/);
  assert.match(dark, /<body>\(prefers-color-scheme:dark\)/, "text is left alone");
  assert.match(POLICY, /^default-src 'none'/);
  assert.doesNotMatch(POLICY, /script-src|connect-src|https?:/);
  assert.ok(pageOf("no head at all", true).startsWith("<meta http-equiv"));
  assert.match(problemPage('<b>"no" & so</b>', false), /&#60;b&#62;&#34;no&#34; &#38; so&#60;\/b&#62;/);
});
