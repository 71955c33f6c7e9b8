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
  const words = ["import", "performance", "300", "p99", "minimize"];
  const colours = await until("colours", async () => {
    const found = (await ask("colours", { words })) as (string | null)[];
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

test("the report of the plan is shown, runs nothing, and follows the theme", async () => {
  await open("quickstart.ent");
  await vscode.commands.executeCommand("entc.showPlan", uriOf("quickstart.ent"));
  type Page = { text: string; background: string; policy: string; script: boolean };
  const shown = await until("the report", async () => {
    const page = (await ask("webview")) as Page | null;
    return page?.text.includes("classify") ? page : undefined;
  });
  assert.match(shown.text, /thumbnails/);
  assert.match(shown.text, /W\b/);
  assert.match(shown.policy, /^default-src 'none'/);
  assert.doesNotMatch(shown.policy, /script-src/);
  await ask("screenshot", { name: "vscode-report-dark" });
  const workbench = vscode.workspace.getConfiguration("workbench");
  await workbench.update("colorTheme", "Default Light Modern", vscode.ConfigurationTarget.Workspace);
  await until("a light page", async () => {
    const page = (await ask("webview")) as Page | null;
    return (page && page.background !== shown.background) || undefined;
  });
  await ask("screenshot", { name: "vscode-report-light" });
  await workbench.update("colorTheme", "Default Dark Modern", vscode.ConfigurationTarget.Workspace);
  await vscode.commands.executeCommand("workbench.action.closeEditorsInOtherGroups");
});

test("the lens above a spec plans it", async () => {
  const document = await open("quickstart.ent");
  const lenses = await until("a lens", async () => {
    const found = await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", document.uri, 10);
    return found.length > 0 ? found : undefined;
  });
  const command = lenses.find((l) => l.command?.command.startsWith("entc."))?.command;
  assert.ok(command, JSON.stringify(lenses));
  assert.ok(["entc.plan", "entc.showPlan"].includes(command.command), command.command);
});

test("what the server knows reaches the editor: hover, completion, symbols, layout, colours", async () => {
  const document = await open("quickstart.ent");
  const at = (word: string) => document.positionAt(document.getText().indexOf(word) + 1);
  const run = <T>(command: string, ...args: unknown[]) => vscode.commands.executeCommand<T>(`vscode.${command}`, document.uri, ...args);
  const symbols = await run<vscode.DocumentSymbol[]>("executeDocumentSymbolProvider");
  assert.ok(symbols.some((s) => s.name.includes("classify")), JSON.stringify(symbols.map((s) => s.name)));
  const hovers = await run<vscode.Hover[]>("executeHoverProvider", at("req/s"));
  assert.ok(hovers.length > 0, "no hover");
  const list = await run<vscode.CompletionList>("executeCompletionItemProvider", at("rate"));
  assert.ok(list.items.length > 0, "no completion");
  const places = await run<(vscode.Location | vscode.LocationLink)[]>("executeDefinitionProvider", at("resnet50, rate"));
  assert.ok(places.length > 0, "no definition");
  const legend = await run<vscode.SemanticTokensLegend>("provideDocumentSemanticTokensLegend");
  assert.ok(legend.tokenTypes.includes("unit"), legend.tokenTypes.join());
});

test("a spec is laid out by the server", async () => {
  const document = await open("quickstart.ent");
  const before = document.getText();
  const untidy = new vscode.WorkspaceEdit();
  untidy.insert(document.uri, document.positionAt(before.indexOf(" = a100_80gb_pcie x 1")), "      ");
  assert.ok(await vscode.workspace.applyEdit(untidy));
  assert.notEqual(document.getText(), before);
  await vscode.commands.executeCommand("editor.action.formatDocument");
  await until("the canonical layout", () => (document.getText() === before ? true : undefined));
});

test("a fix is offered for a misspelt word, and mends it", async () => {
  const document = await open("misspelt.ent");
  const found = await until("the mistake", () => {
    const all = vscode.languages.getDiagnostics(document.uri);
    return all.find((d) => document.getText(d.range).includes("Kw"));
  });
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>("vscode.executeCodeActionProvider", document.uri, found.range);
  const fix = actions.find((a) => a.edit && a.title.includes("kW"));
  assert.ok(fix?.edit, JSON.stringify(actions.map((a) => a.title)));
  assert.ok(await vscode.workspace.applyEdit(fix.edit));
  await until("no mistake", () => (document.getText().includes("1.2 kW") && vscode.languages.getDiagnostics(document.uri).length === 0 ? true : undefined));
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

test("plans that the server tells of are shown, and the panel follows them", async () => {
  const settings = vscode.workspace.getConfiguration("entc");
  const scripted = path.join(__dirname, "../test/scripted-server.mjs");
  await settings.update("path", scripted, vscode.ConfigurationTarget.Global);
  try {
    const document = await open("quickstart.ent");
    const shows = (pattern: RegExp) => async () => ((await ask("status")) as string[]).some((s) => pattern.test(s)) || undefined;
    await until("the first plan", shows(/entc 1001\.0 W · gap 1 %/));
    await vscode.commands.executeCommand("entc.showPlan");
    const page = (text: string) => async () => ((await ask("webview")) as { text: string } | null)?.text.includes(text) || undefined;
    await until("the first report", page("report of version 1"));
    const edit = new vscode.WorkspaceEdit();
    edit.insert(document.uri, new vscode.Position(0, 0), "// planned again\n");
    assert.ok(await vscode.workspace.applyEdit(edit));
    await until("the second plan", shows(/entc 1002\.0 W · gap 1 %/));
    await until("the second report", page("report of version 2"));
    await vscode.commands.executeCommand("undo");
    await until("the third plan", shows(/entc 1003\.0 W/));
    await vscode.commands.executeCommand("workbench.action.closeEditorsInOtherGroups");
  } finally {
    await settings.update("path", undefined, vscode.ConfigurationTarget.Global);
  }
  await until("the server", async () => (await (await api()).ready()) || undefined);
});

test("without entc, a message says so and what to do", async () => {
  assert.ok(await (await api()).ready());
  await open("quickstart.ent");
  const settings = vscode.workspace.getConfiguration("entc");
  await settings.update("path", "/nowhere/entc", vscode.ConfigurationTarget.Global);
  try {
    await vscode.commands.executeCommand("notifications.showList");
    await until("the message", async () => {
      const wanted = ["entc was not found", "/nowhere/entc", "entc.path", "Choose the file", "Open settings"];
      const shown = (await ask("notifications")) as string[];
      return shown.some((text) => wanted.every((w) => text.includes(w))) || undefined;
    });
    await until("no plan in the status bar", async () =>
      ((await ask("status")) as string[]).every((s) => !/ W · gap/.test(s)) || undefined,
    );
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
  const only = process.env["ONLY"];
  for (const [name, body] of tests.filter(([n]) => !only || n.includes(only))) {
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
