#!/usr/bin/env python3
"""Serves one trivial network with entc and with other servers, one after the other, and measures them with wrk.

    compare.py install --folder F          # the other servers, each in a virtual environment of its own
    compare.py run --folder F -o R.json    # all of them, in turn, several times over
    compare.py page R.json                 # the results as a page
    compare.py soak --folder F             # entc's gateway for minutes: its memory
    compare.py added --folder F            # what the gateway adds to a call of its worker

Only what comes with Python is used, and `wrk`. README.md has the rest.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from pathlib import Path

import measuring
import servers


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["install", "run", "page", "soak", "added"])
    parser.add_argument("results", nargs="?", help="for `page`: what `run` wrote")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "serving-compared")
    parser.add_argument("--entc", type=Path, default=servers.ROOT / "target" / "release" / "entc")
    parser.add_argument("--only", default="", help="names of servers, with commas")
    parser.add_argument("--cores", default="0,1", help="the cores that servers and client share")
    parser.add_argument("--connections", default="64,8")
    parser.add_argument("--seconds", type=int, default=8, help="of a measurement, or of the soak")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--port", type=int, default=18800)
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


def chosen(arguments):
    """The servers that were asked for; those that are not installed are named and left out."""
    all_of_them = servers.all_servers(arguments.folder, arguments.entc)
    names = [name for name in arguments.only.split(",") if name]
    for name in names:
        if name not in {server.name for server in all_of_them}:
            sys.exit(f"there is no server `{name}`; there are {', '.join(s.name for s in all_of_them)}")
    wanted = [server for server in all_of_them if not names or server.name in names]
    there = [server for server in wanted if server.is_there()]
    for server in wanted:
        if server not in there:
            print(f"left out: {server.name} is not there ({server.how_to_get()})", file=sys.stderr)
    if not there:
        sys.exit("nothing to measure")
    return there


def machine():
    """What it was measured on."""
    model = [
        line.split(":", 1)[1].strip()
        for line in measuring.read("/proc/cpuinfo").splitlines()
        if "model name" in line
    ]
    return {
        "cpu": model[0] if model else platform.machine(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "wrk": measuring.wrk_version(),
    }


def run(arguments):
    """Rounds over all servers, so that what drifts drifts for all of them."""
    cores = measuring.pin(arguments.cores)
    connections = [int(n) for n in arguments.connections.split(",")]
    there = chosen(arguments)
    results = {"machine": machine(), "measured_on": sorted(cores), "seconds": arguments.seconds, "runs": []}
    results["servers"] = {s.name: {"title": s.title, "version": s.version(), "does": s.does} for s in there}
    for repetition in range(arguments.repetitions):
        for server in there:
            with server.running(arguments.port, arguments.folder) as running:
                example = running.check()
                results["servers"][server.name]["answer"] = example
                for n in connections:
                    measuring.wrk(running, n, max(4, arguments.seconds // 2))
                    found = measuring.measured(running, n, arguments.seconds, cores)
                    found.update(server=server.name, connections=n, repetition=repetition)
                    found["mean_batch"] = running.mean_batch()
                    results["runs"].append(found)
                    print(line(found), file=sys.stderr)
    text = json.dumps(results, indent=1)
    if arguments.output:
        arguments.output.write_text(text + "\n")
    else:
        print(text)


def line(found):
    """One measurement in words."""
    return (
        f"{found['server']:12} {found['connections']:3} connections  {found['requests_per_second']:9.0f} req/s"
        f"  p50 {found['p50_ms']:7.3f} ms  p99 {found['p99_ms']:7.3f} ms  errors {found['errors']}"
        f"  server {found['cpu_us_per_request']:.0f} us/request  others {found['others_busy']:.0%}"
    )


def page(path):
    """The results as a page."""
    results = json.loads(Path(path).read_text())
    print((Path(__file__).parent / "page.template").read_text().replace("RESULTS\n", tables(results)), end="")


def tables(results):
    """Tables, one for each number of connections."""
    where, cores = results["machine"], ", ".join(str(core) for core in results["measured_on"])
    out = [
        f"Measured on {where['cpu']} ({where['cores']} cores in all; servers and client on cores {cores}), "
        f"Linux {where['kernel']}, with {where['wrk']}; {results['seconds']} s a measurement.\n",
        "| server | version | what it does |\n|---|---|---|",
    ]
    for name, server in results["servers"].items():
        out.append(f"| `{name}` | {server['title']} {server['version']} | {server['does']} |")
    for connections in sorted({run["connections"] for run in results["runs"]}, reverse=True):
        out.append(f"\n### {connections} connections\n")
        out.append(
            "| server | requests/s (from–to) | p50 (ms) | p99 (ms) | errors | CPU (µs a request) | by others |"
        )
        out.append("|---|---:|---:|---:|---:|---:|---:|")
        by_server = {}
        for run in results["runs"]:
            if run["connections"] == connections:
                by_server.setdefault(run["server"], []).append(run)
        by_rate = sorted(by_server.items(), key=lambda one: -median(one[1], "requests_per_second"))
        out.extend(table_row(name, runs) for name, runs in by_rate)
    return "\n".join(out) + "\n"


def median(runs, key):
    """Of one server's repetitions."""
    return statistics.median(run[key] for run in runs)


