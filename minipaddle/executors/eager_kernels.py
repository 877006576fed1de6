"""Kernels in C for eager mode, where NumPy would walk a large array several times.

A softmax in NumPy walks its input five times, the derivative of GELU sixteen times. For arrays of
at least `LEAST` elements the operators and derivatives below are computed by the code that a
compiled program would have for them: their function is traced once for each combination of shapes,
dtypes and attributes, and the passes, the emitters, the compiler and its cache on disk do the rest.

NumPy computes the first calls. When they have computed `START` elements, a thread compiles; after
`SWITCH` elements the kernel serves. So a count decides who computes a call, and a program gives the
same numbers, to the last bit, each time it runs. (On a busy machine the compiler may not have
finished by then: the call waits, and `report()` says how long.) The two differ by rounding alone.
With several ranks NumPy computes: they would change over one by one.

Without a C compiler NumPy computes arrays of `BLOCKED` bytes and more in blocks of rows, which stay
in the cache. `paddle.set_flags({"FLAGS_eager_kernels": False})` leaves all to NumPy's whole arrays,
and `report()` says which function is computed how.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter

from numpy import empty, ndarray

from .. import ops  # noqa: F401  (its operators are registered)
from ..core.flags import FLAGS
from ..core.prelude import OPS, Recording, Spec, Tensor, current
from ..engine.core import slots
from ..engine.core.dtype import float32, float64
from ..engine.core.rank import among
from ..engine.eager.device import NUMPY
from ..engine.eager.execution import Eager
from ..engine.eager.tensor import wrap
from ..engine.eager.tracer import LOCK, trace
from ..engine.executors.compiler import compiler, unusable
from ..engine.executors.native import CannotCompile, Executable
from ..engine.ir.program import Program
from .background import Build

LEAST = 1 << 13
"""Fewest elements of the first input: calling a kernel takes some 4 µs."""
START, SWITCH = 1 << 24, 1 << 27
"""Elements that NumPy computes before the compiler starts, and before the kernel may serve. (To
compile takes a quarter of a second, in which NumPy computes some 10⁸ elements.)"""
MOST = 64
"""Kernels of one function: beyond these the oldest is forgotten."""
BLOCKED, BLOCK = 1 << 22, 1 << 19
"""Fewest bytes of the first input that NumPy computes in blocks, and bytes of a block."""

OPERATORS = """
    softmax log_softmax cross_entropy softmax_minus_label logsumexp sum mean max min p_norm
    moments standardize standardize_grad scale_grad
    relu gate relu6 leaky_relu silu gelu sigmoid softplus elu selu celu mish hardswish hardsigmoid
    conv conv_input_grad conv_weight_grad
"""
RULES = """
    softmax log_softmax cross_entropy logsumexp max min p_norm
    silu gelu sigmoid tanh softplus elu selu celu mish hardswish leaky_relu
