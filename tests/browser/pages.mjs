// Pages that entc made → opened in a real browser at three widths, light, dark and printed.
//
// `node pages.mjs FOLDER` opens every .html and .svg file of the folder and fails on: a message on the
// console, a request for anything but the page, content wider than the window, letters outside their
// drawing, a finding of axe, a stop of the Tab key without a visible mark. Screenshots go to FOLDER/shots.
// Nothing is left out in silence: what was looked at is listed and counted.

import { mkdir, readFile, readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const WIDTHS = [360, 768, 1280];
const SCHEMES = ["light", "dark"];
// A4 at 96 dots an inch.
const PRINT_WIDTH = 794;
const BROWSERS = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

const folder = path.resolve(process.argv[2] ?? ".");
const shots = path.join(folder, "shots");
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

async function launched() {
  const failures = [];
  for (const executablePath of BROWSERS.filter(Boolean)) {
    try {
      return await puppeteer.launch({ executablePath, headless: true, args: ["--no-sandbox", "--disable-gpu", "--hide-scrollbars"] });
    } catch (error) {
      failures.push(`${executablePath}: ${error.message.split("\n")[0]}`);
    }
  }
  throw new Error(`no browser could be started; install Debian's chromium\n  ${failures.join("\n  ")}`);
}

/** What is wrong with how the page lies in the window. */
function layout() {
  const faults = [];
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) faults.push(`the page is ${scrollWidth} wide in a window of ${clientWidth}`);
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    if (frame.width === 0) continue;
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      const over = Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom);
      if (over > 1.5) faults.push(`"${text.textContent.trim()}" is ${over.toFixed(1)} outside its drawing`);
      const size = parseFloat(getComputedStyle(text).fontSize) * (frame.width / svg.viewBox.baseVal.width);
      if (size < 9) faults.push(`"${text.textContent.trim()}" is ${size.toFixed(1)} pixels high`);
    }
  }
  return faults;
}

/** Presses Tab through the page: every stop must be seen. */
async function keyboard(page) {
  const faults = [];
  const n = await page.evaluate(() => document.querySelectorAll("a[href], [tabindex='0']").length);
  for (let stop = 0; stop < n; stop += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const element = document.activeElement;
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      const name = element.getAttribute("aria-label") ?? element.textContent.trim();
      return { tag: element.tagName, name, isSeen: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 };
    });
    if (at.tag === "BODY") faults.push(`Tab stops after ${stop} of ${n}`);
    else if (!at.isSeen) faults.push(`no mark on ${at.tag} "${at.name}"`);
    else if (!at.name) faults.push(`${at.tag} has no name`);
  }
  return faults;
}

const browser = await launched();
let n_views = 0;
const faults = [];
try {
  await mkdir(shots, { recursive: true });
  const files = (await readdir(folder)).filter((name) => /\.(html|svg)$/.test(name)).sort();
  if (files.length === 0) throw new Error(`no page in ${folder}`);
  for (const file of files) {
    const page = await browser.newPage();
    const url = pathToFileURL(path.join(folder, file)).href;
    let where = file;
    const fault = (what) => faults.push(`${where}: ${what}`);
    page.on("console", (message) => fault(`console ${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => fault(`error: ${error.message}`));
    page.on("request", (request) => {
      const asked = request.url();
      if (asked !== url && !asked.startsWith("data:") && !asked.startsWith(`${url}#`)) fault(`asks for ${asked}`);
    });
    const isPage = file.endsWith(".html");
    const stem = file.replace(/\.\w+$/, isPage ? "" : "-picture");
    for (const scheme of SCHEMES) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      for (const width of isPage ? WIDTHS : [1280]) {
        where = `${file} at ${width}, ${scheme}`;
        await page.setViewport({ width, height: 900 });
        await page.goto(url, { waitUntil: "load" });
        if (isPage) (await page.evaluate(layout)).forEach(fault);
        await page.screenshot({ path: path.join(shots, `${stem}-${width}-${scheme}.png`), fullPage: isPage });
        n_views += 1;
        if (!isPage) continue;
        await page.evaluate(axe);
        const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
        for (const violation of found.violations) {
          const nodes = violation.nodes.slice(0, 3).map((node) => `${node.target.join(" ")}: ${node.failureSummary.replaceAll("\n", " ")}`);
          fault(`axe ${violation.id} (${violation.impact}): ${violation.help}\n    ${nodes.join("\n    ")}`);
        }
      }
    }
    if (isPage) {
      where = `${file} by keyboard`;
      (await keyboard(page)).forEach(fault);
      where = `${file} printed`;
      await page.emulateMediaFeatures([]);
      await page.emulateMediaType("print");
      await page.setViewport({ width: PRINT_WIDTH, height: 1123 });
      await page.goto(url, { waitUntil: "load" });
      (await page.evaluate(layout)).forEach(fault);
      await page.screenshot({ path: path.join(shots, `${stem}-print.png`), fullPage: true });
      const pdf = await page.pdf({ format: "A4", printBackground: true });
      if (pdf.length < 1000) fault("prints nothing");
      n_views += 1;
    }
    console.log(`looked at ${file}`);
    await page.close();
  }
} finally {
  await browser.close();
}
console.log(`${n_views} views, ${faults.length} faults; screenshots in ${shots}`);
if (faults.length > 0) {
  console.error(faults.join("\n"));
  process.exit(1);
}
