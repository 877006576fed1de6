"""A server under load: throughput and latencies against the batch window, beside ONNX Runtime.

One server process serves our model and the same weights in ONNX Runtime, with the same batcher.
Requests of one row come at random times at a fixed rate, whether earlier ones are answered or not;
a latency counts from the time at which a request should have been sent. The columns "predicted" are
the simulator's for ours: it knows the costs that one client alone has shown, and nothing of the
runs under load.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

import minipaddle as paddle
from minipaddle import nn
from minipaddle.inference.model import Model
from minipaddle.serving.batcher import BatchPolicy
from minipaddle.serving.simulator import Costs, Outcome, simulate

from .quantized_times import peer
from .serving_peer import seconds_asleep

BUCKETS = (1, 2, 4, 8, 16)
WINDOWS = (0.0, 4.0, 16.0)
LOADS = (0.3, 0.6, 1.5)
"""Rates, as shares of what the server answers as fast as it can."""
SECONDS, QUEUE, CONNECTIONS = 2.0, 64, 256


def run(threads: int, arguments) -> None:
    parser = argparse.ArgumentParser(prog="./run bench serving", description=__doc__)
    parser.add_argument(
        "--loadgen", action="store_true", help="drive the server by MLPerf's LoadGen, too"
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="of a run of LoadGen, at least")
    within = "ms in which LoadGen's scenario Server wants 99 %% of the answers"
    parser.add_argument("--within", type=float, default=100.0, help=within)
    options = parser.parse_args(arguments)
    if options.loadgen and find_spec("mlperf_loadgen") is None:
        sys.exit('LoadGen is not installed: .venv/bin/python -m pip install -e ".[loadgen]"')
    for name, (net, shape) in nets().items():
        with tempfile.TemporaryDirectory() as folder:
            arguments_ = name, net, shape, Path(folder), threads
            if options.loadgen:
                from .serving_loadgen import compare_generators

                table = compare_generators(*arguments_, options)
            else:
                table = table_of(*arguments_)
            Console(width=120).print(table)


def nets() -> dict:
    """Names, networks, and the shape of a row."""
    paddle.seed(0)
    # the same for any machine, however busy: it shows how well the simulator knows the batcher
    wide = [nn.Linear(1024, 1024), nn.ReLU()] * 3
    return {
        "a model that sleeps 20 ms, and 2 ms a row": (None, [4]),
        "LeNet, 28 × 28": (paddle.vision.models.LeNet().eval(), [1, 28, 28]),
        "perceptron, 3 × 1024": (nn.Sequential(*wide, nn.Linear(1024, 10)), [1024]),
    }


def table_of(name: str, net, shape: list[int], folder: Path, threads: int) -> Table:
    table = Table(
"window, ms", "asked/s", "ours/s", "p50, ms", "p99", "lost, %", "simulated/s", "p50", "p99",
        "ORT/s", "p50", "p99", title=f"Serving {name}",
    )  # fmt: skip
    write_models(net, shape, folder, threads)
    with Serving(folder, threads) as server:
        requests = server.requests_for(shape)
        prefix = folder / "ours/1/model"
        runs = run_times(prefix, shape, threads) if net else {n: seconds_asleep(n) for n in BUCKETS}
        costs, base, slower = measured_costs(server, requests["ours"], runs)
        if net is None:
            costs = costs._replace(run=lambda rows: next(runs[n] for n in BUCKETS if n >= rows))
        most = server.saturated(requests["ours"])
        for window in WINDOWS:
            for peer_ in requests:
                server.set_window(peer_, window)
            for load in LOADS:
                times = arrivals(load * most, SECONDS)
                found = {p: asyncio.run(drive(server.port, requests[p], times)) for p in requests}
                policy = BatchPolicy(BUCKETS[-1], window / 1e3, (), QUEUE)
                wanted = simulate(times, policy, costs)
                table.add_row(*cells(window, load * most, found, wanted, base))
            table.add_section()
    table.caption = (
        f"{most:.0f} answers a second as fast as it can; a request costs "
        f"{2e6 * costs.arrive:.0f} µs, a batch {1e6 * costs.batch:.0f} µs and "
        + ", ".join(f"{1e6 * costs.run(n):.0f} µs of {n}" for n in runs)
        + f"; the processors were shared: all took {slower:.1f} times its processor time"
    )
    return table


def cells(window, rate, found: dict, wanted: Outcome, base: float) -> list[str]:
    """A row of the table."""

    def three(x: Outcome, more: float = 0.0) -> list[str]:
        return [f"{x.throughput:.0f}",
                *(f"{1e3 * (x.quantile(q) + more):.2f}" for q in (0.5, 0.99))]  # fmt: skip

    ours = found["ours"]
    lost = 100 * ours.refused / max(1, ours.refused + len(ours.latencies))
    other = three(found["ort"]) if "ort" in found else ["", "", ""]
    return [f"{window:g}", f"{rate:.0f}", *three(ours), f"{lost:.1f}", *three(wanted, base), *other]


# ---- models ------------------------------------------------------------------------------------


def write_models(net, shape: list[int], folder: Path, threads: int) -> None:
    """Our model, and the same for ONNX Runtime, if it is there."""
    if net is None:
        (folder / "ours/1").mkdir(parents=True)
        (folder / "ours/1/model.sleep").touch()
        return
    spec = paddle.static.InputSpec([None, *shape], "float32", "x0")
    for name in ("ours", "ort"):
        (folder / name / "1").mkdir(parents=True)
    paddle.jit.save(net, str(folder / "ours/1/model"), input_spec=[spec])
    if not peer("onnxruntime"):
        return
    from . import onnx_models as om

    for rows in BUCKETS:
        program = paddle.jit.to_static(lambda x: net(x), backend="interpreter")
        with paddle.no_grad():
            program(paddle.zeros([rows, *shape]))
        om.onnx.save(om.Model(program.main_program).proto, folder / f"ort/1/batch_{rows}.onnx")
    (folder / "ort/1/model.onnx").touch()


def run_times(prefix: Path, shape: list[int], threads: int) -> dict[int, float]:
    """The median seconds of a run, by its rows."""
    model, found = Model(str(prefix), threads=threads), {}
    for rows in BUCKETS:
        bound, times = model.binding([(rows, *shape)]), []
        for _ in range(50):
            began = time.perf_counter()
            bound.run()
            times.append(time.perf_counter() - began)
        found[rows] = median(times)
    return found


# ---- the server and its client ------------------------------------------------------------------


class Serving:
    """The server as a process."""

    def __init__(self, folder: Path, threads: int):
        command = [sys.executable, "-m", "tests.benchmarks.serving_peer", str(folder), "--control"]
        options = ["--port", "0", "--largest", str(BUCKETS[-1]), "--queue", str(QUEUE)]
        environment = os.environ | {"MINIPADDLE_BACKEND": "native"}
        self.folder = folder
        self.process = subprocess.Popen(
            [*command, *options, "--threads", str(threads)], stdout=subprocess.PIPE, text=True,
            env=environment,
        )  # fmt: skip
        self.port = int(re.search(r":(\d+)$", self.process.stdout.readline())[1])
        self.names = [path.name for path in folder.iterdir() if any((path / "1").iterdir())]
        for name in self.names:
            until = time.monotonic() + 120
            while self.ask("GET", f"/v2/models/{name}/ready") != 200:
                assert time.monotonic() < until, f"{name} was not loaded"
                time.sleep(0.1)

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *error) -> None:
        self.process.terminate()
        self.process.wait()

    def ask(self, method: str, path: str) -> int:
        """The status of an answer."""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        return asyncio.run(one_answer(self.port, head.encode()))

    def requests_for(self, shape: list[int]) -> dict[str, bytes]:
        """For each model a request for one random row."""
        row = np.random.default_rng(0).normal(size=(1, *shape)).astype("float32")
        return {name: self.request(name, row) for name in self.names}

    def request(self, name: str, row: np.ndarray) -> bytes:
        """A request for one row, numbers as bytes."""
        given = {"name": "x0", "shape": [*row.shape], "datatype": "FP32",
                 "parameters": {"binary_data_size": row.nbytes}}  # fmt: skip
        text = json.dumps({"inputs": [given], "parameters": {"binary_data_output": True}}).encode()
        head = (
            f"POST /v2/models/{name}/infer HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Length: {len(text) + row.nbytes}\r\n"
            f"Inference-Header-Content-Length: {len(text)}\r\n\r\n"
        )
        return head.encode() + text + row.tobytes()

    def set_window(self, name: str, window: float) -> None:
        """Load a model again, with another window."""
        (self.folder / name / "config.json").write_text(json.dumps({"window_ms": window}))
        status = self.ask("POST", f"/v2/repository/models/{name}/load")
        assert status == 200, status

    def processor_time(self) -> float:
        """Seconds that all threads of the server have worked."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def saturated(self, request: bytes) -> float:
        """Answers in a second for as many clients as fit into two batches."""
        return asyncio.run(as_fast_as_it_can(self.port, request, 2 * BUCKETS[-1], SECONDS))


