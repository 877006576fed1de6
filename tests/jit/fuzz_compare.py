"""Is a function the same as a program as it is eagerly? Results, gradients, effects, prints."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import warnings

import numpy as np

import minipaddle as paddle
from minipaddle.engine.eager.control_flow import BranchError, CarriedError
from minipaddle.engine.eager.device import QUIET
from minipaddle.engine.eager.tape import LeafError
from minipaddle.jit.dy2static.utils import Dygraph2StaticException
from tests.jit import fuzz_world as world

REFUSALS = (
    Dygraph2StaticException,
    BranchError,
    CarriedError,
    NotImplementedError,
    RecursionError,  # whose end a tensor decides
)
NUMBERS = (bool, int, float)
LIMIT = 20
"""Seconds after which a call is taken to hang."""


class Difference(Exception):
    """Eager and static do not do the same; `kind` is a word for it."""

    def __init__(self, kind: str, text: str):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Refused(Exception):
    """The conversion says it cannot be done; `kind` is its message without names and numbers."""

    def __init__(self, error):
        super().__init__(str(error))
        self.kind = f"{type(error).__name__}: {general(str(error))}"


class Skip(Exception):
    """Eager mode cannot do it either, in a way that a program need not repeat."""


class Hang(BaseException):
    """A call did not end; no exception of the program's own, which a check could raise later."""


def general(message: str) -> str:
    """What a message says, without the names and numbers of one program."""
    match = re.search(r"^ *\w+(?:Error|Exception): (.*)", message, re.MULTILINE)
    line = re.sub(r"`[^`]*`(\[[^]]*\])*", "NAME", match[1] if match else message.splitlines()[0])
    return re.sub(r"\d+", "N", line)


@contextlib.contextmanager
def limited(seconds: int):
    """Raises Hang in the block after `seconds` of computing."""

    def ring(*_):
        raise Hang

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def overflows():
    """A block of eager mode; the list of what went beyond the numbers there are in it."""
    kinds = []
    before = QUIET.run(np.seterr, over="call", divide="call"), QUIET.run(np.geterrcall)
    QUIET.run(np.seterrcall, lambda kind, flag: kinds.append(kind))
    try:
        yield kinds
    finally:
        QUIET.run(np.seterr, **before[0])
        QUIET.run(np.seterrcall, before[1])


class Outcome:
    """The results, prints and side effects of a call."""

    overflowed = ()

    def __init__(self, function, seed: int):
        world.reset(seed)
        inputs = world.arguments(seed)
        printed = io.StringIO()
        self.error = self.backward_error = None
        self.effects = [0.0]
        try:
            with contextlib.redirect_stdout(printed), world.mode(seed):
                self.result = function(*inputs)
        except Hang:
            raise
        except Exception as error:
            self.error = error
            return
        self.leaves = dict(leaves(self.result))
        self.state = np.concatenate([world.STATE.numpy(), world.counted(0.0).numpy()])
        self.effects = world.effects()
        self.drawn = paddle.rand([2]).numpy()
        self.values = {k: x.numpy().copy() if isinstance(x, paddle.Tensor) else x
                       for k, x in self.leaves.items()}  # fmt: skip
        with contextlib.redirect_stdout(printed):
            self.gradients = self.walk_back(inputs, seed)
        self.printed = re.sub(r"stop_gradient=\w+", "", printed.getvalue())

    def walk_back(self, inputs, seed: int) -> list:
        """The gradients of a sum over the results, of inputs and captured parameters.

        None under no_grad: there eager mode gives an argument back with its past, and a program
        gives a new tensor.
        """
        if world.quiet(seed):
            return []
        losses = [
            (x * (0.5 + k)).sum()
            for k, x in enumerate(self.leaves.values())
            if isinstance(x, paddle.Tensor) and not x.stop_gradient
        ]
        wanted = [*(x for x in inputs[:3]), *world.PARAMETERS]
        if losses:
            try:
                sum(losses[1:], losses[0]).backward()
            except RuntimeError as error:
                self.backward_error = error
                return []
        return [None if x.grad is None else x.grad.numpy().copy() for x in wanted]


def leaves(value, path: str = "result"):
    """The leaves of nested containers, by path; a container's type and size count as one."""
    if isinstance(value, list | tuple):
        yield f"{path}: container", (type(value).__name__, len(value))
        for k, x in enumerate(value):
            yield from leaves(x, f"{path}[{k}]")
    elif isinstance(value, dict):
        yield f"{path}: container", tuple(value)
        for k, x in value.items():
            yield from leaves(x, f"{path}[{k!r}]")
    else:
        yield path, value


