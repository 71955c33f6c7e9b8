#!/usr/bin/env node
// A language server that plans at once: what the client makes of plans is tested without waiting for a planner.
// The plan of a file's nth version draws 1000 + n W; its report says which version it is of.

import rpc from "vscode-languageserver-protocol/node";

const connection = rpc.createProtocolConnection(process.stdin, process.stdout);
const versions = new Map();
const plan = (uri) => {
  const n = (versions.get(uri) ?? 0) + 1;
  versions.set(uri, n);
  void connection.sendNotification("entc/planned", { uri, state: "planned", watts: 1000 + n, gap: 0.01, boards: 1 });
};

connection.onRequest("initialize", () => ({
  capabilities: {
    textDocumentSync: 1,
    executeCommandProvider: { commands: ["entc.plan", "entc.showPlan"] },
  },
}));
connection.onRequest("shutdown", () => null);
connection.onNotification("exit", () => process.exit(0));
connection.onNotification("textDocument/didOpen", ({ textDocument }) => plan(textDocument.uri));
connection.onNotification("textDocument/didChange", ({ textDocument }) => plan(textDocument.uri));
connection.onRequest("workspace/executeCommand", (asked) => ({
  html: `<!doctype html><html lang="en"><head><title>Plan</title></head><body><p>report of version ${versions.get(asked.arguments[0])}</p></body></html>`,
}));
connection.listen();
