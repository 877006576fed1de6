"""Check derivatives against central differences, in float64, to any order.

For a function f the checker looks at one number, L(x) = Σ w·f(x) with fixed uneven weights w, the
first of them 1, and at each element xᵢ in turn: backward must give (L(x + εeᵢ) - L(x - εeᵢ)) / 2ε.
With ε = 10⁻⁵ the formula is off by about ε² = 10⁻¹⁰, rounding by 10⁻¹⁶/ε = 10⁻¹¹. The second
derivative is the first derivative of the gradient: the same check of the function "gradient of f".

At a kink (relu at 0) the two must differ: keep the inputs away from kinks.
Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed., section 1.2.
"""

from collections.abc import Iterator
from itertools import islice, product
from math import prod
from typing import NamedTuple

from ..engine.core.dtype import float64
from ..engine.core.errors import teach, type_error
from ..engine.core.slots import slot
from ..engine.eager.backward import grad
from ..engine.eager.tensor import Tensor


class Mismatch(NamedTuple):
    """The element at which a derivative and the difference quotient disagree."""

    order: int
    place: int
    index: tuple
    derivative: float
    quotient: float


def check_grad(
    function,
    *inputs,
    order: int = 1,
    wrt=None,
    epsilon: float = 1e-5,
    rtol: float = 1e-5,
    atol: float = 1e-7,
    elements: int | None = None,
) -> None:
    """Raise AssertionError unless the derivatives of `function` at `inputs` are right.

    `function` takes tensors and returns a tensor or several; `inputs` are arrays, lists, numbers or
    tensors, the floating ones taken in float64. `wrt` are the places of the inputs to
    differentiate by (None: all floating ones), `order` is the highest derivative to check, and
    `elements` is how many of each input are looked at, evenly spread (None: all). The error names
    the element that is wrong, at the smallest cut of the inputs that still shows it.

    >>> from minipaddle.testing import check_grad
    >>> check_grad(paddle.tanh, [0.5, -1.0], order=2)
    >>> with paddle.plugged("ops.tanh.vjp", lambda g, out: g * (1 - out)):
    ...     check_grad(paddle.tanh, [[0.5, 1.0], [2.0, 3.0]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
      ...
    AssertionError: the derivative of tanh by input 0 at [0, 0] is 0.53...; 0.78... is right
      expected: what central differences give
      at: ...
      for the inputs: [[0.5]]
    """
    fault = mismatch(function, *inputs, order=order, wrt=wrt, epsilon=epsilon, rtol=rtol,
        atol=atol, elements=elements)  # fmt: skip
    if fault is not None:
        raise AssertionError(describe(function, *fault))


def mismatch(function, *inputs, order=1, wrt=None, epsilon=1e-5, rtol=1e-5, atol=1e-7,
             elements=None):  # fmt: skip
    """The fault that `check_grad` reports: (the smallest failing inputs, the Mismatch), or None."""
    tensors = [leaf(x) for x in inputs]
    floating = [k for k, x in enumerate(tensors) if not x.stop_gradient]
    wrt = floating if wrt is None else list(wrt)

    def wrong(tensors):
        return first_mismatch(function, tensors, wrt, order, epsilon, rtol, atol, elements)

    fault = wrong(tensors)
    return None if fault is None else shrink(tensors, fault, wrong)


def leaf(x) -> Tensor:
    """A fresh tensor: float64 and wanting a gradient if it is floating."""
    x = Tensor(x.numpy() if isinstance(x, Tensor) else x)
    if not x.dtype.name.startswith(("float", "bfloat")):
        return x
    return Tensor(x.numpy(), dtype=float64, stop_gradient=False)


def total(function, tensors):
    """Σ w·f: every floating element of every result with a weight of its own."""
    results = function(*tensors)
    results = results if isinstance(results, list | tuple) else [results]
    parts = []
    for y in results:
        if y.spec.dtype.kind == "f":
            places = Tensor(range(y.size), dtype=float64).reshape(list(y.spec.shape))
            parts.append((y * (1 + 0.37 * places.sin())).sum())
    if not parts:
        raise type_error("no result is floating: there is nothing to differentiate")
    return sum(parts[1:], parts[0])


