// The report of a plan, one HTML file → the page of a webview: nothing is fetched, nothing runs, the theme is the editor's.
//
// Knows no editor.

/** What a page may do: show what is in it. Neither scripts nor the network, whatever the report holds. */
export const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; form-action 'none'; base-uri 'none'";

/** A report as a page, dark or light. */
export function pageOf(report: string, isDark: boolean): string {
  const meta = `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`;
  const head = /<head(?:\s[^>]*)?>/i.exec(report);
  const end = head ? head.index + head[0].length : (/<!doctype[^>]*>/i.exec(report)?.[0].length ?? 0);
  const scheme = `<style>:root{color-scheme:${isDark ? "dark" : "light"}}</style>`;
  return themed(report.slice(0, end) + meta + scheme + report.slice(end), isDark);
}

/** A page that says what is wrong in place of a report. */
export function problemPage(problem: string, isDark: boolean): string {
  const text = problem.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const body = `<!doctype html><html lang="en"><head><title>No plan</title></head><body><h1>No plan</h1><pre>${text}</pre></body></html>`;
  return pageOf(body, isDark);
}

// A report follows the system; inside the editor it must follow the editor, which a webview cannot tell to CSS.
// So the question of the style sheets is answered here.
function themed(page: string, isDark: boolean): string {
  const yes = "(min-width:0)";
  const no = "(max-width:0)";
  return page.replace(/<style\b[^>]*>[\s\S]*?<\/style>/gi, (style) =>
    style.replace(/\(\s*prefers-color-scheme\s*:\s*(dark|light)\s*\)/gi, (_, scheme: string) =>
      (scheme.toLowerCase() === "dark") === isDark ? yes : no,
    ),
  );
}
