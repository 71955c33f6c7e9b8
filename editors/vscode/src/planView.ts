// A spec → a panel with the report of its plan, beside the text, in the colours of the theme.

import * as path from "node:path";
import * as vscode from "vscode";
import { pageOf, problemPage } from "./page";
import type { Planner, Report } from "./planner";

/** One panel, that shows the plan it was last asked for. */
export class PlanView implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private shown: Report | undefined;
  /** Whose plan is shown. */
  private of: string | undefined;
  private readonly theme: vscode.Disposable;

  constructor(private readonly planner: Planner) {
    this.theme = vscode.window.onDidChangeActiveColorTheme(() => this.draw());
  }

  /** The page that is shown, if one is. */
  get page(): string | undefined {
    return this.panel?.webview.html;
  }

  /** Plans a spec, the active one unless its URI is given, and shows the plan. */
  async show(uri?: unknown): Promise<void> {
    const document = await this.planner.document(uri);
    if (!document) {
      return;
    }
    const report = await this.planner.report(document);
    if (!report) {
      return;
    }
    this.shown = report;
    this.of = document.uri.toString();
    const title = `Plan of ${path.basename(document.uri.path)}`;
    if (this.panel) {
      this.panel.title = title;
      this.panel.reveal(undefined, true);
    } else {
      const where = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
      const options = { enableScripts: false, enableForms: false, localResourceRoots: [], enableFindWidget: true };
      this.panel = vscode.window.createWebviewPanel("entc.plan", title, where, options);
      this.panel.onDidDispose(() => {
        this.panel = undefined;
      });
    }
    this.draw();
  }

  /** A file was planned anew: the panel, if it shows that file, follows. */
  async follow(uri: vscode.Uri): Promise<void> {
    if (!this.panel || this.of !== uri.toString()) {
      return;
    }
    const html = await this.planner.page(uri);
    if (html !== undefined && this.of === uri.toString()) {
      this.shown = { html };
      this.draw();
    }
  }

  dispose(): void {
    this.theme.dispose();
    this.panel?.dispose();
  }

  private draw(): void {
    if (!this.panel || !this.shown) {
      return;
    }
    const { Dark, HighContrast } = vscode.ColorThemeKind;
    const isDark = [Dark, HighContrast].includes(vscode.window.activeColorTheme.kind);
    const shown = this.shown;
    this.panel.webview.html = "html" in shown ? pageOf(shown.html, isDark) : problemPage(shown.problem, isDark);
  }
}
