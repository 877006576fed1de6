"""A worker's side of tables: `pull(table, ids)` and `push(table, ids, gradients, lr)`.

`Client` asks the servers of the rows, all at once. `GeoClient` has the same methods and takes its
steps on rows of its own; every `k_steps` of them it sends the change to the servers.
"""

from typing import Protocol

from ...engine.core.errors import teach, value_error
from ...engine.core.slots import slot
from ...engine.distributed.process_group import TIMEOUT
from ...engine.eager.device import NUMPY
from .joining import combine
from .placement import place
from .server import LONGER, ServerLost
from .table import Table

TRIES = 3
"""How often a request is sent to a server that dies again and again."""

ANSWER = 5.0
"""The seconds in which a server must say for whom it waits."""


class Carrier(Protocol):
    """The transport of requests and answers: threads, MPI or Ray.

    servers: the number of servers
    ask(server, request): send a request, without waiting; return an object whose `result(timeout)`
        is the answer, or raises the server's error, `ServerLost`, or TimeoutError if it is late
    recover(server): bring back a server that died, from its folder; RuntimeError if that cannot
        be done
    """

    servers: int

    def ask(self, server: int, request: dict): ...

    def recover(self, server: int) -> None: ...


class Client:
    """Worker number `worker` of `workers`."""

    def __init__(self, carrier: Carrier, worker: int = 0, workers: int = 1, timeout=TIMEOUT):
        self.carrier, self.worker, self.workers = carrier, worker, workers
        self.timeout = timeout
        self.sequence: dict[str, int] = {}  # pushes so far
        self.version: dict[str, list[int]] = {}  # of each server's rows at the last pull
        self.configs: dict[str, dict] = {}
        self.barriers = 0

    def ask(self, do: str, arguments, **common) -> list:
        """Ask all servers, each with arguments of its own; return their answers."""
        requests = [{"do": do, **common, **mine} for mine in arguments]
        answers = [self.carrier.ask(k, request) for k, request in enumerate(requests)]
        return [self.finish(k, *pair) for k, pair in enumerate(zip(requests, answers))]

    def ask_all(self, do: str, **given) -> list:
        """Ask all servers one question; return their answers."""
        return self.ask(do, [{}] * self.carrier.servers, **given)

    def finish(self, server: int, request: dict, answer):
        """Wait for the answer; bring back a server that has died, and ask it again."""
        for tries in range(TRIES + 1):
            try:
                return answer.result(self.timeout)
            except ServerLost:
                if tries == TRIES:
                    raise
                self.carrier.recover(server)
                answer = self.carrier.ask(server, request)
            except TimeoutError:
                raise self.build_late_error(server, request["do"]) from None

    def build_late_error(self, server: int, do: str) -> TimeoutError:
        """Build the error of a request without an answer in time; it names late workers."""
        try:
            awaited = self.carrier.ask(server, {"do": "awaited"}).result(ANSWER)
            others = [f"worker {w} did not come" for w in awaited if w != self.worker]
            who = " and ".join(others) or "it is busy"
        except TimeoutError:
            who = "it does not answer: stopped, or in code that is not Python"
        waited = f"worker {self.worker} waited {self.timeout:g} s for server {server} ({do}): {who}"
        return TimeoutError(teach(waited, hint=LONGER))

    def create(self, table: str, config: dict) -> bool:
        """Make a table on all servers, or use one that exists, with its own first values. Return
        whether it has no rows yet.
        """
        answers = self.ask_all("create", table=table, config=config, worker=self.worker)
        self.configs[table] = answers[0]["config"]
        self.sequence[table] = min(a["done"] for a in answers)
        self.version[table] = [0] * self.carrier.servers
        return not any(a["rows"] for a in answers)

    def check(self, table: str, ids):
        """Return ids as an array; ValueError for rows that the table does not have."""
        if table not in self.configs:
            raise value_error(f"no table {table!r}", expected=f"one of {sorted(self.configs)}")
        ids, rows = NUMPY.asarray(ids), self.configs[table]["rows"]
        if ids.ndim != 1 or (ids.dtype.kind not in "iu" and len(ids)):
            raise value_error(f"ids {ids.dtype}{list(ids.shape)}", expected="whole numbers [n]")
        if len(ids) and (ids.min() < 0 or ids.max() >= rows):
            wrong = ids[(ids < 0) | (ids >= rows)][0]
            raise value_error(
                f"row {wrong} of the table {table!r}", expected=f"0 to {rows - 1}",
                hint="take the id modulo the rows, or make the table larger",
            )  # fmt: skip
        return ids.astype("int64", copy=False)

    def parts(self, ids) -> list:
        """For each server the mask of its own ids."""
        servers = self.carrier.servers
        at = place(ids, servers)
        return [NUMPY.flatnonzero(at == k) for k in range(servers)]

    def pull(self, table: str, ids):
        """The rows `ids` [n] of a table, [n, width]."""
        ids = self.check(table, ids)
        parts = self.parts(ids)
        who = {"table": table, "worker": self.worker, "sequence": self.sequence[table]}
        answers = self.ask("pull", [{"ids": ids[part]} for part in parts], **who)
        config = self.configs[table]
        rows = NUMPY.empty((len(ids), config["width"]), config["dtype"])
        for part, answer in zip(parts, answers, strict=True):
            rows[part] = answer["rows"]
        self.version[table] = [a["version"] for a in answers]
        return rows

    def push(self, table: str, ids, gradients, lr: float) -> None:
        """Push a step with the gradients [n, width] of the rows `ids` [n], at the
        learning rate `lr`. The servers add gradients of one row. When this returns they are
        acknowledged: no death of a server loses them.
        """
        ids = self.check(table, ids)
        self.send(table, *combine(ids, NUMPY.ones(len(ids), "int64"), gradients), lr)

    def send(self, table: str, ids, counts, rows, lr: float) -> None:
        """Push rows that are all different to their servers."""
        sequence = self.sequence[table] + 1
        who = {"table": table, "worker": self.worker, "sequence": sequence, "lr": float(lr)}
        arguments = [
            {"ids": ids[part], "counts": counts[part], "rows": rows[part], "version": version}
            for part, version in zip(self.parts(ids), self.version[table], strict=True)
        ]
        self.ask("push", arguments, **who)
        self.sequence[table] = sequence

    def write(self, table: str, ids, rows) -> None:
        """Set the rows `ids` [n], all different, to [n, width]."""
        ids = self.check(table, ids)
        if len(NUMPY.unique(ids)) < len(ids):
            raise value_error(f"write to {table!r} with an id twice", expected="different ids")
        arguments = [{"ids": ids[part], "rows": rows[part]} for part in self.parts(ids)]
        self.ask("write", arguments, table=table)

    def rows(self, table: str) -> tuple:
        """(ids, rows) of all rows on a table's servers, in rising order."""
        answers = self.ask_all("rows", table=table)
        ids = NUMPY.concatenate([a["ids"] for a in answers])
        order = NUMPY.argsort(ids)
        return ids[order], NUMPY.concatenate([a["rows"] for a in answers])[order]

    def report(self) -> list[dict]:
        """The statistics of each server: `stragglers`, `seconds` of each worker's steps,
        `staleness` of each worker's pushes (mean, largest), `rows` and `steps` of each table.
        """
        return self.ask_all("report")

    def barrier(self) -> None:
        """Wait for the other workers. All servers know, so that none takes the wait for a step."""
        self.barriers += 1
        self.ask_all("barrier", worker=self.worker, number=self.barriers)

    def snapshot(self, folder: str | None = None) -> None:
        """Write snapshots of all servers, in their folder or in another."""
        self.ask_all("snapshot", folder=folder)

    def stop(self) -> None:
        """Leave: no worker waits for this one any longer."""
        self.ask_all("stop", worker=self.worker)


