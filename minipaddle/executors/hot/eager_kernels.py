"""Large arrays in eager mode, where NumPy would walk them several times.

A softmax in NumPy walks its input five times, the derivative of GELU sixteen times. NumPy computes
arrays of `BLOCKED` bytes and more in blocks of rows, which stay in the cache, if a function
computes each row by itself. With FLAGS_eager_kernels the operators and derivatives below are hot
code (`hot`) for arrays of at least `Op.least` elements: their function is traced once for each
combination of shapes, dtypes and attributes, and the passes, the emitters, the compiler and its
cache on disk do the rest. The elements of the largest argument are the work of a call. A call that
is not hot yet takes 2 µs longer, a tenth of a ReLU of 256 × 256. C reads views where they lie.
"""

from __future__ import annotations

from functools import lru_cache, partial
from math import isqrt, prod
from types import MappingProxyType

from numpy import broadcast, empty, ndarray

from ... import ops  # noqa: F401  (its operators are registered)
from ...core.flags import FLAGS
from ...core.prelude import OPS, Recording, Spec, Tensor, current
from ...engine.core import slots
from ...engine.core.dispatch import OUT
from ...engine.core.dtype import float32, float64
from ...engine.core.op import Op
from ...engine.core.rank import among
from ...engine.eager.device import NUMPY
from ...engine.eager.tensor import wrap
from ...engine.eager.tracer import LOCK, trace
from ...engine.executors.arrays import address
from ...engine.executors.native import CannotCompile, Executable, threads
from ...engine.ir.program import Program
from ...engine.ops.movement import inverse, transpose
from ...ops.norm import BY_DISTANCE, distances
from ...ops.strided import as_strided
from ..gpu.direct import DirectExecutable
from ..gpu.gpu_program import device_of
from . import EagerKernel, HotCache, has_compiler

BLOCKED, BLOCK = 1 << 22, 1 << 19
"""Fewest bytes of the first input that NumPy computes in blocks, and bytes of a block."""

ENOUGH = """
    add subtract multiply divide neg abs square sqrt maximum minimum where cast floor ceil trunc
    round equal not_equal less_than less_equal greater_than greater_equal isnan isinf isfinite
"""
"""Elementwise operators that NumPy computes as fast as C, walking each array once; but not if it
repeats rows or columns of an array (`REPEATING`).
"""
REPEATING = "add subtract multiply divide"
OPERATORS = """
    softmax log_softmax cross_entropy softmax_minus_label logsumexp sum mean max min prod p_norm
    deviation moments standardize standardize_grad scale_grad cumsum cumprod recurrence tril triu
    conv conv_input_grad conv_weight_grad max_pool max_pool_grad
"""
"""Further operators with kernels."""
GATED = "relu relu6 thresholded_relu hardtanh clip"
"""Elementwise operators whose derivative is a single one, which has a kernel."""
RULES = """
    square sqrt abs divide softmax log_softmax cross_entropy logsumexp max min p_norm deviation
"""
PRODUCTS = "matmul linear summed_outer affine"
"""Operators that a BLAS computes as fast; but it has threads of its own, which wait for their work
busily, beside those of kernels.
"""
BY_ROWS = {"softmax", "log_softmax", "moments", "standardize", "standardize_grad"}
"""Operators that compute each row by itself, unless they reduce the first axis."""
ON_GPU = """
    softmax log_softmax cross_entropy softmax_minus_label logsumexp p_norm
    moments standardize standardize_grad scale_grad
    gate relu6 leaky_relu silu gelu sigmoid softplus elu selu celu mish hardswish hardsigmoid
    conv conv_input_grad conv_weight_grad
"""
"""Operators that are compiled for a GPU. CuPy has a kernel for the others."""
FLOATS = float32.numpy, float64.numpy


# ---- kernels -----------------------------------------------------------------------------------


def compile_function(name: str, function, args, attrs, device=None) -> Executable:
    """The executable of a function of tensors; `args` are its arguments, a spec for a tensor."""
    return build_executable(trace_function(name, function, args, attrs), device)


def trace_function(name: str, function, args, attrs) -> Program:
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


def build_executable(program: Program, device=None) -> Executable | DirectExecutable:
    """The executable of a program, on a GPU if one is given; raises CannotCompile if it would call
    Python.
    """
    if device is not None:
        return DirectExecutable(program, device)
    for strategy in ({"layout": False}, {}):  # a kernel for images as they lie, if there is one
        with LOCK:
            executable = Executable(program, strategy, load=False)
        if None not in executable.kernels.of.values():
            executable.load()
            return executable
    raise CannotCompile(executable.report())


