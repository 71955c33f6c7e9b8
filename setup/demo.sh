#!/bin/sh
# Installs what the build needs, builds entc, plans the flagship example and applies the plan to a simulated
# machine with its boards. Ends with what that machine then is. Arguments go to `entc apply`.
set -eu
cd "$(dirname "$0")/.."
sh setup/native.sh
# A machine of the demo's own, so that it is the same wherever and whenever this runs.
machine="--nvml simulated --sim-state target/demo"
cargo build --release --locked
# shellcheck disable=SC2086 # words are arguments
target/release/entc apply examples/enertune/program.ent $machine --auto-approve --allow-reset "$@"
echo
# shellcheck disable=SC2086 # words are arguments
exec target/release/entc observe $machine
