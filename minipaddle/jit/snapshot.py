"""What Python's objects hold around a branch or a loop body that is traced.

Tracing runs the block once; a run of the program runs it never, or many times. The journal
(`engine.jit.journal`) puts back what converted code writes. Anything else may change an object too:
a library, an iterator, an operator or a context manager of the user's. So the rule is: once a block
is traced and the journal is restored, every object that the block can reach must hold what it held
before.
"""

from __future__ import annotations

import gc
import io
import random
import sys
import threading
import zlib
from collections import Counter, OrderedDict, defaultdict, deque
from functools import cache
from itertools import count
from logging import Logger
from operator import length_hint
from types import (
    BuiltinMethodType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodType,
    ModuleType,
    NoneType,
)

import numpy

from ..engine.core.errors import PACKAGE
from ..engine.core.rank import NAMED
from ..engine.eager.tensor import Parameter, Tensor
from ..engine.jit.ignore import installed, within
from ..engine.jit.refusal import refusal

CONSTANT = {Tensor, Parameter, int, float, bool, complex, str, bytes, NoneType, range, slice,
            CodeType, type(...), type(NotImplemented)}  # fmt: skip
"""Types of objects that nothing changes; of tensors the tracer takes care."""


DICTS = (dict, OrderedDict, defaultdict)


class Snapshot:
    """The objects that some functions can reach, and what each of them holds."""

    def __init__(self, functions):
        self.roots = {*map(id, functions)}
        self.objects: list = []
        self.states: list[tuple] = []
        self.held: Counter | None = None
        seen, waiting = set(), [*functions, *shared().values()]
        for x in waiting:
            if type(x) in CONSTANT or id(x) in seen:
                continue
            seen.add(id(x))
            found = state(x, root=id(x) in self.roots)
            if found is not None:
                self.objects.append(x)
                self.states.append(found)
                waiting += found[1]

    def check(self, block: str, where=None) -> None:
        """Refuse the block if an object holds something else; what can be put back, is."""
        changed = [(self.name(x), x, put_back(x, before)) for x, before in self.changes()]
        if changed:
            name, x, _ = changed[-1]
            raise refusal(
                f"{name} is changed {block}, which a program cannot do: it would change "
                "while that is traced, not when it runs",
                hint=DRAW if isinstance(x, CHANCE) else KEEP,
                where=where and where(self.objects, name),
            )

    def changes(self) -> list[tuple]:
        """(object, what it held) for each that holds something else now."""
        found = []
        for x, before in zip(self.objects, self.states, strict=True):
            now = state(x, root=id(x) in self.roots)
            if now is None or not (same(before[:2], now[:2]) and before[2:] == now[2:]):
                found.append((x, before))
        return found

    def knows(self, x) -> bool:
        """Is an object among those that can be reached?"""
        return any(x is each for each in self.objects)

    def references(self, x) -> int:
        """How often the snapshot holds an object."""
        if self.held is None:
            inside = (v for both in self.states for values in both[:2] for v in values)
            self.held = Counter(map(id, inside)) + Counter(map(id, self.objects))
        return self.held[id(x)]

    def name(self, x) -> str:
        """How the user's code calls an object: `self.queue` (a deque)."""
        for name, each in shared().items():
            if each is x:
                return name
        path, holder = "", x
        for _ in range(20):  # so many steps of a name are shown
            holder, step = self.holder_of(holder)
            path = step + path
            if holder is None:
                break
        kind = type(x).__name__
        return f"`{path.lstrip('.')}` ({kind})" if path else f"something of the type {kind}"

    def holder_of(self, x) -> tuple:
        """An object that holds x, and how it names it; None for a variable or none."""
        for holder, (keys, values, *_) in zip(self.objects, self.states, strict=True):
            for key, value in zip(keys, values, strict=False):
                if value is x and holder is not x:
                    kind = type(holder)
                    if kind is MethodType and value is holder.__self__:
                        return None, "self"
                    if key == "":
                        return holder, ""
                    if kind in (FunctionType, ModuleType):
                        return None, str(key)
                    item = issubclass(kind, dict) or type(key) is int
                    return holder, f"[{key!r}]" if item else f".{key}"
        return None, ""