async def as_fast_as_it_can(port: int, request: bytes, clients: int, seconds: float) -> float:
    """Answers in a second; each client sends its next request when it has an answer."""
    end, count = time.perf_counter() + seconds, 0

    async def client():
        nonlocal count
        streams = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end:
            await answer(streams, request)
            count += 1
        streams[1].close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return count / seconds


async def one_answer(port: int, request: bytes) -> int:
    streams = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await answer(streams, request)
    finally:
        streams[1].close()


async def answer(streams, request: bytes) -> int:
    """The status of an answer; its body is read."""
    reader, writer = streams
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"\ncontent-length: (\d+)", head, re.I)
    await reader.readexactly(int(length[1]) if length else 0)
    return int(head[9:12])


def arrivals(rate: float, seconds: float) -> list[float]:
    """Times of requests at random."""
    draw, now, found = random.Random(0), 0.0, []
    while (now := now + draw.expovariate(rate)) < seconds:
        found.append(now)
    return found


async def drive(port: int, request: bytes, times: list[float]) -> Outcome:
    """What becomes of requests that are sent at these times."""
    free, latencies, refused, end = [], [], 0, 0.0
    room = asyncio.Semaphore(CONNECTIONS)
    for _ in range(CONNECTIONS):
        free.append(await asyncio.open_connection("127.0.0.1", port))
    start = time.perf_counter()

    async def one(at: float) -> None:
        nonlocal refused, end
        async with room:
            streams = free.pop()
            status = await answer(streams, request)
            free.append(streams)
        end = time.perf_counter() - start
        if status == 200:
            latencies.append(end - at)
        else:
            refused += 1

    tasks = []
    for at in times:
        wait = at - (time.perf_counter() - start)
        if wait > 0 or not len(tasks) % 8:
            await asyncio.sleep(max(wait, 0))
        tasks.append(asyncio.create_task(one(at)))
    await asyncio.gather(*tasks)
    for streams in free:
        streams[1].close()
    return Outcome(latencies, refused, 0, end - times[0], 0)


