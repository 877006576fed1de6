"""Gradients of tables: numbers of rows and their values, since all other rows are zero.

A batch looks up few rows of a table. Its gradient as an array is as large as the table; as rows it
is as large as the batch, and a step that leaves a row without gradient as it is touches these rows
alone. Source: Paddle's SelectedRows; Abadi et al., "TensorFlow", 2016, section 4.2.
"""

from __future__ import annotations

from functools import partial

from ..engine.core.dispatch import current, interpreter
from ..engine.core.errors import runtime_error
from ..engine.core.op import OPS
from ..engine.core.record import Spec
from ..engine.eager.device import NUMPY, module_of
from ..engine.eager.tensor import Tensor
from ..engine.ir.builder import SymbolicArray
from ..engine.ops import gather
from ..engine.ops.elementwise import where
from ..engine.ops.movement import concat, reshape
from ..engine.passes.decompose import RULES
from ..engine.passes.registry import LOOKS_FOR
from ..engine.sharding.array import sharded
from . import labels
from .scatter import equal_places


class WholeTable(Tensor):
    """The gradient of a table as an array: which rows it names is not known any more, because a
    captured function began or ended with it.
    """

    @staticmethod
    def outside(array) -> WholeTable:
        """The gradient that a run leaves."""
        g = WholeTable.__new__(WholeTable)
        g.array = array
        return g

    def __add__(self, other):
        y = super().__add__(other)
        return WholeTable.replace(self, y) if isinstance(other, WholeTable) else y

    def average_over_ranks(self, **how) -> WholeTable:
        return WholeTable.replace(self, super().average_over_ranks(**how))

    def replace(self, y: Tensor) -> WholeTable:
        """Another gradient of the same table."""
        y.__class__ = WholeTable
        return y


class RowGradient(WholeTable):
    """The gradient of a table: row index[k] has the sum of all such values[k], other rows are zero.

    index: whole numbers of [n]; values: [n, ...]; rows: how many the table has; place: None, or for
    each k a place of the same row, which has the sum of that row while the others have zeros.

    To all that does not ask for rows it is a tensor of the table's shape.
    """

    def __init__(self, index: Tensor, values: Tensor, rows: int, place: Tensor | None = None):
        self.index, self.values, self.rows, self.place_of_sum = index, values, rows, place
        self.dense = None

    @property
    def spec(self) -> Spec:
        values = self.values.spec
        return Spec((self.rows, *values.shape[1:]), values.dtype)

    @property
    def array(self):
        """The values of all rows. They cannot be written: a write makes another array."""
        if self.dense is not None:
            return self.dense
        symbolic = type(self.values.array) is SymbolicArray
        with interpreter(current.top if symbolic else current.bottom()):
            shape = self.spec.shape
            y = gather.scatter_sum(self.values, self.index, shape=shape, axis=0).array
        if not symbolic:
            y.flags.writeable = False
            self.dense = y
        return y

    @array.setter
    def array(self, array) -> None:
        self.dense, self.index = array, None

    @property
    def row_sparse(self) -> bool:
        """Whether its rows are known here: a program cannot use those of another run."""
        if self.index is None:
            return False
        return not current.top.tracing or type(self.values.array) is SymbolicArray

    def __add__(self, other):
        both = self.row_sparse and isinstance(other, Tensor) and other.row_sparse
        if not both or self.values.spec.dtype != other.values.spec.dtype:
            return super().__add__(other)
        index = concat(self.index.astype("int64"), other.index.astype("int64"), axis=0)
        return RowGradient(index, concat(self.values, other.values, axis=0), self.rows)

    def average_over_ranks(self, *, group: int, bucket_mb: float, ranks: int = 1) -> RowGradient:
        """The average over the ranks: the rows of all of them. In a program, where the sizes of
        other ranks are not known, all name equally many.
        """
        gather_all = partial(OPS["all_gather"], nranks=ranks, group=group)
        parts, n = (self.index.astype("int64"), self.values / ranks), self.index.spec.shape[0]
        if current.top.tracing:
            return RowGradient(*map(gather_all, parts), self.rows)
        counts = gather_all(current.top.constant([n], "int64")).tolist()
        most = max(counts)
        rows = current.top.constant(  # of these there are `most` from each rank
            [most * rank + k for rank, count in enumerate(counts) for k in range(count)], "int64"
        )

        def gather_rows(x):
            filled = current.top.full(Spec((most - n, *x.spec.shape[1:]), x.spec.dtype), 0, x)
            return gather.take(gather_all(concat(x, filled, axis=0)), rows, axis=0)

        return RowGradient(*map(gather_rows, parts), self.rows)

    def merge(self) -> RowGradient:
        """The same gradient, in which each row has its sum in one place."""
        if self.place_of_sum is not None:
            return self
        place, spec = equal_places(self.index), self.values.spec
        sums = gather.scatter_sum(self.values, place, shape=spec.shape, axis=0)
        return RowGradient(self.index, sums, self.rows, place)

    def replace(self, y: Tensor) -> WholeTable:
        """The same rows with other values."""
        if not self.row_sparse:
            return super().replace(y)
        return RowGradient(self.index, y, self.rows, self.place_of_sum)


