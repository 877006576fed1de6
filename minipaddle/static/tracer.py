"""The tracer of a program that is defined by hand: it stays in charge while static mode is on."""

from contextlib import contextmanager

from ..engine.core.dispatch import interpreter
from ..engine.core.errors import value_error
from ..engine.core.op import opaque
from ..engine.eager.backward import grad
from ..engine.eager.device import current_place
from ..engine.eager.tensor import Parameter, Tensor, wrap
from ..engine.eager.tracer import Tracer, create_input
from ..engine.ir.builder import SymbolicArray
from ..engine.ir.cut import pruned
from ..engine.ir.interpreter import Run
from ..engine.ir.program import Program
from ..ir.input_spec import InputSpec


@opaque
def by_mode(m, training, testing):
    """The value for training; `Program.clone(for_test=True)` takes the other one."""
    return training


by_mode.shape(lambda training, testing: training)
by_mode.vjp(training=lambda g: g)


class StaticTracer(Tracer):
    """A Tracer that can be left and entered again.

    While it is in charge the tensors of the outside that it met hold symbolic arrays. When it is
    left they have their arrays again, so that a run can read and write them.
    """

    by_hand = True
    remote = None  # with parameter servers: what is pulled for a run, and pushed after it

    def __init__(self, name: str, startup=None):
        super().__init__(name)
        self.startup = startup  # the program that a parameter's first values belong to
        self.lent: dict[int, tuple] = {}  # id of a tensor of the outside -> what it is in here
        self.tensors: dict[str, Tensor] = {}  # data and parameters by name
        self.results: list[Tensor] = []
        self.testing = False  # is the other side of `by_mode` being written?
        self.entered = None  # the block in which it is in charge

    # ---- in charge or not --------------------------------------------------------------------

    def enter(self) -> None:
        """Take charge."""
        self.entered = interpreter(self)
        self.entered.__enter__()
        for b in self.lifted.values():
            x = b.tensor
            symbolic, record, stop = self.lent[id(x)]
            self.memory[id(x.array)] = x.array, symbolic
            x.array, x.record, x.stop_gradient = symbolic, record, stop
            x._grad, x._stale = b.waiting, True

    def leave(self) -> None:
        """Give everything back, to be entered again."""
        for b in self.lifted.values():
            x = b.tensor
            self.lent[id(x)] = x.array, x.record, x.stop_gradient
            x.array, x.record, x.stop_gradient = self.array_of(x), b.record, b.stop_gradient
            x._grad, x._stale = b.grad, b.stale
        self.entered.__exit__(None, None, None)
        self.entered = None

    def array_of(self, x: Tensor):
        return next(array for array, symbolic in self.memory.values() if symbolic is x.array)

    @contextmanager
    def outside(self):
        """A block that records nothing."""
        self.leave()
        try:
            yield
        finally:
            self.enter()

    def resolve(self, part):
        """A part of a layer. A buffer is a state, so its first value is computed at once."""
        if not isinstance(part, Tensor) or type(part.array) is not SymbolicArray:
            return part
        if any(symbolic is part.array for _, symbolic in self.memory.values()):
            return part
        record = self.builder.value(part.array)
        program = pruned(Program("first", [], [], [*self.root.program.records], [record]))
        with self.outside():
            (array,) = Run(current_place().module)(program, [])
            return wrap(array)

    def note_parameter(self, parameter: Parameter, draw) -> None:
        """Note a new parameter, whose values `draw()` computes."""
        self.tensors[parameter.name] = parameter
        if self.startup is not None:
            self.startup.first.append((parameter, draw))

    # ---- records -----------------------------------------------------------------------------

    def apply(self, op, inputs, attrs):
        out = super().apply(op, inputs, attrs)
        self.results += out if type(out) is tuple else [out]
        return out

    def lift(self, x: Tensor) -> SymbolicArray:
        if type(x.array) is not SymbolicArray and isinstance(x, Parameter):
            self.tensors.setdefault(x.name, x)
            x._grad, x._stale = None, False
        return super().lift(x)

    def data(self, name: str, spec: InputSpec) -> Tensor:
        """An input of the program."""
        if name in self.tensors:
            raise value_error(f"the program has a {name!r} already", hint="another name")
        number = len(self.root.program.inputs)
        x = create_input(self, InputSpec(spec.shape, spec.dtype, name).spec(number), name)
        x.name = name
        self.tensors[name] = x
        return x

    def modes(self, training, testing):
        if self.testing:
            return training()
        self.testing = True
        try:
            quiet = testing()  # first: it sees what training is about to change
            return by_mode(training(), quiet)
        finally:
            self.testing = False

    def host(self, function, args, kwargs) -> None:
        """Call a function of Python, such as a schedule's step, at once."""
        with self.outside():
            function(*args, **kwargs)

    # ---- backward and the step ---------------------------------------------------------------

    def trainable(self) -> list[Parameter]:
        parameters = [x for x in self.tensors.values() if isinstance(x, Parameter)]
        return [x for x in parameters if not x.stop_gradient]

    def append_backward(self, loss, parameters=None, frozen=()) -> list[tuple]:
        """Write the walk back from `loss`; pairs (parameter, gradient)."""
        names = {x if isinstance(x, str) else x.name for x in frozen or ()}
        own = self.trainable() if parameters is None else [*map(self.parameter, parameters)]
        own = [p for p in own if p.name not in names]
        cotangents = grad([loss], own, retain_graph=True, allow_unused=True)
        return [(p, g) for p, g in zip(own, cotangents, strict=True) if g is not None]

    def parameter(self, x):
        return self.tensors[x] if isinstance(x, str) else x

    def minimize(self, optimizer, loss, parameters, frozen) -> tuple:
        """`Optimizer.minimize` in a program: walk back, then step."""
        own = parameters or optimizer._parameter_list or None
        pairs = self.append_backward(loss, own, frozen)
        optimizer.adopt([p for p, _ in pairs])
        self.step(optimizer, pairs)
        return [], pairs

    def step(self, optimizer, pairs) -> None:
        for p, g in pairs:
            p.grad = g
        optimizer.step()
        for p, _ in pairs:  # each run computes them anew
            p._grad, p._stale = self.lifted[id(p)].waiting, True
