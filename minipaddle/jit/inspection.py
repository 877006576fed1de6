"""What a converted function shows: its code, its programs, why each was written; as a method."""

from __future__ import annotations

from copy import deepcopy
from itertools import zip_longest
from operator import attrgetter
from types import MethodType

from ..engine.core.errors import teach
from ..engine.jit.cache import Cache, cache_key
from ..engine.jit.capture import Captured
from ..engine.jit.to_static import StaticFunction
from ..engine.jit.transpile import code_text
from ..engine.jit.tree import flatten
from ..engine.jit.user_lines import in_user_lines
from ..ir.input_spec import InputSpec
from ..tensor.methods import own_members


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
    def program_cache(self) -> Cache:
        """The programs written so far."""
        return self.cache

    @property
    def concrete_program(self):
        """The program written last; before the first call that of the input_spec. Raises
        RuntimeError if there is neither.

        Source: Paddle `StaticFunction.concrete_program`.
        """
        if not self.captured_programs() and self.input_spec is not None:
            self.trace_spec()
        return written_last(self)

    def trace_spec(self) -> None:
        """Write the program of the input_spec."""
        leaves, structure = flatten((tuple(self.input_spec), {}))
        places = [k for k, x in enumerate(leaves) if isinstance(x, InputSpec)]
        found = [(leaves[k].spec(n), leaves[k].stop_gradient) for n, k in enumerate(places)]
        specs = [(spec.shape, spec.dtype, stop) for spec, stop in found]
        try:
            key = cache_key(leaves, structure, places, specs)
            self.capture(key, leaves, structure, places, {})
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

        >>> import minipaddle as paddle
        >>> @paddle.jit.to_static(backend="auto")
        ... def double(x):
        ...     return x * 2
        >>> y = double(paddle.ones([3]))
        >>> print(double)
        <to_static double, 1 program: interpreter>
        >>> double.wait_compiled()
        """
        for captured in self.captured_programs():
            for build in [*captured.executables.pending.values()]:
                build.wait()

    def __repr__(self) -> str:
        """Its programs, and which executor runs each."""
        found = self.captured_programs()
        programs = f"{len(found)} program{'s' * (len(found) != 1)}"
        served = ": " * bool(found) + ", ".join(str(captured.executables) for captured in found)
        return f"<to_static {self.__name__}, {programs}{served}>"

    @property
    def inputs(self) -> list:
        """The inputs of the program written last, as InputSpecs; see `concrete_program`.

        Source: Paddle `StaticFunction.inputs`.
        """
        found, wanted = self.concrete_program, flatten(tuple(self.input_spec or ()))[0]
        wanted = [x for x in wanted if isinstance(x, InputSpec)][: len(found.stops)]
        given = zip_longest(found.program.inputs, found.stops, wanted)
        return [
            InputSpec(w.shape if w else r.shape, r.dtype, (w and w.name) or r.attrs["name"], s)
            for r, s, w in given
        ]

    @property
    def outputs(self) -> list:
        """The tensors that the program written last gives, as InputSpecs."""
        found = self.concrete_program
        results = [found.program.outputs[k] for k in found.places if k is not None]
        return [InputSpec(r.shape, r.dtype, f"output_{k}") for k, r in enumerate(results)]

    @property
    def class_instance(self):
        """The object whose method it is; None for a function."""
        return getattr(self.function, "__self__", None)

    def train(self) -> None:
        """Does nothing; raises RuntimeError if the layer evaluates, because the layer sets its
           mode.

        Source: Paddle `StaticFunction.train`.
        """
        self.require_mode(True)

    def eval(self) -> None:
        """The same for a layer that trains. Source: Paddle `StaticFunction.eval`."""
        self.require_mode(False)

    def require_mode(self, training: bool) -> None:
        if getattr(self.class_instance, "training", training) is not training:
            how = "train" if training else "eval"
            raise RuntimeError(
                teach(f"{how}() of a layer's {self.__name__}", hint=f"layer.{how}() sets the mode")
            )

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
        """A converted function of its own; of a method that of the copied object."""
        function, given = deepcopy(self.function, memo), (self.build_strategy, self.backend)
        made = StaticFunction(function, self.input_spec, *given)
        made.is_property = self.is_property
        return made

    def __get__(self, owner, kind=None):
        """As a method: each object has programs of its own."""
        if owner is None:
            return self
        found = self.bound.get(id(owner))
        if found is None or found.function.__self__ is not owner:
            method = MethodType(self.function, owner)
            found = StaticFunction(method, self.input_spec, self.build_strategy, self.backend)
            found.is_property = self.is_property
            self.bound[id(owner)] = found
        return found


written_last = StaticFunction.concrete_program.fget

for name, member in own_members(Inspection).items():
    setattr(StaticFunction, name, member)

Captured.main_program = property(attrgetter("program"))  # as Paddle's ConcreteProgram has it
