#!/bin/sh
# Gets libtorch with pip, and builds ent-worker with it. `sh setup/torch.sh test` tests it as well.
#
# The package is PyPI's torch, which runs on CPUs and on CUDA alike; of CUDA's own packages the two that it cannot
# be loaded without come too. Everything goes to target/libtorch, and nothing is installed on the system.
set -eu
cd "$(dirname "$0")/.."

# tch 0.24.0 is made for libtorch 2.11.0, and does not check it.
version=2.11.0
folder=$PWD/target/libtorch
has() { [ -f "$folder/torch/version.py" ] && grep -q "^__version__ = '$version[+']" "$folder/torch/version.py"; }

if ! has; then
    if ! python3 -m pip --version >/dev/null 2>&1; then
        echo "setup: pip is missing; install it: apt-get install python3-pip" >&2
        exit 1
    fi
    echo "setup: running pip install --target $folder torch==$version (about 530 MB)"
    rm -rf "$folder"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --no-compile \
        --target "$folder" "torch==$version" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85
    has || { echo "setup: $folder/torch is not version $version; remove it and run this again" >&2; exit 1; }
fi
export LIBTORCH="$folder/torch"

if [ "${1:-}" = test ]; then
    shift
    if [ ! -f "$folder/silero_vad/data/silero_vad.jit" ]; then
        echo "setup: running pip install --target $folder silero-vad==6.2.3"
        python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --no-compile \
            --target "$folder" silero-vad==6.2.3
    fi
    ENT_SILERO="$folder/silero_vad/data/silero_vad.jit" OMP_NUM_THREADS=1 \
        exec cargo test --release --locked -p ent-worker --features torch "$@"
fi
exec cargo build --release --locked -p ent-worker --features torch "$@"
