"""One rank of a job with parameter servers: the state of `fleet` between its calls.

The parameters of a model are tables too (*dense* ones): all that have the same update are
concatenated and cut into rows, which are spread over the servers like any others.
"""

from __future__ import annotations

import json
from contextlib import nullcontext

from ...core.prelude import NUMPY, current, not_supported, per_rank, runtime_error, value_error
from ...optimizer.groups import make_regularizer
from .client import Client, GeoClient
from .table import describe

DENSE_WIDTH = 1024
"""Elements of a row of a dense table, at most."""

session = per_rank(None)
"""The `Session` of `fleet.init`, None before it or in a collective job."""


def session_in_use(what: str) -> Session:
    """The session; RuntimeError before `fleet.init`."""
    if session.now is None:
        raise runtime_error(f"{what} before fleet.init", expected="fleet.init(role)")
    return session.now


def outside():
    """A context that writes no program."""
    return current.top.outside() if current.top.by_hand else nullcontext()


class Dense:
    """Parameters as the rows of one table."""

    def __init__(self, name: str, parameters: list, config: dict):
        self.name, self.parameters = name, parameters
        self.sizes = [p.spec.size for p in parameters]
        total = sum(self.sizes)
        width = min(DENSE_WIDTH, total)
        self.shape = -(-total // width), width
        self.ids = NUMPY.arange(self.shape[0])
        self.config = config | {"rows": self.shape[0], "width": width}

    def rows(self, arrays):
        """Cut arrays of the parameters' shapes into rows; the last one ends with zeros."""
        flat = NUMPY.zeros(self.shape, self.config["dtype"]).reshape(-1)
        flat[: sum(self.sizes)] = NUMPY.concatenate([a.reshape(-1) for a in arrays])
        return flat.reshape(self.shape)

    def assign(self, rows) -> None:
        """Assign the values of rows to the parameters."""
        ends = NUMPY.cumsum(self.sizes)
        for p, part in zip(self.parameters, NUMPY.split(rows.reshape(-1), ends), strict=False):
            p.set_value(part.reshape(p.spec.shape))


class Session:
    """The tables, the optimizer, and, after `connect`, the client of this rank."""

    def __init__(self, role, strategy):
        self.role, self.strategy = role, strategy
        self.folder, self.carrier, self.client = None, None, None
        self.sparse: dict[str, dict] = {}  # the configs of tables of embeddings
        self.dense: list[Dense] = []
        self.optimizer = None
        self.looked_up: list[tuple] = []  # (table, ids, rows, padding) since the last step

    @property
    def mode(self) -> str:
        """The mode of tables: `sync`, `async` or `geo`."""
        if not self.strategy.a_sync:
            return "sync"
        return "geo" if self.strategy.a_sync_configs["k_steps"] > 0 else "async"

    def require_client(self) -> Client:
        """The client; RuntimeError before `fleet.init_worker`."""
        if self.client is None:
            raise runtime_error("rows of a table before fleet.init_worker()")
        return self.client

    # ---- before the start --------------------------------------------------------------------

    def add_table(self, name: str, config: dict, draw_base) -> None:
        """Add a table of embeddings; calls with one name mean one table."""
        known = self.sparse.get(name)
        if known is None:
            self.sparse[name] = config | {"base": draw_base()}
            if self.client is not None:
                self.create_sparse(self.client, name)
        elif any(known[k] != v for k, v in config.items()):
            raise value_error(f"the table {name!r} with {config}", expected=str(known))

    def create_sparse(self, client: Client, name: str) -> None:
        """Make a table of embeddings on all servers."""
        how = describe(self.optimizer, name)
        client.create(name, self.sparse[name] | {"optimizer": how, "mode": self.mode})

    def use(self, optimizer, parameters: list) -> None:
        """Hand the steps of an optimizer to the servers, with parameters of the model."""
        if self.optimizer is not None and self.optimizer is not optimizer:
            raise not_supported("a second optimizer with parameter servers", hint="one of them")
        self.optimizer, groups = optimizer, {}
        for p in parameters:
            how = describe(optimizer, p.name)
            regularizer = make_regularizer(getattr(p, "regularizer", None))
            if regularizer is not None:
                how["decay"] = [type(regularizer).__name__, regularizer.coeff]
            key = [how, p.optimize_attr["learning_rate"], p.spec.dtype.name]
            if key[2] not in ("float32", "float64"):
                raise not_supported(f"a parameter of {key[2]} on a server", expected="float32")
            groups.setdefault(json.dumps(key), []).append(p)
        self.dense = []
        for k, (key, members) in enumerate(groups.items()):
            how, factor, dtype = json.loads(key)
            common = {"recipe": ["constant", 0.0], "base": 0, "entry": None, "mode": self.mode}
            config = common | {"optimizer": how, "factor": factor, "dtype": dtype}
            self.dense.append(Dense(f"dense.{k}", members, config))

    def connect(self, carrier, timeout: float) -> None:
        """Connect a worker: make the tables, or find those of an earlier job, and take the
        parameters of worker 0.
        """
        if self.optimizer is None:
            raise runtime_error(
                "fleet.init_worker() without an optimizer",
                hint="fleet.distributed_optimizer(optimizer) first; in a program its minimize",
            )
        client = Client(carrier, self.role.current_id, self.role.workers, timeout)
        if self.mode == "geo":
            client = GeoClient(client, self.strategy.a_sync_configs["k_steps"])
        if client.worker == 0:
            self.create(client)
        client.barrier()
        if client.worker != 0:
            self.create(client)
        self.client = client
        self.refresh()

    def create(self, client: Client) -> None:
        """Make all tables on the servers."""
        for name in self.sparse:
            self.create_sparse(client, name)
        with outside():
            for dense in self.dense:
                new = client.create(dense.name, dense.config)
                if new and client.worker == 0:
                    values = dense.rows([p.numpy() for p in dense.parameters])
                    client.write(dense.name, dense.ids, values)

    # ---- steps -------------------------------------------------------------------------------

    def push(self, lr: float, sparse: dict, dense: list) -> None:
        """Push the gradients of a step: {table: [(ids, gradients), …]}, and for each dense table
        the gradients of its parameters. Then pull the new parameters.
        """
        client = self.require_client()
        for name, config in self.sparse.items():
            parts = sparse.get(name, [])
            empty = NUMPY.zeros(0, "int64"), NUMPY.zeros((0, config["width"]), config["dtype"])
            if parts or self.mode == "sync":
                ids, rows = map(NUMPY.concatenate, zip(empty, *parts))
                client.push(name, ids, rows, lr)
        for table, gradients in zip(self.dense, dense, strict=True):
            client.push(table.name, table.ids, table.rows(gradients), lr)
        self.refresh()

    def refresh(self) -> None:
        """Pull the parameters of the model from the servers."""
        with outside():
            for dense in self.dense:
                dense.assign(self.client.pull(dense.name, dense.ids))


class ServerOptimizer:
    """An optimizer whose steps the servers take; all else is the optimizer's own."""

    def __init__(self, inner, session: Session):
        self.inner, self.session = inner, session
        if not current.top.by_hand:
            session.use(inner, [p for p in inner._parameter_list if not p.stop_gradient])

    def __getattr__(self, name: str):
        return getattr(self.inner, name)

    def step(self) -> None:
        """Push the gradients of this step; then pull the parameters."""
        sparse: dict[str, list] = {}
        for table, ids, rows, padding in self.session.looked_up:
            if rows.grad is not None:
                keep = slice(None) if padding is None else ids != padding
                part = ids[keep], rows.grad.numpy()[keep]
                sparse.setdefault(table, []).append(part)
        self.session.looked_up = []
        dense = [[gradient_of(p) for p in d.parameters] for d in self.session.dense]
        self.session.push(self.inner.get_lr(), sparse, dense)

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None) -> tuple:
        """`step()` after `loss.backward()`; in static mode write the walk back, whose gradients
        each run pushes. Returns ([], [(parameter, gradient)]).
        """
        if current.top.by_hand:
            return [], current.top.remote.minimize(self.inner, loss, parameters, no_grad_set)
        pairs = [(p, p.grad) for d in self.session.dense for p in d.parameters]
        self.step()
        return [], pairs


def gradient_of(p):
    """The gradient of a parameter as an array; RuntimeError if it has none."""
    if p.grad is None:
        raise runtime_error(
            f"step() with a parameter {p.name!r} that has no gradient",
            hint="leave it out of the optimizer's parameters: a server updates all of them",
        )
    return p.grad.numpy()
