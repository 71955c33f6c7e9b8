#!/bin/sh
# Installs what cargo cannot: the C++ side of the HiGHS solver needs CMake, Make, a C++ compiler and
# libclang. Says what it does, does nothing when all of it is there, and asks for no more. Arguments are further
# programs that are wanted, by the names of their packages.
#
# The check comes before the build, because without libclang that fails only after all of HiGHS has
# compiled, minutes later.
set -eu

if ! command -v cargo >/dev/null 2>&1; then
    if [ -x "$HOME/.cargo/bin/cargo" ]; then
        echo "setup: cargo is in ~/.cargo/bin, which is not in PATH; run: . \"\$HOME/.cargo/env\"" >&2
    else
        echo "setup: no Rust toolchain found; install one from https://rustup.rs and run this again" >&2
    fi
    exit 1
fi

has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    for library in /usr/lib/llvm-*/lib/libclang[.-]*so* /usr/lib/*/libclang[.-]*so* /usr/lib/libclang[.-]*so* \
        /usr/lib64/libclang[.-]*so* /usr/local/lib/libclang[.-]*so*; do
        [ -e "$library" ] && return 0
    done
    return 1
}

missing=""
command -v cmake >/dev/null 2>&1 || missing="$missing cmake"
command -v make >/dev/null 2>&1 || missing="$missing make"
command -v c++ >/dev/null 2>&1 || missing="$missing g++"
has_libclang || missing="$missing libclang"
for program in "$@"; do
    command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
[ -z "$missing" ] && exit 0
# shellcheck disable=SC2086 # words are package names
exec sh "$(dirname "$0")/packages.sh" $missing
