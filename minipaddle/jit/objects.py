"""The contents of an object of Python: its state, and all objects that it leads to.

`state` gives what a snapshot compares: names, values, and what Python shows only by methods (the
position of an iterator, the numbers in an array). The classes of libraries and of this package have
no state of interest; of this package's objects what the user put there counts.
"""

import gc
import io
import random
import sys
import weakref
import zlib
from collections import OrderedDict, defaultdict, deque
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
    ModuleType,
    NoneType,
)

import numpy

from ..engine.core.errors import PACKAGE
from ..engine.core.record import Record
from ..engine.eager.pylayer import PyLayerContext
from ..engine.eager.tensor import Parameter, Tensor
from ..engine.ir.builder import SymbolicArray
from ..engine.jit.ignore import installed, within

CONSTANT = {Tensor, Parameter, int, float, bool, complex, str, bytes, NoneType, range, slice,
            CodeType, type(...), type(NotImplemented)}  # fmt: skip
"""Types of objects that do not change; the tracer watches tensors."""


PLAIN = {"__init__", "__new__", "__repr__", "__str__", "__call__", "__getattr__", "__setattr__",
         "__delattr__", "__init_subclass__", "__class_getitem__", "__post_init__"}  # fmt: skip
"""Special methods that are converted, or that tell nothing of an object's state."""

ENGINE = f"{PACKAGE}.engine"
DICTS = (dict, OrderedDict, defaultdict)
CHANCE = (random.Random, numpy.random.RandomState, numpy.random.Generator)


def everything(x):
    """All that an object holds, as Python's garbage collector sees it: what code can reach.

    Of a module what functions name counts; of the engine's own objects what the user gave them.
    """
    kind = type(x)
    if isinstance(x, Tensor | PyLayerContext):
        return vars(x).values()
    if kind in CONSTANT or isinstance(x, ModuleType | FrameType | Record | SymbolicArray):
        return ()
    if kind is FunctionType:
        return [x.__globals__, *function_state(x, root=True)[1], *data_of_library(x)]
    if isinstance(x, type) or within(kind.__module__, ENGINE):
        held = state(x)
        return held[1] if held else ()
    if kind is dict and "__builtins__" in x:  # the variables of a module
        return ()
    if isinstance(x, numpy.ndarray):
        return [*x.flat] if x.dtype.hasobject else ()
    return [x()] if isinstance(x, weakref.ref) else gc.get_referents(x)


def data_of_library(function: FunctionType) -> list:
    """The objects that a function of a library names in its module, functions and classes apart."""
    space = function.__globals__
    if not library(space.get("__name__") or "", function.__code__.co_filename):
        return []
    return [x for _, x in pairs_of(names_in(function.__code__), space, [space]) if not callable(x)]


def state(x, *, root: bool = False):
    """(names, values, further state) of an object; None if nothing can change it."""
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
    if kind is ModuleType or isinstance(x, Logger | numpy.dtype):
        return None  # `function_state` takes from a module the names that the function has
    if kind in CHANCE:
        return (), (), read_hidden(x, kind)
    if kind is BuiltinMethodType:
        return None if isinstance(x.__self__, ModuleType) else ([""], [x.__self__])
    if isinstance(x, type):
        return class_state(x)
    if derives_from_ours(kind):
        return package_state(x, kind)
    return object_state(x)


def function_state(function: FunctionType, root: bool):
    """A function's variables of other scopes, and the objects of modules that it names."""
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
        for name, value in pairs_of(names_in(code), space, [space]):
            names.append(name)
            values.append(value)
    return names, values


def pairs_of(names, space: dict, seen: list):
    """(name, object) for what a module, and modules named in it, hold under some names."""
    for name in sorted(names & space.keys()):
        value = space[name]
        if type(value) is not ModuleType:
            yield name, value
        elif not within(value.__name__, PACKAGE) and not any(s is vars(value) for s in seen):
            seen.append(vars(value))
            for inner, held in pairs_of(names, vars(value), seen):
                yield f"{name}.{inner}", held


def holds_code(cell: CellType) -> bool:
    return any(map(callable, gc.get_referents(cell)))


@cache
def names_in(code: CodeType) -> frozenset:
    """The names of other scopes and of attributes in a function and in those inside it."""
    inside = [names_in(c) for c in code.co_consts if type(c) is CodeType]
    return frozenset(code.co_names).union(*inside)


@cache
def library(module: str, filename: str) -> bool:
    """Whether code belongs to Python or to an installed library."""
    return module.partition(".")[0] in sys.stdlib_module_names or installed(filename)


def library_class(kind: type) -> bool:
    """Whether a class belongs to Python or to an installed library."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    return library(kind.__module__, file)


def class_state(kind: type):
    """The attributes of a user's class; other classes do not change."""
    if kind.__module__ == "builtins" or within(kind.__module__, PACKAGE) or library_class(kind):
        return None
    own = {k: v for k, v in vars(kind).items() if k[:1] != "_" or callable(v)}
    return [*own, ""], [*own.values(), kind.__mro__[1:]]


