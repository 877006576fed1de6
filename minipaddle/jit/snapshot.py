"""The objects that a traced branch or loop body can reach, and whether they are as they were.

Tracing runs the block once; a run of the program runs it never, or many times. The journal
(`engine.jit.journal`) restores what converted code writes. Other code may change an object too: a
library, an iterator, an operator or a context manager of the user's. So the rule is: once a block
is traced and the journal is restored, every object that the block can reach must hold the same
values as before.
"""

import random
from collections import deque
from operator import is_
from types import FunctionType, MethodType, ModuleType

import numpy

from ..engine.core.dispatch import describe
from ..engine.core.rank import NAMED
from ..engine.eager.tensor import Tensor
from ..engine.jit.refusal import refusal
from ..engine.jit.tree import reachable
from .objects import CHANCE, CONSTANT, DICTS, SMALL, derives_from_ours, state


class ObjectSnapshot:
    """The objects that some functions can reach, and what each of them holds."""

    def __init__(self, functions):
        self.roots = {*map(id, functions)}
        self.objects: list = []
        self.states: list[tuple] = []
        self.reached = reachable([*functions, *find_shared().values()], self.note)

    def note(self, x):
        """Note what an object holds, and return the objects among that."""
        held = None if type(x) in CONSTANT else state(x, root=id(x) in self.roots)
        if held is None:
            return ()
        self.objects.append(x)
        self.states.append(held)
        return held[1]

    def check(self, block: str, where=None, released=()) -> None:
        """Refuse the block if an object has changed; restore the object if Python allows it.

        Objects of the `released` types may have changed.
        """
        changes = [(x, before) for x, before in self.changes() if not isinstance(x, released)]
        changed = [(self.name(x), x, put_back(x, before)) for x, before in changes]
        if changed:
            name, x, _ = changed[-1]
            raise refusal(
                f"{name} is changed {block}, which a program cannot do: it would change "
                "while that is traced, not when it runs",
                hint=DRAW if isinstance(x, CHANCE) else KEEP,
                where=where and where(self.objects, name),
            )

    def changes(self) -> list[tuple]:
        """(object, its former state) for each object that has changed."""
        pairs = zip(self.objects, self.states, strict=True)
        return [(x, before) for x, before in pairs if self.differs(x, before)]

    def differs(self, x, before) -> bool:
        """Whether an object's state is another one now."""
        now = state(x, root=id(x) in self.roots)
        return now is None or not (identical(before, now) or equal(before, now))

    def has_changed(self, x) -> bool:
        """Whether one of the objects has changed."""
        pairs = zip(self.objects, self.states, strict=True)
        return any(each is x and self.differs(x, before) for each, before in pairs)

    def knows(self, x) -> bool:
        """Whether an object can be reached."""
        return any(x is each for each in self.objects)

    def name(self, x) -> str:
        """The expression for an object in the user's code, and its type: `self.queue` (deque)."""
        for name, each in find_shared().items():
            if each is x:
                return name
        path, holder = "", x
        for _ in range(20):  # a longer name is cut off
            holder, step = self.holder_of(holder)
            path = step + path
            if holder is None:
                break
        kind = type(x).__name__
        return f"`{path.lstrip('.')}` ({kind})" if path else f"something of the type {kind}"

    def holder_of(self, x) -> tuple:
        """An object that holds x, and the last part of x's name; None if x is a variable."""
        for holder, (keys, values, *_) in zip(self.objects, self.states, strict=True):
            for key, value in zip(keys, values, strict=False):
                if value is x and holder is not x:
                    kind = type(holder)
                    if kind is MethodType and value is holder.__self__:
                        return None, "self"
                    if key == "":
                        return holder, ""
                    if kind in (FunctionType, ModuleType):
                        return None, key if type(key) is str else describe(key)
                    item = issubclass(kind, dict) or type(key) is int
                    return holder, f"[{describe(key)}]" if item else f".{key}"
        return None, ""


def find_shared() -> dict:
    """Objects that code can change without naming them."""
    generators = {"random": random._inst, "numpy.random": numpy.random.mtrand._rand}
    generators = {f"the generator of `{name}`": x for name, x in generators.items()}
    return generators | {name: setting.box for name, setting in NAMED.items()}


DRAW = "draw with paddle.rand or paddle.randint, or draw outside and give the numbers as arguments"
KEEP = "change it outside, or keep it in a list, a dict, an attribute or a tensor of the function"


def identical(a: tuple, b: tuple) -> bool:
    """Whether two states have the same objects in all places; most have."""
    if len(a) != 2 or len(b) != 2 or [*map(len, a)] != [*map(len, b)]:
        return False
    return all(map(is_, a[0], b[0])) and all(map(is_, a[1], b[1]))


def equal(a: tuple, b: tuple) -> bool:
    """Whether two states are the same for all that code can tell."""
    return same(a[:2], b[:2]) and a[2:] == b[2:]


def same(a, b) -> bool:
    """Whether two parts of a state are the same: identical objects, or equal constants."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in (list, tuple):
        return len(a) == len(b) and (all(map(is_, a, b)) or all(map(same, a, b)))
    return type(a) in CONSTANT and not isinstance(a, Tensor) and a == b


def put_back(x, before) -> None:
    """Restore the state of an object, if Python has a way to do that."""
    kind, (names, values) = type(x), before[:2]
    if kind in (list, deque, set):
        x.clear()
        (x.update if kind is set else x.extend)(values)
    elif kind in DICTS:
        x.clear()
        x.update(zip(names, values, strict=True))
    elif isinstance(x, random.Random):
        x.setstate(before[2])
    elif isinstance(x, numpy.random.RandomState):
        x.set_state(before[2])
    elif isinstance(x, numpy.random.Generator):
        x.bit_generator.state = before[2]
    elif derives_from_ours(kind) or isinstance(x, dict):
        return
    elif type(getattr(x, "__dict__", None)) is dict:
        vars(x).clear()
        vars(x).update({k: v for k, v in zip(names, values) if k})
    elif isinstance(x, numpy.ndarray) and type(before[2]) is tuple and x.nbytes <= SMALL:
        x[...] = numpy.frombuffer(before[2][2], x.dtype).reshape(x.shape)
    elif kind is bytearray:
        x[:] = before[2][2]
