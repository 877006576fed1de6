"""Guards: a program's assumptions on Python's objects, checked at the next call.

A read is a place (an attribute, a variable, an item) and its value before the trace. At a call the
place must hold the same again: of a number or a text the same value; of any other object the same
object; of a container the same structure. A tensor may be another one of the same kind, because
tensors are values that a program takes: its storage then gets the tensor that the place holds now.

Reads in layers are checked only after some layer has changed (`eager.layer_changes`).
"""

from collections import deque
from functools import cache
from types import NoneType

from ..eager.layer_changes import changes
from ..engine.core.dispatch import Interpreter, current, describe
from ..engine.eager.device import NUMPY
from ..engine.eager.storage import real_array
from ..engine.eager.tensor import Tensor
from ..engine.jit.cache import VALUES, constant
from ..engine.jit.journal import MISSING, Binding, Variable
from ..engine.jit.tree import LEAF, Container, parts

CONSTANTS = {int, float, bool, complex, str, bytes, NoneType, range, slice, type(...)}
"""Types of values that are compared by value."""

FIELDS = {"array", "record", "stop_gradient"}
"""The engine's attributes of a tensor, besides names that begin with _."""

DATA = {"name", "persistable", "is_parameter"}
"""Further attributes of each tensor, which do not depend on its values."""

HELD = {set: set, frozenset: set, deque: list, bytearray: bytes}
"""Types of objects whose contents are compared, and what has a copy of these."""

SMALL = 1 << 12
"""Bytes of an array whose numbers are compared."""


class GuardedPlace(Binding):
    """A place that is read."""

    of_layer = False  # whether it is in a layer, which notes its changes

    def cell(self) -> tuple | None:
        """Where C finds the value: (kind, owner, key), see `bound.py`; None if it cannot."""


class Stored(GuardedPlace):
    """The value of a dict under a key: the attribute of an object, the variable of a module."""

    def __init__(self, store: dict, name, owner, what: str):
        self.store, self.name, self.key = store, name, (what, id(owner), name)
        self.owner = owner  # its id is taken as long as the place is there
        self.of_layer = is_layer_class(type(owner))

    @property
    def label(self) -> str:
        named = self.key[0] in ("global", "item")
        return str(self.name) if named else f"{label_of(self.owner)}.{self.name}"

    def get(self):
        return self.store.get(self.name, MISSING)

    def cell(self) -> tuple:
        return "item", self.store, self.name


class Read(GuardedPlace):
    """An attribute as Python finds it: of a class, in a slot, by `__getattr__`."""

    def __init__(self, owner, name: str, *, of_layer: bool = False):
        self.owner, self.name, self.key = owner, name, ("attribute", id(owner), name)
        self.of_layer = of_layer and is_layer_class(type(owner))

    label = Stored.label

    def get(self):
        return getattr(self.owner, self.name, MISSING)

    def cell(self) -> tuple:
        return "attribute", self.owner, self.name


class Free(GuardedPlace):
    """A variable of an outer function, by its cell."""

    def __init__(self, name: str, cell):
        self.owner, self.name, self.key, self.label = cell, name, ("cell", id(cell)), name

    get = Variable.get

    def cell(self) -> tuple:
        return "attribute", self.owner, "cell_contents"


class Held(GuardedPlace):
    """A container itself, by its contents."""

    name = ""

    def __init__(self, container, label: str):
        self.container, self.key, self.label = container, ("contents", id(container)), label

    def get(self):
        return self.container


Interpreter.call = ()
"""The leaves of the arguments of the call for which a program is traced, looked for or run."""


class Given(GuardedPlace):
    """An attribute of a tensor that is given, by its number among the leaves of the arguments;
    see `arguments.py`.
    """

    def __init__(self, x: Tensor, number: int, name: str):
        self.number, self.name, self.key = number, name, ("attribute", id(x), name)
        self.label = f"Tensor.{name}"

    def get(self):
        argument = current.top.call[self.number : self.number + 1]
        return getattr(*argument, self.name, MISSING) if argument else MISSING

    def set(self, value) -> None:
        owner = current.top.call[self.number]
        if value is not MISSING:
            setattr(owner, self.name, value)
        elif self.get() is not MISSING:
            delattr(owner, self.name)


