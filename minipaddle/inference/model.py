"""A loaded model ready to run: compiled for each shape once, bound to memory for each user.

`Model` has the program and its executables, which threads share. A `MemoryBinding` is memory for
the inputs and outputs of one shape, bound to the compiled function: to run it is one call of C.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ..core.prelude import Recording, Spec, Tensor, value_error
from ..engine.eager.device import as_place, chosen
from ..engine.executors.arrays import address
from ..engine.executors.executable_cache import ExecutableCache
from ..engine.executors.native import CallContext, Executable, running
from ..engine.ir.interpreter import check_guards
from ..engine.jit.tree import LEAF
from ..ir.input_spec import fits, format_expected
from ..jit.loading import AtOnce, TranslatedLayer, load
from .rounds import limit_iterations
from .rows import batch_of, rows_independent

PLACING = threading.RLock()
"""Held while the default device, which is one for all threads, is that of a model; not if all
models, and all else, are on the CPU."""
ELSEWHERE: set = set()
"""The places of models that are not on the CPU."""


class Model:
    """The method `forward` of a saved model.

    inputs: spec of each input by name, sizes that vary as symbols
    outputs: the same of the outputs; names are keys, where the model returns a dict
    batch: the name of the size in front of all of them, if their rows are independent; else None
    rounds: how many iterations the loops of a run may make together; None: as many as they like
    """

    def __init__(
        self, prefix: str, *, backend: str = "native", strategy: dict | None = None,
        threads: int = 1, place: str = "cpu", report: bool = False, rounds: int | None = None,
    ):  # fmt: skip
        self.place, self.threads, self.report = as_place(place), threads, report
        if self.place.kind != "cpu":
            ELSEWHERE.add(self.place)
        with PlaceGuard(self.place):
            self.layer: TranslatedLayer = load(prefix)
        own = self.layer.program()
        self.program = own if rounds is None else limit_iterations(own, rounds)
        self.rounds = None if self.program is own else rounds
        self.cache = ExecutableCache(backend, strategy)
        self.layer._at_once = AtOnce(self.layer._places, self.cache)
        self.housed = self.layer._at_once.house(self.program)
        self.states = [state.storage for state in self.housed.states]
        self.inputs = {r.attrs["name"]: r.spec for r in self.program.inputs}
        method = self.layer._methods["forward"]
        names = zip(names_of(method.structure), method.places, strict=True)
        self.places = {name: k for name, k in names if k is not None}
        self.outputs = {name: self.program.outputs[k].spec for name, k in self.places.items()}
        self.lock = threading.Lock()

    @cached_property
    def batch(self) -> str | None:
        own = self.layer.program()
        return batch_of(own) if rows_independent(own) else None

    def check(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """The open sizes by name for inputs of these shapes; ValueError if they do not fit."""
        sizes: dict[str, int] = {}
        for (name, spec), shape in zip(self.inputs.items(), shapes, strict=True):
            if not fits(spec, Spec(shape, spec.dtype), sizes):
                raise value_error(
                    f"{name} has the shape {list(shape)}", expected=format_expected(spec, sizes)
                )
        check_guards(self.program.guards, sizes, self.program)
        return sizes

    def require_end(self, made: list) -> None:
        """Raise ValueError if the loops of a run were stopped; `made` are all that it gave."""
        if self.rounds is not None and made[-1] > self.rounds:
            raise value_error(
                f"the loops of the model go on after {self.rounds:,} iterations", "an end",
                hint="other inputs, or a greater bound: `rounds` in config.json, --rounds",
            )  # fmt: skip

    def executable(self, shapes: Sequence[tuple[int, ...]]):
        """The compiled program for inputs of these shapes; None if it is interpreted."""
        self.check(shapes)
        specs = [Spec(s, spec.dtype) for s, spec in zip(shapes, self.inputs.values(), strict=True)]
        if any(0 in spec.shape for spec in specs):
            return None
        with self.lock, PlaceGuard(self.place):
            before = len(self.cache.compiled)
            held = [state.record.spec for state in self.housed.states]
            executable = self.cache.executable(self.housed, [*specs, *held])
            if len(self.cache.compiled) > before:
                if isinstance(executable, Executable):
                    executable.set_threads(self.threads)
                if self.report:
                    print(executable.report() if hasattr(executable, "report") else executable)
        return executable

    def binding(
        self, shapes: Sequence[tuple[int, ...]], *, compiled: bool = True
    ) -> MemoryBinding | Unbound:
        """New memory for inputs of these shapes, and for the outputs."""
        shapes = [tuple(shape) for shape in shapes]
        executable = self.executable(shapes) if compiled else None
        if isinstance(executable, Executable) and not executable.updated:
            return MemoryBinding(self, executable)
        return Unbound(self, shapes, self.layer._at_once if compiled else self.interpreter)

    @cached_property
    def interpreter(self) -> AtOnce:
        """Runs the program without compiling anything."""
        return AtOnce(self.layer._places, ExecutableCache("interpreter"))


class MemoryBinding:
    """A compiled program, bound to memory. `inputs` and `outputs` are arrays by number; the run
    reads and writes these very arrays. One thread at a time may use it.
    """

    def __init__(self, model: Model, executable: Executable):
        self.executable, self.context, self.model = executable, CallContext(executable), model
        count = executable.inputs
        self.states = [storage.read() for storage in model.states]
        for k, array in enumerate(self.states, count):
            self.context.hold(k, array)
        self.own = [np.zeros(*spec) for spec in executable.given[:count]]
        self.inputs = [*self.own]
        for k, array in enumerate(self.inputs):
            self.context.hold(k, array)
        self.own_made = self.context.results()
        self.made, self.places = [*self.own_made], [*model.places.values()]
        self.function, self.table = executable.function("run"), self.context.all
        self.hosted = bool(executable.source.hosted)

    @property
    def outputs(self) -> list:
        """The arrays that a run writes."""
        return [self.made[k] for k in self.places]

    @property
    def nbytes(self) -> int:
        """The bytes of memory that it holds."""
        return self.context.room.nbytes + sum(a.nbytes for a in [*self.inputs, *self.made])

    def share_input(self, k: int, array) -> None:
        """Let the run read this array: C-contiguous, of the input's shape and dtype."""
        self.inputs[k] = array
        self.context.hold(k, array)

    def share_outputs(self, arrays: dict) -> None:
        """Let the run write into these arrays, by number of the output: C-contiguous, of its shape
        and dtype. It writes the others into its own memory.
        """
        self.made = [*self.own_made]
        for k, array in arrays.items():
            self.made[self.places[k]] = array
        self.set_outputs()

    def set_outputs(self) -> None:
        for k, array in enumerate(self.made, 1 + len(self.context.held)):
            self.context.table[k] = address(array)

    def run(self) -> None:
        """Compute the outputs from the inputs."""
        if not self.hosted:
            self.function(self.table)
            self.model.require_end(self.made)
            return
        before, running.context = running.context, self.context
        try:
            failed = self.function(self.table)
        finally:
            running.context = before
        if failed:
            error, self.context.error = self.context.error, None
            for array in self.inputs:
                array[...] = 0  # rows that pad a later batch must not fail
            raise error
        self.model.require_end(self.made)

    def call(self, arrays: list) -> list:
        """New arrays of outputs for other arrays of inputs."""
        outputs = self.context.run([*arrays, *self.states])
        for k, array in enumerate(self.inputs):
            self.context.hold(k, array)
        self.set_outputs()
        self.model.require_end(outputs)
        return [outputs[k] for k in self.places]


