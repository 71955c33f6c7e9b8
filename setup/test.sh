#!/bin/sh
# Installs what the build and the tests need, and runs all tests. Arguments go to `cargo test`.
set -eu
cd "$(dirname "$0")/.."
sh setup/native.sh curl
exec cargo test --release --locked --workspace "$@"
