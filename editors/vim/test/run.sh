#!/bin/sh
# The tests of the Vim files, in Vim and in Neovim. Needs the commands ENTC, VIM_COMMAND, NVIM_COMMAND; and for the test of the
# tree-sitter grammar in Neovim TREE_SITTER.
set -eu
cd "$(dirname "$0")"
here=$PWD
root=$(cd ../../.. && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/specs"
ln -s "$(realpath "$ENTC")" "$scratch/bin/entc"
export PATH="$scratch/bin:$PATH" SPECS="$scratch/specs" RESULT="$scratch/result" HOME="$scratch" XDG_STATE_HOME="$scratch"

cp "$root/examples/quickstart/program.ent" "$SPECS/quickstart.ent"
cp "$here/mixed.ent" "$SPECS/mixed.ent"
printf 'model bert { performance = 3 W }\n\nservice ask {\n  rate = 5 parsec\n}\n' >"$SPECS/broken.ent"
printf '<!ENTITY nbsp "&#160;">\n<!ENTITY = rate>\n' >"$SPECS/entities.ent"
printf 'HEADER    HYDROLASE                               01-JAN-99   1ABC\n' >"$SPECS/protein.ent"
printf '# another language\n' >"$SPECS/other.ent"

failed=0
suite() {
    name=$1
    shift
    if "$@" -u NONE -i NONE -n -S "$here/suite.vim" </dev/null >"$scratch/said" 2>&1 && [ "$(cat "$RESULT")" = ok ]; then
        echo "✔ $name: kinds of files, colours, indents, :make"
    else
        echo "✖ $name"
        cat "$scratch/said" "$RESULT" 2>/dev/null || true
        failed=1
    fi
    rm -f "$RESULT"
}
suite Vim "$VIM_COMMAND" -N --not-a-term -es
suite Neovim "$NVIM_COMMAND" --headless

# Installed as editors/README.md says, found without any option.
installed() {
    name=$1 folder=$2 settings=$3 lines=$4
    shift 4
    mkdir -p "$HOME/$folder/pack/entc/start"
    cp -r "$root/editors/vim" "$HOME/$folder/pack/entc/start/entc"
    printf '%s\n' "$lines" >"$HOME/$settings"
    rm -f "$RESULT"
    "$@" "$SPECS/quickstart.ent" -c "call writefile([&filetype, get(b:, 'current_syntax', ''), &indentexpr], \$RESULT)" \
        -c 'qall!' </dev/null >"$scratch/said" 2>&1 || true
    if [ "$(tr '\n' ' ' <"$RESULT")" = "ent ent ent#Indent(v:lnum) " ]; then
        echo "✔ $name, installed as a package"
    else
        echo "✖ $name, installed as a package"
        cat "$scratch/said" "$RESULT" || true
        failed=1
    fi
}
installed Vim .vim .vimrc 'filetype plugin indent on | syntax on' "$VIM_COMMAND" -N --not-a-term -i NONE -n -T dumb
mkdir -p "$HOME/.config/nvim"
export XDG_CONFIG_HOME="$HOME/.config"
installed Neovim .config/nvim .config/nvim/init.lua "vim.lsp.enable('entc')" "$NVIM_COMMAND" --headless -i NONE -n

if [ -n "${TREE_SITTER:-}" ]; then
    export PARSER="$scratch/parser"
    mkdir -p "$PARSER/parser" "$PARSER/queries"
    (cd "$root/editors/tree-sitter-ent" && "$TREE_SITTER" build --output "$PARSER/parser/ent.so" >/dev/null 2>&1)
    ln -s "$root/editors/tree-sitter-ent/queries" "$PARSER/queries/ent"
fi
"$NVIM_COMMAND" --headless -u NONE -i NONE -n -l "$here/lsp.lua" </dev/null || failed=1
exit $failed
