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

if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: missing:$missing (libclang 14 or later); install them with this system's package manager" >&2
    exit 1
fi

root=""
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "setup: missing:$missing; installing needs root, and there is no sudo. As root, run: sh setup/native.sh" >&2
        exit 1
    fi
    root="sudo"
fi

echo "setup: missing:$missing"
echo "setup: running ${root:+$root }apt-get update"
$root apt-get update -qq
packages=""
for name in $missing; do
    if [ "$name" = libclang ]; then
        # Debian 12 has version 14; elsewhere the newest there is.
        name=libclang1-14
        apt-cache show "$name" >/dev/null 2>&1 ||
            name=$(apt-cache pkgnames libclang1- | grep -E '^libclang1-[0-9]+$' | sort -V | tail -n 1)
    fi
    packages="$packages $name"
done
echo "setup: running ${root:+$root }apt-get install$packages"
# shellcheck disable=SC2086 # words are package names
DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $packages
