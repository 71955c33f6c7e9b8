// What is known of a plan → the few words of the status bar.

/** A plan in short; the answer of `entc.plan`, and what the notification `entc/planned` carries. */
export interface Summary {
  readonly state: "planning" | "planned" | "infeasible" | "failed";
  /** Predicted mean power, W. */
  readonly watts?: number;
  /** Distance to the proven bound, as a fraction. */
  readonly gap?: number;
  /** Boards in use. */
  readonly boards?: number;
  /** One sentence more. */
  readonly summary?: string;
}

/** The summary of a plan as `entc plan --format json` prints it. */
export function summaryOf(plan: unknown): Summary {
  const metrics = record(record(plan)?.["metrics"]);
  const objective = record(record(plan)?.["objective"]);
  const watts = number(metrics?.["mean_power_w"]) ?? number(metrics?.["power_w"]);
  const gap = number(objective?.["gap"]);
  const boards = number(metrics?.["gpus"]);
  return {
    state: "planned",
    ...(watts === undefined ? {} : { watts }),
    ...(gap === undefined ? {} : { gap }),
    ...(boards === undefined ? {} : { boards }),
  };
}

/** A message of the server as a summary; undefined when it is none. */
export function asSummary(message: unknown): Summary | undefined {
  const from = record(message);
  const state = from?.["state"];
  if (state !== "planning" && state !== "planned" && state !== "infeasible" && state !== "failed") {
    return undefined;
  }
  const [watts, gap, boards] = [number(from?.["watts"]), number(from?.["gap"]), number(from?.["boards"])];
  const summary = from?.["summary"];
  return {
    state,
    ...(watts === undefined ? {} : { watts }),
    ...(gap === undefined ? {} : { gap }),
    ...(boards === undefined ? {} : { boards }),
    ...(typeof summary === "string" ? { summary } : {}),
  };
}

/** What the status bar shows. */
export function words(summary: Summary | undefined): string {
  switch (summary?.state) {
    case undefined:
      return "entc";
    case "planning":
      return "$(sync~spin) entc planning";
    case "infeasible":
      return "$(error) entc: no plan";
    case "failed":
      return "$(warning) entc: not planned";
    case "planned":
      return `$(graph) entc${power(summary)}${gapInWords(summary)}`;
  }
}

function power({ watts }: Summary): string {
  if (watts === undefined) {
    return "";
  }
  return watts < 10_000 ? ` ${watts.toFixed(1)} W` : ` ${(watts / 1000).toFixed(2)} kW`;
}

function gapInWords({ gap }: Summary): string {
  if (gap === undefined) {
    return " · no bound";
  }
  return ` · gap ${Number((gap * 100).toPrecision(2))} %`;
}

function record(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}

function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}
