"""A table on a server: rows that exist once they were changed, and the states of an optimizer.

A table is described by a dict of numbers and strings, its `config`, which workers send to servers:

- `rows`, `width`, `dtype`: the number of rows, and the length of a row
- `recipe`, `base`: the distribution of first values (`placement.py`)
- `optimizer`: {"kind": "Adam", "options": {…}, "decay": None or ["L2Decay", 0.1]}
- `factor`: a factor of the learning rate
- `entry`: None, or [kind, number]: when a row is let in (`entries.py`)
- `mode`: "sync", "async" or "geo" (`server.py`)
"""

from __future__ import annotations

from itertools import repeat
from types import SimpleNamespace

from ... import optimizer as optimizers
from ... import regularizer
from ...core.casting import casting
from ...engine.core.dispatch import Recording
from ...engine.core.errors import not_supported, value_error
from ...engine.core.slots import slot
from ...engine.eager.device import NUMPY
from ...engine.eager.tensor import wrap
from .entries import admits
from .placement import drawer, first_rows

KINDS = "SGD", "Momentum", "Adam", "AdamW", "Adagrad", "Adamax", "Adadelta", "RMSProp"
"""Optimizers whose rule computes every element by itself: any part of a parameter can be a row."""

DECAYS = {kind.__name__: kind for kind in (regularizer.L1Decay, regularizer.L2Decay)}


def describe(optimizer, name: str) -> dict:
    """Describe an optimizer as data, with which a server applies its rule to a table."""
    rule = type(optimizer).__name__
    if rule not in KINDS or type(optimizer) is not getattr(optimizers, rule):
        raise not_supported(
            f"{rule} on a parameter server", expected=", ".join(KINDS),
            hint="its rule has to compute every element of a parameter by itself",
        )  # fmt: skip
    if len(optimizer._param_groups) > 1:
        raise not_supported("groups of parameters on a parameter server", hint="one group")
    (group,) = optimizer._param_groups
    if group.grad_clip is not None:
        raise not_supported(
            "grad_clip on a parameter server: no server sees all gradients",
            hint="clip the loss, or use a smaller learning rate",
        )
    if getattr(group, "rescale_grad", 1.0) != 1.0:
        raise not_supported("rescale_grad on a parameter server", hint="scale the loss")
    settings = vars(optimizer.options_for(SimpleNamespace(name=name), group))
    known = {*optimizer.options, "decay", "ratio"}
    plain = (int, float, bool, type(None))
    options = {k: v for k, v in settings.items() if k in known and type(v) in plain}
    decay = group.weight_decay
    decay = None if decay is None else [type(decay).__name__, decay.coeff]
    return {"kind": rule, "options": options, "decay": decay}


@slot("ps.apply")
def apply(table, ids, gradients, lr) -> None:
    """Change the rows `ids`, all different, by one step of the optimizer: at once, without waiting
    for other workers.

    `table.places(ids)` makes the rows that do not exist yet. `table.arrays` are the values
    [places, width] and the states of the optimizer; `table.rule(gradients, lr, values, *states)`
    gives new ones.
    """
    at = table.places(ids)
    old = [array[at] for array in table.arrays]
    for array, new in zip(table.arrays, table.rule(gradients, lr, *old), strict=True):
        array[at] = new


