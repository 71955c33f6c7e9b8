// What a user of the extension sees, checked inside VS Code's extension host. Started by workbench.mjs.

import * as assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import * as http from "node:http";
import * as path from "node:path";
import * as vscode from "vscode";
import type { Api } from "../src/extension";

/** Long enough for a machine that does much else; nothing waits this long when all is well. */
const PATIENCE = 60_000;

const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
const uriOf = (name: string) => vscode.Uri.file(path.join(folder, name));
let port = 0;

const tests: [string, () => Promise<void>][] = [];
const test = (name: string, run: () => Promise<void>) => tests.push([name, run]);

test("the extension starts the language server", async () => {
  assert.ok(await (await api()).ready(), "the server does not run");
});

test("a mistake is shown where it is, with its code", async () => {
  const document = await open("broken.ent");
  const found = await until("diagnostics", () => {
    const all = vscode.languages.getDiagnostics(document.uri);
    return all.length > 0 ? all : undefined;
  });
  const unit = found.find((d) => document.getText(d.range) === "parsec");
  assert.ok(unit, JSON.stringify(found));
  assert.equal(unit.source, "entc");
  assert.equal(typeof unit.code === "object" ? unit.code.value : unit.code, "unknown-unit");
  assert.equal(unit.severity, vscode.DiagnosticSeverity.Error);
});

test("a mistake that is mended is shown no longer", async () => {
  const document = await open("quickstart.ent");
  const at = document.positionAt(document.getText().indexOf("300 req/s") + 4);
  const edit = new vscode.WorkspaceEdit();
  edit.insert(document.uri, at, "lightyears ");
  assert.ok(await vscode.workspace.applyEdit(edit));
  const errors = () =>
    vscode.languages.getDiagnostics(document.uri).filter((d) => d.severity === vscode.DiagnosticSeverity.Error);
  await until("the mistake", () => (errors().length > 0 ? true : undefined));
  await vscode.commands.executeCommand("undo");
  await until("no mistake", () => (errors().length === 0 ? true : undefined));
});

test("XML and PDB files are left to others", async () => {
  for (const [name, language] of [
    ["entities.ent", "xml"],
    ["protein.ent", "plaintext"],
  ] as const) {
    const uri = uriOf(name);
    await open(name);
    await until(`${name} as ${language}`, () =>
      vscode.workspace.textDocuments.some((d) => d.uri.path === uri.path && d.languageId === language)
        ? true
        : undefined,
    );
    assert.deepEqual(vscode.languages.getDiagnostics(uri), [], name);
  }
  const spec = await open("quickstart.ent");
  assert.equal(spec.languageId, "ent");
});

test("words have the colours of their meaning", async () => {
  await open("quickstart.ent");
  const colours = await until("colours", async () => {
    const words = ["import", "resnet50", "performance", "300", "req/s", "p99", "minimize"];
    const found = await Promise.all(words.map((word) => ask("colour", { word })));
    return found.some((c) => c === null) ? undefined : found;
  });
  assert.ok(new Set(colours).size >= 4, `${colours}`);
});

test("the plan is made, and the status bar says its watts and gap", async () => {
  await open("quickstart.ent");
  const summary = await vscode.commands.executeCommand<{ state: string; watts: number; gap: number }>("entc.plan", uriOf("quickstart.ent"));
  assert.equal(summary.state, "planned");
  assert.ok(summary.watts > 50 && summary.watts < 150, `${summary.watts} W`);
  assert.ok(summary.gap >= 0 && summary.gap < 0.05, `gap ${summary.gap}`);
  const shown = new RegExp(`entc ${summary.watts.toFixed(1)} W · gap`);
  await until("the status bar", async () => ((await ask("status")) as string[]).some((s) => shown.test(s)) || undefined);
  await ask("screenshot", { name: "vscode-plan" });
});

test("commands are there even when the server is restarted", async () => {
  await vscode.commands.executeCommand("entc.restart");
  assert.ok(await (await api()).ready());
  const commands = await vscode.commands.getCommands(true);
  for (const name of ["entc.plan", "entc.showPlan", "entc.restart", "entc.showOutput"]) {
    assert.ok(commands.includes(name), name);
  }
  const document = await open("broken.ent");
  await until("diagnostics", () => vscode.languages.getDiagnostics(document.uri).length > 0 || undefined);
});

test("without entc, a message says so and what to do", async () => {
  const settings = vscode.workspace.getConfiguration("entc");
  await settings.update("path", "/nowhere/entc", vscode.ConfigurationTarget.Global);
  try {
    await until("the message", async () => {
      const text = String(await ask("text"));
      return (text.includes("entc was not found") && text.includes("/nowhere/entc") && text.includes("entc.path")) || undefined;
    });
    assert.equal(await (await api()).ready(), false);
    await ask("screenshot", { name: "vscode-missing" });
  } finally {
    await settings.update("path", undefined, vscode.ConfigurationTarget.Global);
  }
  await until("the server", async () => (await (await api()).ready()) || undefined);
  await vscode.commands.executeCommand("notifications.clearAll");
});

/** Runs all tests; VS Code waits for it. */
export async function run(): Promise<void> {
  port = Number(await readFile(path.join(folder, ".questions"), "utf8"));
  let [passed, failed] = [0, 0];
  for (const [name, body] of tests) {
    try {
      await body();
      passed += 1;
      await ask("say", { text: `✔ ${name}` });
    } catch (error) {
      failed += 1;
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      await ask("say", { text: `✖ ${name}\n${text}` });
      await ask("screenshot", { name: `failed-${failed}` });
    }
  }
  await ask("end", { passed, failed });
}

async function api(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>("entc.entc");
  assert.ok(extension, "the extension is not there");
  return extension.activate();
}

async function open(name: string): Promise<vscode.TextDocument> {
  const document = await vscode.workspace.openTextDocument(uriOf(name));
  await vscode.window.showTextDocument(document, vscode.ViewColumn.One);
  return document;
}

/** Waits for something to be so, looking again after each event that could make it so, and at intervals. */
async function until<T>(what: string, look: () => T | undefined | Promise<T | undefined>): Promise<T> {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await look();
    if (found !== undefined) {
      return found;
    }
    assert.ok(Date.now() < end, `waited in vain for ${what}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** Asks the browser's side. */
function ask(what: string, more: object = {}): Promise<unknown> {
  return new Promise((done, reject) => {
    const request = http.request({ host: "127.0.0.1", port, method: "POST" }, (response) => {
      let text = "";
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () => {
        const answer = JSON.parse(text) as { problem?: string } | null;
        if (answer && typeof answer === "object" && answer.problem) {
          reject(new Error(answer.problem));
        } else {
          done(answer);
        }
      });
    });
    request.on("error", reject);
    request.end(JSON.stringify({ what, ...more }));
  });
}
