"""Gradients of single samples, clipped and summed, from a captured step.

The mechanism: `SampleAxes` finds the operators that sum over samples on the way to the gradients of
the weights, as in "bi,bo->io"; what follows such a sum is linear. So

- the norm of a sample's gradient comes from the same operator without that sum; of a product of two
  factors from the factors alone where that is less work (ghost clipping);
- the clipped sum is the same operator again, with one factor times each sample's clip factor, or
  the gradients of single samples times these factors where they were computed for the norms;
- what follows the sum is copied as it is.

Any layer whose operators have letters works; `sample_axes.py` says what is refused. What the loss
does after the network is not seen: it must be a sum or a mean over samples.

Sources: Abadi et al., "Deep Learning with Differential Privacy", 2016; Li et al., "Large Language
Models Can Be Strong Differentially Private Learners", 2022 (ghost clipping of sequences).
"""

from __future__ import annotations

from functools import cached_property
from math import prod

from ..core.prelude import (
    Record,
    Recording,
    Tensor,
    e,
    maximum,
    not_supported,
    note_refusal,
    reshape,
    sqrt,
    transpose,
)  # fmt: skip
from ..engine.ops.contraction import Contraction, parse
from ..engine.ops.conv import conv_weight_grad
from ..engine.ops.gather import scatter_sum
from ..engine.ops.movement import slice_, stack
from ..engine.ops.reduction import sum as sum_over
from ..nn.functional import unfold
from ..tensor.creation import arange
from ..tensor.einsum import einsum
from .sample_axes import SampleAxes, SampleAxis, read, refuse

N = "Ν"
"""The letter of the samples (Greek: those of operators are Latin)."""


SAME_NORM = {e.add, reshape, transpose}
"""After a sum: the same elements in another order, or beside something all samples share."""


