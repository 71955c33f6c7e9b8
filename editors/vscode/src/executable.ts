// The setting `entc.path` → the file to run.

import { access, constants, stat } from "node:fs/promises";
import * as path from "node:path";

/** Where to look, and what names stand for. */
export interface Surroundings {
  readonly environment: NodeJS.ProcessEnv;
  readonly home: string;
  /** The folder that is open, if one is: relative paths start there. */
  readonly folder: string | undefined;
  readonly platform: NodeJS.Platform;
}

/** A file to run, or why there is none. */
export type Found = { readonly file: string } | { readonly problem: string };

/** Finds the command that a setting names: a path, or a name on PATH. */
export async function find(setting: string, where: Surroundings): Promise<Found> {
  const wanted = expand(setting.trim() || "entc", where);
  if (wanted.includes("/") || wanted.includes(path.sep)) {
    const file = path.resolve(where.folder ?? where.home, wanted);
    const runnable = await firstRunnable([file], where);
    return runnable ? { file: runnable } : { problem: `\`${file}\` is not a file that can be run` };
  }
  const folders = (where.environment["PATH"] ?? where.environment["Path"] ?? "").split(path.delimiter);
  const absolute = folders.filter((f) => path.isAbsolute(f));
  const file = await firstRunnable(absolute.map((f) => path.join(f, wanted)), where);
  return file ? { file } : { problem: `\`${wanted}\` is not on PATH` };
}

function expand(setting: string, where: Surroundings): string {
  const named = setting.replace(/\$\{workspaceFolder\}/g, where.folder ?? where.home);
  return named === "~" || named.startsWith("~/") ? where.home + named.slice(1) : named;
}

async function firstRunnable(files: readonly string[], where: Surroundings): Promise<string | undefined> {
  const endings = where.platform === "win32" ? ["", ".exe"] : [""];
  for (const file of files) {
    for (const ending of endings) {
      try {
        await access(file + ending, constants.X_OK);
        if ((await stat(file + ending)).isFile()) {
          return file + ending;
        }
      } catch {
        // Not this one.
      }
    }
  }
  return undefined;
}