class Unbound:
    """The same for a program that is not compiled, that updates states, or that runs on a GPU."""

    hosted = True

    def __init__(self, model: Model, shapes, runner: AtOnce):
        self.model, self.runner = model, runner
        specs = zip(shapes, model.inputs.values(), strict=True)
        self.own = [np.zeros(shape, spec.dtype) for shape, spec in specs]
        self.inputs = [*self.own]
        self.outputs: list = []
        self.shared: dict[int, object] = {}

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in [*self.inputs, *self.outputs])

    def share_input(self, k: int, array) -> None:
        self.inputs[k] = array

    def share_outputs(self, arrays: dict) -> None:
        self.shared = arrays

    def run(self) -> None:
        self.outputs = self.call(self.inputs)
        for k, array in self.shared.items():
            np.copyto(array, self.outputs[k], casting="no")
            self.outputs[k] = array

    def call(self, arrays: list) -> list:
        model, layer = self.model, self.model.layer
        sizes = model.check([a.shape for a in arrays])
        with model.lock, PlaceGuard(model.place), Recording(False):
            inputs = [Tensor(a) for a in arrays]
            states = [store.get(key) for store, key in layer._kept_of["forward"]]
            outputs = self.runner(model.program, inputs, states, sizes)
            results = [x.numpy() for x in outputs]
            model.require_end(results)
            return [results[k] for k in model.places.values()]


class PlaceGuard:
    """Within the block, new tensors are made on a place."""

    def __init__(self, place):
        self.place = place

    def __enter__(self) -> None:
        self.before = None
        if not ELSEWHERE and chosen.now == self.place:
            return
        PLACING.acquire()
        self.before, chosen.now = chosen.now, self.place
        if self.place.kind != "cpu":
            self.place.use()

    def __exit__(self, *error) -> None:
        if self.before is not None:
            chosen.now = self.before
            PLACING.release()


def names_of(structure, name: str = "") -> list[str]:
    """A name for each leaf of a structure: its keys and numbers; `output_0` and so on, if the
    model returns a tensor, a list or a tuple.
    """
    if structure is LEAF:
        return [name or "output_0"]
    named = issubclass(structure.kind, dict)
    names = []
    for key, child in zip(structure.keys, structure.children, strict=True):
        own = str(key) if named or name else f"output_{key}"
        names += names_of(child, f"{name}.{own}" if name else own)
    return names
