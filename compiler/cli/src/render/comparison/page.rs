//! Planners side by side → one HTML page: the picture, the tables, what the columns mean. It needs no
//! other file and no network, and follows light and dark.

use super::{definitions, picture, time};
use crate::commands::{AtLoad, Comparison, Judged};
use crate::exit::Stop;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--bad:#b3261e;--good:#1b6e3c}\
@media(prefers-color-scheme:dark){:root{--bad:#ff8a80;--good:#7bd88f}}\
@media print{svg{min-width:0!important}}figure{margin:0}h1{overflow-wrap:anywhere}\
body{background:Canvas;color:CanvasText;font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}\
svg{width:100%;min-width:44rem;height:auto;color:inherit!important}.wide:focus-visible{outline:3px solid #0072b2;outline-offset:2px}\
table{border-collapse:collapse;width:100%;margin:.5rem 0}\
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:right;font-variant-numeric:tabular-nums}\
th:first-child,td:first-child{text-align:left}\
.bad{color:var(--bad)}.good{color:var(--good)}.wide{overflow-x:auto}footer,li{color:color-mix(in srgb,currentColor 75%,transparent)}";

/// The page.
///
/// # Errors
/// As [`picture::svg`].
pub(crate) fn html(comparison: &Comparison) -> Result<String, Stop> {
    let title = format!("{}: planners side by side", escaped(&comparison.program));
    let mut body = format!(
        "<header>\n<h1>{title}</h1>\n<p>Minimise {}.</p>\n</header>\n<main>\n",
        comparison.metric.word()
    );
    body.push_str(&format!(
        "<figure>\n<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Picture: watts over load\">\n{}</div>\n<figcaption>{}. A hollow mark: the plan leaves out work or cannot be set up.</figcaption>\n</figure>\n",
        picture::svg(comparison)?,
        escaped(picture::axis(comparison.metric))
    ));
    for at in &comparison.loads {
        body.push_str(&load(at));
    }
    body.push_str("<h2>How to read it</h2>\n<ul>\n");
    for text in definitions(comparison) {
        body.push_str(&format!("<li>{}</li>\n", escaped(&text)));
    }
    body.push_str(&format!("</ul>\n</main>\n<footer>entc {}</footer>\n", comparison.entc_version));
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    ))
}

fn load(at: &AtLoad) -> String {
    let heading =
        at.load.map_or_else(|| "The spec as it is".to_owned(), |l| format!("Load {:.0} %", l * 100.0));
    let has_carbon = at.plans.iter().any(|p| p.metrics.carbon_g_per_hour.is_some());
    let mut titles = vec![
        "planner",
        "mean power (W)",
        "power (W)",
        "boards",
        "ratio",
        "verified",
        "simulated",
        "planned in",
    ];
    if has_carbon {
        titles.insert(3, "carbon (g/h)");
    }
    let titles: String = titles.iter().map(|t| format!("<th scope=\"col\">{t}</th>")).collect();
    let rows: String = at.plans.iter().map(|judged| row(judged, has_carbon)).collect();
    let mut text = format!(
        "<h2>{heading}</h2>\n<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Table: {heading}\"><table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    );
    let misses: String = at
        .plans
        .iter()
        .flat_map(|j| {
            j.misses()
                .into_iter()
                .map(|m| format!("<li><b>{}</b> {}</li>\n", escaped(&j.planner), escaped(&m)))
        })
        .collect();
    if !misses.is_empty() {
        text.push_str(&format!("<ul>\n{misses}</ul>\n"));
    }
    text
}

fn row(judged: &Judged, has_carbon: bool) -> String {
    let n = judged.services.len();
    let number = |value: Option<f64>| {
        let shown = value.filter(|_| judged.has_plan()).map_or_else(|| "–".to_owned(), |v| format!("{v:.1}"));
        format!("<td>{shown}</td>")
    };
    let kept = |kept: usize| {
        if !judged.has_plan() {
            return "<td>–</td>".to_owned();
        }
        let class = if kept == n { "good" } else { "bad" };
        format!("<td class=\"{class}\">{kept} of {n}</td>")
    };
    format!(
        "<tr><th scope=\"row\">{}</th>{}{}{}<td>{}</td><td>{}</td>{}{}<td>{}</td></tr>\n",
        escaped(&judged.planner),
        number(judged.metrics.mean_power_w),
        number(judged.metrics.power_w),
        if has_carbon { number(judged.metrics.carbon_g_per_hour) } else { String::new() },
        if judged.has_plan() { judged.metrics.gpus.to_string() } else { "–".to_owned() },
        judged.ratio.map_or_else(|| "–".to_owned(), |r| format!("{r:.3}")),
        kept(judged.n_verified()),
        kept(judged.n_simulated()),
        time(judged.plan_seconds),
    )
}

/// Text as HTML: names come from the spec.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn the_page_stands_alone_and_lets_no_name_be_markup() {
        let mut comparison = sample();
        comparison.program = "<script>alert(1)</script>".to_owned();
        let text = html(&comparison).unwrap();
        assert!(!text.contains("<script") && text.contains("&lt;script&gt;"));
        assert!(text.contains("<svg") && text.contains("Load 50 %") && text.contains("leaves out"));
        assert!(
            !text.contains("http://") || text.matches("http://").all(|_| text.contains("http://www.w3.org"))
        );
        assert!(text.trim_end().ends_with("</html>"));
    }
}
