"""Objects and functions that a converted function makes and that outlive the call: each run builds
its own, with its tensors in their attributes and variables. Numbers and texts of Python that only a
run knows leave it as such.

To the engine they are leaves. Here one that holds tensors of the trace becomes a tuple of what it
holds, whose type builds it again when it is given other values.
"""

import copy
import dataclasses
import gc
from collections import OrderedDict, deque
from dis import get_instructions
from functools import partial
from types import (
    BuiltinMethodType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
)

from ..eager.numbers import DTYPES, OVERFLOW, Number, plain, refuse_unsure
from ..engine.core.dim import Dim
from ..engine.core.dispatch import Interpreter, current, setting
from ..engine.core.errors import PACKAGE, teach
from ..engine.core.record import Record
from ..engine.eager.tensor import Tensor
from ..engine.ir.builder import SymbolicArray
from ..engine.jit.ignore import within
from ..engine.jit.journal import MISSING
from ..engine.jit.maybe_undefined import MaybeUndefined
from ..engine.jit.refusal import refusal
from ..engine.jit.tree import LEAF, PLAIN, Container, parts, reachable, unflatten
from ..engine.jit.writing import require_defined
from ..nn.layer.layers import Layer
from . import texts
from .picked import Picked, find_pick
from .texts import ProgramText

BUSY = object()
CONTAINERS = (OrderedDict, dict, list, tuple)
BAGS = (set, frozenset, deque)
EXACT = 2**53
"""Up to here a float holds each whole number."""

Interpreter.tensors_leave = False
"""Whether what a function traced on top of it leaves are tensors, where eager mode has numbers."""


def leaving_tensors():
    """A block that traces functions which leave tensors in place of numbers that only a run knows,
    and no such texts: a program that is saved, or that Paddle makes of a whole function, has no
    more.
    """
    return setting(current.top, tensors_leave=True)


