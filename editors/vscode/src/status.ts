// Summaries of plans → the item in the status bar, for the spec that is being looked at.

import * as vscode from "vscode";
import { words, type Summary } from "./summary";

/** The status bar item. */
export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("entc.plan", vscode.StatusBarAlignment.Right, 90);
  private readonly summaries = new Map<string, Summary>();
  private readonly listeners: vscode.Disposable[];

  constructor() {
    this.item.name = "entc plan";
    this.item.command = "entc.showPlan";
    this.listeners = [
      vscode.window.onDidChangeActiveTextEditor(() => this.draw()),
      vscode.workspace.onDidCloseTextDocument((document) => {
        this.summaries.delete(document.uri.toString());
        this.draw();
      }),
    ];
    this.draw();
  }

  /** What the item says. */
  get text(): string {
    return this.item.text;
  }

  /** Remembers what is known of a file's plan. */
  set(uri: vscode.Uri, summary: Summary): void {
    this.summaries.set(uri.toString(), summary);
    this.draw();
  }

  /** Forgets all plans: whoever knew of them is gone. */
  clear(): void {
    this.summaries.clear();
    this.draw();
  }

  dispose(): void {
    this.item.dispose();
    this.listeners.forEach((l) => l.dispose());
  }

  private draw(): void {
    const document = vscode.window.activeTextEditor?.document;
    if (document?.languageId !== "ent") {
      this.item.hide();
      return;
    }
    const summary = this.summaries.get(document.uri.toString());
    this.item.text = words(summary);
    this.item.tooltip = summary?.summary ?? "Show the plan of this spec";
    this.item.show();
  }
}
