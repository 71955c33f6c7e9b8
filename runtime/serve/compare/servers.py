"""The servers: how each is got, started, asked and ended."""

import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import measuring
import python_worker as wire

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BATCH = 32
PATIENCE_S = 120

OPEN_INFERENCE = '{"inputs":[{"name":"x","shape":[1,1],"datatype":"FP32","data":[0.5]}]}'

# What is installed for each, by PyPI's names.
PACKAGES = {
    "triton": ["nvidia-pytriton==0.7.0"],
    "litserve": ["litserve==0.2.19", "numpy"],
    "ray": ["ray[serve]==2.60.0", "numpy"],
    "bentoml": ["bentoml==1.4.40", "numpy"],
}


def install(folder):
    """Makes the virtual environments that are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, packages in PACKAGES.items():
        place = folder / f"venv-{name}"
        if not (place / "done").exists():
            print(f"installing {' '.join(packages)} in {place}")
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            pip = [place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
            subprocess.run(pip, check=True)
            (place / "done").touch()


class Running:
    """A server that runs."""

    def __init__(self, server, process, port, folder):
        self.server, self.process, self.port = server, process, port
        self.pid = process.pid
        self.url = f"http://127.0.0.1:{port}{server.path}"
        self.body = server.body
        self.seen = folder / "memory.json"

    def ask(self):
        """One request."""
        request = urllib.request.Request(self.url, self.body.encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    def check(self):
        """One request, whose answer has to be the network's."""
        answer = self.ask()
        if self.server.number(json.loads(answer)) != self.server.expected:
            sys.exit(f"{self.server.name}: not the network's answer: {answer}")
        return answer

    def wait(self):
        """Until it answers."""
        start = time.monotonic()
        while True:
            if self.process.poll() is not None:
                sys.exit(
                    f"{self.server.name} ended with {self.process.returncode}; its words are in {self.server.log}"
                )
            try:
                return self.ask()
            except (urllib.error.URLError, OSError):
                if time.monotonic() - start > PATIENCE_S:
                    sys.exit(f"{self.server.name} does not answer; its words are in {self.server.log}")
                time.sleep(0.2)

    def mean_batch(self):
        """Rows over batches, where the server counts them."""
        if not self.server.counts:
            return None
        address, rows, batches = self.server.counts
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port + 1}{address}", timeout=30) as answer:
            text = answer.read().decode()
        total = {name: 0.0 for name in (rows, batches)}
        for line in text.splitlines():
            name = line.split("{")[0]
            if name in total:
                total[name] += float(line.rsplit(" ", 1)[1])
        return total[rows] / max(1.0, total[batches])


class Server:
    """A server that can be started."""

    def __init__(self, name, title, does, venv, command, **other):
        self.name, self.title, self.does, self.venv, self.command = name, title, does, venv, command
        self.path = other.get("path", "/predict")
        self.body = other.get("body", OPEN_INFERENCE)
        self.expected = other.get("expected", 1.0)
        self.number = other.get("number", lambda answer: answer["outputs"][0]["data"][0])
        self.package = other.get("package")
        self.counts = other.get("counts")
        self.prepare = other.get("prepare")
        self.log = None

    def is_there(self):
        """Whether it can be started."""
        return self.venv is None or (self.venv / "bin" / "python").exists()

    def how_to_get(self):
        """What would make it be there."""
        return "compare.py install"

    def version(self):
        """Which version."""
        if self.venv is None:
            return ""
        code = f"import importlib.metadata as m; print(m.version('{self.package}'))"
        return subprocess.run(
            [self.venv / "bin" / "python", "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()

    @contextlib.contextmanager
    def running(self, port, folder):
        """Starts it, waits until it answers, and ends it with all that it started."""
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / f"{self.name}.log"
        environment = dict(os.environ, PYTHONUNBUFFERED="1", OMP_NUM_THREADS="1")
        if self.prepare:
            environment.update(self.prepare(port, folder))
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                self.command(port, folder),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
                cwd=HERE,
                start_new_session=True,
            )
            running = Running(self, process, port, folder)
            try:
                running.wait()
                yield running
            finally:
                end(process)


def end(process):
    """Ends a process and what it started: asked first, then not."""
    pids = measuring.descendants(process.pid)
    process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=15)
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def deployment():
    """What entc serves: one service, one worker, batches that take no time."""
    tensor = {"datatype": "FP32", "shape": [-1, 1]}
    signature = {"inputs": [{"name": "x", **tensor}], "outputs": [{"name": "y", **tensor}]}
    replica = {"id": "cpu0", "node": "here", "index": 0, "processes": 1, "batch": BATCH, "max_wait_ms": 0.0}
    replica.update(batch_times_ms=[0.0] * BATCH, rate_rps=1.0, executor="modelled")
    service = {"name": "null", "model": {"name": "null", "signature": signature}, "percentile": 0.99}
    service.update(promised_latency_ms=1000.0, arrivals="poisson", rate_rps=1.0, replicas=[replica])
    return {"format_version": "1.0", "services": [service]}