class Large:
    """A function of arrays whose first argument is large, with a kernel for each of its uses."""

    def __init__(self, name: str, function, whole, by_rows, elementwise: bool):
        self.name, self.function, self.elementwise = name, function, elementwise
        self.on_gpu = name in ON_GPU.split()
        self.whole = whole  # the function as NumPy computes it
        self.by_rows = by_rows  # attributes -> whether it computes each row by itself
        self.kernels = HotCache()  # by the kinds of the arguments

    def __call__(self, args, attrs, size: int = 0) -> list | None:
        """The results, given arrays and other arguments; None if NumPy computes them at once. The
        result has `size` elements, where arguments may have fewer.
        """
        if slots.PLUGGED or among.now[1] > 1:
            return None
        kind, device = type(args[0]), None
        if kind is not ndarray:
            device = device_of(args[0]) if self.on_gpu else None
            if device is None:
                return None
        elif not FLAGS["FLAGS_eager_kernels"]:
            return self.run_in_blocks(args, attrs)
        key, arrays, views = [device, repr(attrs) if attrs else ""], [], []
        for x in args:
            if type(x) is kind:
                memory, view = x, None
                if device is None and not x.flags.c_contiguous:
                    memory, view = memory_of(x, self.elementwise)
                arrays.append(memory)
                views.append(view)
                key += x.shape, x.dtype.num, view  # (to hash a dtype takes longer than all of this)
                if x.size > size:
                    size = x.size
            else:
                views.append(None)
                key.append(repr(x))
        key = tuple(key)
        kernel = self.kernels.codes.get(key)
        if kernel is None and (device is not None or has_compiler()):
            make = partial(self.kernel, args, attrs, arrays, views, device)
            kernel = self.kernels.find(key, make)
        results = kernel and kernel(arrays, size)
        return results if results or device is not None else self.run_in_blocks(args, attrs)

    def kernel(self, args, attrs, arrays, views, device) -> EagerKernel:
        kind, memories = type(arrays[0]), iter(arrays)
        specs = [spec_of(next(memories)) if type(x) is kind else x for x in args]

        def function(*xs, **attrs):
            return self.function(*map(see, xs, views), **attrs)

        make = partial(compile_function, self.name, function, specs, attrs, device)
        return EagerKernel(make, f"{self.name} of {spec_of(args[0])}", device)

    def run_in_blocks(self, args, attrs) -> list | None:
        """The results of NumPy on blocks of rows; None if no blocks are possible, or worth it."""
        first, results = args[0], []
        if first.nbytes < BLOCKED or not self.by_rows(attrs, first.ndim):
            return None
        cut = [is_cut(x, first) for x in args]
        if None in cut:
            return None
        step = max(1, BLOCK * len(first) // first.nbytes)
        for k in range(0, len(first), step):
            block = [x[k : k + step] if c else x for x, c in zip(args, cut, strict=True)]
            parts = self.whole(block, attrs)
            parts = parts if type(parts) is tuple else (parts,)
            results = results or [empty((len(first), *y.shape[1:]), y.dtype) for y in parts]
            for y, part in zip(results, parts, strict=True):
                y[k : k + step] = part
        return results


def spec_of(array) -> Spec:
    return Spec(array.shape, array.dtype)


@lru_cache(1 << 10)
def view_of(shape: tuple, strides: tuple, width: int) -> tuple | None:
    """How an array looks into its memory: its axes from the longest step on, and, where there are
    gaps, their sizes and steps. None: there are gaps within rows, too.
    """
    order = tuple(sorted(range(len(shape)), key=lambda d: -strides[d]))
    sizes, steps = (tuple(x[d] for d in order) for x in (shape, strides))
    if steps[-1] not in (0, width) or any(step % width for step in steps):
        return None
    steps = tuple(step // width for step in steps)
    real = [(n, step) for n, step in zip(sizes, steps, strict=True) if n > 1]
    dense = all(step == prod(n for n, _ in real[k + 1 :]) for k, (_, step) in enumerate(real))
    return order, None if dense else (sizes, steps)


def memory_of(x, in_order: bool) -> tuple:
    """An array without gaps, in which x is the view; x itself if C copies it, as where it would
    write an array in one order that it reads in another.
    """
    view, base = view_of(x.shape, x.strides, x.itemsize), x.base
    if view is None or (in_order and [*view[0]] != sorted(view[0])):
        return x, None
    order, gaps = view
    if gaps is None:
        return x.transpose(order), view
    if type(base) is not ndarray or not base.flags.c_contiguous:
        return x, None
    size = 1 + sum((n - 1) * step for n, step in zip(*gaps, strict=True))
    return ndarray((size,), x.dtype, base, address(x) - address(base)), view


def see(x, view):
    """The tensor that an array looks like: see `memory_of`."""
    if view is None:
        return x
    order, gaps = view
    if gaps is not None:
        x = as_strided(x, shape=gaps[0], strides=gaps[1], offset=0)
    return transpose(x, perm=inverse(order))


def is_cut(x, first) -> bool | None:
    """Whether an argument has a row for each row of `first`; False: all of its rows share it, None:
    neither.
    """
    if type(x) is not ndarray or x.ndim < first.ndim or x.shape[:1] == (1,):
        return False
    return True if x.ndim == first.ndim and len(x) == len(first) else None


# ---- operators and their derivatives -------------------------------------------------------------


def by_rows(op):
    """A function (attributes, number of dimensions): whether an operator computes by rows."""
    if op.kind == "elementwise":
        return lambda attrs, ndim: True
    if op.name not in BY_ROWS:
        return lambda attrs, ndim: False
    return lambda attrs, ndim: all(d % ndim for d in attrs.get("axes") or (attrs["axis"],))


def operator(op):
    """The function that computes large arrays of an operator: see `Op.large`."""
    whole = lambda arrays, attrs: op.evaluate(NUMPY, arrays, attrs)
    large = Large(op.name, op, whole, by_rows(op), op.kind == "elementwise")

    def compute(arrays, attrs, size=0):
        first = arrays[0]
        if not hasattr(first, "dtype") or first.dtype not in FLOATS:
            return None
        y = large(arrays, attrs, size)
        return y and (tuple(y) if len(y) > 1 else y[0])

    def multiply(arrays, attrs):
        if threads() == 1 or arrays[0].dtype != arrays[1].dtype:
            return None
        y = arrays[1]
        columns = y.shape[0 if attrs.get("transpose") or y.ndim == 1 else -1]
        work = arrays[0].size * columns >> 7
        return compute(arrays, attrs, work) if work >= Op.least else None

    def repeat(arrays, attrs):
        first, second = arrays
        if not type(first) is type(second) is ndarray or first.shape == second.shape:
            return None
        size = broadcast(first, second).size if second.ndim else 0
        return compute(arrays, attrs, size) if size >= Op.least else None

    if op.name in PRODUCTS.split():
        return multiply
    return repeat if op.name in REPEATING.split() else compute


def derivative(op, rule, function=None):
    """The function that computes large cotangents: see `Rule.large`. In C that is `function`, if
    there is one.
    """

    def whole(args, attrs):
        return rule.fn(*[wrap(x) if type(x) is ndarray else x for x in args], **attrs).array

    elementwise = op.kind == "elementwise"
    fn, name = function or rule.fn, f"derivative of {op.name}"
    large = Large(name, fn, whole, lambda *_: elementwise, elementwise)

    places = [i for i, (_, kind, k) in enumerate(rule.plan) if kind == "value" and k != OUT]
    place = None if elementwise or not places else places[0]  # of a reduction g is small

    def compute(g, *args, **attrs):
        x = (g if place is None else args[place]).array
        if type(x) is not ndarray or x.size < Op.least or x.dtype not in FLOATS:
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


def give_kernels_to_derivatives(*operators, functions=MappingProxyType({})) -> None:
    """Give kernels to the derivatives of operators; `functions`, by input, are for C alone."""
    for op in operators:
        for k, rule in op.rules.items():
            rule.large = derivative(op, rule, functions.get(k))


LONG = {n for n, op in OPS.items() if op.kind == "elementwise"}.difference(ENOUGH.split())
"""Elementwise operators that are several walks in NumPy, or slow ones."""
give_kernels(*map(OPS.get, [*LONG, *f"{OPERATORS} {REPEATING} {PRODUCTS}".split()]))
for name in REPEATING.split():  # a column and a row may be short
    OPS[name].least = isqrt(Op.least)
give_kernels_to_derivatives(*map(OPS.get, [*LONG.difference(GATED.split()), *RULES.split()]))
give_kernels_to_derivatives(distances, functions=BY_DISTANCE)
