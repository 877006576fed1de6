"""The processes of Flower's: a SuperLink, a SuperNode for each client, a run of the app here."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

APP = Path(__file__).parent


class Federation:
    """The processes of a run; their files are in a folder."""

    def __init__(self, folder: Path):
        self.folder, self.processes = folder, {}

    def start_all(self, options) -> None:
        """Start SuperLink and SuperNodes, then send the app to them."""
        folder = self.folder
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(options.clients + 1)]
        port, *ports = [each.getsockname()[1] for each in sockets]
        for each in sockets:
            each.close()
        link = f"127.0.0.1:{port}"
        connection = f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "{link}"\n'
        (folder / "config.toml").write_text(f"{connection}insecure = true\n")
        path = os.pathsep.join([str(APP.parents[1]), os.environ.get("PYTHONPATH", "")])
        settings = {"FLWR_DISABLE_UPDATE_CHECK": "1", "FLWR_TELEMETRY_ENABLED": "0"}
        settings |= {"DIGITS": str(folder), "FLWR_HOME": str(folder), "PYTHONPATH": path}
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environment = {**os.environ, **settings, "OMP_NUM_THREADS": "1", "PATH": programs}
        self.start("link", "flower-superlink", "--insecure", "--port", str(port),
                   "--disable-runtime-dependency-installation")  # fmt: skip
        for k, own in enumerate(ports):
            share = f"partition-id={k} num-partitions={options.clients}"
            self.start(f"client {k}", "flower-supernode", "--insecure", "--superlink", link,
                       "--port", str(own), "--node-config", share)  # fmt: skip
        while not connects(port):
            time.sleep(0.2)
        config = f"rounds={options.rounds} timeout={options.timeout}"
        config += f" secure={json.dumps(options.secure)}"
        self.start("server", "flwr", "run", str(APP), "here", "--stream", "-c", config)

    def start(self, name: str, *command) -> None:
        """Start a process, with its children in a group of its own."""
        with open(self.folder / f"{name}.log", "w") as log:
            self.processes[name] = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, name: str) -> None:
        """End a process and its children at once."""
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes.pop(name).wait()

    def lines(self, rounds: int):
        """The results of the rounds, as they come, until the server has ended."""
        file, count, ended = self.folder / "rounds.jsonl", 0, False
        while count < rounds and not ended:
            time.sleep(0.2)
            ended = self.processes["server"].poll() is not None
            texts = file.read_text().splitlines() if file.exists() else []
            yield from map(json.loads, texts[count:])
            count = max(count, len(texts))
        if count < rounds:
            raise RuntimeError((self.folder / "server.log").read_text())


def connects(port: int) -> bool:
    """Whether a process listens at the port."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
