#!/bin/sh
# Installs what opening entc's pages in a real browser needs: Debian's chromium and Node, and two npm packages.
# `sh setup/browser.sh test` then makes every kind of page and picture that entc draws, and opens them: at three
# widths, light, dark and printed. ENTC names another entc than the one that is built.
#
# Nothing is left out in silence: without a browser it fails. The pages and screenshots are kept in
# target/pages, to be looked at.
set -eu
cd "$(dirname "$0")/.."

missing=""
has_browser() {
    [ -n "${CHROMIUM:-}" ] && return 0
    for name in chromium chromium-browser google-chrome; do
        command -v "$name" >/dev/null 2>&1 && return 0
    done
    return 1
}
has_browser || missing="$missing chromium"
command -v node >/dev/null 2>&1 || missing="$missing nodejs"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
if [ -n "$missing" ]; then
    # shellcheck disable=SC2086 # words are package names
    sh setup/packages.sh $missing fonts-dejavu-core
fi
if ! [ -d tests/browser/node_modules/puppeteer-core ] || ! [ -d tests/browser/node_modules/axe-core ]; then
    echo "setup: running npm ci in tests/browser"
    (cd tests/browser && npm ci --silent)
fi
[ "${1:-}" = test ] || exit 0

if [ -z "${ENTC:-}" ]; then
    sh setup/native.sh
    cargo build --release --locked -p entc
    ENTC=target/release/entc
fi
pages=target/pages
rm -rf "$pages"
mkdir -p "$pages"

# Each page may belong to a program without a plan, whose exit code is 1; that the page was written is what counts.
draw() {
    page=$1
    shift
    echo "drawing $page"
    "$ENTC" "$@" --quiet >"$pages/$page.txt" 2>&1 || [ $? -eq 1 ]
    [ -s "$pages/$page.html" ] || { cat "$pages/$page.txt" >&2; echo "no $page.html was written" >&2; exit 1; }
}

rule="--latency-rule execution"
# shellcheck disable=SC2086 # the rule is two words
{
    draw quickstart plan examples/quickstart/program.ent $rule -o "$pages/quickstart.json" --time-limit 20s \
        --fronts --alternatives --html "$pages/quickstart.html" --svg "$pages/quickstart.svg"
    draw saved show "$pages/quickstart.json" --html "$pages/saved.html"
    draw enertune plan examples/enertune/program.ent $rule --html "$pages/enertune.html" --svg "$pages/enertune.svg"
    draw mixed-fleet plan examples/mixed-fleet/program.ent $rule --html "$pages/mixed-fleet.html"
    draw carbon plan examples/carbon/program.ent $rule --html "$pages/carbon.html"
    draw infeasible plan examples/infeasible/program.ent $rule --html "$pages/infeasible.html"
    draw hostile plan tests/browser/hostile.ent $rule --html "$pages/hostile.html" --svg "$pages/hostile.svg"
    draw many plan tests/browser/many.ent $rule --planner greedy --html "$pages/many.html" --svg "$pages/many.svg"
    draw front explore examples/quickstart/program.ent $rule --over energy,latency-slack --points 6 \
        --html "$pages/front.html" --svg "$pages/front.svg"
    draw compare compare examples/quickstart/program.ent $rule --planners optimal,greedy,parvagpu --loads 50%,100% \
        --requests 1000 --seeds 1 --html "$pages/compare.html" --svg "$pages/compare.svg"
}
exec node tests/browser/pages.mjs "$pages"
