"""Comparison of the reader's result with the expected one."""

import numpy as np

from ..engine.core.slots import yours as slots_of_reader
from ..engine.eager.tensor import Tensor
from ..testing.gradcheck import mismatch


class Disagreement(AssertionError):
    """The reader's code gave `got` for the inputs `given`; `expected` is right.

    A `picture` that is a function is drawn later, with what is plugged in now.
    """

    def __init__(self, why: str, given=None, expected=None, got=None, picture=None):
        super().__init__(why)
        self.given, self.expected, self.got = given, expected, got
        self.picture, self.plugs = picture, slots_of_reader()


def expect(got, expected, *, given=None, why="", picture=None, rtol=1e-6, atol=1e-9) -> None:
    """Raise Disagreement unless `got` is `expected`: tensors, arrays, numbers, tuples, dicts, text.

    Shapes must be equal, values within `atol + rtol * |expected|`, dtypes only if both are arrays
    of another kind (an integer is no float). `picture` is a graph, or a function that draws one.

    >>> from minipaddle.learn import expect
    >>> expect([1.0, 2.0], (1.0, 2.0 + 1e-9))
    """
    difference = differs(got, expected, rtol, atol)
    if difference:
        raise Disagreement(why or difference, given, expected, got, picture)


def expect_that(condition, what: str, *, given=None, got=None, picture=None) -> None:
    """Raise Disagreement with the text `what` unless the condition holds."""
    if not condition:
        raise Disagreement(what, given, None, got, picture)


def expect_gradients(program, inputs, *, order: int = 1, given=None, why: str = "") -> None:
    """Raise Disagreement unless backward through `program` gives what central differences give.

    `program` takes a tensor for each of the arrays `inputs`. The Disagreement holds the smallest
    cut of the inputs that shows the fault, and draws its tape with the bad nodes red.
    """
    fault = mismatch(program, *inputs, order=order)
    if fault is None:
        return
    tensors, wrong = fault
    names = ["x"] if len(tensors) == 1 else [f"x{k + 1}" for k in range(len(tensors))]
    nth = ("", "second ", "third ")[min(wrong.order, 3) - 1]
    where = f" by {names[wrong.place]}{list(wrong.index) or ''}"

    def picture():
        from .blame import draw_blame

        return draw_blame(program, tensors, wrong.order)

    raise Disagreement(
        why or f"the {nth}derivative{where} is not what central differences give",
        (given or {}) | {name: x.numpy() for name, x in zip(names, tensors)},
        wrong.quotient,
        wrong.derivative,
        picture,
    )


def differs(got, expected, rtol: float, atol: float) -> str:
    """How the two differ; empty if they do not."""
    if isinstance(expected, str | bytes | bool | None):
        return "" if type(got) is type(expected) and got == expected else "it differs"
    if isinstance(expected, dict):
        if not isinstance(got, dict) or set(got) != set(expected):
            return "the keys differ"
        pairs = [(got[k], expected[k]) for k in expected]
    elif isinstance(expected, list | tuple) and not numeric(expected):
        if not isinstance(got, list | tuple) or len(got) != len(expected):
            return "there are not as many"
        pairs = zip(got, expected)
    else:
        return arrays_differ(got, expected, rtol, atol)
    return next(filter(None, (differs(g, e, rtol, atol) for g, e in pairs)), "")


def arrays_differ(got, expected, rtol: float, atol: float) -> str:
    """How two arrays, tensors, numbers or lists of numbers differ; empty if they do not."""
    a, b = as_numpy(got), as_numpy(expected)
    if a is None or b is None:
        return "" if a is b and got == expected else "it differs"
    if a.shape != b.shape:
        return f"shape {list(a.shape)} instead of {list(b.shape)}"
    if (a.dtype.kind in "biu") != (b.dtype.kind in "biu"):
        return f"dtype {a.dtype} instead of {b.dtype}"
    return "" if np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True) else "the values differ"


def numeric(x) -> bool:
    a = as_numpy(x)
    return a is not None and a.size > 0


def as_numpy(x):
    """`x` as an array of numbers, or None if it is none."""
    if isinstance(x, Tensor):
        x = x.numpy()
    try:
        a = np.asarray(x)
    except (TypeError, ValueError):
        return None
    return a.astype(np.float64) if a.dtype.kind == "V" else a if a.dtype.kind in "biufc" else None