def same(function, static, seed: int) -> None:
    """Raises Difference, Refused or Skip; returns if both do the same."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with limited(LIMIT), overflows() as kinds:
                eager = Outcome(function, seed)
            eager.overflowed = kinds
        except Hang:
            raise Skip("eager mode hangs") from None
        try:
            with limited(LIMIT):
                traced = Outcome(static, seed)
        except Hang:
            raise Difference("hang", f"no end in {LIMIT} seconds") from None
        except Exception as error:
            raise Difference("after", repr(error)) from error
    if any("is drawn from while the function is traced" in str(each.message) for each in warned):
        function.draws = True
    if getattr(function, "draws", False):  # its program does not, as it warns
        eager.effects[-1] = traced.effects[-1]
    compare(eager, traced, function)


def compare(eager: Outcome, traced: Outcome, function) -> None:
    error = traced.error
    later = world.Kind.open and "known only when the program runs" in str(error)
    value = "while a program is traced a tensor has no value yet" in str(error)
    if isinstance(error, LeafError) and eager.error is None:  # eager mode has caught it
        raise Refused(error)
    if isinstance(error, REFUSALS) or later or value:  # Python takes it, or an open size, apart
        told = "\n".join([str(error), *getattr(error, "__notes__", ())])
        if not any(name in told for name in (function.__code__.co_filename, world.__file__)):
            raise Difference("refusal without a line", repr(error)) from error
        raise Refused(error)
    if eager.error is not None:
        if "NaN" in str(eager.error):  # int() of it
            raise Skip(str(eager.error))
        if error is None:
            kind = f"only eager raises {type(eager.error).__name__}"
            raise Difference(kind, repr(eager.error)) from eager.error
        return
    if error is not None:
        raise Difference(f"raises {type(error).__name__}", str(error)) from error
    if eager.leaves.keys() != traced.leaves.keys():
        raise Difference("structure", f"{list(eager.leaves)} and {list(traced.leaves)}")
    for path, x in eager.leaves.items():
        compare_leaf(path, x, traced.leaves[path], eager.values[path], traced.values[path])
    if not close(eager.state, traced.state):
        raise Difference("state", f"eager {eager.state}, static {traced.state}")
    if len(eager.effects) != len(traced.effects) or not close(eager.effects, traced.effects):
        raise Difference("effects", f"eager {eager.effects}, static {traced.effects}")
    if not close(eager.drawn, traced.drawn):
        raise Difference("random", f"then eager draws {eager.drawn}, static {traced.drawn}")
    if not alike(eager.printed, traced.printed):
        raise Difference("print", f"eager {eager.printed!r}, static {traced.printed!r}")
    compare_gradients(eager, traced)


def compare_leaf(path: str, x, y, a, b) -> None:
    if not isinstance(y, paddle.Tensor):
        if type(x) is not type(y) or not (x == y or (isinstance(x, float) and close(x, y))):
            raise Difference("value", f"{path}: eager {x!r}, static {y!r}")
        return
    if isinstance(x, NUMBERS):
        kinds = {bool: "b", int: "iu", float: "f"}
        if b.dtype.kind not in kinds[type(x)] or b.size != 1 or not close(a, b):
            raise Difference("value", f"{path}: eager {x!r}, static {y}")
        return
    if not isinstance(x, paddle.Tensor):
        raise Difference("type", f"{path}: eager {x!r}, static {y}")
    if a.dtype != b.dtype and not (a.dtype.kind == b.dtype.kind == "f"):
        raise Difference("dtype", f"{path}: eager {x}, static {y}")
    if a.dtype != b.dtype and a.shape:
        raise Difference("dtype", f"{path}: eager {x}, static {y}")
    if a.shape != b.shape:
        raise Difference("shape", f"{path}: eager {x}, static {y}")
    if not close(a, b):
        raise Difference("value", f"{path}: eager {x}, static {y}")


def compare_gradients(eager: Outcome, traced: Outcome) -> None:
    """What a condition did not choose gets a cotangent of zeros in a program, none in eager mode:
    if it is infinite, NaN comes out, which is 0 · ∞.
    """
    if eager.backward_error is not None:
        return  # overwritten in place: a program may know better
    if traced.backward_error is not None:
        raise Difference("backward raises", str(traced.backward_error))
    names = ("x", "m", "s", "W", "BIAS")
    pairs = zip(eager.gradients, traced.gradients, strict=True)
    for name, (a, b) in zip(names, pairs):
        a, b = (np.zeros(()) if g is None else g for g in (a, b))
        lost = np.isnan(b) if eager.overflowed else False
        if not close(a, np.where(lost, a, b)):
            raise Difference("gradient", f"of {name}: eager {a}, static {b}")


def close(a, b) -> bool:
    rough = 100 if world.Kind.dtype == "float32" else 1
    return np.allclose(a, b, rtol=1e-5 * rough, atol=1e-6 * rough, equal_nan=True)


def alike(a: str, b: str) -> bool:
    """Two printed texts, numbers by value."""
    number = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
    numbers = [[float(n) for n in number.findall(text)] for text in (a, b)]
    return number.sub("", a).split() == number.sub("", b).split() and (
        len(numbers[0]) == len(numbers[1]) and close(*numbers)
    )
