"""The stack of interpreters. The one on top decides what applying an operator means.

`Eager` (in `engine/eager`) computes at once and keeps a tape; a builder writes records into
a program. Each thread has its own stack, with an `Eager` at its bottom.
"""

from __future__ import annotations

import threading
from contextlib import ContextDecorator, contextmanager, nullcontext
from functools import wraps

from .errors import inside

OUT = -1
"""The number of a record's result, beside 0, 1, … for its inputs."""


class Interpreter:
    """What an interpreter is asked for; the attributes are what `no_grad` and layers switch."""

    recording = True  # does what is computed now get a derivative?
    scope = None  # the layer being called, as a chain (parent scope, layer)
    passing = None  # the record a reverse walk is passing
    tracing = False  # is a program written? Then writes to tensors are its business
    refusal: Exception | None = None  # why the traced function cannot become a program
    by_hand = False  # is it one that a user defines, between enable_static and disable_static?

    def apply(self, op, inputs, attrs):
        """The result of `op` on `inputs`, which are Vars or Python scalars."""
        raise NotImplementedError

    def read(self, record, k):
        """Input `k` (or `OUT`) of a record as a Var, for a derivative rule."""
        raise NotImplementedError

    def viewed(self, x, y) -> None:
        """`y` is part of x at a place that only a run knows: eagerly it is a view of x."""

    def full(self, spec, value, like):
        """A Var of `spec` with `value` everywhere, on the device of the Var `like`."""
        raise NotImplementedError

    def constant(self, data, dtype=None, place=None):
        """A Var with a copy of `data`: numbers, nested lists, an array."""
        raise NotImplementedError

    def sizes(self, x):
        """The whole numbers of a Var that says sizes or places, as Python's: nested lists."""
        return x.tolist()

    def modes(self, training, testing):
        """`training()`; a program that can be cloned for testing keeps both."""
        return training()

    def made(self, parameter, draw) -> None:
        """A parameter was made, its values by `draw()`."""

    def settled(self, part):
        """A part of a layer, its value worked out where a program is defined by hand."""
        return part

    def outside(self):
        """A context in which nothing is written into a program that is defined by hand."""
        return nullcontext()


def hosted(method):
    """Decorator: a method that needs numbers runs in Python, after each run of a traced program."""

    @wraps(method)
    def call(self, *args, **kwargs):
        if current.top.tracing:
            return current.top.host(method, (self, *args), kwargs)
        return method(self, *args, **kwargs)

    return call


class Stack(threading.local):
    """`current.top` is the interpreter in charge on this thread."""

    bottom: type[Interpreter] = Interpreter

    def __init__(self):
        self.top = Stack.bottom()

    def install(self, bottom: type[Interpreter]) -> None:
        """Put `bottom` at the bottom of every thread's stack."""
        Stack.bottom = bottom
        self.top = bottom()


current = Stack()


@contextmanager
def interpreter(new: Interpreter):
    """Put `new` on top of this thread's stack while the block runs."""
    below, current.top = current.top, new
    try:
        yield new
    finally:
        current.top = below


def note_refusal(error: Exception) -> Exception:
    """Note an error that eager mode would not raise: the running trace ends with the first one,
    even if the user's code catches it (`raise_refusal`).
    """
    if current.top.tracing:
        current.top.refusal = current.top.refusal or error
    return error


@contextmanager
def raise_refusal(top: Interpreter):
    """A block that traces: at its end it raises the refusal noted in it, whichever of the user's
    handlers caught that error on its way.
    """
    try:
        yield
    except Exception as error:
        if top.refusal is None or says_again(error, top.refusal):
            raise
    if top.refusal is not None:
        raise top.refusal


def says_again(error: Exception, refusal: Exception) -> bool:
    """Is an error the refusal itself, or does this package tell it in other words?"""
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
