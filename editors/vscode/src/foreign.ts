// Files that end in `.ent` and are XML or PDB → the language that suits them, and never the server's business.

import * as vscode from "vscode";
import { BEGINNING, contentOf } from "./content";

/** What a document is, by its text. */
function contentOfDocument(document: vscode.TextDocument): ReturnType<typeof contentOf> {
  const end = document.positionAt(BEGINNING);
  return contentOf(document.getText(new vscode.Range(new vscode.Position(0, 0), end)));
}

/** Whether a document is no spec, whatever its name. */
export function isForeign(document: vscode.TextDocument): boolean {
  return contentOfDocument(document) !== "spec";
}

/** Gives foreign documents another language, those that are open and those to come. */
export function watchForForeign(output: vscode.LogOutputChannel): vscode.Disposable {
  const look = async (document: vscode.TextDocument) => {
    const content = contentOfDocument(document);
    if (document.languageId !== "ent" || content === "spec") {
      return;
    }
    const languages = await vscode.languages.getLanguages();
    const language = languages.includes(content) ? content : "plaintext";
    output.info(`${document.uri.fsPath} is ${content}, no spec: shown as ${language}`);
    await vscode.languages.setTextDocumentLanguage(document, language);
  };
  const looked = (document: vscode.TextDocument) =>
    void look(document).catch((error: unknown) => output.error(String(error)));
  vscode.workspace.textDocuments.forEach(looked);
  return vscode.workspace.onDidOpenTextDocument(looked);
}