def is_data(name: str) -> bool:
    """Whether an attribute of a tensor is Python's data, which no value of it decides."""
    return name in DATA or not (name[:1] == "_" or name in FIELDS or hasattr(Tensor, name))


@cache
def is_layer_class(kind: type) -> bool:
    """Whether objects of a class are layers: those note their changes."""
    return hasattr(kind, "register_forward_pre_hook")


def label_of(owner) -> str:
    """An object as an error names it: `Net` for an instance or the class, `config` for a module."""
    return getattr(owner, "__name__", None) or type(owner).__name__


class Guard:
    """The value of a place, as the program assumes it.

    With `identity` it must be the same object, whatever it holds. `storages` are those of its
    tensors, None for its other leaves. An array that the program reads in each run (it is in the
    memory of the `tracer`) may change its numbers.
    """

    def __init__(self, place, value, tracer, *, identity=False, contents=True):
        self.place, self.last, self.identity = place, value, identity
        self.leaves, self.structure, self.mutable = ([value], LEAF, False)
        self.contents = contents
        if type(value) in CONSTANTS:
            self.storages, self.kinds, self.was, self.value = [None], [None], self.leaves, value
            return
        if contents:
            self.leaves, self.structure, self.mutable = take_apart(value)
        self.storages, self.kinds, self.was = [], [], []
        for x in self.leaves:
            tensor = isinstance(x, Tensor)
            self.storages.append(tracer.storage(x) if tensor else None)
            self.kinds.append(kind_of(x) if tensor else None)
            self.was.append(x if tensor or id(x) in tracer.memory else freeze(x))
        self.value = None if any(self.storages) and not identity else value
        self.mutable |= Frozen in map(type, self.was)

    def holds(self) -> list | None:
        """The leaves that the place has now; None if the assumption does not hold."""
        now = self.place.get()
        if now is self.last and not self.mutable:
            return self.leaves
        if self.identity and now is not self.value:
            return None
        leaves, structure = ([now], LEAF) if not self.contents else take_apart(now)[:2]
        if structure != self.structure:
            return None
        for x, storage, was, kind in zip(leaves, self.storages, self.was, self.kinds, strict=True):
            if storage is None:
                if not same(x, was):
                    return None
            elif not (isinstance(x, Tensor) and kind_of(x) == kind):
                return None
        self.last, self.leaves = now, leaves
        return leaves

    def __str__(self) -> str:
        owner = self.place.owner
        if self.place.name == "training" and is_layer_class(type(owner)):
            now, was = ("training", "evaluation")[:: 1 if owner.training else -1]
            return f"{type(owner).__name__} is in {now} mode, was in {was}"
        now, was = show(self.place.get()), self.shown
        hint = "; as a tensor it would be a state" if self.numeric() else ""
        return f"{self.place.label} is {now}, was {was}{hint}"

    def numeric(self) -> bool:
        """Whether it is one number."""
        return self.structure is LEAF and type(self.value) in (int, float)

    @property
    def shown(self) -> str:
        """The value as it was, for a message."""
        if self.value is not None or not any(self.storages):
            return show(self.value)
        (kind, *_), *more = filter(None, self.kinds)
        return f"{kind.__name__.lower()}" if not more else f"{len(more) + 1} tensors"


def show(value) -> str:
    if value is MISSING:
        return "undefined"
    return str(value.spec) if isinstance(value, Tensor) else f"{describe(value):.60}"


def kind_of(x: Tensor) -> tuple:
    """The properties that a tensor must share with the one it replaces."""
    array = real_array(x)
    return type(x), array.shape, array.dtype, x.stop_gradient


def take_apart(value) -> tuple[list, object, bool]:
    """The leaves of a value, its structure, and whether something in it can be changed."""
    leaves: list = []
    mutable = [False]

    def structure(x):
        inside = None if type(x) in CONSTANTS else parts(x)
        if inside is None:
            leaves.append(x)
            return LEAF
        mutable[0] |= not isinstance(x, tuple)
        keys, values = inside
        return Container(type(x), tuple(keys), tuple(map(structure, values)), None)

    return leaves, structure(value), mutable[0]


