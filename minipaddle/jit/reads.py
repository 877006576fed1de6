"""Notes what traced code reads outside, where it reads it; `guards.py` checks it at later calls.

Converted code asks `_jst.attr` for every attribute (`instrument.py`). A function's variables of
outer functions and of its module are noted when it is called. Whatever is read outside is outside
itself, so that what is read in it is noted too; objects that the trace makes are not. A container
counts as read whole, unless the code only appends to it, or looks up or stores one item of a dict.

Code that is not converted (a library, an operator of the user's class) is not seen. So a layer is
noted with its parts, hooks and mode, and an object with special methods with all its attributes.
"""

import builtins
import os
import sys
import threading
from functools import cached_property, partial
from operator import itemgetter
from types import FunctionType, MethodType, ModuleType

from ..eager.layer_changes import is_symbolic
from ..engine.core.dispatch import current
from ..engine.core.errors import PACKAGE
from ..engine.eager.device import NUMPY
from ..engine.eager.tensor import Tensor
from ..engine.jit.branching import if_exp
from ..engine.jit.calling import TABLE, convert_function
from ..engine.jit.ignore import within
from ..engine.jit.journal import CONTAINERS, MISSING, Attribute, Contents, Global, Variable
from ..engine.jit.leaves import Undefined
from ..engine.jit.maybe_undefined import MaybeUndefined
from ..engine.jit.transpile import READERS, RUNTIME, conversion
from ..engine.jit.tree import containers, parts
from ..engine.jit.writing import require_defined
from .arguments import GivenTensors
from .guards import (
    CONSTANTS,
    FIELDS,
    HELD,
    Free,
    Guard,
    Guards,
    Held,
    Read,
    Stored,
    is_data,
    is_layer_class,
)
from .objects import (
    CONSTANT,
    dict_of,
    has_special_methods,
    ignorable,
    is_users,
    names_in,
    of_library,
    users,
)

PARTS = ("_parameters", "_sub_layers", "_buffers")
LAYER = ("_parameters", "_sub_layers", "_forward_pre_hooks", "_forward_post_hooks")
"""The attributes noted of every layer. A buffer is noted where it is read."""

UNSURE = {Undefined, MaybeUndefined}
"""Types of what stands where a tensor decides whether there is a value."""