class Rebuilding:
    """Takes the objects apart that the trace of a function made; `is_outside(x)` says what it did
    not make.
    """

    def __init__(self, function, is_outside):
        self.traced, self.is_outside = function, is_outside
        self.apart: dict[int, tuple] = {}  # by id: what was taken apart, and what it became
        self.users: dict[int, FunctionType] = {}  # a function with a variable, by the cell's id

    def take_apart(self, value):
        """The value, with tuples in place of what holds something of the trace."""
        kind = type(value)
        if kind in (Number, ProgramText) and not current.top.below.tensors_leave:
            return self.number(value) if kind is Number else self.text(value)
        if kind is MaybeUndefined:  # an attribute that a run may leave undefined
            held = [value.known, value.held]
            return self.rebuild(held, lambda new: new[0] if new[1] else MISSING, kind)
        if kind in PLAIN or isinstance(require_defined(value), Tensor | Dim | ModuleType):
            return value
        if self.is_outside(value) and kind is not type:
            return value
        if id(value) not in self.apart:
            self.apart[id(value)] = value, BUSY
            self.apart[id(value)] = value, self.take_apart_first(value, kind)
        elif self.apart[id(value)][1] is BUSY:
            raise self.refusal(value, "and holds itself", "return or keep its tensors themselves")
        return self.apart[id(value)][1]

    def take_apart_first(self, value, kind: type):
        """The same of a value that is met for the first time."""
        new, pick = self.take_apart_new(value, kind), find_pick(value)
        if pick is None or not self.may_be_outside(value):
            return new
        both = pick.left, pick.right
        either = [self.take_apart(x) if self.may_be_outside(x) else new for x in both]
        return apart([pick.test, *either, new], pick.choose_in_run, kind)

    def may_be_outside(self, value) -> bool:
        """Whether a value is outside, or may be one that is."""
        pick = find_pick(value)
        if pick is None:
            return self.is_outside(value)
        return self.may_be_outside(pick.left) or self.may_be_outside(pick.right)

    def take_apart_new(self, value, kind: type):
        """The same of a value that the trace made."""
        bare = not isinstance(getattr(value, "__dict__", None), dict)
        if dataclasses.is_dataclass(kind) and not issubclass(kind, CONTAINERS):
            bare |= MaybeUndefined not in map(type, getattr(value, "__dict__", {}).values())
        inside = parts(value)
        if inside and (bare or kind in CONTAINERS or issubclass(kind, tuple)):
            return self.container(value, *inside)
        if not self.holds_traced(value):
            return value
        if kind is FunctionType:
            return self.function(value)
        if kind is MethodType:
            function = value.__func__
            return self.rebuild([value.__self__], lambda new: MethodType(function, *new), kind)
        if kind is BuiltinMethodType:
            name = value.__name__
            return self.rebuild([value.__self__], lambda new: getattr(*new, name), kind)
        if kind is partial:
            return self.partial(value)
        if kind in BAGS:
            more = [value.maxlen] if kind is deque else []
            return self.rebuild(value, lambda new: kind(new, *more), kind)
        if bare and within(kind.__module__, PACKAGE):  # an optimizer's states
            return value
        if bare or isinstance(value, (Layer, type, *BAGS)):
            raise self.refusal(value, "", "return or keep its tensors themselves")
        if self.holds_traced(kind):  # a class of the trace, whose methods have tensors
            raise self.refusal(kind, "", "return or keep its tensors themselves")
        return self.object(value)

    def rebuild(self, held, build, kind: type) -> tuple:
        """A tuple of what an object holds, which `build(values)` builds again."""
        return apart([self.take_apart(x) for x in held], build, kind)

    def writes_to_picked(self) -> list:
        """For each object that was picked and then changed: those that it may be, and what writes
        to the right one.
        """
        changed = [x for x in (current.top.picked or {}).values() if x.changed]
        changed = [x for x in changed if self.may_be_outside(x.value)]
        return [(x.all(), apart([*self.take_apart(x.value)], x.write, Picked)) for x in changed]

    def common(self, values) -> list:
        """The containers and objects that stand in two places of what was taken apart, which a run
        builds once, those inside others first.
        """
        met, again, order = {}, set(), []

        def meet(x):
            inside = parts(x)
            if inside is None or self.is_outside(x):
                return
            if id(x) in met:
                again.add(id(x))
                return
            met[id(x)] = x
            for each in inside[1]:
                meet(each)
            order.append(x)

        for x in values:
            meet(x)
        plain = {id(x) for x in order if isinstance(x, tuple) and not isinstance(x, Apart)}
        return [x for x in order if id(x) in again - plain]

    def number(self, value: Number) -> tuple:
        """A tuple of the tensor that holds a number, as exactly as Python has it."""
        kind, unsure = value.kind, value.unsure
        if unsure is True:
            refuse_unsure(" leaves the converted function", first_line(self.traced))
        if unsure is False:
            return self.rebuild([plain(value)], lambda new: kind(new[0].item()), kind)
        return self.rebuild([plain(value), unsure()], make_number, kind)

    def text(self, value: ProgramText) -> tuple:
        """A tuple of the tensors that hold the values in a text."""
        values, parts = texts.take_apart(value)
        held = [plain(x) if isinstance(x, Number) else x for x in values]
        return self.rebuild(held, lambda new: texts.join_parts(parts, (x.array for x in new)), str)

    def container(self, value, keys, items):
        """A container of the engine's kinds, with tuples in place of items."""
        items = [*items]
        new = [self.take_apart(x) for x in items]
        if all(a is b for a, b in zip(items, new)):
            return value
        if type(value) in (list, tuple):
            return type(value)(new)
        return unflatten(Container(type(value), tuple(keys), (LEAF,) * len(new), value), new)

    def object(self, value) -> tuple:
        """A tuple of the items and the attributes of an object."""
        base = next((k for k in CONTAINERS if isinstance(value, k)), object)
        keys = [*value] if base in CONTAINERS[:2] else []
        items = [*value.values()] if keys else [*value] if base is list else []
        names = [*vars(value)] if vars(value) is not value else []
        flat = [*items, *(vars(value)[name] for name in names)]
        held = {id(x): x for x in flat}  # an item may be an attribute, too
        numbers = [[*held].index(id(x)) for x in flat]

        def build(values):
            values = [values[k] for k in numbers]
            new = copy.copy(value) if base is object else base.__new__(type(value))
            for k, x in zip(keys, values):
                base.__setitem__(new, k, x)
            if base is list:
                list.extend(new, values[: len(items)])
            if vars(value) is value:
                new.__dict__ = new
            vars(new).update(zip(names, values[len(items) :]))
            for name in [name for name, x in vars(new).items() if x is MISSING]:
                del vars(new)[name]
            return new

        return self.rebuild(held.values(), build, type(value))

    def partial(self, value: partial) -> tuple:
        """A tuple of what `functools.partial` has bound."""
        names = [*value.keywords]

        def build(values):
            function, *args = values[: len(values) - len(names)]
            return partial(function, *args, **dict(zip(names, values[1 + len(args) :])))

        held = [value.func, *value.args, *value.keywords.values()]
        return self.rebuild(held, build, partial)

    def function(self, function: FunctionType) -> tuple:
        """A tuple of a function's free variables, defaults and attributes."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        own = {name: cell for name, cell in cells.items() if self.is_own(name, cell, function)}
        defaults, keywords = function.__defaults__ or (), function.__kwdefaults__ or {}
        flat = [*(cell.cell_contents for cell in own.values()), *defaults]
        flat += [*keywords.values(), *vars(function).values()]
        held = {id(x): x for x in flat if x is not function}  # it may call itself

        def build(values):
            closure = {**cells, **{name: CellType() for name in own}}
            new = FunctionType(function.__code__, function.__globals__, function.__name__, None,
                               tuple(closure.values()))  # fmt: skip
            rebuilt = {**dict(zip(held, values)), id(function): new}
            values = [rebuilt[id(x)] for x in flat]
            for name in own:
                closure[name].cell_contents = values.pop(0)
            new.__defaults__ = tuple(values.pop(0) for _ in defaults) or None
            new.__kwdefaults__ = {name: values.pop(0) for name in keywords} or None
            new.__dict__.update(zip(vars(function), values))
            new.__qualname__, new.__doc__ = function.__qualname__, function.__doc__
            return new

        return self.rebuild(held.values(), build, FunctionType)

    def is_own(self, name: str, cell: CellType, function: FunctionType) -> bool:
        """Whether a run makes a variable of its own for a function."""
        held = gc.get_referents(cell)
        if not held or self.is_outside(cell) or type(held[0]) is ModuleType:
            return False
        other = self.users.setdefault(id(cell), function)
        if other is not function and (writes(other, name) or writes(function, name)):
            what = f"with a variable `{name}` of another function, which one of them writes"
            raise self.refusal(function, what, "let one function have it")
        return True

    def refusal(self, value, where: str, hint: str):
        """The error for an object that a run cannot build again, with the line that makes it."""
        name = getattr(value, "__name__", "")
        return refusal(
            f"a {type(value).__name__}{f' `{name}`' if name else ''} that the converted function "
            f"makes holds its tensors, and outlives the call {where}".rstrip(),
            hint=hint,
            where=first_line(value, self.traced),
        )

    def holds_traced(self, value) -> bool:
        """Whether a value holds a tensor or a size of the program."""
        return any(map(is_traced, reachable([value], self.contents).values()))

    def contents(self, x):
        """The contents of an object of the trace."""
        kind = type(x)
        if kind in PLAIN or isinstance(x, Tensor | Dim | ModuleType | FrameType | Record):
            return ()
        if isinstance(x, type):
            return vars(x).values() if x.__module__ != "builtins" else ()
        if self.is_outside(x):
            return ()
        if kind is FunctionType:
            return [*(x.__closure__ or ()), *(x.__defaults__ or ()), *vars(x).values(),
                    *(x.__kwdefaults__ or {}).values()]  # fmt: skip
        if isinstance(x, Layer):  # which parameters may outlive is checked elsewhere
            return [y for name, y in vars(x).items() if name != "_parameters"]
        return gc.get_referents(x)


class Apart(tuple):
    """The contents of an object that was taken apart."""

    __slots__ = ()


def apart(held: list, build, kind: type) -> Apart:
    """The contents of an object, as a tuple whose type builds the object from other values."""
    kind = type(kind.__name__, (Apart,), {"__new__": lambda cls, values: build(values)})
    return tuple.__new__(kind, held)


def first_line(*objects) -> tuple | None:
    """Where the first of these functions, methods and generators that has code begins."""
    objects = [getattr(x, "__func__", x) for x in objects]
    codes = [getattr(x, k, None) for x in objects for k in ("__code__", "gi_code")]
    code = next(filter(None, codes), None)
    return code and (code, next(start for start, _, line in code.co_lines() if line))


def make_number(given: list):
    """A number of the type whose place in `DTYPES` comes second."""
    value, k = (x.item() for x in given)
    kind = [*DTYPES][k]
    if kind is int and type(value) is float and abs(value) > EXACT:
        raise OverflowError(teach(OVERFLOW))
    return kind(value)


def is_traced(x) -> bool:
    if type(x) is MaybeUndefined:
        return True
    return type(x.array) is SymbolicArray if isinstance(x, Tensor) else isinstance(x, Dim)


def writes(function: FunctionType, name: str) -> bool:
    """Whether a function, or one inside it, writes a variable of an outer function."""
    for code in (waiting := [function.__code__]):
        waiting += [c for c in code.co_consts if type(c) is CodeType]
        if any(x.argval == name and x.opname in ("STORE_DEREF", "DELETE_DEREF")
               for x in get_instructions(code)):  # fmt: skip
            return True
    return False
