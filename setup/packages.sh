#!/bin/sh
# Installs Debian packages by name, and says so; the other scripts here find out which are missing. `libclang` is the
# newest of its packages.
set -eu

if ! command -v apt-get >/dev/null 2>&1; then
    echo "setup: missing: $*; install them with this system's package manager (libclang: 14 or later)" >&2
    exit 1
fi
root=""
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "setup: missing: $*; installing needs root, and there is no sudo. As root, run: sh setup/packages.sh $*" >&2
        exit 1
    fi
    root="sudo"
fi
echo "setup: missing: $*"
echo "setup: running ${root:+$root }apt-get update"
$root apt-get update -qq
packages=""
for name in "$@"; do
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