def shared() -> dict:
    """What code can change without naming it."""
    found = {"random": random._inst, "numpy.random": numpy.random.mtrand._rand}
    found = {f"the generator of `{name}`": x for name, x in found.items()}
    return found | {name: setting.box for name, setting in NAMED.items()}


CHANCE = (random.Random, numpy.random.RandomState, numpy.random.Generator)

DRAW = "draw with paddle.rand or paddle.randint, or draw outside and give the numbers as arguments"
KEEP = "change it outside, or keep it in a list, a dict, an attribute or a tensor of the function"


class Open(threading.local):
    """The snapshots of the blocks being traced on this thread."""

    def __init__(self):
        self.snapshots: list[Snapshot] = []


opened = Open()


def references(x) -> int:
    """How often the snapshots hold an object."""
    return sum(each.references(x) for each in opened.snapshots)


def same(a, b) -> bool:
    """Are two parts of a state the same: identical objects, equal constants?"""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) in CONSTANT and not isinstance(a, Tensor) and a == b


# ---- what an object holds ------------------------------------------------------------------------


def state(x, *, root: bool = False):
    """(names, values, what else tells its state) of an object; None if nothing can change it."""
    kind = type(x)
    if kind in (list, tuple, deque):
        return range(len(x)), [*x]
    if kind in DICTS or kind is MappingProxyType:
        return [*x], [*x.values()]
    if kind in (set, frozenset):
        return range(len(x)), sorted(x, key=id)
    if kind is FunctionType:
        return function_state(x, root)
    if kind is CellType:
        return [""], [*gc.get_referents(x)]
    if kind is ModuleType or isinstance(x, Logger):
        return None  # `function_state` takes from it what the function names
    if kind is BuiltinMethodType:
        return None if isinstance(x.__self__, ModuleType) else ([""], [x.__self__])
    if isinstance(x, type):
        return class_state(x)
    if derives_from_ours(kind):
        return package_state(x, kind)
    return object_state(x)


def function_state(function: FunctionType, root: bool):
    """Its variables of other scopes, and what it names of its module and of modules there."""
    code, space = function.__code__, function.__globals__
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    cells.pop("__classdict__", None)  # what `vars` of a class shows; written here, Python crashes
    names, values = [*cells], [*cells.values()]
    values += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    names += [""] * (len(values) - len(names))
    ours = within(space.get("__name__") or "", PACKAGE)
    if ours and not root:
        values = [c for c in values if type(c) is CellType and holds_code(c)]
        return [""] * len(values), values
    if not ours:
        names += vars(function)
        values += vars(function).values()
    if not ours and not library(space.get("__name__") or "", code.co_filename):
        for name, value in named(names_in(code), space, [space]):
            names.append(name)
            values.append(value)
    return names, values


def named(names, space: dict, seen: list):
    """What a module holds by some names, and what the modules among that hold by them."""
    for name in sorted(names & space.keys()):
        value = space[name]
        if type(value) is not ModuleType:
            yield name, value
        elif not within(value.__name__, PACKAGE) and not any(s is vars(value) for s in seen):
            seen.append(vars(value))
            for inner, found in named(names, vars(value), seen):
                yield f"{name}.{inner}", found


def holds_code(cell: CellType) -> bool:
    return any(map(callable, gc.get_referents(cell)))


@cache
def names_in(code: CodeType) -> frozenset:
    """The names of other scopes and of attributes in a function and in those inside it."""
    inside = [names_in(c) for c in code.co_consts if type(c) is CodeType]
    return frozenset(code.co_names).union(*inside)


@cache
def library(module: str, filename: str) -> bool:
    """Is it code that belongs to Python or to an installed library?"""
    return module.partition(".")[0] in sys.stdlib_module_names or installed(filename)


def class_state(kind: type):
    """What the user's class holds; others change nothing."""
    if kind.__module__ == "builtins" or within(kind.__module__, PACKAGE):
        return None
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    if library(kind.__module__, file):
        return None
    own = {k: v for k, v in vars(kind).items() if k[:1] != "_" or callable(v)}
    return [*own, ""], [*own.values(), kind.__mro__[1:]]


