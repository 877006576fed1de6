"""What parameter servers must do, whatever carries the requests: run by each of two workers.

`python -m tests.distributed.ps_conformance mpi FOLDER` in each rank of a job runs all checks; a
worker prints a line of JSON: what went wrong in each. What is expected are closed forms.
"""

import json
import os
import sys
import threading
import time
import traceback

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.distributed import fleet
from minipaddle.distributed.ps.client import Client, GeoClient
from minipaddle.distributed.ps.session import session
from minipaddle.distributed.ps.table import describe
from minipaddle.distributed.ps.threads import Threads
from minipaddle.ops.random import stream
from tests.distributed.saying import say

WORKERS = SERVERS = 2
paddle.seed(5)
WHOLE = paddle.nn.initializer.Normal(1.0, 2.0).draw((1000, 2), "float32").numpy()
SGD = paddle.optimizer.SGD(0.1, [paddle.create_parameter([1], "float32")])


def config(mode="sync", **changes) -> dict:
    """A table of SGD whose rows begin as zeros."""
    given = {
        "rows": 1000, "width": 2, "dtype": "float32", "recipe": ["constant", 0.0], "base": 7,
        "optimizer": describe(SGD, ""), "factor": 1.0, "entry": None, "mode": mode,
    }  # fmt: skip
    return given | changes


def ones(n: int, times=1.0):
    return np.full((n, 2), times, "float32")


def first_rows_are_those_of_the_whole_table(client, kill):
    """Any server draws the rows that the initializer draws at once, in any order."""
    client.create("first", config(recipe=["normal", 1.0, 2.0], base=stream(5, 1)))
    ids = np.array([[999, 0, 17], [17, 3, 998]])[client.worker]
    np.testing.assert_array_equal(client.pull("first", ids), WHOLE[ids])
    client.barrier()
    assert {r["rows"]["first"] for r in client.report()} == {0}  # reading makes no row


def a_sync_step_is_the_mean_of_all_workers(client, kill):
    """Who pulls after his push has the step of all; of a row that comes twice both count."""
    client.create("sync", config())
    for step in range(1, 4):
        ids = [[1, 2, 2], [2, 3, 3]][client.worker]
        client.push("sync", ids, ones(3), 0.5)
        expected = -0.5 * step * np.array([1, 3, 2]) / 2
        np.testing.assert_allclose(client.pull("sync", [1, 2, 3])[:, 0], expected, rtol=1e-6)
    client.push("sync", [], ones(0), 0.5)  # a worker without rows takes part in the step
    client.barrier()
    assert {r["steps"]["sync"] for r in client.report()} == {4}


def an_async_push_is_a_step(client, kill):
    client.create("async", config("async"))
    for _ in range(3):
        client.push("async", [1, 2], ones(2, 1 + client.worker), 0.5)
    client.barrier()
    np.testing.assert_allclose(client.pull("async", [1, 2]), ones(2, -0.5 * 3 * 3))


def staleness_is_counted(client, kill):
    """Worker 1 computes a gradient while worker 0 takes three steps."""
    client.create("stale", config("async"))
    before = [r["staleness"].get(1, [0, 0])[1] for r in client.report()]
    client.pull("stale", [1])
    client.barrier()
    if client.worker == 0:
        for _ in range(3):
            client.pull("stale", [1])
            client.push("stale", [1], ones(1), 0.1)
    client.barrier()
    if client.worker == 1:
        client.push("stale", [1], ones(1), 0.1)
        found = [r["staleness"][1][1] for r in client.report()]
        assert found == [max(3, b) for b in before]
    client.barrier()


def geo_adds_up_what_workers_changed(client, kill):
    """Two steps alone, then half of what each changed is added; then both have the sum."""
    geo = GeoClient(client, 2)
    geo.create("geo", config("geo"))
    geo.push("geo", [1, 5], ones(2, 1 + client.worker), 0.5)
    np.testing.assert_allclose(geo.pull("geo", [1]), ones(1, -0.5 * (1 + client.worker)))
    client.barrier()
    assert {r["rows"]["geo"] for r in client.report()} == {0}
    client.barrier()
    geo.push("geo", [1], ones(1, 1 + client.worker), 0.5)
    client.barrier()
    first = Client(client.carrier, client.worker, WORKERS)
    first.create("geo", config("geo"))
    np.testing.assert_allclose(first.pull("geo", [1, 5])[:, 0], [-0.5 * 2 * 3 / 2, -0.5 * 3 / 2])


def a_push_that_comes_again_changes_nothing(client, kill):
    client.create("once", config("async"))
    for _ in range(3):
        client.push("once", [4], ones(1), 1.0)
        client.sequence["once"] -= 1
        client.push("once", [4], ones(1), 1.0)
    client.barrier()
    np.testing.assert_allclose(client.pull("once", [4]), ones(1, -3.0 * WORKERS))
    client.sequence["once"] += 1
    with pytest.raises(ValueError, match=r"push 5 of worker . to 'once'(?s:.*)4"):
        client.push("once", [4], ones(1), 1.0)


def errors_reach_the_worker(client, kill):
    """And the servers go on."""
    client.create("errors", config())
    with pytest.raises(ValueError, match=r"row 1000 of the table 'errors'(?s:.*)0 to 999"):
        client.pull("errors", [1000])
    with pytest.raises(ValueError, match="row -1 of"):
        client.push("errors", [-1], ones(1), 0.1)
    with pytest.raises(ValueError, match=r"with width=3(?s:.*)2, as it was made"):
        client.create("errors", config(width=3))
    with pytest.raises(ValueError, match=r"rows float64\[1, 2\] for 1 ids"):
        client.carrier.ask(0, {
            "do": "write", "table": "errors", "ids": np.array([1]), "rows": np.ones((1, 2)),
        }).result(60)  # fmt: skip
    with pytest.raises(ValueError, match="asked to 'restore'"):
        client.ask_all("restore")
    np.testing.assert_array_equal(client.pull("errors", [1]), ones(1, 0.0))


