"""wrk, and what the kernel says of processes meanwhile."""

import json
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")

# Requests are paced by one clock for all connections: each answer books the next free place on it. wrk counts in
# whole milliseconds, so that requests come in small bursts.
PACE = """
local ffi = require("ffi")
ffi.cdef [[ typedef struct { long s; long ns; } entc_time; int clock_gettime(int, entc_time *); ]]
local at = ffi.new("entc_time")
local function now()
  ffi.C.clock_gettime(1, at)
  return tonumber(at.s) * 1e3 + tonumber(at.ns) / 1e6
end
local due = now()
function delay()
  due = math.max(due + GAP, now() - 50)
  return math.max(0, math.floor(due - now() + 0.5))
end
"""

SUMMARY = """
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\\n{"requests": %d, "us": %d, "p50": %d, "p90": %d, "p99": %d, "p999": %d, "max": %d, "errors": [%d, %d, %d, %d, %d]}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(90), latency:percentile(99),
    latency:percentile(99.9), latency.max, e.connect, e.read, e.write, e.status, e.timeout))
end
"""


def read(path):
    """A file of the kernel's."""
    return Path(path).read_text(errors="replace")


def pin(cores):
    """Keeps this process and all that it starts to some cores."""
    wanted = {int(core) for core in cores.split(",")}
    os.sched_setaffinity(0, wanted & os.sched_getaffinity(0) or os.sched_getaffinity(0))
    return os.sched_getaffinity(0)


def wrk_version():
    """Which wrk."""
    text = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False)
    return " ".join((text.stdout + text.stderr).split()[:2])


def wrk(running, connections, seconds, rate=None):
    """Sends the server's request as fast as it answers, or at a rate."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "request.lua"
        text = f"wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = [==[{running.body}]==]\n"
        if rate:
            text += PACE.replace("GAP", repr(1e3 / rate))
        script.write_text(text + SUMMARY)
        command = [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{seconds}s",
            "--timeout",
            "10s",
            "-s",
            str(script),
            running.url,
        ]
        said = subprocess.run(command, capture_output=True, text=True, check=True)
    last = said.stdout.strip().splitlines()[-1]
    if not last.startswith("{"):
        # Without a single answer there is no percentile, and its script fails.
        raise SystemExit(f"wrk has nothing to tell of {running.url}:\n{said.stdout}{said.stderr}")
    told = json.loads(last)
    return {
        "requests_per_second": told["requests"] / told["us"] * 1e6,
        "requests": told["requests"],
        "p50_ms": told["p50"] / 1e3,
        "p90_ms": told["p90"] / 1e3,
        "p99_ms": told["p99"] / 1e3,
        "p999_ms": told["p999"] / 1e3,
        "max_ms": told["max"] / 1e3,
        "errors": sum(told["errors"]),
    }


def descendants(pid):
    """A process and all that it started, and those started."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = read(f"/proc/{entry}/stat").rsplit(") ", 1)[1].split()
            except (OSError, IndexError):
                continue
            children.setdefault(int(fields[1]), []).append(int(entry))
    found, left = [], [pid]
    while left:
        found.append(left.pop())
        left.extend(children.get(found[-1], []))
    return found


def cpu_seconds(pids):
    """What processes have used."""
    total = 0
    for pid in pids:
        try:
            fields = read(f"/proc/{pid}/stat").rsplit(") ", 1)[1].split()
        except (OSError, IndexError):
            continue
        # User and system time (proc(5), fields 14 and 15).
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def busy_seconds(cores):
    """What cores have done since they were started, idle and waiting for disks left out."""
    busy = 0
    for line in read("/proc/stat").splitlines():
        word, *numbers = line.split()
        if word in {f"cpu{core}" for core in cores}:
            user, nice, system, _, _, irq, softirq, steal = (int(n) for n in numbers[:8])
            busy += user + nice + system + irq + softirq + steal
    return busy / TICKS


def measured(running, connections, seconds, cores):
    """A measurement, with the CPU time of the server, and what else the cores did."""
    pids = descendants(running.pid)
    before, all_before = cpu_seconds(pids), busy_seconds(cores)
    client_before, start = client_seconds(), time.monotonic()
    found = wrk(running, connections, seconds)
    server = cpu_seconds(pids) - before
    others = busy_seconds(cores) - all_before - server - (client_seconds() - client_before)
    found["cpu_us_per_request"] = server / max(1, found["requests"]) * 1e6
    # Counted in ticks, so that a little below nothing is nothing.
    found["others_busy"] = max(0.0, others / (time.monotonic() - start) / len(cores))
    return found


def client_seconds():
    """CPU time of clients that have ended, and of this process."""
    all_of = [resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF)]
    return sum(use.ru_utime + use.ru_stime for use in all_of)


def memory_kib(pid):
    """Resident memory of one process."""
    return next(
        int(line.split()[1]) for line in read(f"/proc/{pid}/status").splitlines() if line.startswith("VmRSS")
    )


def soaked(running, rate, seconds):
    """Sends at a rate for long; the memory of the server's first process, every five seconds."""
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        # The forked half looks, and leaves what it saw in a file.
        seen = []
        try:
            while time.monotonic() - start < seconds:
                seen.append((time.monotonic() - start, memory_kib(running.pid)))
                running.seen.write_text(json.dumps(seen))
                time.sleep(5)
        finally:
            os._exit(0)
    found = wrk(running, 64, seconds, rate)
    os.waitpid(child, 0)
    return found, json.loads(running.seen.read_text())