def table_row(name, runs):
    """One server."""
    rates = [run["requests_per_second"] for run in runs]
    return (
        f"| `{name}` | {median(runs, 'requests_per_second'):,.0f} ({min(rates):,.0f}–{max(rates):,.0f}) "
        f"| {median(runs, 'p50_ms'):.2f} | {median(runs, 'p99_ms'):.2f} | {sum(run['errors'] for run in runs)} "
        f"| {median(runs, 'cpu_us_per_request'):.0f} | {max(run['others_busy'] for run in runs):.0%} |"
    )


def soak(arguments):
    """entc at 70 % of what it can, and the memory of its gateway."""
    cores = measuring.pin(arguments.cores)
    arguments.only = arguments.only or "entc"
    server = chosen(arguments)[0]
    with server.running(arguments.port, arguments.folder) as running:
        running.check()
        saturated = measuring.measured(running, 64, 10, cores)["requests_per_second"]
        rate = 0.7 * saturated
        print(
            f"{server.title}: {saturated:.0f} req/s at 64 connections; now {rate:.0f} req/s for {arguments.seconds} s"
        )
        found, memory = measuring.soaked(running, rate, arguments.seconds)
    # What a gateway takes at first, for connections and buffers, it takes once.
    later = [kib for second, kib in memory if second >= min(60, arguments.seconds / 4)]
    mean = statistics.mean(later)
    print(
        f"sent {found['requests_per_second']:.0f} req/s, errors {found['errors']}, p99 {found['p99_ms']:.2f} ms"
    )
    print("memory of the gateway's process (MiB), by the second:")
    print(
        "  "
        + "  ".join(f"{second:.0f}: {kib / 1024:.2f}" for second, kib in memory[:: max(1, len(memory) // 20)])
    )
    spread = max(max(later) - mean, mean - min(later)) / mean
    print(f"mean {mean / 1024:.2f} MiB, farthest from it {spread:.2%} (from the first minute on)")
    return 0 if spread <= 0.05 and found["errors"] == 0 else 1


def added(arguments):
    """Latency through the gateway at half of saturation, beside a call of the worker alone.

    Half is reached in two ways: by so few connections that they do no more, and by many that are paced. The
    paced ones come in bursts, one a millisecond, because wrk counts in whole milliseconds.
    """
    cores = measuring.pin(arguments.cores)
    direct = servers.directly(arguments.entc, arguments.folder)
    print(f"worker called directly, one row at a time: p50 {direct[0]:.3f} ms, p99 {direct[1]:.3f} ms")
    arguments.only = "entc"
    server = chosen(arguments)[0]
    with server.running(arguments.port, arguments.folder) as running:
        running.check()
        measuring.wrk(running, 64, 3)
        saturated = measuring.measured(running, 64, arguments.seconds, cores)["requests_per_second"]
        print(f"saturated at {saturated:.0f} req/s by 64 connections; half of it:")
        few = {n: measuring.measured(running, n, arguments.seconds, cores) for n in (1, 2, 3, 4)}
        n = min(few, key=lambda n: abs(few[n]["requests_per_second"] - saturated / 2))
        paced = measuring.wrk(running, 64, arguments.seconds, rate=saturated / 2)
        for what, found in {f"{n} connections": few[n], "64 connections, paced": paced}.items():
            print(
                f"  {what}: {found['requests_per_second']:.0f} req/s, p50 {found['p50_ms']:.3f} ms, "
                f"p99 {found['p99_ms']:.3f} ms, errors {found['errors']}; added: "
                f"p50 {found['p50_ms'] - direct[0]:.3f} ms, p99 {found['p99_ms'] - direct[1]:.3f} ms"
            )
        print(f"other processes took {few[n]['others_busy']:.0%} of the cores")


def main():
    """Does what is asked."""
    arguments = parse()
    if arguments.what == "page":
        return page(arguments.results)
    if arguments.what == "install":
        return servers.install(arguments.folder)
    return {"run": run, "soak": soak, "added": added}[arguments.what](arguments)


if __name__ == "__main__":
    sys.exit(main())
