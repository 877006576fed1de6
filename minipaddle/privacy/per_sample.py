"""Gradients of single samples, clipped and summed, from a captured step.

The mechanism: sharding rules name the axes of every operator by letters. From the values whose
axis 0 is known to count samples (what enters the network, the cotangent of what leaves it)
`SampleAxes` follows that letter through the captured records to the gradients of the weights. There
an operator sums over it, as in "bi,bo->io". What happens after this sum is linear. So

- the norm of a sample's gradient comes from the same operator without that sum; of a product of two
  factors from the factors alone where that is less work (ghost clipping);
- the clipped sum is the same operator again, with one factor times each sample's clip factor, or
  the gradients of single samples times these factors where they were computed for the norms;
- what follows the sum is copied as it is.

Any layer whose operators have letters works. Refused by name, at the user's line: operators without
a rule, and all that mixes samples: a sum over them that samples meet again (batch normalisation),
a maximum over them, a product of samples with samples, branches and loops on them. What the loss
does after the network is not seen: it must be a sum or a mean over samples.

Sources: Abadi et al., "Deep Learning with Differential Privacy", 2016; Li et al., "Large Language
Models Can Be Strong Differentially Private Learners", 2022 (ghost clipping of sequences).
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import NamedTuple

from ..core.prelude import (
    Record,
    Recording,
    Tensor,
    current,
    e,
    maximum,
    not_supported,
    note_refusal,
    reshape,
    sqrt,
    transpose,
    wrap,
)
from ..engine.ir.program import ITEM, NUMBER
from ..engine.ops.contraction import Contraction, parse
from ..engine.ops.conv import conv_weight_grad
from ..engine.ops.gather import scatter_sum
from ..engine.ops.movement import slice_, stack
from ..engine.ops.reduction import sum as sum_over
from ..engine.passes.decompose import RULES, by_body
from ..engine.sharding.letters import LetterRule, rule_of
from ..nn.functional import unfold
from ..tensor.creation import arange
from ..tensor.einsum import einsum

N = "Ν"
"""The letter of the samples (Greek: those of operators are Latin)."""


class SampleAxis(NamedTuple):
    """The axis along which a value holds the samples, each in `rows` neighbouring rows."""

    dim: int
    rows: int = 1


class SampleSum(NamedTuple):
    """For an operator that sums over samples: for each input the axis of the samples, or None."""

    rule: LetterRule
    axes: list[SampleAxis | None]


class SampleAxes:
    """Where the samples lie in each value on the way to the gradients, and who sums over them.

    axes: for a record its `SampleAxis`, of several results a list of them
    sums: the records that sum over samples; `late` are they and all that follows
    now: small operators in the place of those without a rule, which are made of them
    """

    def __init__(self, gradients: list[Record], marks: dict[Record, SampleAxis], size: int):
        self.axes, self.size = dict(marks), size
        self.sums: dict[Record, SampleSum] = {}
        self.late: set[Record] = set()
        self.now: dict[Record, Record] = {}
        for record in trace_back(gradients, marks):
            if record not in marks and record.inputs:
                self.visit(record)

    def visit(self, record: Record) -> None:
        """Find the samples in the results of a record, whose inputs were visited."""
        inputs = self.inputs(record)
        if record.op is ITEM and type(inputs[0]) is tuple:
            self.now[record] = inputs[0][record.attrs["k"]]
            return
        if record.op is ITEM:
            axes = self.axes.get(inputs[0])
            if axes is not None and axes[record.attrs["k"]] is not None:
                self.axes[record] = axes[record.attrs["k"]]
            return
        have = {k: self.axes[x] for k, x in enumerate(inputs) if x in self.axes}
        late = {k for k, x in enumerate(inputs) if x in self.late}
        if not have and not late:
            return
        if record.op.letters is None and record.op.kind == "opaque" and self.expand(record):
            return
        if have and late:
            raise refuse(record, "a sum over samples meets samples again")
        several = record.dtype is None
        results = [*record.shape] if several else [record.spec]
        specs = [x.attrs["value"] if x.op is NUMBER else x.spec for x in record.inputs]
        rule = rule_of(record.op, specs, record.attrs, results)
        if late:
            if several or rule is None or not any(late <= each for each in rule.linear):
                raise refuse(record, "it is not linear, and follows a sum over samples")
            self.late.add(record)
            return
        if rule is None:
            raise refuse(record, "it has no sharding rule that says what it does to samples")
        self.axes |= self.follow(record, rule, have, specs, results)

    def inputs(self, record: Record) -> list:
        """The inputs of a record, by their small operators if they became some."""
        return [self.now.get(x, x) for x in record.inputs]

    def expand(self, record: Record) -> bool:
        """Write a composite operator as small ones and visit these; False if it is none."""
        records = current.top.builder.program.records
        before = len(records)
        results = RULES.get(record.op, by_body)(record, *map(read, self.inputs(record)))
        if results is None:
            return False
        for new in records[before:]:
            new.where, new.scope = record.where, record.scope
            self.visit(new)
        several = type(results) is tuple
        results = tuple(y.array.record for y in (results if several else (results,)))
        self.now[record] = results if several else results[0]
        return True

    def follow(self, record, rule: LetterRule, have: dict, specs, results) -> dict:
        """The axes of the results by the letters of the rule; notes a sum over samples."""
        own = {k: rule.inputs[k][axis.dim] for k, axis in have.items()}
        blocks = {(a and a.letter, have[k].rows / a.unit if a else 0) for k, a in own.items()}
        ((letter, count), *others) = blocks
        if others or letter is None or count != int(count):
            raise refuse(record, "it combines samples with samples")

        def find(axes) -> SampleAxis | None:
            places = [d for d, a in enumerate(axes) if a is not None and a.letter == letter]
            return SampleAxis(places[0], int(count) * axes[places[0]].unit) if places else None

        places = [find(axes) for axes in rule.results]
        if all(places):
            return {record: places[0] if record.dtype is not None else places}
        if any(places) or record.dtype is None or rule.terms.get(letter) != "sum":
            raise refuse(record, "it combines samples, and not by a sum")
        self.sums[record] = SampleSum(rule, [find(axes) for axes in rule.inputs])
        self.late.add(record)
        return {}


def trace_back(roots: list[Record], ends) -> list[Record]:
    """The records that lead to the roots, oldest first, up to those in `ends`."""
    seen, waiting = set(roots), [*roots]
    while waiting:
        record = waiting.pop()
        for x in () if record in ends else record.inputs:
            if x not in seen:
                seen.add(x)
                waiting.append(x)
    return sorted(seen, key=Record.time.__get__)


def read(record: Record):
    """The value of a record, as code has it."""
    if record.op is NUMBER:
        return record.attrs["value"]
    builder = current.top.builder
    return wrap(builder.symbolic(record, builder.place))


def refuse(record: Record, reason: str) -> Exception:
    """The error for an operator that mixes samples."""
    layer = f"{type(record.scope[1]).__name__}: " if record.scope else ""
    return note_refusal(
        not_supported(
            f"{layer}{record.op.name} mixes the samples of a batch: {reason}",
            expected="layers in which each sample's result depends on that sample alone",
            hint="GroupNorm, LayerNorm or InstanceNorm for BatchNorm, or eval() on that layer",
            where=record.where,
        )
    )


SAME_NORM = {e.add, reshape, transpose}
"""After a sum: the same elements in another order, or beside something all samples share."""


class SampleGradients:
    """Writes, into the program that is traced, norms of samples' gradients and clipped sums."""

    def __init__(self, gradients: list[Tensor], marks: dict[Record, SampleAxis], size: int):
        records = [g.array.record for g in gradients]
        self.where, self.size = SampleAxes(records, marks, size), size
        self.records = [self.where.now.get(r, r) for r in records]
        self.kept: dict[Record, Tensor] = {}  # gradients of single samples by the record of a sum

    @cached_property
    def norms(self) -> Tensor:
        """For each sample the norm of its gradient in all weights, [size]."""
        squares = [self.squared_norm(r) for r in self.records if r in self.where.late]
        return sqrt(sum(squares[1:], squares[0]))

    def clip(self, factors: Tensor) -> list[Tensor]:
        """The gradients, with each sample's share times its factor."""
        self.factors, self.sums = factors, {}
        return [self.clipped(record) for record in self.records]

    def clipped(self, record: Record):
        """A value after the sums over samples, of clipped terms."""
        if record not in self.where.late:
            return read(record)
        if record not in self.sums:
            if record in self.kept:
                one = reshape(self.factors, shape=(1, self.size))
                rows = reshape(self.kept[record], shape=(self.size, record.spec.size))
                y = reshape(one @ rows, shape=record.shape)
            elif record in self.where.sums:
                y = record.op(*self.scale_inputs(record), **record.attrs)
            else:
                y = record.op(*map(self.clipped, self.where.inputs(record)), **record.attrs)
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

    def squared_norm(self, record: Record) -> Tensor:
        """For each sample the squared norm of its share of a value after the sums."""
        while record not in self.where.sums and record.op in SAME_NORM:
            late = [x for x in self.where.inputs(record) if x in self.where.late]
            if len(late) > 1 or late[0].spec.size != record.spec.size:
                break
            (record,) = late
        ghost = self.ghost_norm(record) if record in self.where.sums else None
        if ghost is not None:
            return ghost
        return sum_rows(square(self.single(record)))

    def single(self, record: Record) -> Tensor:
        """Each sample's share of a value after the sums, [size, *shape]."""
        if record in self.where.sums:
            if record not in self.kept:
                y = SINGLE.get(type(record.op)) or SINGLE.get(record.op)
                y = y(self, record) if y else None
                self.kept[record] = self.single_calls(record) if y is None else y
            return self.kept[record]
        own = self.where.inputs(record)
        inputs = [self.single(x) if x in self.where.late else x for x in own]
        if record.op.name == "reshape":
            return reshape(inputs[0], shape=(self.size, *record.shape))
        if record.op.name == "transpose":
            return transpose(inputs[0], perm=(0, *(d + 1 for d in record.attrs["perm"])))
        plain = 0.0 if record.op in (e.add, e.subtract) else None  # what all samples share
        if record.op.kind == "elementwise":
            ndim = len(record.shape)
            shapes = [(self.size, *[1] * (ndim - len(x.shape)), *x.shape) for x in own]
            inputs = [
                reshape(x, shape=shape) if isinstance(x, Tensor)
                else read(x) if plain is None else plain
                for x, shape in zip(inputs, shapes)
            ]  # fmt: skip
            return record.op(*inputs, **record.attrs)
        each = [[pick(x, k) if isinstance(x, Tensor) else read(x) for x in inputs]
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

    def single_calls(self, record: Record) -> Tensor:
        """Shares of single samples by one call of the operator for each."""
        axes, inputs = self.where.sums[record].axes, self.in_front(record)
        each = [[pick(x, k) if axis else x for x, axis in zip(inputs, axes)]
                for k in range(self.size)]  # fmt: skip
        return stack(*(record.op(*xs, **record.attrs) for xs in each), axis=0)

    def ghost_norm(self, record: Record) -> Tensor | None:
        """The squared norms from two factors; None where to compute the product is less work."""
        if record.op is scatter_sum and record.attrs["axis"] == 0:
            x, index = self.in_front(record)
            count = prod(index.shape[1:])
            if count**2 * x.size > 2 * record.spec.size * self.size * index.size:
                return None
            places = reshape(index, shape=(self.size, count, 1))
            rows = reshape(x, shape=(self.size, count, -1 if x.size else 0))
            same = (places == transpose(places, perm=(0, 2, 1))).astype(x.dtype)
            return sum_rows(same * (rows @ transpose(rows, perm=(0, 2, 1))))
        if not isinstance(record.op, Contraction):
            return None
        factors, (xs, ys, out) = self.in_front(record), self.letters(record)
        if not all(self.where.sums[record].axes):
            return None
        x, y = factors
        sizes = dict(zip(ys, y.shape[1:])) | dict(zip(xs, x.shape[1:]))
        summed = [c for c in xs if c not in out]
        both = "".join(c for c in xs if c in ys and c in out)
        count = prod(sizes[c] for c in summed)
        own = [prod(sizes[c] for c in each if c in out and c not in both) for each in (xs, ys)]
        if count == 1:
            x, y = (einsum(f"{N}{each}->{N}{both}", square(z)) for each, z in ((xs, x), (ys, y)))
            return sum_rows(x * y)
        if count * sum(own) >= prod(own):
            return None
        twin = str.maketrans(
            "".join(summed), "".join(chr(ord("α") + k) for k in range(len(summed)))
        )
        grams = (
            einsum(f"{N}{each},{N}{each.translate(twin)}->{N}{both}{''.join(summed)}"
                   f"{''.join(summed).translate(twin)}", z, z)
            for each, z in ((xs, x), (ys, y))
        )  # fmt: skip
        x, y = grams
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


def pick(x: Tensor, k: int) -> Tensor:
    """Element k along the first axis."""
    return slice_(x, index=(k,))


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
        return reshape(rows @ transpose(windows, perm=(0, 2, 1)), shape=(n, *record.shape))
    x, g = (reshape(z, shape=(1, n * z.shape[2], *z.shape[3:])) for z in (x, g))
    y = conv_weight_grad(x, g, **record.attrs | {"groups": n * groups})
    return reshape(y, shape=(n, *record.shape))


def single_scatter(samples: SampleGradients, record: Record) -> Tensor | None:
    """Each sample adds to rows of its own."""
    (rows, *rest), axis = record.attrs["shape"], record.attrs["axis"]
    if axis:
        return None
    n, (x, index) = samples.size, samples.in_front(record)
    index = index + (index < 0).astype(index.dtype) * rows
    first = reshape(
        arange(0, n * rows, rows, dtype=index.dtype), shape=(n, *[1] * (index.ndim - 1))
    )
    y = scatter_sum(x, index + first, shape=(n * rows, *rest), axis=0)
    return reshape(y, shape=(n, rows, *rest))


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
