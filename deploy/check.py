"""Holds rules and dashboard to a real Prometheus that reads a real gateway; started by setup/monitoring.sh.

A plan is applied to a simulated machine and driven, one worker is killed, and then:
each metric that rules or dashboard name is one that the gateway gives; each query of the dashboard, and each
recording rule, finds numbers; each alert is evaluated without an error, has its texts, and has a case in the unit
tests in which it fires; and when the supervisor is stopped, the alert for that is on its way.
"""

import argparse
import contextlib
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATIENCE_S = 60


class Fault(Exception):
    """What does not hold."""


def get(url):
    """The text at an address."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def until(what, look):
    """Looks until there is something."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            found = look()
            if found:
                return found
        time.sleep(0.2)
    raise Fault(f"after {PATIENCE_S} s there is still no {what}")


def free_port():
    """A port that nobody listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Serving:
    """A plan that is applied to a simulated machine, and its supervisor."""

    def __init__(self, entc, folder):
        self.entc, self.state = entc, folder / "state"
        self.metrics = f"127.0.0.1:{free_port()}"
        self.machine = ["--nvml", "simulated", "--sim-state", folder / "machine", "--state", self.state]
        spec = HERE.parent / "examples" / "quickstart" / "program.ent"
        addresses = ["--http", f"127.0.0.1:{free_port()}", "--grpc", "off", "--metrics", self.metrics]
        self.run("apply", spec, "--planner", "greedy", "--auto-approve", "--allow-reset", *addresses)

    def run(self, verb, *words):
        """One command."""
        command = [self.entc, verb, *words, *self.machine]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Fault(f"`entc {verb}` ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def text(self):
        """What the gateway gives Prometheus."""
        return get(f"http://{self.metrics}/metrics")

    def worker(self):
        """The process of a worker."""
        folder = str(self.state)
        for entry in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                words = Path("/proc", entry, "cmdline").read_bytes() if entry.isdigit() else b""
                if b"ent-worker" in words.split(b"\0")[0] and os.readlink(f"/proc/{entry}/cwd") == folder:
                    return int(entry)
        raise Fault("there is no worker")


class Prometheus:
    """Debian's Prometheus with our rules, reading one gateway every second."""

    def __init__(self, folder, target):
        self.at = f"127.0.0.1:{free_port()}"
        rules = (folder / "entc-rules.plain.yaml").read_text()
        (folder / "fast.yaml").write_text(re.sub(r"interval: \w+", "interval: 1s", rules))
        config = (folder / "scrape.yaml").read_text().replace("entc-rules.plain.yaml", "fast.yaml")
        config = config.replace("127.0.0.1:8002", target)
        (folder / "prometheus.yaml").write_text(re.sub(r"_interval: \w+", "_interval: 1s", config))
        words = [
            f"--config.file={folder}/prometheus.yaml",
            f"--storage.tsdb.path={folder}/tsdb",
            f"--web.listen-address={self.at}",
        ]
        with (folder / "prometheus.log").open("wb") as log:
            self.process = subprocess.Popen(["prometheus", *words], stdout=log, stderr=log)
        until("Prometheus", lambda: get(f"http://{self.at}/-/ready"))

    def end(self):
        """Ends it."""
        self.process.terminate()
        self.process.wait()

    def query(self, expression):
        """The numbers that a query finds now."""
        answer = json.loads(
            get(f"http://{self.at}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
        )
        return [float(series["value"][1]) for series in answer["data"]["result"]]

    def finds(self, expression):
        """Whether a query finds a number."""
        return any(math.isfinite(value) for value in self.query(expression))

    def rules(self):
        """All rules, as Prometheus has them."""
        groups = json.loads(get(f"http://{self.at}/api/v1/rules"))["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]


def queries(dashboard):
    """Title and expression of all queries of a dashboard."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            metric = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
            yield variable["name"], f"count by ({metric[2]}) ({metric[1]})"


def filled(expression):
    """A dashboard's expression with everything chosen."""
    for name, value in {"$__rate_interval": "1m", "$instance": ".*", "$service": ".*"}.items():
        expression = expression.replace(name, value)
    if "$" in expression:
        raise Fault(f"a variable that is not known here: {expression}")
    return expression


def given(text):
    """Names of the series in a gateway's metrics."""
    names = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M):
        names |= {name + end for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return names


def named(expression):
    """Names of gateway metrics in an expression."""
    return set(re.findall(r"\bentc_[a-z_]+\b(?!:)", expression))


def check_layout(dashboard):
    """Panels have ids of their own and do not lie on each other."""
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(ids) != len(set(ids)):
        raise Fault("two panels of the dashboard have one id")
    taken = {}
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                if x >= 24 or (x, y) in taken:
                    raise Fault(f"`{panel['title']}` is on `{taken.get((x, y), 'the edge')}`")
                taken[x, y] = panel["title"]


def check_alerts(rules, tests):
    """Alerts are evaluated, have their texts, and fire in a unit test."""
    fires = set()
    for case in re.split(r"^      - eval_time:", tests, flags=re.M)[1:]:
        if "exp_alerts:" in case:
            fires.add(re.search(r"alertname: (\w+)", case)[1])
    for rule in rules:
        if rule["health"] != "ok":
            raise Fault(f"`{rule['name']}` is not evaluated: {rule.get('lastError', 'never yet')}")
        if rule["type"] == "alerting":
            lacks = {"summary", "description", "runbook"} - set(rule["annotations"])
            if lacks or rule["labels"].get("severity") not in {"critical", "warning"}:
                raise Fault(f"`{rule['name']}` lacks {', '.join(lacks) or 'a severity'}")
            if rule["name"] not in fires:
                raise Fault(f"no unit test has `{rule['name']}` fire")


def check(serving, prometheus, dashboard, tests):
    """All of it."""
    check_layout(dashboard)
    until("scrape of the gateway", lambda: prometheus.finds("entc_plan_info"))
    worker = serving.worker()
    driver = subprocess.Popen(
        [serving.entc, "bench", "--duration", "12s", *serving.machine],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(
        "request that is served",
        lambda: prometheus.finds('sum(rate(entc_model_requests_total{outcome="served"}[1m])) > 0'),
    )
    os.kill(worker, signal.SIGKILL)
    until("loss of the worker that was killed", lambda: prometheus.finds("sum(entc_worker_losses_total) > 0"))
    driver.wait()

    rules = prometheus.rules()
    names = given(serving.text())
    for title, expression in list(queries(dashboard)) + [(rule["name"], rule["query"]) for rule in rules]:
        unknown = named(expression) - names
        if unknown:
            raise Fault(f"`{title}` asks for {', '.join(unknown)}, which the gateway does not give")
    for rule in rules:
        if rule["type"] == "recording":
            until(f"number of `{rule['name']}`", lambda name=rule["name"]: prometheus.finds(name))
    count = 0
    for title, expression in queries(dashboard):
        until(f"number for `{title}`: {expression}", lambda e=expression: prometheus.finds(filled(e)))
        count += 1
    check_alerts(rules, tests)
    alerts = [rule["name"] for rule in rules if rule["type"] == "alerting"]
    wrong = {
        alert for alert in alerts if prometheus.query(f'ALERTS{{alertname="{alert}", alertstate="firing"}}')
    }
    if wrong:
        raise Fault(f"firing without a cause: {', '.join(wrong)}")
    serving.run("serve", "stop")
    down = 'ALERTS{alertname="EntcDown", instance="%s"}' % serving.metrics
    until("alert of the supervisor that was stopped", lambda: prometheus.query(down))
    print(
        f"{count} queries of the dashboard and {len(rules) - len(alerts)} recording rules find numbers; {len(alerts)} alerts are evaluated"
    )


def main():
    """Starts what is needed, and ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entc", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    arguments = parser.parse_args()
    dashboard = json.loads((HERE / "grafana" / "entc.json").read_text())
    tests = (HERE / "prometheus" / "entc-rules.test.yaml").read_text()
    try:
        serving = Serving(arguments.entc.resolve(), arguments.folder)
        try:
            prometheus = Prometheus(arguments.folder, serving.metrics)
            try:
                check(serving, prometheus, dashboard, tests)
            finally:
                prometheus.end()
        finally:
            with contextlib.suppress(Fault):
                serving.run("serve", "stop")
    except Fault as fault:
        sys.exit(f"deploy/check.py: {fault}")


if __name__ == "__main__":
    main()
