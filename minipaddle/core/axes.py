"""Axes, shapes and places as users write them: numbers, lists of them, 0-D and 1-D tensors.

The argument `out` is refused here.
"""

from functools import wraps

from ..engine.core.dim import Dim
from ..engine.core.dispatch import current, note_refusal
from ..engine.core.errors import find_caller, teach, type_error, value_error
from ..engine.core.spec import normalize_axis
from ..engine.ops.subscripts import whole
from ..engine.ops.var import Var


def whole_numbers(value, what: str = "shape") -> tuple:
    """A tuple of ints from a number, a list of numbers (0-D tensors among them), or a 1-D tensor.

    Raises a TypeError that names `what` was given.
    """
    if isinstance(value, Var):
        value = current.top.sizes(value)
    try:
        return tuple(map(whole, value)) if isinstance(value, list | tuple) else (whole(value),)
    except TypeError:
        raise type_error(
            f"{what}={value!r}", expected="a whole number, or a list of whole numbers"
        ) from None


def drop_fraction(x):
    """A float that is whole as an int; anything else as it is."""
    return int(x) if isinstance(x, float) and x.is_integer() else x


def axis_of(axis, ndim: int) -> int:
    """One axis, counted from the front."""
    return normalize_axis(axis if type(axis) is int else number(axis), ndim)


def number(n, what: str = "axis") -> int:
    """A number that must be known while the program is traced, since its shapes depend on it."""
    n = whole(n)
    if isinstance(n, Dim):
        message = teach(
            f"{what} is {n}, which is known only when the program runs",
            expected="a number of Python: the shapes that follow depend on it",
            hint="give it as an argument that is no tensor",
        )
        raise note_refusal(TypeError(message))
    return n


def axes_of(axes, ndim: int) -> tuple:
    """Several axes, counted from the front, in the given order; ValueError if one occurs twice."""
    normalized = tuple(axis_of(d, ndim) for d in whole_numbers(axes, "axis"))
    if len(set(normalized)) != len(normalized):
        raise ValueError(f"axis {axes} names a dimension twice")
    return normalized


def accepts_varargs(function):
    """Decorator: `f(x, 2, 3)` means `f(x, [2, 3])`."""

    @wraps(function)
    def call(x, *args, **kwargs):
        if len(args) > 1 and all(isinstance(n, int | Dim | Var) for n in args):
            args = (args,)
        return function(x, *args, **kwargs)

    return call


def tensors(xs, what: str) -> list:
    """The tensors of a list; raises TypeError if it is no list or is empty."""
    if isinstance(xs, Var) or not isinstance(xs, list | tuple) or not xs:
        shown = xs.spec if isinstance(xs, Var) else xs
        raise type_error(f"{what} of {shown!r:.60}", expected="a list of one or more tensors")
    return xs


def write_into(out, result):
    """The result; where the caller gave a tensor `out`, written into it."""
    if out is None:
        return result
    if not isinstance(out, Var):
        raise type_error(f"out={out!r:.60}", expected="a tensor of the result's shape, or None")
    return out.become(result)


def no_out(name: str = "") -> ValueError:
    """The error for a call with `out`. (`numpy.sum(x)` calls `x.sum(out=None)`.)"""
    name = name or find_caller()
    return value_error(f"{name}(out=...) is not supported", hint="assign the result")
