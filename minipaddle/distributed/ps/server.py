"""A parameter server: tables, and the requests of workers.

A server is a state machine that never waits. `handle(request)` returns a Future; in a sync table
the answer of a pull may have to wait for the pushes of other workers, whose requests then complete
it. So a carrier needs no thread for each worker, and the server is the same on each carrier.

How pushes change a table is its `mode`:

- "sync": a step is the mean of one push of each worker; a pull after the push returns the result.
  k workers are one process with the batches joined.
- "async": each push is a step, at once. The server counts the steps of others between the pull of
  the values and the push of their gradient (its *staleness*).
- "geo": workers take steps by themselves, and send the change of every few of them. The server
  adds it.

A push has the number of its worker and a sequence number: a repeated one, because its answer
was lost, is acknowledged and changes nothing.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic
from typing import NamedTuple

from ...engine.core.errors import teach, value_error
from ...engine.eager.device import NUMPY
from .joining import SLOW, join, stragglers
from .journal import Journal
from .table import Table

REMEMBERED = 8
"""The number of a worker's latest steps that measure its speed."""

LOOK = 0.1
"""The seconds between two looks for workers that hang."""

LONGER = "a larger --timeout, if it is only slow"
"""The advice when a worker was waited for too long."""


class ServerLost(RuntimeError):
    """A server has died. The carrier restores it from its snapshot and log, if it has them."""


class WaitingRequest(NamedTuple):
    """A request that waits for others: whether it is ready, its answer, the workers that it waits
    for, and its own worker.
    """

    ready: Callable[[], bool]
    answer: Callable
    whom: Callable[[], list[int]]
    worker: int
    future: Future


