#!/bin/sh
# Builds the documentation site into target/site, and checks that every link within it leads somewhere.
# `sh setup/site.sh serve` shows it on http://127.0.0.1:3000 instead.
#
# The pages are where they belong in the repository; docs/SUMMARY.md lists them. They are staged in target/book
# for mdBook, which wants them in one folder, in the folders that they have here. What they link to and the site
# does not have becomes a link into the repository.
set -eu
cd "$(dirname "$0")/.."

version=0.5.4
if ! command -v cargo >/dev/null 2>&1 && [ -x "$HOME/.cargo/bin/cargo" ]; then
    PATH="$HOME/.cargo/bin:$PATH"
fi
mdbook=$PWD/target/mdbook/bin/mdbook
is_it() { [ "$("$1" --version 2>/dev/null)" = "mdbook v$version" ]; }
if is_it mdbook; then
    mdbook=mdbook
elif ! is_it "$mdbook"; then
    echo "setup: running cargo install --locked --root target/mdbook mdbook@$version (some minutes, once)"
    cargo install --quiet --locked --root target/mdbook "mdbook@$version"
fi

repository=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)
book=target/book
rm -rf "$book" target/site
mkdir -p "$book/docs"

# A page as the site has it. `pages` are those of the site, by their path in the repository.
stage() {
    awk -v page="$1" -v book="$book" -v repository="$repository" '
        function dir(path) { return path ~ /\// ? substr(path, 1, match(path, /\/[^\/]*$/) - 1) : "" }
        # A path without `.` and `..`.
        function plain(path,    parts, n, i, out, depth, text) {
            n = split(path, parts, "/"); depth = 0
            for (i = 1; i <= n; i++) {
                if (parts[i] == "" || parts[i] == ".") continue
                if (parts[i] == ".." && depth > 0) depth--
                else out[++depth] = parts[i]
            }
            text = ""
            for (i = 1; i <= depth; i++) text = text (i > 1 ? "/" : "") out[i]
            return text
        }
        function is_there(path) { return system("test -e \"" path "\"") == 0 }
        function target(link,    at, anchor, path) {
            if (link ~ /^[a-z]+:/ || link ~ /^#/) return link
            anchor = ""
            if (at = index(link, "#")) { anchor = substr(link, at); link = substr(link, 1, at - 1) }
            path = plain(dir(page) "/" link)
            if ((path "/README.md") in pages) { sub(/\/$/, "", link); link = link "/README.md"; path = path "/README.md" }
            # What is README.md here is the index of its folder there.
            if (path in pages) { sub(/README\.md$/, "index.md", link); return link anchor }
            if (path ~ /\.(svg|png|jpg)$/ && is_there(path)) {
                system("mkdir -p \"" book "/" dir(path) "\" && cp \"" path "\" \"" book "/" path "\"")
                return link anchor
            }
            if (!is_there(path)) { print page ": " link " leads nowhere" > "/dev/stderr"; bad = 1 }
            return repository "/blob/HEAD/" path anchor
        }
        FNR == NR { pages[$0] = 1; next }
        /^```/ { is_code = !is_code }
        is_code { print; next }
        {
            rest = $0; line = ""
            while (match(rest, /\]\([^) ]+\)/)) {
                # Functions match, too.
                start = RSTART; size = RLENGTH
                line = line substr(rest, 1, start + 1) target(substr(rest, start + 2, size - 3)) ")"
                rest = substr(rest, start + size)
            }
            print line rest
        }
        END { exit bad }
    ' "$book/pages" "$1" > "$book/$1"
}

# Links of the summary are relative to docs; those of the staged one to its own folder.
sed -e 's#](\.\./#](#' -e t -e 's#](#](docs/#' docs/SUMMARY.md > "$book/SUMMARY.md"
sed -n 's#.*](\(.*\)).*#\1#p' "$book/SUMMARY.md" > "$book/pages"
while read -r page; do
    mkdir -p "$book/$(dirname "$page")"
    stage "$page"
done < "$book/pages"
rm "$book/pages"

if [ "${1:-}" = serve ]; then
    exec "$mdbook" serve
fi
"$mdbook" build

# Every link within the site, and every anchor.
find target/site -name '*.html' ! -name toc.html ! -name print.html ! -name 404.html | LC_ALL=C sort | xargs awk '
    function dir(path) { return substr(path, 1, match(path, /\/[^\/]*$/) - 1) }
    function plain(path,    parts, n, i, out, depth, text) {
        n = split(path, parts, "/"); depth = 0
        for (i = 1; i <= n; i++) {
            if (parts[i] == "" || parts[i] == ".") continue
            if (parts[i] == ".." && depth > 0) depth--
            else out[++depth] = parts[i]
        }
        text = ""
        for (i = 1; i <= depth; i++) text = text (i > 1 ? "/" : "") out[i]
        return text
    }
    {
        rest = $0
        while (match(rest, /(id|href|src)="[^"]*"/)) {
            word = substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH)
            name = word; sub(/=.*/, "", name)
            value = word; sub(/^[a-z]+="/, "", value); sub(/"$/, "", value)
            if (name == "id") ids[FILENAME "#" value] = 1
            else if (value !~ /^([a-z]+:|\/\/|#?$)/) links[FILENAME SUBSEP value] = 1
        }
    }
    END {
        n = 0
        for (link in links) {
            split(link, both, SUBSEP); from = both[1]; to = both[2]
            anchor = ""
            if (at = index(to, "#")) { anchor = substr(to, at); to = substr(to, 1, at - 1) }
            path = to == "" ? from : plain(dir(from) "/" to)
            n++
            if (system("test -f \"" path "\"") != 0) { print from ": " to " leads nowhere"; bad = 1 }
            else if (anchor != "" && path ~ /html$/ && !((path anchor) in ids)) { print from ": " to anchor " leads nowhere"; bad = 1 }
        }
        if (!bad) print "site: " n " links within target/site lead somewhere"
        exit bad
    }'
echo "site: target/site/index.html"
