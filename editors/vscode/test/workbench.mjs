// The built extension in a real VS Code (code-server) in a real browser without a screen, against the real entc.
//
// The suite itself (workbench-suite.ts) runs in VS Code's extension host, as tests of extensions do. This file starts
// both, hands the suite what only a browser knows, and passes on how it ended. Needs in the environment:
// ENTC, CODE_SERVER (the folder of the npm package), CHROMIUM; optionally SCREENSHOTS, a folder.

import { spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import puppeteer from "puppeteer-core";

const LIMIT = Number(process.env.LIMIT ?? 240) * 1000;
const extension = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");
const root = path.join(extension, "../..");
const need = (name) => process.env[name] ?? fail(`set ${name}; setup/editors.sh does`);

function fail(problem) {
  console.error(problem);
  process.exit(1);
}

const [entc, codeServer, chromium] = ["ENTC", "CODE_SERVER", "CHROMIUM"].map(need);
const scratch = await mkdtemp(path.join(os.tmpdir(), "ent-workbench-"));
const folder = path.join(scratch, "specs");
const data = path.join(scratch, "data");

/** What the suite finds in its folder. */
async function lay() {
  await mkdir(folder, { recursive: true });
  await cp(path.join(root, "examples/quickstart/program.ent"), path.join(folder, "quickstart.ent"));
  await cp(path.join(root, "examples/infeasible/program.ent"), path.join(folder, "infeasible.ent"));
  const broken = "model bert { performance = 3 W }\n\nservice ask {\n  rate = 5 parsec\n}\n";
  await writeFile(path.join(folder, "broken.ent"), broken);
  const quickstart = await readFile(path.join(folder, "quickstart.ent"), "utf8");
  const misspelt = quickstart.replace("minimize energy", "minimize energy, limit power <= 1.2 Kw");
  await writeFile(path.join(folder, "misspelt.ent"), misspelt);
  await writeFile(path.join(folder, "entities.ent"), "<!ENTITY nbsp \"&#160;\">\n<!ENTITY = rate 47 ms>\n");
  await writeFile(path.join(folder, "protein.ent"), "HEADER    HYDROLASE                               01-JAN-99   1ABC\nATOM      1  N   MET A   1\n");
  await mkdir(path.join(scratch, "bin"));
  await symlink(path.resolve(entc), path.join(scratch, "bin/entc"));
  await mkdir(path.join(folder, ".vscode"));
  const settings = {
    "entc.trace.server": "messages",
    "workbench.colorTheme": "Default Dark Modern",
    "workbench.startupEditor": "none",
    "telemetry.telemetryLevel": "off",
    "chat.disableAIFeatures": true,
    "editor.accessibilitySupport": "off",
  };
  await writeFile(path.join(folder, ".vscode/settings.json"), JSON.stringify(settings));
}

/** Starts VS Code's own server, which code-server brings, on a free port; resolves with its process and port. */
function serve() {
  const args = ["out/server-main.js", "--host", "127.0.0.1", "--port", "0", "--without-connection-token", "--telemetry-level", "off"];
  args.push("--accept-server-license-terms", "--user-data-dir", data, "--extensions-dir", path.join(scratch, "extensions"));
  // Only so does a built VS Code take the extension and its tests from the address.
  args.push("--enable-smoke-test-driver");
  const cwd = path.join(codeServer, "lib/vscode");
  // entc is on PATH, as for most users; VSCODE_CLI keeps VS Code from asking a login shell for another PATH.
  const env = { ...process.env, HOME: scratch, VSCODE_CLI: "1", PATH: `${path.join(scratch, "bin")}:${process.env.PATH}` };
  const child = spawn(process.execPath, args, { cwd, stdio: ["ignore", "pipe", "pipe"], env });
  let said = "";
  return new Promise((done, reject) => {
    const listen = (chunk) => {
      said += chunk;
      const port = /Extension host agent listening on (\d+)/.exec(said)?.[1];
      if (port) done({ child, port });
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.on("exit", () => reject(new Error(`the server ended:\n${said}`)));
  });
}

/** A server for the suite: what it says, what it wants to know of the page, how it ended. */
function listen(page, ended) {
  const server = http.createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const asked = JSON.parse(text);
    const answer = await answerTo(page, asked, ended).catch((error) => ({ problem: String(error) }));
    response.end(JSON.stringify(answer ?? null));
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

async function answerTo(page, asked, ended) {
  switch (asked.what) {
    case "say":
      console.log(asked.text);
      return null;
    case "end":
      ended(asked);
      return null;
    // The colours of words on the screen, as the browser computes them.
    case "colours":
      return page.evaluate((words) => {
        const spans = [...document.querySelectorAll(".view-line span span")];
        const coloured = (word) => spans.find((s) => s.textContent.split(/[^\w%/]+/).includes(word));
        return words.map(coloured).map((span) => (span ? getComputedStyle(span).color : null));
      }, asked.words);
    case "status":
      return page.evaluate(() => [...document.querySelectorAll(".statusbar-item")].map((i) => i.textContent.trim()));
    case "notifications":
      return page.evaluate(() => [...document.querySelectorAll(".notification-list-item")].map((i) => i.innerText));
    // The text of the innermost frame, and its background: the page of a webview.
    case "webview": {
      for (const frame of page.frames()) {
        const found = await frame
          .evaluate(() => {
            const inner = document.getElementById("active-frame")?.contentDocument;
            if (!inner) return null;
            const style = inner.defaultView.getComputedStyle(inner.body);
            return { text: inner.body.innerText, background: style.backgroundColor, policy: inner.querySelector("meta[http-equiv]")?.content };
          })
          .catch(() => null);
        if (found?.text) return found;
      }
      return null;
    }
    case "screenshot":
      if (process.env.SCREENSHOTS) {
        await mkdir(process.env.SCREENSHOTS, { recursive: true });
        await page.screenshot({ path: path.join(process.env.SCREENSHOTS, `${asked.name}.png`) });
      }
      return null;
    default:
      throw new Error(`unknown question ${asked.what}`);
  }
}

let outcome = { failed: 1, passed: 0 };
let server;
let browser;
let questions;
try {
  await lay();
  server = await serve();
  browser = await puppeteer.launch({
    executablePath: chromium,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,900"],
    defaultViewport: { width: 1400, height: 900 },
  });
  const page = await browser.newPage();
  const said = [];
  page.on("console", (message) => {
    said.push(message.text());
    if (process.env.VERBOSE) console.log("  page:", message.text());
  });
  const end = new Promise((done) => {
    listen(page, done).then(async (q) => {
      questions = q;
      await writeFile(path.join(folder, ".questions"), String(q.address().port));
      const remote = (file) => `vscode-remote://127.0.0.1:${server.port}${file}`;
      const payload = [
        ["extensionDevelopmentPath", remote(extension)],
        ["extensionTestsPath", remote(path.join(extension, "dist/workbench-suite.js"))],
        ["skipWelcome", "true"],
      ];
      const query = new URLSearchParams({ folder, payload: JSON.stringify(payload) });
      await page.goto(`http://127.0.0.1:${server.port}/?${query}`, { timeout: LIMIT, waitUntil: "domcontentloaded" });
    });
    setTimeout(async () => done({ failed: 1, passed: 0, problem: `not done after ${LIMIT / 1000} s; the page said:\n${said.slice(-30).join("\n")}`, ...(await answerTo(page, { what: "screenshot", name: "late" })) }), LIMIT).unref();
  });
  outcome = await end;
} catch (error) {
  console.error(error);
} finally {
  if (outcome.problem) console.error(outcome.problem);
  if (process.env.KEEP) await cp(data, process.env.KEEP, { recursive: true });
  await browser?.close();
  questions?.close();
  server?.child.kill();
  await rm(scratch, { recursive: true, force: true, maxRetries: 5 });
}
console.log(`${outcome.passed} passed, ${outcome.failed} failed`);
process.exit(outcome.failed === 0 && outcome.passed > 0 ? 0 : 1);