@slot("ps.geo_delta")
def geo_delta(local, base, workers: int):
    """The update that a worker sends after local steps changed its rows [n, width] from `base` to
    `local`: its part of the mean of all workers' changes.
    """
    return (local - base) / workers


class GeoClient(Client):
    """A worker that takes steps by itself, and exchanges the changes every `k_steps` pushes."""

    def __init__(self, client: Client, k_steps: int):
        super().__init__(client.carrier, client.worker, client.workers, client.timeout)
        self.k_steps = k_steps
        self.steps: dict[str, int] = {}
        self.own: dict[str, Table] = {}  # rows of this worker
        self.base: dict[str, Table] = {}  # the same rows at the last exchange
        self.changed: dict[str, list] = {}

    def create(self, table: str, config: dict) -> bool:
        new = super().create(table, config)
        plain = {"optimizer": {"kind": "SGD", "options": {}, "decay": None}}
        self.own[table], self.base[table] = Table(config), Table(config | plain)
        self.steps[table], self.changed[table] = 0, []
        return new

    def pull(self, table: str, ids):
        ids = self.check(table, ids)
        self.fetch(table, NUMPY.unique(ids[self.own[table].find(ids) < 0]))
        return self.own[table].read(ids)

    def fetch(self, table: str, ids) -> None:
        """Fetch rows, all different, from the servers."""
        if len(ids):
            rows = super().pull(table, ids)
            self.own[table].write(ids, rows)
            self.base[table].write(ids, rows)

    def push(self, table: str, ids, gradients, lr: float) -> None:
        ids = self.check(table, ids)
        self.pull(table, ids)
        different, counts, rows = combine(ids, NUMPY.ones(len(ids), "int64"), gradients)
        self.own[table].update(different, counts, rows, lr)
        self.changed[table].append(different)
        self.steps[table] += 1
        if self.steps[table] % self.k_steps == 0:
            self.exchange(table)

    def exchange(self, table: str) -> None:
        """Send the changes of this worker, and fetch the new rows."""
        if self.changed[table]:
            ids, local, base = self.changed[table], self.own[table], self.base[table]
            ids = NUMPY.unique(NUMPY.concatenate(ids))
            deltas = geo_delta(local.read(ids), base.read(ids), self.workers)
            self.send(table, ids, NUMPY.ones(len(ids), "int64"), deltas, 0.0)
            self.changed[table] = []
            self.fetch(table, ids)

    def stop(self) -> None:
        for table in self.own:
            self.exchange(table)
        super().stop()