def map_values(function, grads: list) -> list:
    """The results of a function of gradients that treats all elements alike, and zeros as nothing:
    of one given by rows it gets each row once.
    """
    merged = [g.merge() if g.row_sparse else g for g in grads]
    results = function([g.values if g.row_sparse else g for g in merged])
    pairs = zip(merged, results, strict=True)
    return [g.replace(y) if isinstance(g, WholeTable) else y for g, y in pairs]


class AllRows:
    """A parameter and its states as a step reads and writes them: whole."""

    def __init__(self, g):
        self.gradient = g

    def read(self, x):
        """The values of a tensor that a rule gets."""
        return x

    def write(self, x, value) -> None:
        """Write the values that a rule gives."""
        x.set_value(value)


class SomeRows(AllRows):
    """The rows of a gradient. All places of one row read and write the same."""

    def __init__(self, g: RowGradient):
        g = g.merge()
        self.shape, self.index = g.spec.shape, g.index
        self.gradient = gather.take(g.values, g.place_of_sum, axis=0)

    def read(self, x):
        return gather.take(x, self.index, axis=0) if x.spec.shape == self.shape else x

    def write(self, x, value) -> None:
        if x.spec.shape == self.shape:
            x[self.index] = value
        else:
            x.set_value(value)


def choose_rows(optimizer, options, g) -> AllRows:
    """The part of a parameter that a step reads and writes: the rows of the gradient, if the step
    leaves others as they are. Raises RuntimeError for `lazy_mode` if its rows are not known.
    """
    if g.row_sparse and optimizer.keeps_rows(options):
        return SomeRows(g)
    if isinstance(g, WholeTable) and getattr(options, "lazy_mode", False):
        raise runtime_error(
            "a lazy step changes the rows that a gradient names, and this one came as an array",
            "backward() and step() in one captured function, or both outside of one",
        )
    return AllRows(g)


@labels.sparse_embedding.vjp("weight")
def _(g, x, weight_spec, padding_idx):
    if padding_idx is not None:
        g = where(reshape(x != padding_idx, shape=(*x.spec.shape, 1)), g, 0.0)
    if current.top.recording or not isinstance(g, Tensor):  # it may be differentiated again
        return gather.scatter_sum(g, x, shape=weight_spec.shape, axis=0)
    size, count = g.spec.shape[-1], x.spec.size
    index, values = reshape(x, shape=(count,)), reshape(g, shape=(count, size))
    return RowGradient(index, values, weight_spec.shape[0])


def pull(record, g, useful):
    """The pair (weight, cotangent). Its shape is not looked at: that of an array would make one."""
    _, weight = record.inputs
    if weight in useful:
        yield weight, labels.sparse_embedding.rule(1)(record, g, 1)


labels.sparse_embedding.pull = pull
RULES[labels.sparse_embedding] = lambda record, x, weight: labels.embedding(
    x, weight, **record.attrs
)
LOOKS_FOR["decompose"] += [labels.sparse_embedding]


def takes_rows(weight) -> bool:
    """Whether the gradient of a table may be given by rows here."""
    top = current.top
    if not isinstance(weight, Tensor) or sharded(weight.array):
        return False
    if top.tracing:
        return not top.by_hand and top.builder is top.root
    return module_of(weight.array) is NUMPY  # of others one could write into the dense values
