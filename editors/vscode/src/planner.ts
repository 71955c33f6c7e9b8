// A spec in the editor → its plan, by the server, or else by the command `entc plan`.

import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import type { Server } from "./server";
import type { Status } from "./status";
import { asSummary, summaryOf, words, type Summary } from "./summary";

/** A report, or why there is none. */
export type Report = { readonly html: string } | { readonly problem: string };

/** Output beyond this is no plan. */
const LONGEST_OUTPUT = 64 * 1024 * 1024;

/** Plans specs. */
export class Planner {
  constructor(
    private readonly server: Server,
    private readonly status: Status,
    private readonly output: vscode.LogOutputChannel,
  ) {}

  /** Plans a spec, the active one unless its URI is given, and says how it went. */
  async plan(uri?: unknown): Promise<Summary | undefined> {
    const document = await this.document(uri);
    if (!document) {
      return undefined;
    }
    const summary = await this.withProgress(document, (token) => this.planned(document, token));
    if (!summary) {
      return undefined;
    }
    this.status.set(document.uri, summary);
    void this.tell(document, summary);
    return summary;
  }

  /** The report of a spec's plan; undefined when there is no spec, or it was cancelled. */
  async report(document: vscode.TextDocument): Promise<Report | undefined> {
    return this.withProgress(document, async (token) => {
      const html = await this.page(document.uri, token);
      if (html !== undefined) {
        return { html };
      }
      const folder = await mkdtemp(path.join(os.tmpdir(), "entc-report-"));
      try {
        const file = path.join(folder, "report.html");
        const ran = await this.run(document, ["--html", file, "--quiet"], token);
        if (ran && ran.code !== 0) {
          return { problem: ran.errors.trim() };
        }
        return ran && { html: await readFile(file, "utf8") };
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    });
  }

  /** The report as the server has it; undefined when it makes none. */
  async page(uri: vscode.Uri, token?: vscode.CancellationToken): Promise<string | undefined> {
    const answer = await this.server.execute("entc.showPlan", [uri.toString()], token);
    const html = (answer as { html?: unknown } | null | undefined)?.html;
    return typeof html === "string" ? html : undefined;
  }

  /** The document of a URI, or the active one, if it is a spec. */
  async document(uri?: unknown): Promise<vscode.TextDocument | undefined> {
    const given = typeof uri === "string" ? vscode.Uri.parse(uri) : uri instanceof vscode.Uri ? uri : undefined;
    const document = given
      ? await vscode.workspace.openTextDocument(given)
      : vscode.window.activeTextEditor?.document;
    if (document?.languageId === "ent") {
      return document;
    }
    void vscode.window.showInformationMessage("Open a spec first: a plan is made of the file that is shown.");
    return undefined;
  }

  private async planned(
    document: vscode.TextDocument,
    token: vscode.CancellationToken,
  ): Promise<Summary | undefined> {
    const answer = asSummary(await this.server.execute("entc.plan", [document.uri.toString()], token));
    if (answer) {
      return answer;
    }
    const ran = await this.run(document, ["--format", "json", "--quiet"], token);
    if (!ran) {
      return undefined;
    }
    if (ran.code === 0) {
      return summaryOf(JSON.parse(ran.text));
    }
    this.output.error(ran.errors.trim());
    const isConflict = ran.errors.includes("conflicting-requirements");
    const summary = ran.errors.trim().split("\n").slice(0, 3).join(" ").trim();
    return { state: isConflict ? "infeasible" : "failed", summary };
  }

  /** `entc plan` on a document, saved first because the command reads the file. */
  private async run(
    document: vscode.TextDocument,
    args: readonly string[],
    token: vscode.CancellationToken,
  ): Promise<{ code: number; text: string; errors: string } | undefined> {
    if (document.isUntitled || (document.isDirty && !(await document.save()))) {
      void vscode.window.showWarningMessage("Save the spec first: entc plans the file on disk.");
      return undefined;
    }
    const file = await this.server.executable();
    if (!file) {
      return undefined;
    }
    const whole = ["plan", document.uri.fsPath, "--color", "never", ...args];
    this.output.info(`${file} ${whole.join(" ")}`);
    return new Promise((done) => {
      const options = { cwd: path.dirname(document.uri.fsPath), maxBuffer: LONGEST_OUTPUT };
      const child = execFile(file, whole, options, (error, text, errors) => {
        listener.dispose();
        const code = error ? (typeof error.code === "number" ? error.code : 1) : 0;
        done(token.isCancellationRequested ? undefined : { code, text, errors: errors || String(error ?? "") });
      });
      const listener = token.onCancellationRequested(() => child.kill());
    });
  }

  private async withProgress<T>(
    document: vscode.TextDocument,
    work: (token: vscode.CancellationToken) => Promise<T>,
  ): Promise<T | undefined> {
    const name = path.basename(document.uri.path);
    const options = {
      location: vscode.ProgressLocation.Notification,
      title: `entc: planning ${name}`,
      cancellable: true,
    };
    try {
      return await vscode.window.withProgress(options, (_, token) => work(token));
    } catch (error) {
      if (!(error instanceof vscode.CancellationError)) {
        const message = error instanceof Error ? error.message : String(error);
        this.output.error(message);
        void vscode.window.showErrorMessage(`entc: ${message}`);
      }
      return undefined;
    }
  }

  private async tell(document: vscode.TextDocument, summary: Summary): Promise<void> {
    const name = path.basename(document.uri.path);
    if (summary.state === "planned") {
      const text = words(summary).replace(/^\$\([^)]*\) entc\s*/, "");
      const show = "Show the plan";
      if ((await vscode.window.showInformationMessage(`${name}: ${text}`, show)) === show) {
        await vscode.commands.executeCommand("entc.showPlan", document.uri);
      }
      return;
    }
    const show = "Show output";
    const text = summary.summary ?? "no plan was made";
    if ((await vscode.window.showErrorMessage(`${name}: ${text}`, show)) === show) {
      this.output.show();
    }
  }
}
