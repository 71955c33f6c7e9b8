// The repository's own texts → specs to test with: examples, and the fences of the language's test pages.

import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import path from "node:path";

const root = fileURLToPath(new URL("../../../", import.meta.url));

/** Every program of `examples`. */
export async function examples() {
  const folders = await readdir(path.join(root, "examples"));
  return Promise.all(
    folders.sort().map(async (name) => {
      const file = path.join(root, "examples", name, "program.ent");
      return { name: `examples/${name}`, file, text: await readFile(file, "utf8") };
    }),
  );
}

/** Every `ent` fence of the language's pages. `mistakes`: the codes that the fence announces. */
export async function fences() {
  const folder = path.join(root, "tests/language");
  const pages = (await readdir(folder)).filter((f) => f.endsWith(".md")).map((f) => path.join("tests/language", f));
  const found = [];
  for (const page of [...pages.sort(), "specs/language.md"]) {
    const text = await readFile(path.join(root, page), "utf8");
    for (const fence of text.matchAll(/^```ent\b(.*)\n([\s\S]*?)^```$/gm)) {
      const line = text.slice(0, fence.index).split("\n").length;
      const mistakes = [...fence[2].matchAll(/error: \[([a-z-]+)\]/g)].map((m) => m[1]);
      found.push({ name: `${page}:${line}`, info: fence[1].trim(), text: fence[2], mistakes });
    }
  }
  return found;
}
