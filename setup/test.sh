#!/bin/sh
# Installs what the build needs, and runs all tests. Arguments go to `cargo test`.
set -eu
cd "$(dirname "$0")/.."
sh setup/native.sh
exec cargo test --release --locked --workspace "$@"
