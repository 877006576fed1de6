"""Cases: how the operator suite is told to call an operator, and what it must agree with.

Each area keeps its own in `tests/ops/cases_<area>.py`:

    from tests.ops.cases import Case, normal, whole

    CASES = {
        "transpose": Case(normal(2, 3, 4), lambda x: x.permute(2, 0, 1), {"perm": (2, 0, 1)}),
        "matmul": [
            Case(normal((2, 3), (3, 4)), torch.matmul),
            Case(normal((3,), (3,)), torch.matmul),
        ],
    }

`tests/ops/test_operators.py` collects every `CASES`, fails naming an operator that has none, and
checks of each case: the value in float64 and float32 (and the rounding of halves), the spec against
`op.result_spec`, non-contiguous inputs, the first derivative against torch's (or central
differences), the second against central differences, and a movement's index map.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Case(NamedTuple):
    """One way to call an operator, and an independent function it must agree with.

    Exactly one of `torch`, `numpy` and `check` is given. The oracle takes the inputs alone: what
    the attributes say is written into it (`lambda x: x.permute(2, 0, 1)`). It may return a tuple.
    """

    build: Callable
    """rng -> list of inputs: NumPy arrays (floating ones in float64; the suite casts them to the
    dtypes it tries, whole numbers and booleans stay what they are) or Python scalars."""

    torch: Callable | None = None
    """The oracle on torch tensors; its autograd is the oracle of the first derivative."""

    attrs: dict = {}  # noqa: RUF012 - nobody writes it
    """The operator's attributes, as `op(x, **attrs)` takes them."""

    numpy: Callable | None = None
    """The oracle on NumPy arrays, where torch has none; derivatives by central differences."""

    check: Callable | None = None
    """`check(results, inputs)`, lists of NumPy arrays, asserts properties: for random draws."""

    wrt: tuple | None = None
    """Places of the inputs to differentiate by; None: every floating input that has a rule."""

    order: int = 2
    """The highest derivative to check; 0 for none."""

    smooth: bool = True
    """False: the inputs stand at a kink, where only the first derivative, by torch, is compared."""

    results: tuple | None = None
    """Which results of several may be differentiated; None: all floating ones."""

    dtypes: tuple = ("float64", "float32", "bfloat16", "float16")
    """Floating dtypes to try. Halves must equal the float32 result, rounded once."""

    tolerance: float = 1.0
    """Factor on the allowed errors (1e-10 in float64, 1e-5 in float32)."""


def normal(*shapes):
    """A builder of standard normal arrays: `normal(2, 3)` one array, `normal((2, 3), (3,))` two."""
    return draw(lambda rng, shape: rng.standard_normal(shape), shapes)


def uniform(low, high, *shapes):
    """A builder of arrays uniform between `low` and `high`, shapes as in `normal`."""
    return draw(lambda rng, shape: rng.uniform(low, high, shape), shapes)


def whole(low, high, *shapes, dtype="int64"):
    """A builder of whole numbers in [low, high), shapes as in `normal`."""
    return draw(lambda rng, shape: rng.integers(low, high, shape).astype(dtype), shapes)


def booleans(*shapes):
    """A builder of random booleans, shapes as in `normal`."""
    return draw(lambda rng, shape: rng.random(shape) < 0.5, shapes)


def fixed(*values):
    """A builder that always gives the same arrays (or Python scalars)."""
    return lambda rng: [v if np.isscalar(v) else np.array(v) for v in values]


def together(*builders):
    """The inputs of several builders, in a row: `together(normal(3), whole(0, 9, 3))`."""
    return lambda rng: [x for build in builders for x in build(rng)]


def draw(sample, shapes):
    """A builder that samples one array per shape."""
    if not shapes or isinstance(shapes[0], int):
        shapes = (shapes,)
    return lambda rng: [np.asarray(sample(rng, shape)) for shape in shapes]