class SampleGradients:
    """Writes, into the program that is traced, norms of samples' gradients and clipped sums."""

    def __init__(self, gradients: list[Tensor], marks: dict[Record, SampleAxis], size: int):
        records = [g.array.record for g in gradients]
        self.where, self.size = SampleAxes(records, marks, size), size
        self.records = [self.where.now.get(r, r) for r in records]
        for record in self.records:
            if record in self.where.axes:
                what = f"a weight of {record.spec}, which has a part for each place in the batch"
                raise note_refusal(not_supported(what))
        self.kept: dict[Record, Tensor] = {}  # gradients of single samples by the record of a sum
        self.turned: dict[Record, tuple] = {}  # those kept as matrices [rows, columns], transposed

    @cached_property
    def norms(self) -> Tensor:
        """For each sample the norm of its gradient in all weights, [size]."""
        squares = [self.sum_squares(r) for r in self.records if r in self.where.late]
        return sqrt(maximum(sum(squares[1:], squares[0]), 0.0))  # rounding of a sum near 0

    def clip(self, factors: Tensor) -> list[Tensor]:
        """The gradients, with each sample's share times its factor."""
        self.factors, self.sums = factors, {}
        return [self.write_clipped(record) for record in self.records]

    def write_clipped(self, record: Record):
        """A value after the sums over samples, of clipped terms."""
        if record not in self.where.late:
            return read(record)
        if record not in self.sums:
            if record in self.kept:
                one = reshape(self.factors, shape=(1, self.size))
                rows = reshape(self.kept[record], shape=(self.size, record.spec.size))
                y = reshape(self.restore_order(record, one @ rows), shape=record.shape)
            elif record in self.where.sums:
                y = record.op(*self.scale_inputs(record), **record.attrs)
            else:
                y = record.op(*map(self.write_clipped, self.where.inputs(record)), **record.attrs)
            self.sums[record] = y
        return self.sums[record]

    def scale_inputs(self, record: Record) -> list:
        """The inputs of a sum over samples, those of a linear set times the clip factors."""
        rule, axes = self.where.sums[record]
        inputs = [*map(read, record.inputs)]
        sets = [each for each in rule.linear if all(axes[k] for k in each)]
        if not sets:
            raise refuse(record, "it is linear in none of its inputs that hold samples")
        for k in min(sets, key=lambda each: sum(record.inputs[k].spec.size for k in each)):
            x, (d, rows) = record.inputs[k], axes[k]
            shape = (*x.shape[:d], self.size, rows, *x.shape[d + 1 :])
            factors = reshape(self.factors, shape=(self.size, *[1] * (len(shape) - d - 1)))
            inputs[k] = reshape(reshape(inputs[k], shape=shape) * factors, shape=x.shape)
        return inputs

    # ---- single samples ----------------------------------------------------------------------

    def sum_squares(self, record: Record) -> Tensor:
        """For each sample the squared norm of its share of a value after the sums."""
        while record not in self.where.sums and record.op in SAME_NORM:
            late = [x for x in self.where.inputs(record) if x in self.where.late]
            if len(late) > 1 or late[0].spec.size != record.spec.size:
                break
            (record,) = late
        ghost = self.ghost_norm(record) if record in self.where.sums else None
        if ghost is not None:
            return ghost
        single = self.share if record in self.where.sums else self.single
        return sum_rows(square(single(record)))

    def share(self, record: Record) -> Tensor:
        """Each sample's term of a sum over samples, in the order in which it is kept."""
        if record not in self.kept:
            compute = SINGLE.get(type(record.op)) or SINGLE.get(record.op)
            y = compute(self, record) if compute else None
            if y is None:
                axes = self.where.sums[record].axes
                y = self.call_each(record, self.in_front(record), axes)
            self.kept[record] = y
        return self.kept[record]

    def restore_order(self, record: Record, y: Tensor) -> Tensor:
        """Kept terms, or their sum, in the order of the result."""
        if record not in self.turned:
            return y
        count = y.shape[0]
        y = transpose(reshape(y, shape=(count, *self.turned[record])), perm=(0, 2, 1))
        return reshape(y, shape=(count, record.spec.size))

    def single(self, record: Record) -> Tensor:
        """Each sample's share of a value after the sums, [size, *shape]."""
        if record in self.where.sums:
            y = self.restore_order(record, self.share(record))
            return reshape(y, shape=(self.size, *record.shape))
        own = self.where.inputs(record)
        inputs = [self.single(x) if x in self.where.late else x for x in own]
        if record.op.name == "reshape":
            return reshape(inputs[0], shape=(self.size, *record.shape))
        if record.op.name == "transpose":
            return transpose(inputs[0], perm=(0, *(d + 1 for d in record.attrs["perm"])))
        sums = record.op in (e.add, e.subtract)  # what all samples share is no sample's share
        inputs = [x if isinstance(x, Tensor) else 0.0 if sums else read(x) for x in inputs]
        late = [x in self.where.late for x in own]
        if record.op.kind != "elementwise":
            return self.call_each(record, inputs, late)
        for k, x in enumerate(own):
            if late[k]:
                ones = [1] * (len(record.shape) - len(x.shape))
                inputs[k] = reshape(inputs[k], shape=(self.size, *ones, *x.shape))
        return record.op(*inputs, **record.attrs)

    def call_each(self, record: Record, inputs: list, single) -> Tensor:
        """One call of the operator for each sample; `single` says which inputs have shares."""
        each = [[slice_(x, index=(k,)) if own else x for x, own in zip(inputs, single)]
                for k in range(self.size)]  # fmt: skip
        return stack(*(record.op(*xs, **record.attrs) for xs in each), axis=0)

    def in_front(self, record: Record) -> list:
        """The inputs of a sum over samples, [size, …] with one sample's rows each; others stay."""
        inputs = []
        for x, axis in zip(record.inputs, self.where.sums[record].axes):
            y = read(x)
            if axis is not None:
                d, rows = axis
                y = reshape(y, shape=(*x.shape[:d], self.size, rows, *x.shape[d + 1 :]))
                if d:
                    y = transpose(y, perm=(d, *(k for k in range(len(x.shape) + 1) if k != d)))
            inputs.append(y)
        return inputs

    def ghost_norm(self, record: Record) -> Tensor | None:
        """The squared norms from two factors; None where to compute the product is less work."""
        if record.op is scatter_sum and record.attrs["axis"] == 0:
            x, index = place_rows(self, record)
            count = prod(index.shape[1:])
            if count**2 > 2 * record.shape[0]:
                return None
            places = reshape(index, shape=(self.size, count, 1))
            rows = reshape(x, shape=(self.size, count, prod(record.shape[1:])))
            same = (places == transpose(places, perm=(0, 2, 1))).astype(x.dtype)
            return sum_rows(same * (rows @ transpose(rows, perm=(0, 2, 1))))
        if not isinstance(record.op, Contraction):
            return None
        if not all(self.where.sums[record].axes):
            return None
        (x, y), (xs, ys, out) = self.in_front(record), self.letters(record)
        sizes = dict(zip(ys, y.shape[1:])) | dict(zip(xs, x.shape[1:]))
        summed = "".join(c for c in xs if c not in out)
        both = "".join(c for c in xs if c in ys and c in out)
        count = prod(sizes[c] for c in summed)
        own = [prod(sizes[c] for c in each if c in out and c not in both) for each in (xs, ys)]
        if count == 1:
            x, y = (einsum(f"{N}{each}->{N}{both}", square(z)) for each, z in ((xs, x), (ys, y)))
            return sum_rows(x * y)
        if count * sum(own) >= prod(own):
            return None
        twin = str.maketrans(summed, "".join(chr(ord("α") + k) for k in range(len(summed))))
        kept = f"{N}{both}{summed}{summed.translate(twin)}"
        x, y = (einsum(f"{N}{each},{N}{each.translate(twin)}->{kept}", z, z)
                for each, z in ((xs, x), (ys, y)))  # fmt: skip
        return sum_rows(x * y)

    def letters(self, record: Record) -> tuple[str, str, str]:
        """The letters of a contraction's inputs and of its result."""
        return parse(record.op.letters(*(x.spec for x in record.inputs), **record.attrs))


