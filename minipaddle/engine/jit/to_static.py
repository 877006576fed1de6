"""`to_static`: a function or a layer whose calls run a program."""

from __future__ import annotations

import inspect
import re
import threading
import warnings
from functools import update_wrapper
from time import perf_counter

from numpy import ndarray

from ..core.dim import replace_hints
from ..core.dispatch import current
from ..core.errors import value_error
from ..core.record import Spec
from ..eager.tensor import Tensor
from ..executors.executable_cache import ExecutableCache, backend_named
from . import aliasing
from .cache import ProgramCache, cache_key
from .capture import Captured
from .refusal import refusal
from .transpile import transpile
from .tree import containers, create_restore, flatten, flatten_call, paths, unflatten
from .user_lines import in_user_lines

CALL_STUBS: list = []
"""Each makes stubs for calls like one that was repeated, `create(captured, args, kwargs)`: a list.
It also replaces `StaticFunction.__call__` by a method that tries them first."""

STUBS, MANY = 4, 10
"""How many call stubs are kept, and the programs of one function before a warning is due."""


class Switch:
    """Whether converted functions run programs."""

    on = True


def to_static(function, backend=None) -> StaticFunction:
    """A function whose calls run a program; see `StaticFunction`."""
    return StaticFunction(function, backend=backend)


class StaticFunction:
    """A converted function: a call runs a program, which is traced when it is needed."""

    is_property = False  # whether it is a value of the layer, for `jit.save`

    def __init__(self, function, input_spec=None, build_strategy=None, backend=None):
        self.function, self.input_spec = function, input_spec
        self.build_strategy, self.backend = build_strategy, backend_named(backend, build_strategy)
        self.cache, self.lock = ProgramCache(), threading.RLock()
        self.bound: dict[int, StaticFunction] = {}
        self.stubs: list = []  # the fast paths of calls that were made before
        update_wrapper(self, getattr(function, "__func__", getattr(function, "func", function)))

    # ---- calling -----------------------------------------------------------------------------

    def __call__(self, *args, **kwargs):
        if not Switch.on:
            return self.function(*args, **kwargs)
        if current.top.tracing:  # part of the program that is being written
            return transpile(self.function)(*args, **kwargs)
        try:
            captured, tensors = self.capture_for(args, kwargs)
            return self.run(captured, tensors, args, kwargs)
        except Exception as error:
            in_user_lines(error)
            raise

    def capture_for(self, args, kwargs) -> tuple:
        """The captured function for these arguments, and the tensors that it takes."""
        leaves, structure = flatten_call(args, kwargs)
        arrays = {id(x): Tensor(x) for x in leaves if isinstance(x, ndarray)}
        leaves = [arrays.get(id(x), x) for x in leaves]
        places = [k for k, x in enumerate(leaves) if isinstance(x, Tensor)]
        captured = self.find_or_capture(leaves, structure, places)
        if any(id(leaves[k]) in captured.outer for k in places):
            # a tensor that the function also knows from outside is no argument
            if not captured.fits():
                raise refusal(f"{self.__name__}: an iterator has a tensor that is an argument too")
            places = [k for k in places if id(leaves[k]) not in captured.outer]
            captured = self.find_or_capture(leaves, structure, places)
        tensors = [leaves[k] for k in places]
        if captured.writes and len({*map(id, tensors)}) < len(tensors):
            raise refusal(f"{self.__name__} writes to one of its arguments, given twice")
        return captured, tensors

    def run(self, captured, tensors, args, kwargs):
        """Run a program, and build the results as the function returns them."""
        owners = containers((args, kwargs)) if captured.given else ()
        own = dict(zip(map(id, captured.given), owners))  # by the id of the traced ones
        aliasing.rule.check_given(captured, own)
        results, sizes = captured(tensors)
        again, captured.last_sizes = captured.last_sizes == sizes, sizes
        if again and captured.executables.compiled and captured.stub_sizes != sizes:
            captured.stub_sizes = sizes
            for create in CALL_STUBS:
                self.stubs[:0] = create(captured, args, kwargs)
            del self.stubs[STUBS:]
        left = aliasing.rule.restore_arrays(captured, tensors, (args, kwargs), results)
        return captured.deliver(results, sizes, own, left)

    def find_or_capture(self, leaves, structure, places):
        """The captured function for arguments like these; the tensors at `places` vary."""
        specs, sizes = self.specs(leaves, structure, places)
        key = cache_key(leaves, structure, places, specs)
        return self.cache.find(key, sizes) or self.capture(key, leaves, structure, places, sizes)

    def specs(self, leaves, structure, places) -> tuple[list, dict]:
        """For each tensor (shape, dtype, stop_gradient), open sizes being symbols; and their
        values in this call.
        """
        tensors = [leaves[k] for k in places]
        specs = [(x.array.shape, x.array.dtype, x.stop_gradient) for x in tensors]
        return (specs, {}) if self.input_spec is None else self.open_specs(tensors, specs)

    def capture(self, key, leaves, structure, places, sizes):
        """Write the program for these arguments."""
        with self.lock:
            captured = self.cache.find(key, sizes)  # another thread may have written it
            if captured is None:
                names, begun = argument_names(self.function, structure), perf_counter()
                try:
                    captured = self.trace_program(key, leaves, structure, places, names, sizes)
                except Exception as error:
                    if sizes:
                        here = ", ".join(f"{name} = {n}" for name, n in sizes.items())
                        error.add_note(f"  where: {here}")
                    raise
                self.cache.add(key, captured, names, perf_counter() - begun)
                if len(self.cache) == MANY + 1:
                    self.warn()
            return captured

    def trace_program(self, key, leaves, structure, places, names, sizes):
        run, notes = tensor_function(self.function, leaves, structure, places)
        specs = [Spec(s, d) for s, d, _ in key.specs]
        if sizes:
            specs = [Spec(tuple(replace_hints(n, sizes) for n in s), d) for s, d in specs]
        stops = [stop for *_, stop in key.specs]
        own = [names[k] for k in places]
        executables = ExecutableCache(self.backend, self.build_strategy)
        captured = Captured(run, specs, stops, own, self.__name__, executables)
        captured.leaves, captured.given = notes["leaves"], notes["given"]
        captured.restore = create_restore(notes["structure"], captured.leaves)
        captured.guards, captured.left = notes["guards"](), notes["left"]
        constants = [None if isinstance(x, Tensor) else x for x in leaves]
        captured.arguments = constants, structure, places, own, specs
        return captured

    def warn(self) -> None:
        reasons = [miss.reason for miss in self.cache.misses][-MANY:]
        (cause, *others) = {reason.partition(" is ")[0] for reason in reasons}
        steady = "" if others else f"`{cause}` changes at every call: make it a tensor. "
        warnings.warn(
            f"{self.__name__} was traced {MANY + 1} times. {steady}The last reasons: "
            + " | ".join(reasons[-3:])
            + ". An input_spec with None where a size varies makes one program for all sizes; "
            "for sequences of many lengths see paddle.io.bucketed",
            stacklevel=5,
        )

    # ---- its programs ------------------------------------------------------------------------

    def list_programs(self) -> list:
        """The captured functions in the cache, the last one at the end."""
        programs = [each for entries in self.cache.entries.values() for each in entries]
        return sorted(programs, key=lambda captured: captured.number)

    @property
    def concrete_program(self):
        """The program written last. Raises ValueError if there is none yet."""
        for captured in reversed(self.list_programs()):
            return captured
        raise value_error(f"{self.__name__} has no program yet", hint="call it, or jit.save it")


