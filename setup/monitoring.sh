#!/bin/sh
# What Prometheus and Grafana get of entc, in deploy/. `sh setup/monitoring.sh rules` prints the rules as a plain
# rule file, for a Prometheus without its operator. `sh setup/monitoring.sh test` holds rules and dashboard to a
# real Prometheus that reads a real gateway; where there is no Prometheus it gets Debian's with apt-get, and it builds
# entc unless ENTC names one that is built.
set -eu
cd "$(dirname "$0")/.."

# The operator's resource has the rule file under `spec`.
rules() { awk 'inside { sub(/^  /, ""); print } /^spec:/ { inside = 1 }' deploy/prometheus/entc-rules.yaml; }

case "${1:-}" in
rules) rules ;;
test)
    if ! command -v prometheus >/dev/null || ! command -v promtool >/dev/null; then
        # Beside the build, and not installed: Debian's package would start a service of its own.
        place=$PWD/target/prometheus
        if [ ! -x "$place/usr/bin/promtool" ]; then
            echo "setup: running apt-get download prometheus"
            mkdir -p "$place"
            (cd "$place" && apt-get download -q prometheus && dpkg-deb -x prometheus_*.deb .) || {
                echo "setup: Debian's package prometheus cannot be had; run apt-get update, and this again" >&2
                exit 1
            }
        fi
        PATH=$place/usr/bin:$PATH
    fi
    if [ -z "${ENTC:-}" ]; then
        sh setup/native.sh
        cargo build --release --locked
        ENTC=$PWD/target/release/entc
    fi
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    rules >"$folder/entc-rules.plain.yaml"
    cp deploy/prometheus/scrape.yaml deploy/prometheus/entc-rules.test.yaml "$folder"
    promtool check rules "$folder/entc-rules.plain.yaml"
    promtool check config "$folder/scrape.yaml"
    promtool test rules "$folder/entc-rules.test.yaml"
    python3 deploy/check.py --entc "$ENTC" --folder "$folder"
    ;;
*)
    echo "usage: sh setup/monitoring.sh rules | test" >&2
    exit 1
    ;;
esac
