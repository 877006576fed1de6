"""The server as a process, and its clients."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from .serving import body_of

SAFETY = 60
running: list["Process"] = []
"""Those that no test has ended yet."""


class Process:
    """`python -m minipaddle serve` in a process, on a port of its own."""

    def __init__(self, folder, *options, ready=True, token=None):
        self.connections = []
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        command = [sys.executable, "-m", "minipaddle", "serve", str(folder), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            bufsize=0,  # readline() takes one line, and leaves the others to communicate()
            env=os.environ | ({} if token is None else {"MINIPADDLE_SERVE_TOKEN": token}),
        )  # fmt: skip
        self.said = ""
        """What it printed before its address."""
        self.port = self.read_port()
        running.append(self)
        if ready:
            self.wait_until(lambda: self.get("/v2/health/ready") == 200)

    def wait_until(self, true) -> None:
        """Wait for a condition; fail after a minute with what the server printed."""
        deadline = time.monotonic() + SAFETY
        while not true():
            if time.monotonic() > deadline:
                raise AssertionError(f"not in {SAFETY} s; exit status and output: {self.end()}")
            time.sleep(0.02)

    def read_port(self) -> int:
        """The port that it prints: perhaps not first, for a model may have failed by then. A server
        that prints none in a minute is killed.
        """
        too_late = threading.Timer(SAFETY, self.process.kill)
        too_late.start()
        try:
            for line in map(bytes.decode, self.process.stdout):
                if found := re.search(r"serving .* on http://127\.0\.0\.1:(\d+)\n?", line):
                    self.said += line.replace(found[0], "")
                    return int(found[1])
                self.said += line
        finally:
            too_late.cancel()
        self.process.stdout.close()
        raise AssertionError(f"no address, exit status {self.process.wait()}:\n{self.said}")

    def open(self, path, body=None, headers=None):
        headers = self.headers if headers is None else headers
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, headers)
        return urllib.request.urlopen(request, timeout=20)

    def get(self, path, body=None, headers=None):
        """The status of an answer; None if the server takes no connections."""
        try:
            with self.open(path, body, headers) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except (urllib.error.URLError, ConnectionError):
            return None

    def infer(self, x, name="affine"):
        with self.open(f"/v2/models/{name}/infer", body_of(x)) as answer:
            return json.loads(answer.read())["outputs"][0]["data"]

    def connect(self, data=b""):
        """A connection on which some bytes were sent; it is closed in the end."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.connections.append(connection)
        connection.sendall(data)
        return connection

    def end(self):
        """(exit status, what it printed) after SIGTERM."""
        if self in running:
            running.remove(self)
        for connection in self.connections:
            connection.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            text, _ = self.process.communicate(timeout=30)
        finally:
            self.process.kill()
        return self.process.returncode, self.said + text.decode()
