"""The stack of interpreters. The one on top decides what applying an operator means.

`Eager` (in `engine/eager`) computes at once and keeps a tape; a builder writes records into
a program. Each thread has its own stack, with an `Eager` at its bottom.
"""

from __future__ import annotations

import threading
from contextlib import ContextDecorator, contextmanager
from types import MappingProxyType

from .errors import inside

OUT = -1
"""The number of a record's result, beside 0, 1, … for its inputs."""


class Interpreter:
    """The base of interpreters. Its attributes are the whole context of a computation or a trace.

    Nothing of a trace is a global: code asks `current.top` for it.
    """

    recording = True  # whether computations are recorded for a derivative
    scope = None  # the layer being called, as (parent scope, layer, line of the call)
    lines = False  # whether records note the user's line: it costs a tenth of a small operator
    policy = None  # of mixed precision, which governs an interpreter by another `apply`
    passing = None  # the record a reverse walk is passing
    tracing = False  # whether it writes a program; then it also handles writes to tensors
    refusal: Exception | None = None  # why the traced function cannot become a program
    by_hand = False  # whether a user defines the program, by enable_static and disable_static
    pack = None  # a function of what a record keeps, {k: array}, for what it keeps instead
    builder = None  # of a trace: what writes the records of the innermost region
    assumptions = None  # of a trace: what it assumes of sizes, see `core/dim.py`
    matching = False  # whether a shape rule runs, for which `==` of sizes means that they must be
    journals = ()  # of a trace: for each region what it wrote, see `jit/journal.py`
    reads = None  # of a trace: notes what code reads outside, see `jit/aliasing.py`
    merged = MappingProxyType({})  # of a trace: containers that may be one, see `jit/aliasing.py`
    handlers = ()  # of a trace: the exceptions that the `try` statements around it catch
    after_backward: list | None = None  # calls for the end of the backward that runs, if one does

    def apply(self, op, inputs, attrs):
        """The result of `op` on `inputs`, which are Vars or Python scalars."""
        raise NotImplementedError

    def read(self, record, k):
        """Input `k` (or `OUT`) of a record as a Var, for a derivative rule."""
        raise NotImplementedError

    def note_view(self, x, y) -> None:
        """Note that `y` is a view of x at a place that only a run knows."""

    def full(self, spec, value, like):
        """A Var of `spec` with `value` everywhere, on the device of the Var `like`."""
        raise NotImplementedError

    def constant(self, data, dtype=None, place=None):
        """A Var with a copy of `data`: numbers, nested lists, an array."""
        raise NotImplementedError

    def sizes(self, x):
        """The whole numbers of a Var that holds sizes or indices, as nested lists."""
        return x.tolist()

    def modes(self, training, testing):
        """The result of `training()`; a program that can be cloned for testing records both."""
        return training()


class InterpreterStack(threading.local):
    """`current.top` is the interpreter in charge on this thread."""

    bottom: type[Interpreter] = Interpreter

    def __init__(self):
        self.top = InterpreterStack.bottom()

    def install(self, bottom: type[Interpreter]) -> None:
        """Put `bottom` at the bottom of every thread's stack."""
        InterpreterStack.bottom = bottom
        self.top = bottom()


current = InterpreterStack()


@contextmanager
def setting(owner, **values):
    """A block in which attributes of `owner` have these values."""
    before = {name: getattr(owner, name) for name in values}
    vars(owner).update(values)
    try:
        yield
    finally:
        vars(owner).update(before)


@contextmanager
def interpreter(new: Interpreter):
    """Put `new` on top of this thread's stack while the block runs."""
    with setting(current, top=new):
        yield new


def describe(x, show=repr) -> str:
    """`float32[2, 3]` for anything that has a spec, else its repr, or its type where that fails:
    a repr of the user's adds nothing to a program, and hides no error.
    """
    spec = getattr(x, "spec", None)
    try:
        with interpreter(current.bottom() if spec is None else current.top):
            return show(x) if spec is None else str(spec)
    except Exception:
        return f"a value of the type {type(x).__name__}"


def note_refusal(error: Exception) -> Exception:
    """Note an error that eager mode would not raise: the running trace ends with the first one,
    even if the user's code catches it (`raise_refusal`).
    """
    if current.top.tracing:
        current.top.refusal = current.top.refusal or error
    return error


@contextmanager
def raise_refusal(top: Interpreter):
    """A block that traces: at its end it raises the refusal noted in it, even if a handler of the
    user's code caught that error.
    """
    try:
        yield
    except Exception as error:
        if top.refusal is None or is_same_refusal(error, top.refusal):
            raise
    if top.refusal is not None:
        raise top.refusal


def is_same_refusal(error: Exception, refusal: Exception) -> bool:
    """Whether an error is the refusal itself, or this package raised it from the refusal."""
    if error is refusal:
        return True
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    return error.__cause__ is refusal and inside(last.tb_frame)


class Recording(ContextDecorator):
    """Switch recording on or off: `with paddle.no_grad(): ...`, or `@paddle.no_grad()`.

    Source: Paddle API `paddle.no_grad`, `paddle.enable_grad`, `paddle.set_grad_enabled`.
    """

    def __init__(self, mode: bool):
        self.mode = mode
        self.before = []

    def _recreate_cm(self):
        return Recording(self.mode)

    def __enter__(self):
        top = current.top
        self.before.append((top, top.recording))
        top.recording = self.mode
        return self

    def __exit__(self, *exc):
        top, mode = self.before.pop()
        top.recording = mode


def match_sizes(function, *args, yes: bool = True):
    """The result of an operator's shape rule: while it runs, `==` of two sizes means `same`, except
    against 0 and 1.

    >>> from minipaddle.engine.core.dim import match_sizes, symbol
    >>> n = symbol("n", hint=3)
    >>> match_sizes(lambda: ((2, n) == (2, 3), n == 1))
    (True, False)
    """
    top = current.top
    before, top.matching = top.matching, yes
    try:
        return function(*args)
    finally:
        top.matching = before
