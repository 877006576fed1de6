"""`sparse_embedding`: rows of a table on the servers, in eager mode and in programs by hand.

Before a step its rows are pulled, and are an input of the computation like any other data; after it
the gradient of that input is pushed. So neither the tape nor a program knows of servers.
"""

from __future__ import annotations

from ...core.prelude import NUMPY, Tensor, current, not_supported, type_error, value_error, where
from ...engine.core.dtype import resolve
from ...engine.eager.backward import grad
from ...ir.input_spec import InputSpec
from ...nn import functional as F
from ...nn.initializer import XavierUniform, defaults
from ...nn.names import unique
from ...nn.param_attr import as_attr
from ...tensor.generator import GENERATOR
from .entries import entry_config
from .placement import recipe_of
from .session import Session, outside, session_in_use

TABLES = "MemorySparseTable", "CommonSparseTable"
"""Paddle's names of tables in memory."""


def sparse_embedding(
    input, size, padding_idx=None, is_test=False, entry=None, table_class="MemorySparseTable",
    param_attr=None, dtype="float32", slot=None,
):  # fmt: skip
    """Rows of a table of `size` [rows, columns] on the servers: ids [...] give [..., columns].

    A row takes memory from the first step on that changes it. Ids equal to `padding_idx` give zeros
    and no gradient; with `is_test` nothing is learned; `entry` says when a row is let in. Calls
    whose `param_attr` has the same name look into the same table: in eager mode it must have one.
    In a program `input` is data that is fed. `slot` is the number of the feature in Paddle's files
    and changes nothing here. Raises ValueError for ids that the table does not have.

    >>> from minipaddle.distributed import fleet
    >>> def work():  # one process: a worker, and two servers in it
    ...     fleet.init(fleet.UserDefinedRoleMaker(server_endpoints=["a", "b"]))
    ...     w = paddle.create_parameter([4, 1], "float32")
    ...     opt = fleet.distributed_optimizer(paddle.optimizer.Adam(0.1, parameters=[w]))
    ...     fleet.init_worker()
    ...     ids, name = paddle.to_tensor([1, 99_999_999]), paddle.ParamAttr(name="table")
    ...     rows = paddle.static.nn.sparse_embedding(ids, [10**8, 4], param_attr=name)
    ...     (rows @ w).sum().backward()
    ...     opt.step()
    ...     return rows.shape, [r["rows"]["table"] for r in fleet.report()]
    >>> paddle.distributed.spawn(work, nprocs=1).results
    [([2, 4], [1, 1])]
    """
    current_session = session_in_use("sparse_embedding")
    if table_class not in TABLES:
        raise not_supported(f"table_class={table_class!r}", expected=", ".join(TABLES))
    attr = as_attr(param_attr)
    if current.top.tracing and not current.top.by_hand:
        raise not_supported("sparse_embedding in to_static", hint="eager mode, or enable_static()")
    if attr.name is None and not current.top.by_hand:
        raise value_error(
            "sparse_embedding without the name of a table",
            hint='param_attr=paddle.ParamAttr(name="users"): each call would make a new table',
        )
    if input.spec.dtype.kind not in "iu":
        raise type_error(f"sparse_embedding of {input.spec}", expected="whole numbers")
    name = attr.name or unique("sparse_embedding.w")
    draw = attr.initializer or defaults["weight"] or XavierUniform()
    config = {
        "rows": int(size[0]), "width": int(size[1]), "dtype": resolve(dtype).name,
        "recipe": recipe_of(draw, tuple(size)), "factor": float(attr.learning_rate),
        "entry": entry_config(entry),
    }  # fmt: skip
    if config["entry"] and current_session.mode == "geo":
        raise not_supported("an entry with k_steps > 0", hint='a_sync_configs = {"k_steps": 0}')
    with outside():
        current_session.add_table(name, config, GENERATOR.draw)
    if padding_idx is not None and padding_idx < 0:
        padding_idx += config["rows"]
    train = not is_test and attr.trainable
    if current.top.by_hand:
        if current.top.remote is None:
            current.top.remote = RemoteStep(current_session)
        rows, places = current.top.remote.look_up(name, config, input, padding_idx, train)
    else:
        rows, places = look_up(current_session, name, input, padding_idx, train)
    out = F.embedding(places, rows)
    return out if padding_idx is None else where((input != padding_idx).unsqueeze(-1), out, 0.0)


