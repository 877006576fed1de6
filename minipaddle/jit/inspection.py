"""Methods of a converted function that show its code, its programs, why each was written."""

from __future__ import annotations

import inspect
import warnings
from copy import deepcopy
from itertools import zip_longest
from operator import attrgetter
from types import MethodType
from typing import NamedTuple

from ..engine.core.errors import runtime_error, value_error
from ..engine.eager.device import NUMPY
from ..engine.eager.tensor import Tensor, same_value
from ..engine.jit.cache import ProgramCache, cache_key
from ..engine.jit.capture import Captured
from ..engine.jit.to_static import StaticFunction
from ..engine.jit.transpile import code_text
from ..engine.jit.tree import flatten, flatten_call, unflatten
from ..engine.jit.user_lines import in_user_lines
from ..ir.input_spec import InputSpec
from ..tensor.methods import own_members
from .outside import knowing_the_call


class Inspection:
    """Methods and properties that `StaticFunction` gets."""

    @property
    def code(self) -> str:
        """The converted source. Source: Paddle `StaticFunction.code`."""
        return code_text(self.function)

    @property
    def dygraph_function(self):
        """The function as it was written."""
        return self.function

    @property
    def program_cache(self) -> ProgramCache:
        """The programs written so far."""
        return self.cache

    @property
    def concrete_program(self):
        """The program written last; before the first call the program of the input_spec. Raises
        ValueError if there is neither.

        Source: Paddle `StaticFunction.concrete_program`.
        """
        if not self.list_programs() and self.input_spec is not None:
            self.trace_spec()
        return written_last(self)

    def trace_spec(self) -> Captured:
        """The program of the input_spec."""
        return self.program_of(tuple(self.input_spec), {})

    def get_concrete_program(self, *args, **kwargs) -> ConcreteProgram:
        """The program of a call, and what runs it; nothing runs yet.

        InputSpecs stand for tensors. Each kind of call has one program: arguments that are equal to
        their defaults need not be given. Raises ValueError where a parameter has no value.
        Source: Paddle `StaticFunction.get_concrete_program`.

        >>> double = paddle.jit.to_static(lambda x: x * 2)
        >>> program, run = double.get_concrete_program(paddle.static.InputSpec([3]))
        >>> program.inputs[0].name, run([paddle.ones([3])]).tolist()
        ('x', [2.0, 2.0, 2.0])
        """
        own, signature = (
            f"get_concrete_program of {self.__name__}",
            inspect.signature(self.function),
        )
        bound = signature.bind_partial(*args, **kwargs)
        for name, each in signature.parameters.items():
            optional = each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
            if name not in bound.arguments and not optional and each.default is each.empty:
                raise value_error(f"{own}: nothing is given for {name!r}", hint="an InputSpec")
            if name in bound.arguments and same_value(bound.arguments[name], each.default):
                del bound.arguments[name]
        captured = self.program_of(bound.args, bound.kwargs)
        return ConcreteProgram(captured, ProgramRunner(self, captured))

    def open_specs(self, given: list, found: list) -> tuple[list, dict]:
        """The specs `found` of the tensors `given`, opened by the input_spec; see `specs`.

        A call that it does not fit is taken as it is, with a program of its own, and a warning.
        """
        opened, sizes = [*found], {}
        try:
            for k, (spec, x) in enumerate(zip(flatten(self.input_spec)[0], given, strict=False)):
                if hasattr(spec, "open_shape"):
                    opened[k] = (*spec.open_shape(x, k, sizes), x.stop_gradient)
        except ValueError as error:
            warnings.warn(f"{self.__name__} gets another program: {error}", stacklevel=6)
            return found, {}
        return opened, sizes

    @knowing_the_call
    def program_of(self, args: tuple, kwargs: dict) -> Captured:
        """The program of a call, from the cache or written now."""
        leaves, structure = flatten_call(args, kwargs)
        leaves = [Tensor(x) if isinstance(x, NUMPY.ndarray) else x for x in leaves]
        places = [k for k, x in enumerate(leaves) if isinstance(x, InputSpec | Tensor)]
        each = [x.spec(n) if isinstance(x, InputSpec) else x.spec
                for n, x in enumerate(leaves[k] for k in places)]  # fmt: skip
        stops = [leaves[k].stop_gradient for k in places]
        specs = [(spec.shape, spec.dtype, stop) for spec, stop in zip(each, stops, strict=True)]
        try:
            key = cache_key(leaves, structure, places, specs)
            captured = self.cache.find(key, {})
            return captured or self.capture(key, leaves, structure, places, {})
        except Exception as error:
            in_user_lines(error)
            raise

    @property
    def main_program(self):
        """The program of the forward pass. Source: Paddle `StaticFunction.main_program`."""
        return self.concrete_program.program

    def get_traced_count(self) -> int:
        """How many programs were written and are kept.

        Source: Paddle `StaticFunction.get_traced_count`.
        """
        return len(self.cache)

    @property
    def executables(self) -> list:
        """The native programs compiled so far for the program written last: each has a `report()`,
        the `source` in C, the memory `plan`, the `snapshots` of the passes.
        """
        return [*self.concrete_program.executables.compiled.values()]

    def wait_compiled(self) -> None:
        """Wait until the programs that were called are compiled, if the backend is "auto"; their
        next calls use the executables.

        >>> @paddle.jit.to_static(backend="auto")
        ... def double(x):
        ...     return x * 2
        >>> y = double(paddle.ones([3]))
        >>> print(double)
        <to_static double, 1 program: interpreter>
        >>> double.wait_compiled()
        """
        for captured in self.list_programs():
            for build in [*captured.executables.pending.values()]:
                build.wait()

    def __repr__(self) -> str:
        """Its programs, and which executor runs each."""
        cached = self.list_programs()
        programs = f"{len(cached)} program{'s' * (len(cached) != 1)}"
        served = ": " * bool(cached) + ", ".join(str(captured.executables) for captured in cached)
        return f"<to_static {self.__name__}, {programs}{served}>"

    @property
    def inputs(self) -> list:
        """The inputs of the program written last, as InputSpecs; see `concrete_program`.

        Source: Paddle `StaticFunction.inputs`.
        """
        return inputs_of(self.concrete_program, flatten(tuple(self.input_spec or ()))[0])

    @property
    def outputs(self) -> list:
        """The tensors that the program written last gives, as InputSpecs."""
        captured = self.concrete_program
        results = [captured.program.outputs[k] for k in captured.places if k is not None]
        return [InputSpec(r.shape, r.dtype, f"output_{k}") for k, r in enumerate(results)]

    @property
    def class_instance(self):
        """The object whose method it is; None for a function."""
        return getattr(self.function, "__self__", None)

    def train(self) -> None:
        """Note that the function trains; raises RuntimeError if its layer evaluates, because the
        layer sets its mode.

        Source: Paddle `StaticFunction.train`.
        """
        self.require_mode(True)

    def eval(self) -> None:
        """The same for a layer that trains. Source: Paddle `StaticFunction.eval`."""
        self.require_mode(False)

    def require_mode(self, training: bool) -> None:
        if getattr(self.class_instance, "training", training) is not training:
            how = "train" if training else "eval"
            raise runtime_error(
                f"{how}() of a layer's {self.__name__}", hint=f"layer.{how}() sets the mode"
            )
        self._training = training

    def explain(self) -> str:
        """Why each program was written, in order."""
        return "\n".join(f"{k}. {miss.reason}" for k, miss in enumerate(self.cache.misses, 1))

    def rollback(self):
        """The function as it was; a layer's `forward` again. Source: Paddle
        `StaticFunction.rollback`.
        """
        owner = getattr(self.function, "__self__", None)
        if owner is not None and vars(owner).get("forward") is self:
            del owner.forward
        return self.function

    def __deepcopy__(self, memo) -> StaticFunction:
        """The function as it was written; of a method the converted one of the copied object.

        Source: Paddle `StaticFunction.__deepcopy__`.
        """
        if self.class_instance is None:
            return self.function
        function, options = deepcopy(self.function, memo), (self.build_strategy, self.backend)
        copy = type(self)(function, self.input_spec, *options)
        copy.is_property = self.is_property
        return copy

    def __get__(self, owner, kind=None):
        """As a method: each object has programs of its own."""
        if owner is None:
            return self
        static = self.bound.get(id(owner))
        if static is None or static.function.__self__ is not owner:
            method = MethodType(self.function, owner)
            static = type(self)(method, self.input_spec, self.build_strategy, self.backend)
            static.is_property = self.is_property
            self.bound[id(owner)] = static
        return static