def tensor_function(function, leaves, structure, places, apart: bool = False):
    """The converted function as a function of its tensors alone, which are at `places` of the
    `leaves`. It returns a list of results; after these come the tensors that a run leaves outside.
    The dict beside it receives their structure; a container of the arguments is a leaf in it, or
    is taken `apart`.
    """
    converted, notes = transpile(function), {}

    def run(*tensors):
        inside = list(leaves)
        for k, x in zip(places, tensors, strict=True):
            inside[k] = x
        args, kwargs = arguments = unflatten(structure, inside)
        notes["given"] = owners = containers(arguments)
        traced = aliasing.rule.run(lambda: converted(*args, **kwargs), function, arguments)
        returned, notes["guards"], notes["left"], same = traced
        changed = {id(each.place.owner) for each in notes["left"]}
        results, notes["structure"] = flatten(returned, changed if apart else changed | same)
        notes["leaves"] = [None if isinstance(x, Tensor) else x for x in results]
        if not notes["left"] and {*map(id, results)}.isdisjoint(map(id, owners)):
            owners.clear()
        for each in notes["left"]:
            each.begin = len(results)
            results += each.tensors
        return results

    return run, notes


def argument_names(function, structure) -> list[str]:
    """A name for each leaf of the arguments (args, kwargs): `x`, `states_0`, `mask`; in a dict its
    key alone, as in Paddle, unless two leaves would have that name.
    """
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "x")
    args, kwargs = structure.children
    named = [*(p.name for p in positional), *(f"{rest}_{k}" for k in range(len(args.children)))]
    pairs = [
        [re.sub(r"\W+", "_", text).strip("_") for text in (name + path, path.rpartition("['")[2])]
        for name, inside in [*zip(named, args.children), *zip(kwargs.keys, kwargs.children)]
        for path in paths(inside)
    ]
    keys = [key for _, key in pairs]
    return [key if key.isidentifier() and keys.count(key) == 1 else path for path, key in pairs]
