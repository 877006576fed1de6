"""The server driven by MLPerf's load generator, beside the benchmark's own (`serving.py`).

LoadGen decides when requests are sent, takes the times and judges the run; here they are only
carried to the server and back. Its rules, in short: *single stream* sends the next request when it
has an answer, *server* sends at random times at a fixed rate and asks that 99 % of the answers come
within a bound, *offline* sends all at once. A run is valid if it was long enough, had enough
requests, kept the bound, and if so many requests show it ("early stopping").
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from minipaddle.serving.simulator import Outcome

from .serving import BUCKETS, Serving, answer, arrivals, drive, write_models

LOAD = 0.3
"""The rate of the scenario *server*, as a share of what the server answers as fast as it can."""
OFFLINE = 2 * BUCKETS[-1]
"""Requests that are under way at once in the scenario *offline*: two full batches."""
QUANTILES = (0.5, 0.9, 0.99)
CONDITIONS = {
    "result_perf_constraints_met": "late answers",
    "result_min_duration_met": "too short",
    "result_min_queries_met": "too few requests",
    "early_stopping_met": "too few requests to be sure",
}
"""What makes a run invalid, by the keys of LoadGen's log."""


class ScenarioResult(NamedTuple):
    """What LoadGen says of a run: requests a second, latencies in seconds by quantile, how many
    requests there were, how often one was refused and sent again, and what makes the run invalid.
    """

    rate: float
    latencies: dict[float, float]
    count: int
    refused: int
    faults: list[str]


class Carrier:
    """Carries LoadGen's requests to the server, at most `connections` at once, in a thread.

    A refused request (503) is sent again 10 ms later, and its latency goes on: LoadGen
    wants an answer to each. After another mistake all requests are answered at once, so that the
    run ends, and `close` raises it.
    """

    def __init__(self, loadgen, port: int, request: bytes, connections: int):
        self.loadgen, self.port, self.request, self.connections = (
            loadgen,
            port,
            request,
            connections,
        )
        self.refused, self.error = 0, None
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.call(self.connect())

    def call(self, work):
        """The result of a coroutine that runs in the thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def connect(self) -> None:
        self.tasks: set = set()
        self.free: asyncio.LifoQueue = asyncio.LifoQueue()
        for _ in range(self.connections):
            self.free.put_nowait(await self.open())

    async def open(self):
        """A connection."""
        return await asyncio.open_connection("127.0.0.1", self.port)

    def issue(self, samples) -> None:
        """LoadGen's call: send these."""
        self.loop.call_soon_threadsafe(self.start, [sample.id for sample in samples])

    def start(self, ids: list[int]) -> None:
        for one in ids:
            self.tasks.add(task := self.loop.create_task(self.carry(one)))
            task.add_done_callback(self.tasks.discard)

    async def carry(self, one: int) -> None:
        streams = await self.free.get()
        try:
            while self.error is None:
                status, streams = await self.ask(streams)
                if status == 200:
                    break
                if status != 503:
                    raise RuntimeError(f"the server answered {status}")
                self.refused += 1
                await asyncio.sleep(0.01)
        except Exception as error:
            self.error = error
        self.free.put_nowait(streams)
        self.loadgen.QuerySamplesComplete([self.loadgen.QuerySampleResponse(one, 0, 0)])

    async def ask(self, streams):
        """(the status, the connection): another one where the server had closed it, long unused."""
        try:
            return await answer(streams, self.request), streams
        except (EOFError, ConnectionError):
            streams[1].close()
            streams = await self.open()
            return await answer(streams, self.request), streams

    def close(self) -> None:
        """End the thread; raise what went wrong."""
        self.call(self.disconnect())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        if self.error is not None:
            raise self.error

    async def disconnect(self) -> None:
        await asyncio.gather(*self.tasks)
        while not self.free.empty():
            writer = self.free.get_nowait()[1]
            writer.close()


def run_scenario(
    scenario: str, port: int, request: bytes, *, seconds: float, rate: float = 1.0,
    bound: float = 0.1, least: int = 100, connections: int = OFFLINE,
) -> ScenarioResult:  # fmt: skip
    """A run of LoadGen in the scenario `SingleStream`, `Server` or `Offline`.

    At least `least` requests for at least so many seconds; `rate`: requests a second, of *offline*
    those that LoadGen should expect; `bound`: the seconds in which *server* wants 99 % answered.
    """
    import mlperf_loadgen as lg

    settings = lg.TestSettings()
    settings.scenario = getattr(lg.TestScenario, scenario)
    settings.mode = lg.TestMode.PerformanceOnly
    settings.min_duration_ms, settings.min_query_count = int(1e3 * seconds), least
    settings.server_target_qps = settings.offline_expected_qps = rate
    settings.server_target_latency_ns = int(1e9 * bound)
    logs = lg.LogSettings()
    logs.enable_trace = False
    carrier = Carrier(lg, port, request, connections)
    system = lg.ConstructSUT(carrier.issue, lambda: None)
    library = lg.ConstructQSL(1, 1, lambda indices: None, lambda indices: None)
    with tempfile.TemporaryDirectory() as folder:
        output = lg.LogOutputSettings()
        output.outdir, output.copy_summary_to_stdout = folder, False
        logs.log_output = output
        try:
            lg.StartTestWithLogSettings(system, library, settings, logs)
        finally:
            lg.DestroyQSL(library)
            lg.DestroySUT(system)
            carrier.close()
        text = (Path(folder) / "mlperf_log_detail.txt").read_text()
    return read_log(text, carrier.refused)