@cache
def derives_from_ours(kind: type) -> bool:
    return any(within(base.__module__, PACKAGE) for base in kind.__mro__)


def given(own: dict, kind: type) -> dict:
    """The attributes of an object that are not as its class gives them."""
    return {k: v for k, v in own.items() if getattr(kind, k, own) is not v}


def package_state(x, kind: type):
    """An object of a class of this package, or of one derived from that: what the user gave it.

    The attributes that our `__init__` makes are our business; the layers in a layer, and what
    wraps the user's code, lead to more of the user's.
    """
    own = getattr(x, "__dict__", {})
    parts = own.get("_sub_layers") or {}
    found = {} if within(kind.__module__, PACKAGE) else {"": kind}
    if found:
        theirs = {k: v for k, v in given(own, kind).items() if k not in our_names(kind)}
        found |= {k: v for k, v in theirs.items() if v is not None}  # a layer may move it away
    found |= parts
    if "__wrapped__" in own:
        found["__wrapped__"] = own["__wrapped__"]
    return ([*found], [*found.values()]) if found else None


@cache
def our_names(kind: type) -> frozenset:
    """The attributes that the classes of this package among the bases of a class make."""
    makers = [vars(base).get("__init__") for base in kind.__mro__
              if within(base.__module__, PACKAGE)]  # fmt: skip
    return frozenset().union(*(f.__code__.co_names for f in makers if type(f) is FunctionType))


def object_state(x):
    """Any other object: what its own dict and its containers hold, and its hidden place."""
    kind = type(x)
    names, values = [], []
    if isinstance(x, dict):
        names += dict.keys(x)
        values += dict.values(x)
    own = getattr(x, "__dict__", None)
    if type(own) is dict:
        mine = given(own, kind)
        names += mine
        values += mine.values()
    if isinstance(x, BaseException):  # to raise it changes where it was raised
        return names, [*values, *x.args]
    place = hidden(x, kind)
    held = [y for y in gc.get_referents(x) if y is not own and type(y) is not FrameType]
    if isinstance(x, numpy.ndarray) and x.dtype.hasobject:
        held += x.flat
    names += [""] * len(held)
    return names, values + held, place


def hidden(x, kind: type):
    """What Python shows of an object only by its methods: a place, numbers in memory."""
    if kind is GeneratorType:
        return x.gi_frame and x.gi_frame.f_lasti
    if kind is count:
        return repr(x)
    if isinstance(x, random.Random):
        return x.getstate()
    if isinstance(x, numpy.random.RandomState):
        return plain(x.get_state(legacy=False))
    if isinstance(x, numpy.random.Generator):
        return plain(x.bit_generator.state)
    if hasattr(kind, "__length_hint__"):
        return length_hint(x, -1)
    if isinstance(x, io.IOBase):
        return place_in(x)
    return memory(x)


def plain(x):
    """The state of a generator of NumPy, as constants: nested dicts, arrays as lists."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return x.tolist() if isinstance(x, numpy.ndarray) else x


def place_in(file):
    """Where a file is read or written next; None of one that has no such place."""
    try:
        return file.tell()
    except (OSError, ValueError):
        return None


SMALL = 1 << 20
"""Bytes of memory that are kept; of more only a checksum is."""


def memory(x):
    """The numbers in an array or a buffer; None if x is neither."""
    if isinstance(x, numpy.ndarray):
        array = x
    else:
        try:
            array = numpy.asarray(memoryview(x))
        except (TypeError, ValueError, BufferError):
            return None
    if array.dtype.hasobject:
        return None
    if array.nbytes <= SMALL:
        return str(array.dtype), array.shape, array.tobytes()
    flat = array.reshape(-1).view("u1") if array.flags.c_contiguous else array.tobytes()
    return str(array.dtype), array.shape, zlib.crc32(flat)


def put_back(x, before) -> None:
    """Let an object hold what it held, where Python has a way to do that."""
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
