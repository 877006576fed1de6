"""Ray on this machine, for tests: started once, ended by its process number alone."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from minipaddle.distributed.failures.keeper import die_with_parent

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "RAY_AUTH_MODE": "disabled",  # else it writes a token into the home folder
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "90",
    "RAY_worker_register_timeout_seconds": "120",
    "RAY_enable_worker_prestart": "0",  # else it starts a Python for each processor it is given
    "RAY_prestart_worker_first_driver": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # else it kills workers when other programs fill memory
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
    (https://github.com/ray-project/ray/issues/65983). Each of its processes imports jsonschema,
    which builds the grammars of rfc3987_syntax in two seconds if that is there: it is hidden.
    """
    node = secrets.token_hex(28)
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block",
                   "--include-dashboard=false", "--include-log-monitor=false", "--no-monitor",
                   f"--num-cpus={cpus}", f"--temp-dir={folder}",
                   f"--object-store-memory={100 << 20}",
                   *(f"--{name}={port}" for name, port in ports.items())]  # fmt: skip
        hidden = Path(folder) / "hidden"
        hidden.mkdir()
        (hidden / "rfc3987_syntax.py").write_text("raise ImportError")
        around = SETTINGS | {"PYTHONPATH": f"{ROOT}{os.pathsep}{hidden}"}
        said = Path(folder) / "said"
        port_file = Path(folder) / f"session_latest/dashboard_agent_listen_port_{node}"
        with (
            said.open("w") as out,
            subprocess.Popen(
                command, stdout=out, stderr=out,
                preexec_fn=partial(die_with_parent, signal.SIGTERM),
                env=os.environ | around | {"RAY_OVERRIDE_NODE_ID_FOR_TESTING": node},
            ) as process,
        ):  # fmt: skip
            try:
                wait_for(process, said, port_file)
                yield around | {"RAY_ADDRESS": f"127.0.0.1:{ports['port']}"}
            finally:
                process.terminate()


def wait_for(process, said: Path, port_file: Path, patience: float = 240.0) -> None:
    """Wait until the cluster is there; RuntimeError with what it says if it does not come."""
    deadline = time.monotonic() + patience
    while "Ray runtime started" not in said.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            logs = [said, *port_file.parent.glob("logs/*.err")]
            told = "".join(each.read_text()[-1500:] for each in logs)
            raise RuntimeError(f"Ray did not start: {told}")
        if port_file.parent.is_dir() and not port_file.exists():
            port_file.write_text("-1")
        time.sleep(0.2)