class ConcreteProgram(NamedTuple):
    """A program, and what runs it."""

    program: Captured
    run: ProgramRunner


class ProgramRunner(NamedTuple):
    """Calls a function with the tensors of a program: `runner(tensors)` is its result."""

    function: StaticFunction
    program: Captured

    def __call__(self, inputs: list):
        constants, structure, places, *_ = self.program.arguments
        values = dict(zip(places, inputs, strict=True))
        args, kwargs = unflatten(structure, [values.get(k, x) for k, x in enumerate(constants)])
        return self.function(*args, **kwargs)


def inputs_of(captured: Captured, wanted: list) -> list[InputSpec]:
    """The inputs of a program as InputSpecs; those that are `wanted` have names and open sizes."""
    wanted = [x for x in wanted if isinstance(x, InputSpec)][: len(captured.stops)]
    rows = zip_longest(captured.program.inputs, captured.stops, wanted)
    return [
        InputSpec(
            w.shape if w else [n if isinstance(n, int) else -1 for n in r.shape],
            r.dtype,
            (w and w.name) or r.attrs["name"],
            stop,
        )
        for r, stop, w in rows
    ]


def concrete_programs(cache: ProgramCache) -> list:
    """The programs that are kept. Source: Paddle `ProgramCache.concrete_programs`."""
    return [each for entries in cache.entries.values() for each in entries]


def last(cache: ProgramCache):
    """The program that was used last. Source: Paddle `ProgramCache.last`."""
    return max(concrete_programs(cache), key=lambda captured: captured.hits[1])


written_last = StaticFunction.concrete_program.fget

for name, member in own_members(Inspection).items():
    setattr(StaticFunction, name, member)

Captured.main_program = property(attrgetter("program"))  # as Paddle's ConcreteProgram has it
Captured.inputs = property(lambda captured: inputs_of(captured, captured.arguments[0]))
ProgramCache.concrete_programs, ProgramCache.last = concrete_programs, last
