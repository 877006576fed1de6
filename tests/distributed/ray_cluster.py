"""Ray on this machine, for tests: started once, ended by its process number alone."""

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "RAY_AUTH_MODE": "disabled",  # else it writes a token into the home folder
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "90",
    "PYTHONPATH": str(ROOT),
    "OMP_NUM_THREADS": "1",
}
PORTS = ("port", "dashboard-agent-grpc-port", "dashboard-agent-listen-port",
         "runtime-env-agent-port", "metrics-export-port")  # fmt: skip


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in found]


@contextmanager
def ray_here(cpus: int = 8):
    """The environment of programs that use a cluster of this machine alone.

    Its ports are given, and one that cannot be given is written where Ray looks for it: else Ray
    waits 15 seconds, no more, for agents to choose them, which they miss on a busy machine
    (https://github.com/ray-project/ray/issues/65983).
    """
    node = secrets.token_hex(28)
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block",
                   "--include-dashboard=false", f"--num-cpus={cpus}", f"--temp-dir={folder}",
                   f"--object-store-memory={100 << 20}",
                   *(f"--{name}={port}" for name, port in ports.items())]  # fmt: skip
        environment = os.environ | SETTINGS | {"RAY_OVERRIDE_NODE_ID_FOR_TESTING": node}
        said = Path(folder) / "said"
        port_file = Path(folder) / f"session_latest/dashboard_agent_listen_port_{node}"
        with (
            said.open("w") as out,
            subprocess.Popen(command, stdout=out, stderr=out, env=environment) as process,
        ):
            try:
                wait_for(process, said, port_file)
                yield SETTINGS | {"RAY_ADDRESS": f"127.0.0.1:{ports['port']}"}
            finally:
                process.terminate()


def wait_for(process, said: Path, port_file: Path, patience: float = 240.0) -> None:
    """Wait until the cluster is there."""
    deadline = time.monotonic() + patience
    while "Ray runtime started" not in said.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.skip(f"Ray did not start: {said.read_text()[-500:]}")
        if port_file.parent.is_dir() and not port_file.exists():
            port_file.write_text("-1")
        time.sleep(0.2)