class OutsideReads:
    """The outside values that the trace of a function has read."""

    def __init__(self, tracer):
        self.tracer = tracer
        self.found: dict[tuple, list] = {}  # by the place's key: [place, whether read whole]
        self.outside: dict[int, object] = {}  # objects read there, by id
        self.reached: dict[int, object] = {}  # objects that the function reached before the trace
        self.kept: set[int] = set()  # ids of containers that must be the same objects
        self.own: set[int] = set()  # ids of containers among the arguments, which are the trace's
        self.given: set[int] = set()  # those that can be changed, and what a run builds once

    def start(self, function, arguments, reached: dict) -> None:
        """Note what the traced function is, a function or a method; `reached` is outside."""
        self.reached, self.own = reached, ids_in(arguments)
        self.given = {*map(id, containers(arguments))}
        for x in current.top.given:
            if isinstance(x, Tensor) and not is_symbolic(x):  # it is known from outside, too
                self.note(Held(x, "an argument"), x)
        self.arguments = arguments
        while isinstance(function, MethodType | partial):
            if isinstance(function, partial):
                self.mark([function.args, function.keywords])
                function = function.func
            else:
                self.mark(function.__self__)
                function = function.__func__
        self.function(function, conversion(function).names)

    # ---- noting --------------------------------------------------------------------------------

    def is_outside(self, x) -> bool:
        """Whether an object was there before the trace."""
        known = id(x) in self.outside or isinstance(x, type | ModuleType)
        return known or (id(x) in self.reached and id(x) not in self.own)

    def note(self, place, value, whole: bool = True) -> None:
        """Note that a place of the outside was read."""
        if isinstance(value, Tensor) and not self.has(value):
            return  # the trace has put it there
        known, same = self.found.get(place.key), (place, value)
        if known is not None:
            known[1] |= whole
            return
        for noted in current.top.journals:
            if noted.get(place.key, same)[1] is not value:  # a trace has written it
                return
        self.found[place.key] = [place, whole]
        if type(value) not in CONSTANT:
            self.mark(value)

    def mark(self, x) -> None:
        """Note that an object is outside, and all that is read with it."""
        kind = type(x)
        if kind in CONSTANT or id(x) in self.outside:
            return
        self.outside[id(x)] = x
        if x is os.environ or x is os.getenv:  # its items as the system has them
            self.note(Held(os.environ._data, "os.environ"), MISSING)
        inside = parts(x)
        for each in x if kind in HELD else () if inside is None else inside[1]:
            self.mark(each)
        if kind is FunctionType:
            self.outside.update((id(cell), cell) for cell in x.__closure__ or ())
        elif is_layer_class(kind):
            self.layer(x)
        elif inside is None and has_special_methods(kind) and type(vars_of(x)) is dict:
            for name, value in [*vars(x).items()]:
                self.note(Stored(vars(x), name, x, "attribute"), value)

    def layer(self, layer) -> None:
        """Note a layer: its parts, hooks, mode, and all below it."""
        own = vars(layer)
        if "_buffers" not in own or not self.is_outside(layer) or id(own) in self.outside:
            return
        self.outside[id(layer)] = layer
        self.outside[id(own)] = own
        self.attribute(layer, "training", layer.training)
        for name in LAYER:
            self.note(Stored(own, name, layer, "attribute"), own[name])
        if within(type(layer).__module__, PACKAGE):
            for name, value in own.items():
                if type(value) in CONSTANTS:
                    self.note(Stored(own, name, layer, "attribute"), value)

    def attribute(self, owner, name: str, value, whole: bool = True) -> None:
        """Note that `owner.name` was read; `value` is MISSING if there is none."""
        kind = type(owner)
        if isinstance(owner, Tensor):
            return self.note_attribute(owner, name)
        if kind in CONSTANT or not self.is_outside(owner):
            return None
        if name == "__dict__":
            return self.note(Held(vars(owner), f"vars({kind.__name__})"), MISSING)
        if name[:2] == "__" or isinstance(owner, NUMPY.ndarray):
            return None  # the guard of an array compares its numbers
        if kind is ModuleType:
            if of_library(owner) and (callable(value) or type(value) is ModuleType):
                self.mark(value)
            else:
                self.note(Stored(vars(owner), name, owner, "global"), value, whole)
        elif isinstance(owner, type):
            self.member(owner, name, whole)
        elif is_users(kind) or is_layer_class(kind):
            self.instance(owner, kind, name, value, whole)
        return None

    def has(self, x: Tensor) -> bool:
        """Whether a tensor is outside."""
        if type(x) is MaybeUndefined:
            return False
        return not is_symbolic(x) or id(x) in self.tracer.lifted

    def note_attribute(self, x: Tensor, name: str) -> None:
        """Note an attribute that the user gave a tensor of the outside; see `arguments.py`."""
        if self.has(x) and name in vars(x) and not hasattr(type(x), name) and name not in FIELDS:
            self.note(Stored(vars(x), name, x, "attribute"), vars(x)[name])

    @cached_property
    def tensors(self) -> GivenTensors:
        """The tensors that the function was given."""
        return GivenTensors(self, self.arguments)

    def instance(self, owner, kind: type, name: str, value, whole: bool) -> None:
        """Note an attribute of an object: where it is, or that it is not where it could be."""
        own, member = vars_of(owner), getattr(kind, name, MISSING)
        if type(own) is not dict or isinstance(owner, threading.local):
            return self.note(Read(owner, name), value, whole)
        if name in own:
            return self.note(Stored(own, name, owner, "attribute"), value, whole)
        for part in PARTS if is_layer_class(kind) else ():
            if name in own.get(part, ()):
                return self.note(Stored(own[part], name, owner, "attribute"), value, whole)
        if type(member) is property:
            return None  # its getter is converted
        if callable(member) or value is MISSING:
            self.note(Stored(own, name, owner, "attribute"), MISSING)
            for part in PARTS if value is MISSING and "_buffers" in own else ():
                self.note(Stored(own[part], name, owner, part), MISSING)
        else:
            self.note(Read(owner, name, of_layer=member is not MISSING), value, whole)
        self.member(kind, name, whole)
        return None

    def member(self, kind: type, name: str, whole: bool) -> None:
        """Note what the first of a class's bases that has an attribute holds under its name."""
        for base in kind.__mro__:
            own, defined = dict_of(base), name in vars(base)
            if users(base) and own is not None:
                self.note(Stored(own, name, base, "attribute"), own.get(name, MISSING), whole)
            if defined:
                return

    def function(self, function: FunctionType, names) -> None:
        """Note the variables of the outside that a function has."""
        space = function.__globals__
        if names is None or within(space.get("__name__") or "", PACKAGE):
            return
        used = names_in(function.__code__)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        for name, contents in names.items():
            if name in cells:
                if not self.is_outside(cells[name]):
                    continue
                place = Free(name, cells[name])
            elif name in space and name in used and not ignorable(space[name]):
                place = Stored(space, name, space, "global")
            else:
                continue
            self.note(place, place.get(), contents)
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(function, name):
                self.note(Read(function, name), getattr(function, name))

    def place(self, place) -> None:
        """Note a place that is about to be written, or not."""
        if isinstance(place, Attribute):
            if isinstance(place.owner, Tensor) and is_data(place.attribute):
                self.tensors.give(place.owner, place.attribute)
            self.attribute(place.owner, place.attribute, place.get())
        elif isinstance(place, Global):
            self.note(Stored(place.space, place.name, place.space, "global"), place.get())
        elif self.is_outside(place.owner):
            own = isinstance(place, Variable)
            held = Free(place.name, place.owner) if own else Held(place.owner, place.name)
            self.note(held, place.get())

    def item(self, container: dict, key) -> None:
        """Note that one item of a dict was read."""
        if self.is_outside(container):
            value, content_key = container.get(key, MISSING), Contents(container).key
            noted = [each[content_key][1] for each in current.top.journals if content_key in each]
            if all(before.get(key, MISSING) is value for before in noted):  # not the trace's own
                self.note(Stored(container, key, container, "item"), value)

    # ---- the end -------------------------------------------------------------------------------

    def close(self) -> list[Guards]:
        """The program's guards; the outside is as it was before the trace."""
        counted, others = [], []
        for place, whole in self.found.values():
            value = place.get()
            same = bool(self.kept) and not self.kept.isdisjoint(ids_in(value))
            options = {"identity": same or not whole, "contents": whole}
            guard = Guard(place, value, self.tracer, **options)
            tensors = Tensor in map(itemgetter(0), filter(None, guard.kinds))
            (counted if place.of_layer and not tensors else others).append(guard)
        return [Guards(counted, others, self.find_shared())]

    def find_shared(self) -> list[list]:
        """Groups of storages whose tensors have one array."""
        groups: dict[int, list] = {}
        for storage in self.tracer.storages.values():
            groups.setdefault(id(storage.tensor.array), []).append(storage)
        return [group for group in groups.values() if len(group) > 1]