def square(x: Tensor) -> Tensor:
    """x · x."""
    return x * x


def sum_rows(x: Tensor) -> Tensor:
    """Summed over all axes but the first."""
    axes = tuple(range(1, x.ndim))
    return sum_over(x, axis=axes, keepdim=False) if axes else x


# ---- shares of single samples, by operator -------------------------------------------------------


def single_product(samples: SampleGradients, record: Record) -> Tensor:
    """A contraction without the sum over samples."""
    xs, ys, out = samples.letters(record)
    first, second = (f"{N}{each}" if axis else each for each, axis in
                     zip((xs, ys), samples.where.sums[record].axes))  # fmt: skip
    return einsum(f"{first},{second}->{N}{out}", *samples.in_front(record))


def single_sum(samples: SampleGradients, record: Record) -> Tensor:
    """A sum over all axes but that of the samples."""
    axes = tuple(d + 1 for d in record.attrs["axis"])
    return sum_over(*samples.in_front(record), axis=axes, keepdim=record.attrs["keepdim"])


def single_convolution(samples: SampleGradients, record: Record) -> Tensor:
    """The product of each sample's windows with its gradient; with groups, or not on images,
    samples become groups of channels of one image.
    """
    n, groups, kernel = samples.size, record.attrs["groups"], record.attrs["kernel"]
    x, g = samples.in_front(record)
    if groups == 1 and len(kernel) == 2:
        (top, bottom), (left, right) = record.attrs["padding"]
        windows = unfold(
            reshape(x, shape=(n, *x.shape[2:])), kernel, record.attrs["stride"],
            [top, left, bottom, right], record.attrs["dilation"],
        )  # fmt: skip
        rows = reshape(g, shape=(n, g.shape[2], windows.shape[2]))
        if windows.shape[1] > windows.shape[2]:  # turn the smaller factor
            samples.turned[record] = windows.shape[1], g.shape[2]
            return windows @ transpose(rows, perm=(0, 2, 1))
        return rows @ transpose(windows, perm=(0, 2, 1))
    x, g = (reshape(z, shape=(1, n * z.shape[2], *z.shape[3:])) for z in (x, g))
    y = conv_weight_grad(x, g, **record.attrs | {"groups": n * groups})
    return reshape(y, shape=(n, *record.shape))


def single_scatter(samples: SampleGradients, record: Record) -> Tensor | None:
    """Each sample adds to rows of its own."""
    (rows, *rest), axis = record.attrs["shape"], record.attrs["axis"]
    if axis:
        return None
    n, (x, index) = samples.size, place_rows(samples, record)
    first = arange(0, n * rows, rows, dtype=index.dtype)
    index = index + reshape(first, shape=(n, *[1] * (index.ndim - 1)))
    return reshape(scatter_sum(x, index, shape=(n * rows, *rest), axis=0), shape=(n, rows, *rest))


def place_rows(samples: SampleGradients, record: Record) -> tuple[Tensor, Tensor]:
    """The rows that each sample adds, and their places, counted from the front."""
    x, index = samples.in_front(record)
    return x, index + (index < 0).astype(index.dtype) * record.attrs["shape"][0]


SINGLE = {
    Contraction: single_product, sum_over: single_sum, conv_weight_grad: single_convolution,
    scatter_sum: single_scatter,
}  # fmt: skip
"""How operators compute single samples' shares at once; another one is called for each sample."""


def clip_gradients(gradients, marks: dict, here: Tensor, bound: float, scale: float) -> list:
    """The gradients as sums of samples' gradients, each of norm `bound` at most; `here` is 1 for
    the samples of the batch and 0 for padding. What comes in is 1 / scale of the sum.

    gradients: tensors of the program that is traced; marks: where its values hold samples
    """
    with Recording(False):
        size = here.shape[0]
        samples = SampleGradients(gradients, marks, size)
        if not samples.where.sums:
            return list(gradients)
        norms = samples.norms * scale
        return samples.clip(here * (scale * bound) / maximum(norms, bound))
