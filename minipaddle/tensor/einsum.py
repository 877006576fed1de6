"""Einstein summation: an equation read once, then carried out as transposes and matrix products.

A tensor goes through with a string of labels, one for each axis. Two tensors are contracted at a
time, from the left: what both have and nobody needs again is summed by a matrix product.
"""

from collections import Counter

from ..core.prelude import as_operator, creation, movement, reduction, value_error
from ..engine.ops import contraction
from ..ops import arrangement

__all__ = ["einsum"]

DOTS = "".join(map(chr, range(0x2460, 0x2474)))
"""The labels ①, ②, … of axes of an ellipsis; the last axis has the last label."""


@as_operator("einsum")
def einsum(equation, *operands):
    """Sum of products over labelled axes: "ij,jk->ik" is a matrix product.

    A label that is not in the result is summed over; one that an operand has twice is its diagonal;
    "..." stands for any axes and broadcasts. Without "->" the result has the labels that occur
    once, in alphabetical order. Raises ValueError when labels and shapes do not fit.

    >>> paddle.einsum("ij,jk->ik", paddle.ones([2, 3]), paddle.ones([3, 2])).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    >>> paddle.einsum("ii", paddle.eye(4)).item()
    4.0
    """
    inputs, output = parse(equation, [x.spec.ndim for x in operands])
    sizes = sizes_of(equation, operands, inputs)
    terms = [prepare(x, labels, sizes) for x, labels in zip(operands, inputs, strict=True)]
    result, have = terms[0]
    for k, (x, labels) in enumerate(terms[1:], start=2):
        needed = set(output).union(*(later for _, later in terms[k:]))
        result, have = join(result, have, x, labels, needed)
    if len(terms) == 1 and set(have) == set(output):  # nothing is computed: not a view of it
        result = creation.assign(result)
    result, have = sum_out(result, have, set(output))
    return movement.transpose(result, perm=tuple(have.index(label) for label in output))


def parse(equation: str, ndims) -> tuple[list[str], str]:
    """The labels of each operand and of the result, with labels of their own for "..."."""
    left, arrow, output = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ndims):
        raise value_error(f"einsum({equation!r}) names {len(inputs)} operands", str(len(ndims)))
    inputs = [spell_out(equation, labels, n) for labels, n in zip(inputs, ndims, strict=True)]
    count = Counter("".join(inputs))
    dots = "".join(label for label in DOTS if label in count)
    if not arrow:
        output = dots + "".join(sorted(c for c in count if count[c] == 1 and c not in DOTS))
    output = output.replace("...", dots)
    if len(set(output)) != len(output) or not count.keys() >= set(output):
        raise value_error(
            f"einsum({equation!r})", "a result with labels of the operands, each once"
        )
    return inputs, output


def spell_out(equation: str, labels: str, ndim: int) -> str:
    """The labels of one operand, as many as it has axes."""
    before, dots, after = labels.partition("...")
    rest = ndim - len(before + after)
    letters = all(map(str.isalpha, before + after))
    if not letters or rest < 0 or (rest and not dots):
        raise value_error(
            f"einsum({equation!r}): the labels {labels!r} stand for an operand of {ndim} axes",
            "a letter for each axis, or ... for the rest",
        )
    return before + DOTS[len(DOTS) - rest :] * bool(rest) + after


def sizes_of(equation: str, operands, inputs) -> dict:
    """The size of each label; an axis of size 1 fits any."""
    sizes = {}
    for x, labels in zip(operands, inputs, strict=True):
        for label, n in zip(labels, x.spec.shape, strict=True):
            if n != 1 and sizes.get(label, 1) not in (1, n):
                raise value_error(
                    f"einsum({equation!r}): label {label!r} is both {sizes[label]} and {n}"
                )
            sizes[label] = n if n != 1 else sizes.get(label, 1)
    return sizes


def prepare(x, labels: str, sizes) -> tuple:
    """The operand with each label once, and without the axes of size 1 that broadcast."""
    stretched = {c for c, n in zip(labels, x.spec.shape, strict=True) if n != sizes[c]}
    kept = tuple(n for c, n in zip(labels, x.spec.shape, strict=True) if c not in stretched)
    if stretched:
        x = movement.reshape(x, shape=kept)
        labels = "".join(c for c in labels if c not in stretched)
    for label, times in Counter(labels).items():
        for _ in range(times - 1):
            i = labels.index(label)
            j = labels.index(label, i + 1)
            x = arrangement.diagonal(x, offset=0, axis1=i, axis2=j)
            labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + label
    return x, labels


def sum_out(x, labels: str, needed: set) -> tuple:
    """x summed over the labels that are not needed any more."""
    axes = tuple(d for d, label in enumerate(labels) if label not in needed)
    if not axes:
        return x, labels
    return reduction.sum(x, axis=axes, keepdim=False), "".join(c for c in labels if c in needed)


def join(x, xs: str, y, ys: str, needed: set) -> tuple:
    """The product of two operands, summed over the labels that no later operand needs."""
    x, xs = sum_out(x, xs, needed | set(ys))
    y, ys = sum_out(y, ys, needed | set(xs))
    both = [c for c in xs if c in ys and c in needed]
    labels = "".join([*both, *(c for c in xs if c not in ys), *(c for c in ys if c not in xs)])
    return contraction.contract(contraction.VARS, x, y, f"{xs},{ys}->{labels}"), labels
