#!/bin/sh
# Installs what the build needs, builds entc, plans the flagship example at a quarter of its load, applies the plan
# to a simulated machine with its boards, and drives what is then served for ten seconds. Ends with the requests'
# latencies and the boards' joules as predicted, simulated and measured, and with nothing left running. Arguments go
# to `entc apply`.
set -eu
cd "$(dirname "$0")/.."
sh setup/native.sh
# A machine of the demo's own, so that it is the same wherever and whenever this runs, and ports that nobody has.
machine="--nvml simulated --sim-state target/demo"
export ENTC_HTTP=127.0.0.1:0 ENTC_GRPC=127.0.0.1:0 ENTC_METRICS=127.0.0.1:0
cargo build --release --locked
# shellcheck disable=SC2086 # words are arguments
trap 'target/release/entc serve drain $machine >/dev/null 2>&1 || true' EXIT
# shellcheck disable=SC2086
target/release/entc apply examples/enertune/program.ent --set load=25% $machine --auto-approve --allow-reset "$@"
echo
# shellcheck disable=SC2086
target/release/entc bench $machine --duration 10s
echo
# shellcheck disable=SC2086
target/release/entc observe $machine
