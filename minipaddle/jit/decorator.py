"""`paddle.jit.to_static`: of a function, a method, a layer; with arguments or without."""

import inspect
import warnings
from contextlib import contextmanager

from ..engine.core.dispatch import describe, setting
from ..engine.core.errors import type_error
from ..engine.jit.ignore import MARK
from ..engine.jit.to_static import StaticFunction, Switch
from .ignoring import Unconverted
from .rebuilding import leaving_tensors


class DefaultMode:
    """The default of `full_graph` for `to_static`."""

    full_graph = False


mode = DefaultMode()


class FullGraph(StaticFunction):
    """A function that runs its program: see `full_graph` of `to_static`."""

    def trace_program(self, *args):
        with leaving_tensors():
            return super().trace_program(*args)


@contextmanager
def sot_mode_guard(value: bool):
    """In the block `to_static` without `full_graph` makes what `full_graph=not value` makes.

    Source: Paddle `paddle.jit.api.sot_mode_guard`.
    """
    with setting(mode, full_graph=not value):
        yield


def enable_to_static(enable_to_static_bool: bool) -> None:
    """False: converted functions run eagerly, as they are written; a debugger stops in them.

    >>> paddle.jit.enable_to_static(False)
    >>> paddle.jit.enable_to_static(True)
    """
    Switch.on = bool(enable_to_static_bool)


def to_static(function=None, input_spec=None, build_strategy=None, backend=None, **kwargs):
    """A function whose calls run a program; a layer gets such a `forward`.

    Arguments of new shapes, dtypes or Python values lead to a new program: the function runs once
    on tensors that have no values, and what it does is recorded. `input_spec` (InputSpecs, nested
    as the arguments are) leaves sizes open. Python's control flow over tensors is converted.

    A number of Python that only a run knows (`x.item()`, `int(x)`, what a condition on a tensor
    chooses from numbers) is returned, and left in attributes and lists, as an int, a float or a
    bool, as in eager mode. With `full_graph=True` it is a tensor without axes there, as in Paddle
    and in a program that `jit.save` writes.

    A function or a layer's `forward` that `not_to_static` marks stays as it is.

    What the function reads outside (attributes, variables of its module and of functions around it,
    items of containers, parts and numbers of layers) is compared at each call: another value leads
    to another program, another tensor of the same shape and dtype is simply used. What it changes
    outside, or in lists, dicts and objects that it is given, changes at each call. What code that
    is not converted reads on its own, a library that looks at a file, the clock or an environment
    variable, is taken as it was when the function was traced. Where a condition inside another one
    or in a loop, on a tensor, decides whether a name has one list or another, it holds a third one
    after the call, with the items of the right one.

    `backend` says what runs the program. "interpreter": one operator after the other. "native": one
    compiled C function, or on a GPU one CUDA graph ("cuda" insists on that). "auto", the default:
    the interpreter runs the first calls; from the second call on a thread compiles the program, and
    the first call after that uses what it made (`wait_compiled` waits for it). The two agree to
    rounding. A strategy's `build_cinn_pass` and the environment variable MINIPADDLE_BACKEND change
    the default. Where no compiler works there is one warning, and the interpreter stays.

    >>> @paddle.jit.to_static
    ... def absolute(x):
    ...     if x.sum() > 0:
    ...         return x
    ...     return -x
    >>> absolute(paddle.to_tensor([-1.0, -2.0])).tolist()
    [1.0, 2.0]
    """
    unknown = kwargs.keys() - {"full_graph", "property"}
    if unknown:
        raise type_error(f"to_static takes no argument {unknown.pop()!r}")
    full_graph = kwargs.get("full_graph")
    full_graph = mode.full_graph if full_graph is None else full_graph
    kind = FullGraph if full_graph else StaticFunction

    def decorate(target):
        if hasattr(target, "forward") and not inspect.isclass(target):
            return layer_to_static(target, kind, input_spec, build_strategy, backend)
        if isinstance(target, StaticFunction):
            target = target.function
        if not callable(target) or inspect.isclass(target):
            raise type_error(
                f"to_static was given {describe(target):.60}", expected="a function or a Layer"
            )
        static = make_static(target, kind, input_spec, build_strategy, backend)
        static.is_property = kwargs.get("property", False)
        return static

    return decorate if function is None else decorate(function)


def layer_to_static(layer, kind, *settings):
    forward = layer.forward
    if isinstance(forward, StaticFunction):
        warnings.warn(f"{type(layer).__name__}.forward was converted already", stacklevel=3)
        forward = forward.function
    layer.forward = make_static(forward, kind, *settings)
    return layer


def make_static(function, kind, *settings) -> StaticFunction:
    return (Unconverted if getattr(function, MARK, False) else kind)(function, *settings)