def ids_in(value) -> set[int]:
    """The ids of all containers in a value, and its own."""
    inside = parts(value)
    return set() if inside is None else {id(value)}.union(*map(ids_in, inside[1]))


def vars_of(x):
    return getattr(x, "__dict__", None)


# ---- what converted code calls -------------------------------------------------------------------


def attr(owner, name: str, whole: bool = True):
    """`owner.name`; the getter of a property is converted."""
    value = find_attribute(owner, name, whole)
    return require_defined(value) if type(value) in UNSURE else value


def find_attribute(owner, name: str, whole: bool = True):
    """`owner.name`; a `MaybeUndefined` if only a run knows whether it is there."""
    kind = type(owner)
    if isinstance(owner, Tensor) and is_data(name) and current.top.reads is not None:
        current.top.reads.tensors.give(owner, name)
    if kind is super:  # the classes after its own, in the order in which it asks them
        order, owner_ = owner.__self_class__.__mro__, owner.__self__
        later = order[order.index(owner.__thisclass__) + 1 :]
        member = next((vars(each)[name] for each in later if name in vars(each)), None)
    else:
        member, owner_ = getattr(kind, name, None), owner
    if isinstance(member, property) and type(member.fget) is FunctionType:
        return convert_function(member.fget)(owner_)
    value = getattr(owner, name) if name != "__dict__" else vars_(owner)
    if current.top.reads is not None:
        current.top.reads.attribute(owner, name, value, whole)
    return value


def part(owner, name: str):
    """`owner.name`, whose content the code does not read."""
    return attr(owner, name, False)


def note_import(module: str, name: str) -> None:
    """`from module import name` has run."""
    if module in sys.modules and name in vars(sys.modules[module]):
        attr(sys.modules[module], name)


def entry(owner, key):
    """`owner[key]`, where the key is written in the code."""
    if type(owner) in CONTAINERS and isinstance(owner, dict) and current.top.reads is not None:
        current.top.reads.item(owner, key)
    return owner[key]


def getattr_(owner, name: str, *default):
    """`getattr`."""
    try:
        value = find_attribute(owner, name)
    except AttributeError:
        note_missing(owner, name)
        if not default:
            raise
        return default[0]
    if type(value) is MaybeUndefined and default:
        return if_exp(value.held, lambda: value.known, lambda: default[0])
    return require_defined(value)


def hasattr_(owner, name: str) -> bool:
    """`hasattr`."""
    try:
        value = find_attribute(owner, name)
    except AttributeError:
        note_missing(owner, name)
        return False
    return value.held if type(value) is MaybeUndefined else True


def note_missing(owner, name: str) -> None:
    if current.top.reads is not None:
        current.top.reads.attribute(owner, name, MISSING)


def vars_(*owner):
    """`vars`; it shows an attribute that may be missing only if it is there."""
    if owner and current.top.reads is not None and current.top.reads.is_outside(*owner):
        current.top.reads.note(Held(vars(*owner), f"vars({type(*owner).__name__})"), MISSING)
    for x in builtins.vars(*owner).values() if owner else ():
        require_defined(x)
    return builtins.vars(*owner)


def read(owner, name: str):
    """An object whose attribute is read before it is written."""
    attr(owner, name)
    return owner


def note_function(function: FunctionType, names) -> None:
    """Note the variables that a function with converted code reads."""
    if current.top.reads is not None:
        current.top.reads.function(function, names)


READERS.append(note_function)
for _function in (attr, part, read, note_import, entry):
    setattr(RUNTIME, _function.__name__, _function)
TABLE |= {getattr: getattr_, hasattr: hasattr_, vars: vars_}