def read_log(text: str, refused: int = 0) -> ScenarioResult:
    """What a detailed log of LoadGen says."""
    lines = (json.loads(line.partition(" ")[2]) for line in text.splitlines())
    facts = {line["key"]: line["value"] for line in lines}
    rates = ("qps_with_loadgen_overhead", "completed_samples_per_sec", "samples_per_second")
    (rate,) = (facts[f"result_{key}"] for key in rates if f"result_{key}" in facts)
    latencies = {q: facts[f"result_{100 * q:.2f}_percentile_latency_ns"] / 1e9 for q in QUANTILES}
    faults = [why for key, why in CONDITIONS.items() if facts.get(key) is False]
    if (facts["result_validity"] == "VALID") == bool(faults):
        faults.append(facts["result_validity"].lower())
    count = facts["result_query_count"] * facts["effective_samples_per_query"]
    return ScenarioResult(rate, latencies, count, refused, faults)


# ---- the table ---------------------------------------------------------------------------------


def compare_generators(name, net, shape, folder: Path, threads: int, options) -> Table:
    """The scenarios of a network, by LoadGen and by the benchmark's own generator."""
    table = Table(
        "scenario", "by", "server", "requests/s", "p50, ms", "p90", "p99", "sent again", "valid",
        title=f"Serving {name}",
    )  # fmt: skip
    write_models(net, shape, folder, threads)
    with Serving(folder, threads) as server:
        requests = server.requests_for(shape)
        most = server.saturated(requests["ours"])
        for scenario in ("SingleStream", "Server", "Offline"):
            for peer in sorted(requests, reverse=True):
                server.set_window(peer, 0.0)
                rate = 3 * most if scenario == "Offline" else LOAD * most
                by_loadgen = run_scenario(
                    scenario, server.port, requests[peer], seconds=options.seconds, rate=rate,
                    bound=options.within / 1e3, least=1000,
                    connections=256 if scenario == "Server" else OFFLINE,
                )  # fmt: skip
                own = run_own(scenario, server, requests[peer], rate, options.seconds)
                table.add_row(scenario, "LoadGen", peer, *cells_of(by_loadgen))
                table.add_row("", "this benchmark", peer, *own)
            table.add_section()
    table.caption = (
        f"at least {options.seconds:g} s and 1,000 requests; the scenario Server asks for "
        f"{LOAD * most:.0f} requests a second and for 99 % of the answers within "
        f"{options.within:g} ms"
    )
    return table


def cells_of(result: ScenarioResult) -> list[str]:
    latencies = [f"{1e3 * seconds:.2f}" for seconds in result.latencies.values()]
    valid = "no: " + ", ".join(result.faults) if result.faults else "yes"
    return [f"{result.rate:.0f}", *latencies, str(result.refused), valid]


def run_own(scenario: str, server: Serving, request: bytes, rate: float, seconds: float):
    """The cells of the same scenario by the benchmark's own generator."""
    if scenario == "Offline":
        return [f"{server.saturated(request):.0f}", "", "", "", "", ""]
    if scenario == "Server":
        found = asyncio.run(drive(server.port, request, arrivals(rate, seconds)))
    else:
        found = asyncio.run(send_in_turn(server.port, request, seconds))
    latencies = [f"{1e3 * found.quantile(q):.2f}" for q in QUANTILES]
    lost = f"{found.refused} lost" if found.refused else "0"
    return [f"{found.throughput:.0f}", *latencies, lost, ""]


async def send_in_turn(port: int, request: bytes, seconds: float) -> Outcome:
    """What becomes of requests each of which is sent when the last is answered."""
    streams, latencies = await asyncio.open_connection("127.0.0.1", port), []
    first = time.perf_counter()
    while (began := time.perf_counter()) < first + seconds:
        await answer(streams, request)
        latencies.append(time.perf_counter() - began)
    streams[1].close()
    return Outcome(latencies, 0, 0, time.perf_counter() - first, 0)