def asked_of_processors(runs: dict):
    """The processor time of a run, by its rows: of one that sleeps, none."""
    asleep = all(seconds == seconds_asleep(n) for n, seconds in runs.items())
    return lambda rows: 0.0 if asleep else runs[rows]


def measured_costs(server: Serving, request: bytes, runs: dict) -> tuple[Costs, float, float]:
    """What a request costs, as the simulator wants it; the seconds that the client and the network
    take; and how much longer than its processor time the server needs for its work, since others
    use the processors too.
    """

    async def alone() -> list[float]:
        streams, times = await asyncio.open_connection("127.0.0.1", server.port), []
        for _ in range(400):
            began = time.perf_counter()
            await answer(streams, request)
            times.append(time.perf_counter() - began)
        streams[1].close()
        return times

    asyncio.run(alone())
    before = server.processor_time()
    times = asyncio.run(alone())
    lone = (server.processor_time() - before) / len(times)
    before = server.processor_time()
    rate = server.saturated(request)
    worked = (server.processor_time() - before) / (rate * SECONDS)
    run = asked_of_processors(runs)
    slower = max(1.0, 1 / (rate * worked)) if run(1) else 1.0  # a loop that is busy all the time
    shared = max(worked / 2, worked - run(BUCKETS[-1]) / BUCKETS[-1])  # of a request, but its run
    batch = max(0.0, lone - run(1) - shared)
    costs = Costs(
        slower * shared / 2, slower * shared / 2, slower * batch,
        lambda rows: slower * next(t for n, t in runs.items() if n >= rows),
    )  # fmt: skip
    return costs, max(0.0, median(times) - shared - batch - runs[1]), slower