class Frozen:
    """The mutable contents of an object: the numbers of an array, the items of a set."""

    def __init__(self, x):
        self.kind, self.object = type(x), x
        self.held = self.contents(x)

    @staticmethod
    def contents(x):
        if isinstance(x, NUMPY.ndarray):
            return x.shape, x.dtype, x.tobytes() if x.nbytes <= SMALL else None
        return HELD[type(x)](x)

    def same(self, now) -> bool:
        """Whether an object holds the same. An array must be the same: a program may read it."""
        array = isinstance(now, NUMPY.ndarray)
        if type(now) is not self.kind or (array and now is not self.object):
            return False
        held = self.contents(now)
        if type(held) is not list:
            return held == self.held
        return len(held) == len(self.held) and all(map(same, held, map(freeze, self.held)))


def is_frozen(x) -> bool:
    """Whether a leaf is compared by its contents."""
    return type(x) in HELD or isinstance(x, NUMPY.ndarray)


def freeze(x):
    """The value that a leaf is compared with: itself, or its contents now."""
    return Frozen(x) if is_frozen(x) else x


def same(now, was) -> bool:
    """Whether a leaf is as it was."""
    if now is was:
        return True
    if type(was) is Frozen:
        return was.same(now)
    compared = type(now) in CONSTANTS or isinstance(now, VALUES)
    return compared and type(now) is type(was) and constant(now) == constant(was)


def mutable_in(value) -> list:
    """The containers in a value that can be changed."""
    inside = parts(value)
    if inside is None:
        return [value] if is_frozen(value) else []
    own = [] if isinstance(value, tuple) else [value]
    return own + [x for each in inside[1] for x in mutable_in(each)]


def container(guard, k: int):
    """Container number `k` in the value that a guard has found."""
    return mutable_in(guard.last)[k]


class Guards:
    """All that a program assumes of Python's objects: `counted` in layers, and the `others`.

    `shared` are groups of storages whose tensors have one array.
    """

    def __init__(self, counted: list[Guard], others: list[Guard], shared: list[list]):
        self.counted, self.others, self.shared = counted, others, shared
        self.version = changes.now

    def holds(self, captured) -> bool:
        """Whether all holds now. Then the storages have the tensors that are bound now."""
        version = changes.now
        checked = self.others if version is self.version else [*self.counted, *self.others]
        moved = False
        for guard in checked:
            leaves = guard.holds()
            if leaves is None:
                return False
            for x, storage in zip(leaves, guard.storages):
                moved |= storage is not None and storage.tensor is not x
        if moved and not self.rebind(captured):
            return False
        self.version = version
        return True

    def rebind(self, captured) -> bool:
        """Give the storages the tensors that are bound now. False if they do not fit: one tensor
        where there were two, or two where there was one.
        """
        now = {storage: storage.tensor for storage in captured.outer.values()}
        fresh: dict = {}
        for guard in (*self.counted, *self.others):
            for x, storage in zip(guard.leaves, guard.storages):
                if storage is not None and fresh.setdefault(storage, x) is not x:
                    return False
        now |= fresh
        if len({*map(id, now.values())}) < len(now):
            return False
        for first, *rest in self.shared:
            array = real_array(now.get(first, first.tensor))
            if any(real_array(now.get(each, each.tensor)) is not array for each in rest):
                return False
        for storage, x in fresh.items():
            storage.tensor = x
        outer = [*captured.outer.values()]
        captured.outer.clear()
        captured.outer.update({id(storage.tensor): storage for storage in outer})
        return True

    def containers(self) -> list:
        """The containers that the function knows from outside."""
        return [x for g in (*self.counted, *self.others) for x in mutable_in(g.last)]

    def modes(self) -> list[tuple]:
        """(layer, whether it was in training mode) for each layer."""
        return [(g.place.owner, g.last) for g in self.counted if g.place.name == "training"]

    def find_broken(self) -> str:
        """The guard that does not hold now, in words; "" if all do."""
        guards = (*self.counted, *self.others)
        return next((str(g) for g in guards if g.holds() is None), "")