def a_row_enters_when_it_was_seen_often(client, kill):
    client.create("entry", config(entry=["count", 5], recipe=["constant", 8.0]))
    for _ in range(2):  # twice by each worker in each step, row 2 once by one
        client.push("entry", [1, 1, *[2] * client.worker], ones(2 + client.worker), 0.5)
    found = client.pull("entry", [1, 2])
    # 4 occurrences of row 1 in the first step, 8 after the second: that one changes it
    np.testing.assert_allclose(found[:, 0], [8.0 - 0.5 * 2, 0.0])


def ten_to_the_eighth_rows(client, kill):
    """A server holds the rows that were pushed, and no other."""
    client.create("large", config(rows=10**8))
    rng = np.random.default_rng(client.worker)
    for _ in range(2):
        ids = rng.integers(0, 10**8, 500)
        client.pull("large", ids)
        client.push("large", ids, ones(500), 0.1)
    client.barrier()
    ids, rows = client.rows("large")
    drawn = [np.random.default_rng(w).integers(0, 10**8, 1000) for w in range(WORKERS)]
    np.testing.assert_array_equal(ids, np.unique(np.concatenate(drawn)))
    sizes = [r["rows"]["large"] for r in client.report()]
    assert sum(sizes) == len(ids) == len(rows)
    assert min(sizes) > 0.9 * len(ids) / len(sizes)  # spread evenly


def a_straggler_is_seen(client, kill):
    client.create("slow", config())
    for _ in range(8):
        client.pull("slow", [1])
        time.sleep(0.25 if client.worker == 1 else 0.001)
        client.push("slow", [1], ones(1), 0.1)
    client.pull("slow", [1])
    client.barrier()
    assert all(r["stragglers"] == [1] for r in client.report()), client.report()
    client.barrier()


def nothing_acknowledged_is_lost(client, kill):
    """Servers die while a push waits there for worker 1: it is in the log, in a snapshot, in the
    log after a snapshot.
    """
    client.create("safe", config(recipe=["uniform", -1.0, 1.0]))
    ids = np.arange(40)
    first = client.pull("safe", ids)
    for step in range(1, 4):
        if client.worker == 0:
            client.push("safe", ids, ones(40), 0.5)
            if step == 2:
                client.snapshot()
            if kill is not None:
                kill(step % client.carrier.servers)
        client.barrier()
        if client.worker == 1:
            client.push("safe", ids, ones(40), 0.5)
        np.testing.assert_allclose(client.pull("safe", ids), first - 0.5 * step, rtol=1e-5)
    client.barrier()


CHECKS = {f.__name__: f for f in [
    first_rows_are_those_of_the_whole_table, a_sync_step_is_the_mean_of_all_workers,
    an_async_push_is_a_step, staleness_is_counted, geo_adds_up_what_workers_changed,
    a_push_that_comes_again_changes_nothing, errors_reach_the_worker,
    a_row_enters_when_it_was_seen_often, ten_to_the_eighth_rows, a_straggler_is_seen,
    nothing_acknowledged_is_lost,
]}  # fmt: skip


def run(carrier, worker: int, kill=None) -> dict[str, str]:
    """What went wrong in each check, as this worker sees it."""
    client, found = Client(carrier, worker, WORKERS, timeout=120), {}
    for name, check in CHECKS.items():
        try:
            check(client, kill)
            found[name] = ""
        except Exception:
            found[name] = traceback.format_exc()
            break  # the workers may be apart now
    client.stop()
    return found


def in_threads(carrier, kill) -> list[dict]:
    """Both workers as threads of this process."""
    found: list[dict] = [{}] * WORKERS

    def work(worker: int) -> None:
        found[worker] = run(carrier, worker, kill)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def on_threads(folder: str) -> list[dict]:
    carrier = Threads(SERVERS, WORKERS, folder)
    return in_threads(carrier, carrier.kill)


def on_mpi(folder: str) -> list[dict]:
    fleet.init()
    if fleet.is_server():
        fleet.init_server(folder)
        fleet.run_server()
        return []
    return [run(session.now.carrier, fleet.worker_index())]


def dying(folder: str) -> None:
    """A job of a server and a worker that pushes; after the fifth push somebody kills the server.
    In the next job the worker finds the five pushes.
    """
    fleet.init()
    if fleet.is_server():
        with open(f"{folder}/pid", "w") as file:
            file.write(str(os.getpid()))
        fleet.init_server(folder)
        return fleet.run_server()
    client = Client(session.now.carrier, 0, 1, timeout=30)
    client.create("t", config())
    done = client.sequence["t"]
    say(f"pushes {done}, {client.pull('t', [3]).tolist()}")
    for _ in range(5):
        client.push("t", [3], ones(1), 1.0)
    if done == 0:
        with open(f"{folder}/pid") as file:
            os.kill(int(file.read()), 9)
        client.pull("t", [3])
    client.stop()


if __name__ == "__main__":
    carriers = {"mpi": on_mpi, "dying": dying}
    for results in carriers[sys.argv[1]](sys.argv[2]) or []:
        say(json.dumps(results))