class RowServer:
    """Server number `index` of `servers`, for `workers` workers. With a folder it has a snapshot
    and a log there (`journal.py`), and begins with their state; `anew` if a new job begins, again
    with all workers.
    """

    def __init__(self, index=0, servers=1, workers=1, folder: str | None = None, anew=True):
        self.index, self.servers, self.workers = index, servers, workers
        self.lock, self.ended = threading.RLock(), threading.Event()
        self.tables: dict[str, Table] = {}
        self.pending: dict[str, dict[int, deque]] = {}  # pushes that wait for other workers
        self.waiting: list[WaitingRequest] = []
        self.heard = dict.fromkeys(range(workers), monotonic())  # times of the last requests
        self.looked = 0.0
        self.stopped: set[int] = set()
        self.met: dict[int, int] = {}  # the last barrier of each worker
        self.answered: dict[int, float] = {}  # the time when a worker began a step
        self.seconds = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self.staleness = defaultdict(lambda: [0, 0, 0])  # pushes, sum, largest
        self.journal, self.dead = None, False
        if folder is not None:
            self.restore(Journal(folder, index), anew)

    def handle(self, request: dict) -> Future:
        """Handle a request; return the Future of its answer or error."""
        future, worker = Future(), request.get("worker")
        with self.lock:
            self.heard[worker] = monotonic()
            try:
                if self.dead:
                    raise ServerLost(f"server {self.index} has died")
                do, arguments = request["do"], {k: v for k, v in request.items() if k != "do"}
                if do not in REQUESTS:
                    raise value_error(f"a server was asked to {do!r}", expected=str([*REQUESTS]))
                answer = REQUESTS[do](self, **arguments)
                if isinstance(answer, tuple):
                    self.waiting.append(WaitingRequest(*answer, worker, future))
                else:
                    future.set_result(answer)
                self.answer()
            except Exception as error:
                future.set_exception(error)
        return future

    def answer(self) -> None:
        """Answer the requests that are ready."""
        ready = [w for w in self.waiting if w.ready()]
        self.waiting = [w for w in self.waiting if w not in ready]
        for each in ready:
            self.heard[each.worker] = monotonic()
            each.future.set_result(each.answer())

    def table(self, name: str) -> Table:
        """The table of a name."""
        if name not in self.tables:
            raise value_error(f"no table {name!r}", expected=f"one of {sorted(self.tables)}")
        return self.tables[name]

    def log(self, do: str, **request) -> None:
        """Log a request before it is handled; write a snapshot first if one is due."""
        if self.journal is not None:
            if self.journal.is_due():
                self.snapshot()
            self.journal.append({"do": do, **request})

    # ---- requests ----------------------------------------------------------------------------

    def create(self, table: str, config: dict, worker: int) -> dict:
        """Make a table, or find one that exists; return its config, the last push of the worker,
        and the number of rows.
        """
        if table not in self.tables:
            self.log("create", table=table, config=config, worker=worker)
            self.tables[table] = Table(config)
            self.pending[table] = defaultdict(deque)
        known = self.tables[table]
        for key, value in known.config.items():
            if key != "base" and config[key] != value:
                raise value_error(
                    f"worker {worker} has the table {table!r} with {key}={config[key]!r}",
                    expected=f"{value!r}, as it was made",
                    hint="run all workers on one script, or take a new folder for the servers",
                )
        done = known.done.get(worker, 0)
        return {"config": known.config, "done": done, "rows": len(known)}

    def write(self, table: str, ids, rows) -> None:
        """Set rows, all different."""
        self.table(table).check(ids, rows)
        self.log("write", table=table, ids=ids, rows=rows)
        self.table(table).write(ids, rows)

    def pull(self, table: str, worker: int, sequence: int, ids):
        """Rows, and the number of their pushes. In a sync table they have the `sequence` steps of
        the worker's own pushes.
        """
        known = self.table(table)

        def ready() -> bool:
            return known.config["mode"] != "sync" or known.version >= sequence

        def answer() -> dict:
            self.answered.setdefault(worker, monotonic())
            return {"rows": known.read(ids), "version": known.version}

        return ready, answer, lambda: self.find_behind(table)

    def push(self, table: str, worker: int, sequence: int, **push) -> None:
        """Take a worker's gradients (`rows`) of rows (`ids`), which were seen `counts` times, for
        values with `version` pushes, at the learning rate `lr`; in a geo table the changes to add.
        """
        known = self.table(table)
        done = known.done.get(worker, 0)
        if sequence <= done:
            return  # it is a repetition: its answer was lost
        if sequence != done + 1:
            raise value_error(f"push {sequence} of worker {worker} to {table!r}", f"{done + 1}")
        known.check(push["ids"], push["rows"])
        self.log("push", table=table, worker=worker, sequence=sequence, **push)
        known.done[worker] = sequence
        self.note(worker, known, push["version"])
        mode = known.config["mode"]
        if mode == "geo":
            known.add(push["ids"], push["rows"])
        elif mode == "async":
            known.update(push["ids"], push["counts"], push["rows"], push["lr"])
        else:
            self.pending[table][worker].append(push)
            self.step(table)

    def step(self, table: str) -> None:
        """Take the steps of a sync table with a push of every worker that has not stopped."""
        pending = self.pending[table]
        while any(pending.values()) and not self.find_behind(table):
            pushes = [pending[w].popleft() for w in sorted(pending) if pending[w]]
            self.tables[table].update(*join(pushes), pushes[0]["lr"])

    def find_behind(self, table: str) -> list[int]:
        """The workers whose pushes the next step of a sync table waits for."""
        pushed = {w for w, pushes in self.pending[table].items() if pushes}
        return sorted({*range(self.workers)} - self.stopped - pushed)

    def note(self, worker: int, table: Table, version: int) -> None:
        """Note the staleness of a push, and the time that its worker has computed."""
        if table.config["mode"] == "async":
            stale, known = table.version - version, self.staleness[worker]
            known[:] = known[0] + 1, known[1] + stale, max(known[2], stale)
        begun = self.answered.pop(worker, None)
        if begun is not None:
            self.seconds[worker].append(monotonic() - begun)

    def barrier(self, worker: int, number: int):
        """Wait until every worker that has not stopped is at its barrier of this number."""
        self.answered.pop(worker, None)  # it waits, and computes no step
        self.log("barrier", worker=worker, number=number)
        self.met[worker] = max(number, self.met.get(worker, 0))
        arrived = lambda w: self.met.get(w, 0) >= number or w in self.stopped
        missing = lambda: [w for w in range(self.workers) if not arrived(w)]
        return lambda: not missing(), lambda: None, missing

    def awaited(self) -> list[int]:
        """The workers for whose pushes, or barriers, others wait; in rising order."""
        return sorted({w for each in self.waiting for w in each.whom()})

    def check_workers(self, timeout: float) -> None:
        """Raise TimeoutError that names workers that hang: for `timeout` seconds they sent no
        request, while others did, wait, or have stopped. It looks once in `LOOK` seconds.
        """
        now = monotonic()
        if now < self.looked + LOOK:
            return
        with self.lock:
            self.looked, waits = now, {each.worker for each in self.waiting}
            known = {*range(self.workers)} - self.stopped - waits
            silent = sorted(w for w in known if now - self.heard[w] > timeout)
        if 0 < len(silent) < self.workers:
            who = " and ".join(f"worker {w}" for w in silent)
            what = f"{who} asked server {self.index} for nothing for {timeout:g} s"
            raise TimeoutError(teach(what, hint=LONGER))

    def stop(self, worker: int) -> None:
        """Stop waiting for this worker. After the last one the server has ended."""
        self.log("stop", worker=worker)
        self.stopped.add(worker)
        self.answered.pop(worker, None)
        for name in self.tables:
            self.step(name)
        if len(self.stopped) == self.workers:
            self.ended.set()

    def report(self) -> dict:
        """The server's statistics of each worker and each table."""
        now, seconds = monotonic(), {w: [*s] for w, s in self.seconds.items()}
        for worker, begun in self.answered.items():  # a step that has not ended may be slow already
            if now - begun > SLOW * NUMPY.median(seconds.get(worker, [0.0])):
                seconds[worker] = [now - begun]
        staleness = {w: [s / n, most] for w, (n, s, most) in self.staleness.items()}
        rows = {name: len(t) for name, t in self.tables.items()}
        return {
            "stragglers": stragglers(seconds), "seconds": seconds, "staleness": staleness,
            "rows": rows, "steps": {name: t.version for name, t in self.tables.items()},
        }  # fmt: skip

    def rows(self, table: str) -> dict:
        """All rows of a table on this server, in rising order."""
        known = self.table(table)
        ids = NUMPY.fromiter(sorted(known.index), "int64", len(known))
        return {"ids": ids, "rows": known.read(ids)}

    # ---- snapshots ---------------------------------------------------------------------------

    def snapshot(self, folder: str | None = None) -> None:
        """Write a snapshot, in its own folder or another; the log there begins with the pushes that
        wait for others.
        """
        journal = self.journal
        if folder is not None:
            journal = Journal(folder, self.index)
            journal.restore()  # the files of an earlier snapshot count until the new ones exist
        if journal is None:
            raise value_error(
                "a snapshot of a server without a folder", hint='fleet.init_server("folder")'
            )
        waiting, tables = [], {name: t.state() for name, t in self.tables.items()}
        for name, of_workers in self.pending.items():
            for worker, pushes in of_workers.items():
                done = self.tables[name].done.get(worker, 0) - len(pushes)
                tables[name]["done"][worker] = done
                waiting += [
                    {"do": "push", "table": name, "worker": worker, "sequence": k, **push}
                    for k, push in enumerate(pushes, done + 1)
                ]
        size = {"index": self.index, "servers": self.servers, "workers": self.workers}
        state = size | {"stopped": sorted(self.stopped), "met": self.met, "tables": tables}
        journal.snapshot(state, waiting)
        if folder is not None:
            journal.close()

    def restore(self, journal: Journal, anew: bool) -> None:
        """Restore the state of a snapshot and a log."""
        state, requests = journal.restore()
        if state is not None:
            if (state["index"], state["servers"]) != (self.index, self.servers):
                raise value_error(
                    f"{journal.folder} has server {state['index']} of {state['servers']}",
                    expected=f"server {self.index} of {self.servers}",
                    hint="start as many servers as before: rows are hashed over all of them",
                )
            self.tables = {name: Table.restore(s) for name, s in state["tables"].items()}
            self.pending = {name: defaultdict(deque) for name in self.tables}
            self.stopped, self.met = {*state["stopped"]}, state.get("met", {})
        for request in requests:
            answer = self.handle(request)
            if answer.done():  # a barrier waits for other workers
                answer.result()
        self.journal = journal
        if anew and (self.tables or self.met or self.stopped):
            self.stopped.clear()
            self.met.clear()
            self.ended.clear()
            self.snapshot()

    def die(self) -> None:
        """End like a killed process: requests that wait for an answer get an error."""
        with self.lock:
            self.dead, waiting = True, self.waiting
            if self.journal is not None:
                self.journal.close()
            for each in waiting:
                each.future.set_exception(ServerLost(f"server {self.index} has died"))


REQUESTS = {
    name: getattr(RowServer, name)
    for name in (
        "create", "write", "pull", "push", "barrier", "awaited", "stop", "report", "rows",
        "snapshot",
    )
}  # fmt: skip
"""The requests of workers."""
