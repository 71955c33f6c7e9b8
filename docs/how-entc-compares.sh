#!/usr/bin/env bash
# Writes how-entc-compares.md and its pictures from what `entc compare` prints. Run it again when planners or
# data change; only planning times differ from machine to machine.
#
#     ENT_DATA=FOLDER docs/how-entc-compares.sh
set -euo pipefail
cd "$(dirname "$0")/.."
: "${ENT_DATA:?name the folder of the public measurements}"
cargo build --release --quiet --package entc
page=docs/how-entc-compares.md
spec=examples/enertune/program.ent
measured=(--table data:enertune/model_datastore.csv --latency-rule execution)
usher=(--utilisation data:usher/profile.csv)
loads=(--loads 25%,50%,75%,100%,125% --seeds 20)

# One comparison: the command as a reader would type it, then its tables, one heading level further down.
compare() {
    local words=(entc compare "$spec" "$@")
    printf '```sh\n%s\n```\n\n' "${words[*]}"
    target/release/entc compare "$spec" "$@" --format markdown --quiet | sed 's/^### /#### /'
    printf '\n'
}

{
    cat <<'TEXT'
# How entc compares

Every system the field measures itself against is a planner of entc.
Each decides like its original, on the same spec and the same performance data, and its plan is judged by the verifier and the simulator that judge entc's own plans.
Nobody's plan is mended: one that leaves a service out, overloads an instance or cuts a board as MIG does not allow is shown with what it misses, and left out of the ratio.

| planner | published as | what it decides |
|---|---|---|
| `optimal` | entc | everything at once, with a proven bound |
| `greedy` | entc | the same, by local search, without a bound |
| `enertune` | EnerTune (SOSP'26) | slice, batch and clock, one instance a service |
| `parvagpu` | ParvaGPU (SC'24) | slices, batches and processes; no clock |
| `gpulets` | GPUlets (ATC'22) | at most two MPS shares a board, batches; no clock |
| `usher` | Usher (OSDI'24), as EnerTune re-made it | MPS shares, batches and replicas from measured utilisation; no clock |
| `fgd` | FGD (ATC'23) | where given slices go; no slice, batch or clock |

Planners that choose no clock run at the highest one.
A share of an MPS board is predicted as a slice of its size, between the measured sizes; nothing beside it interferes, which favours those planners.

This page is written by `docs/how-entc-compares.sh` from what the commands print.
The workload is EnerTune's: eleven services on A100 80GB boards, at most twelve of them, unused boards off.
Watts are predicted from measured tables or from models fitted to them; nothing on this page was measured on a board by this project.

## Energy, by the published papers' rule

The rule of the published papers: a promise is about the execution of a full batch, and an instance may be loaded up to its capacity.
Planners and verifier follow it here; the simulation has Poisson arrivals, batch wait and queueing in it, and shows what the rule leaves out.

![mean power over load, by planner](how-entc-compares-energy.svg)

TEXT
    compare "${measured[@]}" "${usher[@]}" "${loads[@]}" --minimize energy --svg docs/how-entc-compares-energy.svg
    cat <<'TEXT'
## Provisioned power, by the same rule

![power over load, by planner](how-entc-compares-power.svg)

TEXT
    compare "${measured[@]}" "${usher[@]}" "${loads[@]}" --minimize power --svg docs/how-entc-compares-power.svg
    cat <<'TEXT'
## Promises as a client sees them

entc's own rule: batch wait, queueing and execution together, under Poisson arrivals, from the fitted models.
Here a promise that is verified is one that simulation keeps, too.

TEXT
    compare "${usher[@]}" --loads 50%,100% --seeds 20
    cat <<'TEXT'
## Exactly like the originals

`--conformant` keeps every truncation and quirk.
Where an original crashes, never ends or leaves services out without a word, that is said.

TEXT
    compare "${measured[@]}" "${usher[@]}" --loads 50%,100% --seeds 20 --conformant
    cat <<'TEXT'
## Planning time

The tables say how long each planner took in entc, with everything between a spec that has been read and a plan with all its numbers.
What the originals take, on this workload unless said otherwise:

| planner | the original |
|---|---|
| `enertune` | 0.2–0.7 s without a limit on boards, up to 16.5 s with one (its own program, run on the same data) |
| `parvagpu` | 0.8–1.3 ms (its own clock, its own scenarios) |
| `usher` | 70–170 s (an independent program of the same search, in Python) |
| `fgd` | 0.1–0.2 s for 13 jobs (EnerTune's program) |

TEXT
} > "$page.part"
mv "$page.part" "$page"