def dict_of(kind: type) -> dict | None:
    """The dict behind the attributes of a class; None where Python hides it."""
    held = gc.get_referents(vars(kind))
    return held[0] if held and type(held[0]) is dict else None


def of_library(module: ModuleType) -> bool:
    """Whether a module belongs to Python, to an installed library or to this package."""
    name = module.__name__
    return within(name, PACKAGE) or library(name, getattr(module, "__file__", None) or "")


@cache
def users(kind: type) -> bool:
    """Whether a class is the user's."""
    return kind.__module__ != "builtins" and not within(kind.__module__, PACKAGE)


@cache
def is_users(kind: type) -> bool:
    """Whether objects of a class may have attributes of the user's."""
    return any(users(base) for base in kind.__mro__)


def ignorable(value) -> bool:
    """Whether a module's variable does not change: a module, a function or a class of a library."""
    if isinstance(value, ModuleType):
        return True
    if not isinstance(value, type | FunctionType):
        return False
    return within(value.__module__ or "", PACKAGE)


def has_special_methods(kind: type) -> bool:
    """Whether a user's class says what operators, loops and `with` make of its objects."""
    own = [name for base in kind.__mro__ if users(base) and not library_class(base)
           for name, x in vars(base).items() if type(x) is FunctionType]  # fmt: skip
    return any(name[:2] == name[-2:] == "__" and name not in PLAIN for name in own)


@cache
def derives_from_ours(kind: type) -> bool:
    return any(within(base.__module__, PACKAGE) for base in kind.__mro__)


def own_attributes(own: dict, kind: type) -> dict:
    """The attributes of an object that its class has otherwise or not at all."""
    return {k: v for k, v in own.items() if getattr(kind, k, own) is not v}


def package_state(x, kind: type):
    """The attributes that the user gave an object of this package, or of a derived class.

    The attributes that our `__init__` makes are left out, but for the layers in a layer and for
    `__wrapped__`: they lead to more of the user's objects.
    """
    own = getattr(x, "__dict__", {})
    parts = own.get("_sub_layers") or {}
    attributes = {} if within(kind.__module__, PACKAGE) else {"": kind}
    if attributes:
        theirs = {k: v for k, v in own_attributes(own, kind).items() if k not in our_names(kind)}
        attributes |= theirs
    attributes |= parts
    attributes = {k: v for k, v in attributes.items() if v is not None}  # a layer may move it away
    if "__wrapped__" in own:
        attributes["__wrapped__"] = own["__wrapped__"]
    return ([*attributes], [*attributes.values()]) if attributes else None


@cache
def our_names(kind: type) -> frozenset:
    """The attributes made by those bases of a class that belong to this package."""
    makers = [vars(base).get("__init__") for base in kind.__mro__
              if within(base.__module__, PACKAGE)]  # fmt: skip
    return frozenset().union(*(f.__code__.co_names for f in makers if type(f) is FunctionType))


def object_state(x):
    """The state of any other object: its attributes, the objects it holds, its hidden state."""
    kind = type(x)
    names, values = [], []
    if isinstance(x, dict):
        names += dict.keys(x)
        values += dict.values(x)
    own = getattr(x, "__dict__", None)
    if type(own) is dict:
        mine = own_attributes(own, kind)
        names += mine
        values += mine.values()
    if isinstance(x, BaseException):  # to raise it changes where it was raised
        return names, [*values, *x.args]
    place = read_hidden(x, kind)
    held = [y for y in gc.get_referents(x) if y is not own and type(y) is not FrameType]
    if isinstance(x, numpy.ndarray) and x.dtype.hasobject:
        held += x.flat
    names += [""] * len(held)
    return names, values + held, place


def read_hidden(x, kind: type):
    """The state that Python shows only by methods: a position, numbers in memory."""
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
    """The state of a generator of NumPy as constants: nested dicts, lists for arrays."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return x.tolist() if isinstance(x, numpy.ndarray) else x


def place_in(file):
    """The position of a file; None if it has none."""
    try:
        return file.tell()
    except (OSError, ValueError):
        return None


SMALL = 1 << 20
"""Up to this many bytes are stored for comparison; for more, a checksum."""


def memory(x):
    """(dtype, shape, numbers) of an array or a buffer; None if x is neither."""
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


def iterator(x) -> bool:
    """Whether x is an iterator: it is advanced, and its items come once."""
    return hasattr(type(x), "__next__")


def sources(steps) -> list:
    """The iterators from which an iterator takes its items."""
    held = gc.get_referents(steps)
    held += [y for x in held if type(x) in (tuple, list) for y in gc.get_referents(x)]
    return [x for x in held if iterator(x)]
