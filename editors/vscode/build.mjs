// src/*.ts → dist/extension.js, one file; and what the tests load: dist/content.mjs, dist/workbench-suite.js.
import { build } from "esbuild";
import { rm } from "node:fs/promises";

const production = process.argv.includes("--production");
await rm("dist", { recursive: true, force: true });

const base = { bundle: true, platform: "node", target: "node20", sourcemap: !production, minify: production };
await build({
  ...base,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  format: "cjs",
  external: ["vscode"],
});
if (!production) {
  await build({ ...base, entryPoints: ["src/content.ts", "src/executable.ts", "src/summary.ts", "src/page.ts"], outdir: "dist", format: "esm", outExtension: { ".js": ".mjs" } });
  await build({ ...base, entryPoints: ["test/workbench-suite.ts"], outfile: "dist/workbench-suite.js", format: "cjs", external: ["vscode"] });
}