class Table:
    """The rows of one table on one server; see the module."""

    def __init__(self, config: dict):
        self.config, self.width, self.dtype = config, config["width"], config["dtype"]
        how = config["optimizer"]
        if how["kind"] not in KINDS:
            raise value_error(f"a table with the optimizer {how['kind']!r}", expected=str(KINDS))
        self.kind = getattr(optimizers, how["kind"])
        self.options = SimpleNamespace(**how["options"])
        self.decay = how["decay"] and DECAYS[how["decay"][0]](how["decay"][1])
        self.states = self.kind.states(self.options, (self.width,))
        self.draw = drawer(config["recipe"], config["base"], self.dtype)
        self.index: dict[int, int] = {}  # the place of each row that exists
        self.counts: dict[int, int] = {}  # the times that each row that is not let in yet was seen
        widths = [self.width, *(self.width if shape else 1 for shape, _ in self.states.values())]
        self.arrays = [NUMPY.zeros((0, n), self.dtype) for n in widths]
        self.version = 0  # the number of pushes, or steps of all workers
        self.done: dict[int, int] = {}  # the last acknowledged push of each worker

    def __len__(self) -> int:
        return len(self.index)

    def find(self, ids):
        """The place of each row, -1 if it does not exist."""
        places = map(self.index.get, ids.tolist(), repeat(-1))
        return NUMPY.fromiter(places, "int64", len(ids))

    def places(self, ids):
        """The place of each row, all different; make those that do not exist."""
        at = self.find(ids)
        new = at < 0
        if new.any():
            first, count = len(self.index), int(new.sum())
            at[new] = NUMPY.arange(first, first + count)
            self.index.update(zip(ids[new].tolist(), at[new].tolist(), strict=True))
            if first + count > len(self.arrays[0]):
                spare = max(first + count, 2 * len(self.arrays[0])) - len(self.arrays[0])
                self.arrays = [
                    NUMPY.concatenate([a, NUMPY.empty((spare, a.shape[1]), a.dtype)])
                    for a in self.arrays
                ]
            values, *states = self.arrays
            values[at[new]] = self.first(ids[new])
            for array, (_, value) in zip(states, self.states.values(), strict=True):
                array[at[new]] = value
        return at

    def first(self, ids):
        """The values of rows before their first change."""
        with Recording(False), casting(None):
            return first_rows(ids, self.width, self.draw)

    def read(self, ids):
        """The values of rows, [n, width]. Reading makes no row; one that an entry has not let
        in is zero.
        """
        at = self.find(ids)
        missing = at < 0
        if not missing.any():
            return self.arrays[0][at]
        rows = NUMPY.zeros((len(ids), self.width), self.dtype)
        rows[~missing] = self.arrays[0][at[~missing]]
        if self.config["entry"] is None:
            rows[missing] = self.first(ids[missing])
        return rows

    def write(self, ids, values) -> None:
        """Set rows, all different."""
        at = self.places(ids)
        self.arrays[0][at] = values

    def update(self, ids, counts, gradients, lr) -> None:
        """Take one step for the rows that are let in."""
        self.version += 1
        if self.config["entry"] is not None:
            keep = self.let_in(ids, counts)
            ids, gradients = ids[keep], gradients[keep]
        if len(ids):
            apply(self, ids, gradients, lr * self.config["factor"])

    def add(self, ids, deltas) -> None:
        """Add a worker's own changes to rows, all different."""
        self.version += 1
        at = self.places(ids)
        self.arrays[0][at] += deltas

    def let_in(self, ids, counts):
        """The mask of rows that exist or are let in now, seen `counts` more times."""
        keep = self.find(ids) >= 0
        for k in NUMPY.flatnonzero(~keep).tolist():
            row, before = int(ids[k]), self.counts.get(int(ids[k]), 0)
            seen = before + int(counts[k])
            keep[k] = admits(self.config, row, before, seen)
            if keep[k]:
                self.counts.pop(row, None)
            else:
                self.counts[row] = seen
        return keep

    def rule(self, gradients, lr, values, *states) -> list:
        """The new values and states of rows: the optimizer's rule, on arrays."""
        p, g, *rest = map(wrap, (values, gradients, NUMPY.asarray(lr, self.dtype), *states))
        with Recording(False), casting(None):
            if self.decay:
                g = g + self.decay.gradient(p)
            return [x.array for x in self.kind.rule(self.options, p, g, *rest)]

    def check(self, ids, rows) -> None:
        """Raise ValueError for rows of other servers."""
        expected = (len(ids), self.width)
        if rows.shape != expected or rows.dtype != self.dtype or ids.dtype != "int64":
            raise value_error(
                f"rows {rows.dtype}{list(rows.shape)} for {len(ids)} ids of {ids.dtype}",
                expected=f"{self.dtype}{list(expected)}, int64",
            )

    # ---- snapshots ---------------------------------------------------------------------------

    def state(self) -> dict:
        """The state of the table for a snapshot."""
        n = len(self)
        return {
            "config": self.config, "version": self.version, "done": dict(self.done),
            "ids": NUMPY.fromiter(self.index, "int64", n), "arrays": [a[:n] for a in self.arrays],
            "counts": NUMPY.array([*self.counts.items()], "int64").reshape(-1, 2),
        }  # fmt: skip

    @classmethod
    def restore(cls, state: dict) -> Table:
        """Build a table from its state."""
        table = cls(state["config"])
        table.version, table.done = state["version"], dict(state["done"])
        ids = state["ids"].tolist()
        table.index = dict(zip(ids, range(len(ids)), strict=True))
        table.arrays = [*state["arrays"]]
        table.counts = dict(state["counts"].tolist())
        return table
