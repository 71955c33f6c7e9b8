// The extension: a language client, a view of the plan, a status bar item. What it cannot do without `entc` it says.

import * as vscode from "vscode";
import { watchForForeign } from "./foreign";
import { Server } from "./server";
import { PlanView } from "./planView";
import { Status } from "./status";
import { Planner } from "./planner";
import type { Summary } from "./summary";

let server: Server | undefined;

/** What other extensions, and the tests, can see. */
export interface Api {
  /** Resolves when the server answers, or it is known that it will not. */
  readonly ready: () => Promise<boolean>;
  /** What the status bar shows. */
  readonly status: () => string;
  /** The page that is shown, if one is. */
  readonly page: () => string | undefined;
}

/** Starts everything. */
export function activate(context: vscode.ExtensionContext): Api {
  const output = vscode.window.createOutputChannel("entc", { log: true });
  const status = new Status();
  const planned = (uri: vscode.Uri, summary: Summary) => {
    status.set(uri, summary);
    if (summary.state === "planned") {
      // What cannot be shown now is shown when it is asked for.
      void view.follow(uri).catch((error: unknown) => output.warn(String(error)));
    }
  };
  const running = new Server(output, planned, () => status.clear());
  server = running;
  const planner = new Planner(running, status, output);
  const view = new PlanView(planner);

  const command = (name: string, run: (uri?: unknown) => unknown) =>
    vscode.commands.registerCommand(name, run);
  context.subscriptions.push(
    output,
    status,
    view,
    watchForForeign(output),
    command("entc.plan", (uri) => planner.plan(uri)),
    command("entc.showPlan", (uri) => view.show(uri)),
    command("entc.restart", () => running.restart()),
    command("entc.showOutput", () => output.show()),
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("entc.path")) {
        await running.restart();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => running.restart()),
  );

  const started = running.start();
  return { ready: () => started.then(() => running.settled()), status: () => status.text, page: () => view.page };
}

/** Stops the server. */
export async function deactivate(): Promise<void> {
  await server?.stop();
}
