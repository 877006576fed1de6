"""The step of an optimizer, for all parameters, as one program in C.

A step is some operators on each parameter and its states; for small parameters, to call them takes
longer than to compute. Every step does the same as long as the same parameters have gradients. So
with FLAGS_eager_programs, and on a GPU, a step is hot code (`executors.hot`): `Optimizer.advance`
is traced on twins of them all, and the program writes parameters and states in place. Clipping and
decay come before, operator by operator.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from types import SimpleNamespace
from weakref import WeakKeyDictionary

from numpy import broadcast_to, ndarray, zeros

from ..core.prelude import Recording, Spec, Tensor, wrap
from ..engine.core.record import mark_written, owner
from ..engine.eager.tracer import trace
from ..engine.executors.native import CannotCompile, Executable
from ..engine.sharding.array import ShardedArray
from ..executors.gpu.gpu_program import device_of
from ..executors.hot import EagerKernel, HotCache, eager_is_compiled
from ..executors.hot.eager_kernels import build_executable
from ..executors.hot.tapes import CALL
from ..ops.row_gradient import WholeTable

UPDATES: WeakKeyDictionary = WeakKeyDictionary()
"""For each optimizer its updates, by parameters, factors on the rate and specs of gradients."""


def update_in_c(optimizer, group, pairs) -> bool:
    """Make the step for pairs (parameter, gradient) in C. False if NumPy must make it."""
    if not (pairs and optimizer.rule.__module__.startswith(__package__)):
        return False
    if not eager_is_compiled(pairs[0][0].array):
        return False
    if True in [isinstance(g, WholeTable) for _, g in pairs]:
        return False
    if ShardedArray.used and ShardedArray in {type(x.array) for pair in pairs for x in pair}:
        return False
    key = tuple([(id(p), factor(group, p), g.array.shape, g.array.dtype) for p, g in pairs])
    if optimizer not in UPDATES:
        UPDATES[optimizer] = HotCache(most=8)
    device = device_of(pairs[0][0].array)
    update = UPDATES[optimizer].find(
        (key, device), partial(create_update, optimizer, group, pairs, key)
    )
    return update is not None and update.step(optimizer, [g.array for _, g in pairs])


def create_update(optimizer, group, pairs, key) -> Update | None:
    """The update for a key; None before the first step of a parameter."""
    parameters = [p for p, _ in pairs]
    known = all(p in optimizer._states for p in parameters)
    return Update(optimizer, group, parameters, key) if known else None


def factor(group, p) -> float:
    """The factor on the learning rate of a parameter."""
    return group.learning_rate * (p.optimize_attr["learning_rate"] if p.is_parameter else 1.0)


class Update(EagerKernel):
    """The step of an optimizer for some parameters: by NumPy, later in C."""

    def __init__(self, optimizer, group, parameters, key):
        self.kind, self.rule, self.parameters = type(optimizer), optimizer.rule, parameters
        self.kept = [optimizer._states[p] for p in parameters]
        self.factors = [factor(group, p) for p in parameters]
        self.specs = [Spec(*spec) for _, _, *spec in key]  # of the gradients
        self.rates = {k.dtype: optimizer._rate.tensor(k.dtype) for k in self.kept}
        self.options: list[tuple] = []  # (options, name, value) of all that the rule asked for
        self.tensors: list[Tensor] = []  # the states of the program
        self.arrays: list = []  # what these held when they were looked at last
        self.owners: set[int] = set()  # the ids of these arrays
        self.elements = CALL + sum(p.array.size for p in parameters) // len(parameters)
        about = f"step of {self.kind.__name__} for {len(parameters)} parameters"
        self.device, self.array = device_of(parameters[0].array), type(parameters[0].array)
        super().__init__(self.compile, about, self.device)

    # ---- the program -------------------------------------------------------------------------

    def compile(self) -> Executable:
        """Trace the step on twins: while a trace lasts, a tensor holds no array."""
        twins: dict[int, Tensor] = {}  # the tensors, by the ids of their twins
        operands = []

        def twin(x: Tensor) -> Tensor:
            operands.append(wrap(broadcast_to(zeros((), x.array.dtype), x.array.shape)))
            twins[id(operands[-1])] = x
            return operands[-1]

        optimizer = object.__new__(self.kind)
        rates = {dtype: twin(rate) for dtype, rate in self.rates.items()}
        optimizer._rate = SimpleNamespace(tensor=rates.get)
        parameters = [*map(twin, self.parameters)]
        optimizer._states = {p: self.like(k, twin) for p, k in zip(parameters, self.kept)}

        def step(*gradients) -> list:
            for p, g, scale in zip(parameters, gradients, self.factors, strict=True):
                optimizer.advance(SimpleNamespace(learning_rate=scale), p, g)
            return []

        with Recording(False):
            program = trace(step, self.specs, name=f"step of {self.kind.__name__}").program
        tensors = [twins.get(id(getattr(s.storage, "tensor", None))) for s in program.states]
        if None in tensors:
            raise CannotCompile("it uses a tensor that is neither its state nor a parameter")
        self.tensors, self.arrays = tensors, [None] * len(tensors)
        return build_executable(program, self.device)

    def like(self, kept, twin):
        """The optimizer state of a parameter's twin."""
        other = copy(kept)
        other.options = UpdateOptions(kept.options, self.options)
        other.states = {name: twin(x) for name, x in kept.states.items()}
        other.master = None if kept.master is None else twin(kept.master)
        return other

    # ---- a step ------------------------------------------------------------------------------

    def step(self, optimizer, gradients) -> bool:
        """Make a step in C. False if NumPy must make it."""
        if self.executable is None:
            self([], self.elements)
            return False
        if not self.fits(optimizer, gradients):
            return False
        results = self([*gradients, *self.arrays], self.elements)
        for k, array in zip(self.executable.updated, results, strict=True):
            if array is not self.arrays[k]:
                self.arrays[k][...] = array
            mark_written(self.arrays[k])
        return True

    def enter(self, context, arrays) -> list:
        """The updated states, which are kept; the gradients are not kept alive."""
        try:
            return context.run(arrays)
        finally:
            for k in range(context.executable.inputs):
                context.held[k] = context.used[k] = None

    def fits(self, optimizer, gradients) -> bool:
        """Whether the program may have these gradients, and the tensors that it was traced with."""
        states, tensor = optimizer._states, optimizer._rate.tensor
        if optimizer.rule is not self.rule:
            return False
        for p, kept in zip(self.parameters, self.kept, strict=True):
            if states.get(p) is not kept:
                return False
        for dtype, rate in self.rates.items():
            if tensor(dtype) is not rate:  # there is another schedule
                return False
        for options, name, value in self.options:
            if getattr(options, name) is not value:
                return False
        for k, x in enumerate(self.tensors):
            if x.array is not self.arrays[k] and not self.bind():
                return False
        return all(type(g) is self.array and id(owner(g)) not in self.owners for g in gradients)

    def bind(self) -> bool:
        """Whether each tensor holds an array of its own that C can write."""
        arrays = [x.array for x in self.tensors]
        self.owners = {id(a) for a in arrays}
        whole = "carray" if self.array is ndarray else "c_contiguous"
        own = all(type(a) is self.array and a.base is None for a in arrays)
        own = own and all(getattr(a.flags, whole) for a in arrays)
        fits = own and len(self.owners) == len(arrays)
        self.arrays = arrays if fits else [None] * len(arrays)
        return fits


NUMBERS = {float, int, bool, str, type(None)}


class UpdateOptions:
    """The options of a parameter, as its rule reads them: reads are noted."""

    def __init__(self, options, noted: list):
        self._options, self._noted = options, noted

    def __getattr__(self, name: str):
        value = getattr(self._options, name)
        if not {*map(type, value if type(value) is tuple else [value])} <= NUMBERS:
            raise CannotCompile(f"the option {name}, {value!r}, may change")
        self._noted.append((self._options, name, value))
        return value
