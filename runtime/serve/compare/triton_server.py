"""Runs the Triton server of nvidia-pytriton itself, without PyTriton's own proxy: `triton_server.py PORT CONNECTIONS`."""

import os
import sys
from pathlib import Path

import pytriton

package = Path(pytriton.__file__).parent
server = package / "tritonserver"
stub = f"{sys.version_info.major}.{sys.version_info.minor}"
# Where the Python backend looks for the program that runs a network: beside itself.
backend = server / "backends" / "python" / "triton_python_backend_stub"
if not backend.exists():
    backend.symlink_to(server / "python_backend_stubs" / stub / "triton_python_backend_stub")
environment = dict(os.environ)
environment["LD_LIBRARY_PATH"] = str(package.parent / "nvidia_pytriton.libs")
environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
environment["PYTHONPATH"] = str(Path(__import__("numpy").__file__).parent.parent)
os.execve(
    server / "bin" / "tritonserver",
    [
        "tritonserver",
        f"--model-repository={Path(__file__).parent / 'triton'}",
        f"--backend-directory={server / 'backends'}",
        "--http-address=127.0.0.1",
        f"--http-port={sys.argv[1]}",
        "--metrics-address=127.0.0.1",
        f"--metrics-port={int(sys.argv[1]) + 1}",
        "--allow-grpc=false",
        "--allow-gpu-metrics=false",
    ],
    environment,
)
