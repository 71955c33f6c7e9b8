// The setting `entc.path` → a running language server, or a message that says what to do.

import * as os from "node:os";
import * as vscode from "vscode";
import {
  LanguageClient,
  State,
  type DynamicFeature,
  type LanguageClientOptions,
  type Middleware,
  type StaticFeature,
} from "vscode-languageclient/node";
import { find } from "./executable";
import { isForeign } from "./foreign";
import { asSummary, type Summary } from "./summary";

/** Has one server, or none. */
export class Server {
  private client: Client | undefined;
  /** Starts and stops follow one another. */
  private queue: Promise<void> = Promise.resolve();

  constructor(
    private readonly output: vscode.LogOutputChannel,
    private readonly onPlanned: (uri: vscode.Uri, summary: Summary) => void,
    private readonly onStopped: () => void,
  ) {}

  /** Starts the server; without `entc`, says so and what to do. */
  start(): Promise<void> {
    return this.then(() => this.startNow());
  }

  /** Stops the server and starts it again, with the settings as they are now. */
  restart(): Promise<void> {
    return this.then(async () => {
      await this.stopNow();
      await this.startNow();
    });
  }

  /** Stops the server. */
  stop(): Promise<void> {
    return this.then(() => this.stopNow());
  }

  /** Whether the server runs, once what was asked of it is done. */
  async settled(): Promise<boolean> {
    await this.queue;
    return this.client?.state === State.Running;
  }

  /** Asks the server to carry out a command; undefined when it runs not, or does not know the command. */
  async execute(command: string, args: readonly unknown[], token?: vscode.CancellationToken): Promise<unknown> {
    await this.queue;
    const known = this.client?.initializeResult?.capabilities.executeCommandProvider?.commands;
    if (!this.client || this.client.state !== State.Running || !known?.includes(command)) {
      return undefined;
    }
    return this.client.sendRequest("workspace/executeCommand", { command, arguments: args }, token);
  }

  /** The file that `entc.path` names; without it, says so and what to do. */
  async executable(): Promise<string | undefined> {
    const setting = vscode.workspace.getConfiguration("entc").get<string>("path", "entc");
    const found = await find(setting, {
      environment: process.env,
      home: os.homedir(),
      folder: vscode.workspace.workspaceFolders?.[0]?.uri.fsPath,
      platform: process.platform,
    });
    if ("file" in found) {
      return found.file;
    }
    this.output.error(found.problem);
    void this.askForPath(found.problem);
    return undefined;
  }

  private then(next: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(next).catch((error: unknown) => this.output.error(String(error)));
    return this.queue;
  }

  private async startNow(): Promise<void> {
    const file = await this.executable();
    if (!file) {
      return;
    }
    this.output.info(`starting ${file} lsp`);
    const planning = () => vscode.workspace.getConfiguration("entc").get<boolean>("planning", true);
    const options: LanguageClientOptions = {
      documentSelector: [
        { language: "ent", scheme: "file" },
        { language: "ent", scheme: "untitled" },
      ],
      initializationOptions: { planning: planning() },
      synchronize: {
        configurationSection: "entc",
        fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{ent,csv,json}"),
      },
      outputChannel: this.output,
      middleware: this.middleware(),
    };
    const client = new Client("entc", "entc", { command: file, args: ["lsp"] }, options);
    client.onNotification("entc/planned", (message: unknown) => {
      const summary = asSummary(message);
      const uri = (message as { uri?: unknown }).uri;
      if (summary && typeof uri === "string") {
        this.onPlanned(vscode.Uri.parse(uri), summary);
      }
    });
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      this.client = undefined;
      this.output.error(`${file} lsp: ${String(error)}`);
      void this.askForOutput(`\`${file} lsp\` did not start. Is it a version of entc that has a language server?`);
    }
  }

  private async stopNow(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client?.state === State.Running || client?.state === State.Starting) {
      await client.stop();
    }
    await client?.dispose();
    this.onStopped();
  }

  /** Keeps XML and PDB files from the server. What a file is, is decided when it is opened. */
  private middleware(): Middleware {
    const specs = new Set<string>();
    const key = (document: vscode.TextDocument) => document.uri.toString();
    return {
      didOpen: async (document, next) => {
        if (!isForeign(document)) {
          specs.add(key(document));
          await next(document);
        }
      },
      didChange: async (change, next) => {
        if (specs.has(key(change.document))) {
          await next(change);
        }
      },
      didSave: async (document, next) => {
        if (specs.has(key(document))) {
          await next(document);
        }
      },
      didClose: async (document, next) => {
        if (specs.delete(key(document))) {
          await next(document);
        }
      },
    };
  }

  private async askForPath(problem: string): Promise<void> {
    const [choose, settings] = ["Choose the file…", "Open settings"];
    const message =
      `entc was not found: ${problem}. Specs have colours and snippets, but no diagnostics and no plans. ` +
      "Install entc, or set `entc.path` to it; it is `target/release/entc` after `cargo build --release`.";
    const answer = await vscode.window.showErrorMessage(message, choose, settings);
    if (answer === settings) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "entc.path");
    }
    if (answer === choose) {
      const files = await vscode.window.showOpenDialog({ title: "The entc command", openLabel: "Use this" });
      const file = files?.[0]?.fsPath;
      if (file) {
        const target = vscode.ConfigurationTarget.Global;
        await vscode.workspace.getConfiguration("entc").update("path", file, target);
      }
    }
  }

  private async askForOutput(message: string): Promise<void> {
    const [output, restart] = ["Show output", "Restart"];
    const answer = await vscode.window.showErrorMessage(message, output, restart);
    if (answer === output) {
      this.output.show();
    }
    if (answer === restart) {
      await this.restart();
    }
  }
}

/** A client that leaves the server's commands alone: ours have the same names, and ask the server themselves. */
class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const method = "registrationType" in feature ? feature.registrationType?.method : undefined;
    if (method !== "workspace/executeCommand") {
      super.registerFeature(feature);
    }
  }
}
