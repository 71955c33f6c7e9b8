// A text → its tokens with their scopes, as VS Code's own tokenizer finds them.

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import oniguruma from "vscode-oniguruma";
import textmate from "vscode-textmate";

const wasm = await readFile(createRequire(import.meta.url).resolve("vscode-oniguruma/release/onig.wasm"));
await oniguruma.loadWASM(wasm);

const path = new URL("../syntaxes/ent.tmLanguage.json", import.meta.url);
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () => textmate.parseRawGrammar(await readFile(path, "utf8"), "ent.json"),
});
const grammar = await registry.loadGrammar("source.ent");

/** The tokens of a text that are not only space: `{ text, scopes, line }`, scopes from the outside in. */
export function tokens(text) {
  const found = [];
  let stack = textmate.INITIAL;
  text.split(/\r\n|\n|\r/).forEach((line, number) => {
    const result = grammar.tokenizeLine(line, stack);
    stack = result.ruleStack;
    for (const token of result.tokens) {
      const word = line.slice(token.startIndex, token.endIndex);
      if (word.trim() !== "") {
        found.push({ text: word.trim(), scopes: token.scopes, line: number + 1 });
      }
    }
  });
  return found;
}

/** How deep in blocks and brackets a text ends. */
export function depthAtEnd(text) {
  return text.split(/\r\n|\n|\r/).reduce((stack, line) => grammar.tokenizeLine(line, stack).ruleStack, textmate.INITIAL).depth;
}

/** `text:innermost scope` of each token, without `.ent`. */
export function brief(text) {
  return tokens(text).map((t) => `${t.text} ${t.scopes.at(-1).replace(/\.ent$/, "")}`);
}
