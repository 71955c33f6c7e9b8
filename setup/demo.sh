#!/bin/sh
# Installs what the build needs, builds entc, and plans the flagship example. Arguments go to `entc plan`.
set -eu
cd "$(dirname "$0")/.."
sh setup/native.sh
exec cargo run --release --locked -- plan examples/enertune/program.ent "$@"
