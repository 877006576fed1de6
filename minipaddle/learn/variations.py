"""Variations that must not disturb a function of arrays: dtype, size, strides, magnitude, infinity.

`hold` compares a reader's function with an oracle on many variations of one input. Errors are
measured against the largest number of the result: no absolute tolerance hides a small one.
"""

from collections.abc import Iterator

import numpy as np

from ..engine.eager.tensor import Tensor
from .comparison import Disagreement, expect_that

PRECISION = {"float64": 1e-11, "float32": 3e-5}
"""How far from the oracle a result may be, of its largest number."""


def variations(shapes, large, empty, infinite, views) -> Iterator[tuple[str, str, list]]:
    """(what is special, dtype, the arrays) for inputs of the given shapes."""

    def draw(shapes, seed: int = 0):
        random = np.random.default_rng(seed)
        return [np.asarray(random.uniform(-2, 2, shape)) for shape in shapes]

    yield "", "float64", draw(shapes)
    yield "small numbers", "float64", [a * 1e-7 for a in draw(shapes, 1)]
    yield "float32", "float32", draw(shapes, 2)
    if large:
        yield "a large array", "float64", draw(large)
    if empty:
        yield "no elements", "float64", draw(empty)
    for value in infinite:
        arrays = draw(shapes, 3)
        arrays[0].flat[-1] = value
        yield f"{value} among the numbers", "float64", arrays
    if views:
        backwards = [np.flip(np.flip(a).copy()) for a in draw(shapes)]
        yield "arrays that lie backwards", "float64", backwards
        gaps = [np.stack([a, a + 1], -1)[..., 0] for a in draw(shapes)]
        yield "arrays with gaps", "float64", gaps


def hold(call, oracle, shapes, *, large=None, empty=None, infinite=(), tensors=False) -> None:
    """Raise Disagreement unless `call(*inputs)` is `oracle(*arrays)` for all variations.

    `shapes`, `large` and `empty` have a shape for each input, `infinite` the values that the last
    number of the first may have. With `tensors` inputs and results are tensors, else arrays. The
    oracle always gets float64. Inputs must be unchanged afterwards, and results have the dtype of
    the inputs.
    """
    for what, dtype, arrays in variations(shapes, large, empty, infinite, not tensors):
        arrays = [a if a.dtype == dtype else a.astype(dtype) for a in arrays]
        before = [a.copy() for a in arrays]
        named = {f"input {k + 1}": a for k, a in enumerate(before)}
        inputs = [Tensor(a) for a in arrays] if tensors else arrays
        with np.errstate(all="ignore"):
            expected = oracle(*(a.astype("float64") for a in before))
            got = call(*inputs)
        several = isinstance(expected, tuple | list)
        pairs = zip(got, expected, strict=True) if several else [(got, expected)]
        for mine, right in pairs:
            compare(mine, np.asarray(right), dtype, what, named)
        for x, a in zip(inputs, before, strict=True):
            now = x.numpy() if tensors else x
            same = np.array_equal(now, a, equal_nan=True)
            expect_that(same, "an input was written into", given=named, got=now)


def compare(got, expected: np.ndarray, dtype: str, what: str, given: dict) -> None:
    """Raise Disagreement unless one result is right to the precision of its dtype."""
    array = got.numpy() if isinstance(got, Tensor) else np.asarray(got)
    why = ""
    if array.shape != expected.shape:
        why = f"shape {list(array.shape)} instead of {list(expected.shape)}"
    elif array.dtype != dtype:
        why = f"dtype {array.dtype} instead of {dtype}"
    else:
        sizes = np.abs(expected[np.isfinite(expected)])
        off = PRECISION[dtype] * sizes.max(initial=0)
        if not np.allclose(array, expected, rtol=0, atol=off, equal_nan=True):
            why = "the values differ"
    if why:
        why = f"with {what}: {why}" if what else why
        raise Disagreement(why, given, expected, got)