def gradient_of(function, wrt):
    """The function whose results are the gradients of `function`, those that are not zero."""

    def gradient(*tensors):
        wanted = [tensors[k] for k in wrt]
        gradients = grad(total(function, tensors), wanted, create_graph=True, allow_unused=True)
        return [g if g is not None else x * 0.0 for g, x in zip(gradients, wanted, strict=True)]

    return gradient


def first_mismatch(function, tensors, wrt, order, epsilon, rtol, atol, elements) -> Mismatch | None:
    """The first element of the lowest order whose derivative is wrong, or None."""
    for n in range(1, order + 1):
        derivatives = gradient_of(function, wrt)(*tensors)
        for k, derivative in zip(wrt, derivatives, strict=True):
            x, derivative = tensors[k].numpy(), derivative.numpy()
            for index in some_indices(x.shape, elements):
                d = float(derivative[index])
                q = slope(total_by(function, tensors, k), x, index, epsilon)
                if not agrees(d, q, rtol, atol):
                    return Mismatch(n, k, index, d, q)
        function = gradient_of(function, wrt)
    return None


def total_by(function, tensors, k: int):
    """L as a function of input k alone: array -> number."""
    return lambda x: total(function, [*tensors[:k], leaf(x), *tensors[k + 1 :]]).item()


@slot("gradcheck.slope")
def slope(f, x, index: tuple, epsilon: float) -> float:
    """How fast the number f(x) grows with the element of `x` at `index`: a central difference.

    (f(x + εe) - f(x - εe)) / 2ε, where e is 1 at `index` and 0 elsewhere.

    >>> import numpy as np
    >>> from minipaddle.testing.gradcheck import slope
    >>> float(slope(lambda x: (x**2).sum(), np.array([1.0, 3.0]), (1,), 0.5))
    6.0
    """
    ahead, behind = x.copy(), x.copy()
    ahead[index] += epsilon
    behind[index] -= epsilon
    return (f(ahead) - f(behind)) / (2 * epsilon)


@slot("gradcheck.agrees")
def agrees(derivative: float, quotient: float, rtol: float, atol: float) -> bool:
    """Whether the two are equal to the precision of a difference quotient; never if one is NaN."""
    return abs(derivative - quotient) <= atol + rtol * max(abs(derivative), abs(quotient))


def some_indices(shape, count: int | None) -> Iterator[tuple]:
    """At most `count` indices of an array, evenly spread; all if None."""
    step = 1 if count is None else max(1, -(-prod(shape) // count))
    return islice(product(*map(range, shape)), 0, None, step)


def shrink(tensors, fault, wrong):
    """Cut every axis of one size at a time, for as long as what is left still shows a mismatch."""
    sizes = sorted({n for x in tensors for n in x.shape if n > 1})
    for size in sizes:
        for smaller in range(1, size):
            cut = [leaf(x.numpy()[part(x, size, smaller)]) for x in tensors]
            try:
                still = wrong(cut)
            except Exception:  # the function does not take these shapes
                continue
            if still is not None:
                tensors, fault = cut, still
                break
    return tensors, fault


def part(x: Tensor, size: int, smaller: int) -> tuple:
    """The key that cuts the axes of `size` to `smaller`."""
    return tuple(slice(0, smaller if n == size else n) for n in x.shape)


def describe(function, tensors, found: Mismatch) -> str:
    """The mismatch as a sentence, with the inputs that show it."""
    name = getattr(function, "__name__", "the function")
    what = ("derivative", "second derivative", "third derivative")[min(found.order, 3) - 1]
    at = f"the {what} of {name} by input {found.place} at {list(found.index)}"
    fact = f"{at} is {found.derivative:.6g}; {found.quotient:.6g} is right"
    inputs = ", ".join(str(x.tolist()) for x in tensors)
    return f"{teach(fact, expected='what central differences give')}\n  for the inputs: {inputs}"