def look_up(session: Session, name: str, ids, padding, train: bool) -> tuple[Tensor, Tensor]:
    """In eager mode: the rows of the ids, each once, and the index of each id's row."""
    different, places = NUMPY.unique(ids.numpy(), return_inverse=True)
    rows = Tensor(session.require_client().pull(name, different))
    if train and current.top.recording:
        rows.stop_gradient = False
        session.looked_up.append((name, different, rows, padding))
    return rows, Tensor(places.reshape(ids.shape))


class RemoteStep:
    """The rows that a static program needs in each run, and the gradients that it pushes."""

    def __init__(self, session: Session):
        self.session = session
        self.rows: dict[str, Tensor] = {}
        self.places: dict[str, list] = {}  # of a table: (name of the ids, name of their places)
        self.learned: dict[str, int | None] = {}  # tables that learn, and their padding
        self.gradients: list[Tensor] | None = None

    def look_up(self, table: str, config: dict, ids, padding, train: bool) -> tuple:
        """Inputs of the program in writing: the rows, and the index of each id's row."""
        top = current.top
        if top.tensors.get(ids.name) is not ids:
            raise not_supported(
                f"sparse_embedding of {ids.name or 'a result'}, which is no data of the program",
                expected="an input that paddle.static.data made",
            )
        if table not in self.rows:
            spec = InputSpec([f"{table}_rows", config["width"]], config["dtype"])
            self.rows[table] = top.data(f"{table}@rows", spec)
            self.rows[table].stop_gradient = not train
            self.places[table] = []
        known = self.places[table]
        shape = [n if isinstance(n, int) else str(n) for n in ids.shape]
        places = top.data(f"{table}@places_{len(known)}", InputSpec(shape, "int64"))
        known.append((ids.name, places.name))
        if train:
            self.learned[table] = padding
        return self.rows[table], places

    def for_test(self) -> RemoteStep:
        """The steps of a clone without training."""
        copy = RemoteStep(self.session)
        copy.rows, copy.places = dict(self.rows), {t: [*p] for t, p in self.places.items()}
        return copy

    def minimize(self, optimizer, loss, parameters, frozen) -> list:
        """Write the walk back from the loss; pairs (parameter, gradient)."""
        top = current.top
        names = {x if isinstance(x, str) else x.name for x in frozen or ()}
        trained = parameters or optimizer._parameter_list or top.trainable()
        trained = [p for p in map(top.parameter, trained) if p.name not in names]
        of_rows = [self.rows[table] for table in self.learned]
        gradients = grad([loss], [*trained, *of_rows], retain_graph=True, allow_unused=True)
        pairs = [(p, g) for p, g in zip(trained, gradients) if g is not None]
        with top.outside():
            self.session.use(optimizer, [p for p, _ in pairs])
        by_parameter = {id(p): g for p, g in pairs}
        dense = [by_parameter[id(p)] for d in self.session.dense for p in d.parameters]
        self.gradients = [*dense, *gradients[len(trained) :]]
        return pairs

    def run(self, compute, feed: dict, fetch_list: list) -> list:
        """Run the program by `compute(feed, fetch_list)`, with rows, and push gradients."""
        feed, pulled = dict(feed), {}
        for table, lookups in self.places.items():
            lookups = [(ids, places) for ids, places in lookups if ids in feed]
            id_arrays = [NUMPY.asarray(feed[ids], "int64") for ids, _ in lookups]
            if id_arrays:
                flat = NUMPY.concatenate([a.reshape(-1) for a in id_arrays])
                pulled[table], at = NUMPY.unique(flat, return_inverse=True)
                feed[f"{table}@rows"] = self.session.require_client().pull(table, pulled[table])
                for (_, name), ids in zip(lookups, id_arrays):
                    feed[name], at = at[: ids.size].reshape(ids.shape), at[ids.size :]
        if self.gradients is None:
            return compute(feed, fetch_list)
        results = compute(feed, [*fetch_list, *self.gradients])
        gradients, sparse = results[len(fetch_list) :], {}
        dense = [[gradients.pop(0) for _ in d.parameters] for d in self.session.dense]
        for (table, padding), g in zip(self.learned.items(), gradients, strict=True):
            keep = slice(None) if padding is None else pulled[table] != padding
            sparse[table] = [(pulled[table][keep], g[keep])]
        self.session.push(self.session.optimizer.get_lr(), sparse, dense)
        return results[: len(fetch_list)]