class Entc(Server):
    """entc's gateway, and one worker."""

    def __init__(self, name, does, entc, venv=None, expected=0.0):
        super().__init__(
            name,
            "entc",
            does,
            venv,
            self.serve,
            path="/v2/models/null/infer",
            expected=expected,
            prepare=self.lay_out,
        )
        self.entc = entc
        self.counts = ("/metrics", "entc_batch_rows_total", "entc_batches_total")

    def is_there(self):
        """Whether it is built, and the worker's Python is there."""
        return self.entc.exists() and super().is_there()

    def how_to_get(self):
        """What would make it be there."""
        return "cargo build --release -p entc -p ent-worker, or --entc PATH; for its worker in Python, compare.py install"

    def version(self):
        """Which version."""
        said = subprocess.run(
            [self.entc, "--version"], capture_output=True, text=True, check=True
        ).stdout.split()
        return said[-1]

    def lay_out(self, port, folder):
        """A state folder with the deployment; a worker in Python is a program of the worker's name."""
        state = folder / f"{self.name}-state"
        state.mkdir(exist_ok=True)
        what = deployment()
        environment = {}
        if self.venv:
            # This worker says itself what it takes.
            what["services"][0]["model"]["signature"] = None
            place = folder / f"{self.name}-worker"
            place.mkdir(exist_ok=True)
            script = place / "ent-worker"
            script.write_text(f'#!/bin/sh\nexec {self.venv}/bin/python {HERE}/python_worker.py "$@"\n')
            script.chmod(0o755)
            environment["ENTC_LIBDIR"] = str(place)
        (state / "deployment.json").write_text(json.dumps(what))
        return environment

    def serve(self, port, folder):
        """The supervisor's command."""
        state = folder / f"{self.name}-state"
        addresses = ["--http", f"127.0.0.1:{port}", "--grpc", "off", "--metrics", f"127.0.0.1:{port + 1}"]
        return [str(self.entc), "serve", "run", "--state", str(state), *addresses]


def all_servers(folder, entc):
    """All of them, in the order in which they are measured."""

    def venv(name):
        return folder / f"venv-{name}"

    def script(name):
        return lambda port, _: [
            str(venv(name) / "bin" / "python"),
            str(HERE / f"{name}_server.py"),
            str(port),
        ]

    def bento(port, _):
        bin_of = venv("bentoml") / "bin"
        return [
            str(bin_of / "python"),
            "-m",
            "bentoml",
            "serve",
            "bentoml_server:Null",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ]

    own = entc.resolve()
    return [
        Entc("entc", "gateway, and `ent-worker` in another process, which answers zeros", own),
        Entc(
            "entc-python",
            "the same gateway; the worker is Python, and the network numpy's, called once a batch",
            own,
            venv=venv("triton"),
            expected=1.0,
        ),
        Server(
            "triton",
            "Triton server from nvidia-pytriton",
            "its own HTTP front end; Python backend in another process, numpy called once a batch",
            venv("triton"),
            script("triton"),
            path="/v2/models/null/infer",
            package="nvidia-pytriton",
            counts=("/metrics", "nv_inference_count", "nv_inference_exec_count"),
        ),
        Server(
            "litserve",
            "LitServe",
            "uvicorn and FastAPI; worker in another process, numpy called once a batch",
            venv("litserve"),
            script("litserve"),
            package="litserve",
        ),
        Server(
            "ray",
            "Ray Serve",
            "its proxy, and a replica in another process; `serve.batch`, numpy called once a batch",
            venv("ray"),
            script("ray"),
            package="ray",
        ),
        Server(
            "bentoml",
            "BentoML",
            "uvicorn, the network in the same process; adaptive batches, numpy called once a batch",
            venv("bentoml"),
            bento,
            body='{"x":[[0.5]]}',
            number=lambda answer: answer[0][0],
            package="bentoml",
        ),
    ]


def directly(entc, folder, calls=20_000):
    """p50 and p99 (ms) of `ent-worker` called over its socket, one row at a time, by this program."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "direct.sock"
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    words = ["--service", "null", "--replica", "cpu0", "--executor", "modelled", "--socket", str(path)]
    process = subprocess.Popen([entc.resolve().parent / "ent-worker", *words])
    try:
        connection, _ = listener.accept()
        stream = connection.makefile("rb")
        wire.receive(stream)
        # Welcome: a model without artefact and signature, a batch of one that takes no time.
        welcome = [
            wire.varint(0),
            wire.text("null"),
            b"\0\0",
            wire.varint(1),
            wire.varint(1),
            bytes(8),
            wire.varint(0),
        ]
        connection.sendall(wire.frame(b"".join(welcome)))
        wire.receive(stream)
        took = []
        for batch in range(calls):
            start = time.perf_counter()
            # Execute: its number, one row, one input [1, 1].
            execute = [
                wire.varint(3),
                wire.varint(batch),
                b"\1\1",
                wire.text("x"),
                wire.varint(wire.FP32),
                bytes([2, 2, 2, 4]),
            ]
            connection.sendall(wire.frame(b"".join(execute), bytes(4)))
            wire.receive(stream)
            took.append((time.perf_counter() - start) * 1e3)
    finally:
        end(process)
    cuts = statistics.quantiles(took[calls // 10 :], n=100)
    return cuts[49], cuts[98]