"""
BY_ROWS = {"softmax", "log_softmax", "moments", "standardize", "standardize_grad"}
"""Operators that compute each row by itself, unless they reduce the first axis."""
FLOATS = float32.numpy, float64.numpy


# ---- kernels -----------------------------------------------------------------------------------


class Kernel:
    """What computes something for arrays of some shapes and dtypes: NumPy, later C.

    `make` returns the executable, on the thread that compiles.
    """

    def __init__(self, make: Callable):
        self.walked, self.executable, self.waited = 0, None, 0.0
        self.build = Build(make)

    def __str__(self) -> str:
        """Which of the two computes, and why."""
        if self.executable is not None:
            return f"C, waited {self.waited:.1f} s for it" if self.waited > 0.05 else "C"
        why = f": {self.build.error}" if self.build.error else f", {self.walked} elements so far"
        return f"NumPy{why}"

    def __call__(self, arrays, elements: int) -> list | None:
        """The results in C; None if NumPy computes this call, whose first input has `elements`."""
        if self.executable is None:
            if self.build.error is None:
                self.count(elements)
            return None
        context = self.executable.context()
        try:
            return context.run(arrays)
        except IndexError:  # of a label: NumPy's body names it
            return None
        finally:  # it must not keep what goes in alive; states of a program are
            none = [None] * self.executable.inputs
            context.held[: len(none)] = context.used[: len(none)] = none
            self.executable.contexts.append(context)

    def count(self, elements: int) -> None:
        """Count what NumPy computes; let the kernel be compiled, and serve."""
        self.walked += elements
        if self.walked >= START and not self.build.asked:
            self.build.start()
        if self.walked >= SWITCH and not LOCK._is_owned():  # the compiling thread needs it
            began = perf_counter()
            self.build.wait()
            self.waited, self.executable = perf_counter() - began, self.build.executable


def compile_function(name: str, function, args, attrs) -> Executable:
    """The executable of a function of tensors; `args` are its arguments, a spec for a tensor."""
    return built(traced(name, function, args, attrs))


def traced(name: str, function, args, attrs) -> Program:
    """The program of a function of tensors; raises CannotCompile if it has states."""

    def results(*tensors):
        left = iter(tensors)
        y = function(*[next(left) if type(x) is Spec else x for x in args], **attrs)
        return [*y] if type(y) is tuple else [y]

    with Recording(False):
        program = trace(results, [x for x in args if type(x) is Spec], name=name).program
    if program.states:
        raise CannotCompile(f"it uses the tensor {program.states[0].name or 'made in it'}")
    return program


def built(program: Program) -> Executable:
    """The executable of a program; raises CannotCompile if it would call Python."""
    for strategy in ({"layout": False}, {}):  # a kernel for images as they lie, if there is one
        with LOCK:
            made = Executable(program, strategy, load=False)
        if None not in made.kernels.of.values():
            made.load()
            return made
    raise CannotCompile(made.report())


class Large:
    """A function of arrays whose first argument is large, with a kernel for each of its uses."""

    def __init__(self, name: str, function, whole, by_rows):
        self.name, self.function = name, function
        self.whole = whole  # the function as NumPy computes it
        self.by_rows = by_rows  # attributes -> whether it computes each row by itself
        self.kernels: dict[tuple, Kernel] = {}  # by the kinds of the arguments
        LARGE.append(self)

    def __call__(self, args, attrs) -> list | None:
        """The results, given arrays and other arguments; None if NumPy computes them at once."""
        if not FLAGS["FLAGS_eager_kernels"] or slots.PLUGGED or among.now[1] > 1:
            return None
        if not has_compiler():
            return self.in_blocks(args, attrs)
        key = *[(x.shape, x.dtype) if type(x) is ndarray else repr(x) for x in args], repr(attrs)
        kernel = self.kernels.get(key)
        if kernel is None:
            if len(self.kernels) == MOST:
                del self.kernels[next(iter(self.kernels))]
            specs = [Spec(x.shape, x.dtype) if type(x) is ndarray else x for x in args]
            make = partial(compile_function, self.name, self.function, specs, attrs)
            kernel = self.kernels[key] = Kernel(make)
        return kernel([x for x in args if type(x) is ndarray], args[0].size)

    def in_blocks(self, args, attrs) -> list | None:
        """The results of NumPy on blocks of rows; None if no blocks are possible, or worth it."""
        first, found = args[0], []
        cut = [is_cut(x, first) for x in args]
        if first.nbytes < BLOCKED or None in cut or not self.by_rows(attrs, first.ndim):
            return None
        step = max(1, BLOCK * len(first) // first.nbytes)
        for k in range(0, len(first), step):
            block = [x[k : k + step] if c else x for x, c in zip(args, cut, strict=True)]
            parts = self.whole(block, attrs)
            parts = parts if type(parts) is tuple else (parts,)
            found = found or [empty((len(first), *y.shape[1:]), y.dtype) for y in parts]
            for y, part in zip(found, parts, strict=True):
                y[k : k + step] = part
        return found


LARGE: list[Large] = []

REPORTED: list = []
"""Functions that yield further lines of `report`."""


def is_cut(x, first) -> bool | None:
    """Whether an argument has a row for each row of `first`; False: all of its rows share it, None:
    neither.
    """
    if type(x) is not ndarray or x.ndim < first.ndim or x.shape[:1] == (1,):
        return False
    return True if x.ndim == first.ndim and len(x) == len(first) else None


def serves() -> bool:
    """Whether programs in C may serve what runs here."""
    eager = isinstance(current.top, Eager) and not current.top.tracing
    usual = FLAGS["FLAGS_eager_kernels"] and eager and not slots.PLUGGED
    return usual and among.now[1] == 1 and has_compiler()


def has_compiler() -> bool:
    """Whether C can be compiled here."""
    return not unusable and compiler() is not None


# ---- operators and their derivatives -------------------------------------------------------------


def by_rows(op):
    """A function (attributes, number of dimensions): whether an operator computes by rows."""
    if op.kind == "elementwise":
        return lambda attrs, ndim: True
    if op.name not in BY_ROWS:
        return lambda attrs, ndim: False
    return lambda attrs, ndim: all(d % ndim for d in attrs.get("axes") or (attrs["axis"],))


def operator(op):
    """What computes large arrays of an operator: see `Op.large`."""
    large = Large(op.name, op, lambda arrays, attrs: op.evaluate(NUMPY, arrays, attrs), by_rows(op))

    def compute(arrays, attrs):
        x = arrays[0]
        if type(x) is ndarray and x.size >= LEAST and x.dtype in FLOATS:
            y = large(arrays, attrs)
            return y if y is None or len(y) > 1 else y[0]

    return compute


def derivative(op, rule):
    """What computes large cotangents: see `Rule.large`."""

    def whole(args, attrs):
        return rule.fn(*[wrap(x) if type(x) is ndarray else x for x in args], **attrs).array

    elementwise = op.kind == "elementwise"
    large = Large(f"derivative of {op.name}", rule.fn, whole, lambda *_: elementwise)

    def compute(g, *args, **attrs):
        x = g.array
        if type(x) is not ndarray or x.size < LEAST or x.dtype not in FLOATS:
            return rule.fn(g, *args, **attrs)
        if current.top.recording:  # the derivative will be differentiated
            return rule.fn(g, *args, **attrs)
        y = large([y.array if isinstance(y, Tensor) else y for y in (g, *args)], attrs)
        return wrap(y[0]) if y else rule.fn(g, *args, **attrs)

    return compute


def give_kernels(*operators) -> None:
    """Give kernels to operators."""
    for op in operators:
        op.large = operator(op)


def give_kernels_to_derivatives(*operators) -> None:
    """Give kernels to the derivatives of operators."""
    for op in operators:
        for rule in op.rules.values():
            rule.large = derivative(op, rule)


def report() -> str:
    """How eager mode computes large arrays here, and each function of them so far.

    >>> from minipaddle.executors import eager_kernels
    >>> eager_kernels.report().split(":")[0]
    'large arrays in eager mode'
    """
    if not FLAGS["FLAGS_eager_kernels"]:
        return "large arrays in eager mode: NumPy, by FLAGS_eager_kernels"
    if not has_compiler():
        return f"large arrays in eager mode: NumPy, in blocks from {BLOCKED >> 20} MiB on"
    uses = [
        f"  {large.name} of {Spec(*first)}: {kernel}"
        for large in LARGE
        for (first, *_), kernel in large.kernels.items()
    ]
    where = f"large arrays in eager mode: C, from {LEAST:,} elements on"
    more = (line for lines in REPORTED for line in lines())
    return "\n".join([where, *uses, *more])


give_kernels(*map(OPS.get, OPERATORS.split()))
give_kernels_to_derivatives(*map(OPS.get, RULES.split()))
