#!/bin/sh
# Builds the simulated NVML library, and places it as libnvidia-ml.so.1 in a folder of its own, for clients
# other than entc. Prints that folder; use it as in
#
#     LD_LIBRARY_PATH=$(sh setup/nvml-sim.sh) ENTC_SIM_STATE=folder-with-machine.toml python3 client.py
set -eu
cd "$(dirname "$0")/.."
cargo build --release --locked --quiet --package ent-nvml-sim
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
folder=$target/release/nvml
mkdir -p "$folder"
# Links, so that the next build is there at once. Some clients look for the name without a version.
ln -sf ../libent_nvml_sim.so "$folder/libnvidia-ml.so.1"
ln -sf libnvidia-ml.so.1 "$folder/libnvidia-ml.so"
echo "$folder"
