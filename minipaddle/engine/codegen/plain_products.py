"""Matrix products and convolutions as plain loops that multiply and add.

    for (i, k, j) out0[4*i + j] += in0[8*i + k] * in1[4*k + j];

The engine alone writes these. The package's kernels, in tiles and with vectors, are in
`minipaddle/codegen`.
"""

from __future__ import annotations

from ..core import dtype as dt
from ..core.polynomial import loop
from ..core.spec import broadcast_shapes
from ..ops.movement import ravel
from .kernel import Kernel, emits, function
from .scalar import CannotWrite
from .writer import condition, in_c


def loops_over(letter: str, shape) -> list:
    """A loop variable for each axis; one of a single iteration is the number 0."""
    return [loop(f"{letter}{d}", n) for d, n in enumerate(shape)]


def emit_loops(record, name: str, axes, places, ranges=()) -> Kernel:
    """The kernel of a record; `places` are the indices into the result and the two inputs."""
    if record.dtype not in (dt.float32.numpy, dt.float64.numpy):
        raise CannotWrite(f"{record.op.name} of {record.dtype}")
    flat = [ravel(i, x.shape) for i, x in zip(places, (record, *record.inputs), strict=True)]
    return Kernel(name, function(record, name, write_loops(record, axes, flat, ranges)))


def write_loops(record, axes, places, ranges=(), term="{} += {} * {}", add=False) -> str:
    """C text of loops over `axes`. `places` are the indices into the memory of the result and of
    the two inputs; what is out of `ranges` adds nothing. With `add` nothing is cleared before.
    """
    heads = [f"for (int64_t {a} = 0; {a} < {a.extent}; {a}++)" for axis in axes for a in axis.loops]
    heads += [f"if {condition(ranges)}"] if condition(ranges) != "(true)" else []
    term = term.format(*(f"{x}[{in_c(i)}]" for x, i in zip(("out0", "in0", "in1"), places)))
    lines = ["    " * depth + line for depth, line in enumerate([*heads, f"{term};"])]
    clear = [] if add else [f"memset(out0, 0, {record.spec.nbytes});"]
    return "".join(f"    {line}\n" for line in [*clear, *lines])


@emits("matmul")
def emit_matmul(record, name: str) -> Kernel:
    """Rows of y, times an element of x, are added to a row of the result: the innermost loop runs
    through memory."""
    x, y = (edge.spec.shape for edge in record.inputs)
    lead = loops_over("b", broadcast_shapes(x[:-2], y[:-2]))
    (i,), (k,) = loops_over("i", x[-2:-1] or (1,)), loops_over("k", x[-1:])
    (j,) = loops_over("j", y[-1:] if len(y) > 1 else (1,))
    at_x = [*broadcast_index(lead, x[:-2]), *([i] if len(x) > 1 else []), k]
    at_y = [*broadcast_index(lead, y[:-2]), k, *([j] if len(y) > 1 else [])]
    at_out = [*lead, *([i] if len(x) > 1 else []), *([j] if len(y) > 1 else [])]
    return emit_loops(record, name, [*lead, i, k, j], (at_out, at_x, at_y))


def broadcast_index(i: list, shape) -> list:
    """The index into an array of a shape that is broadcast."""
    return [0 if n == 1 else k for k, n in zip(i[len(i) - len(shape) :], shape, strict=True)]


@emits("conv", "conv_input_grad", "conv_weight_grad")
def emit_convolution(record, name: str) -> Kernel:
    """y[n, o, p] += w[o, c, t] · x[n, c, p·stride + t·dilation - padding], and its two adjoints:
    the same loops, which add to x or to w."""
    attrs, inputs = record.attrs, [edge.spec.shape for edge in record.inputs]
    roles = {"conv": "yxw", "conv_input_grad": "xyw", "conv_weight_grad": "wxy"}[record.op.name]
    shapes = dict(zip(roles, (record.spec.shape, *inputs), strict=True))
    groups, size = attrs["groups"], shapes["x"][2:]
    outs, channels, *kernel = shapes["w"]
    n, g, o, c = (
        loop(letter, count)
        for letter, count in zip("ngoc", (shapes["y"][0], groups, outs // groups, channels))
    )
    taps, pixels = loops_over("t", kernel), loops_over("p", shapes["y"][2:])
    terms = zip(pixels, attrs["stride"], taps, attrs["dilation"], attrs["padding"], strict=True)
    image = [p * stride + t * dilation - low for p, stride, t, dilation, (low, _) in terms]
    places = {
        "y": [n, g * (outs // groups) + o, *pixels],
        "x": [n, g * channels + c, *image],
        "w": [g * (outs // groups) + o, c, *taps],
    }
    ranges = [(at, 0, m) for at, m in zip(image, size, strict=True)]
    axes = [n, g, o, c, *taps, *pixels]
    return emit_loops(record, name, axes, [places[role] for role in roles], ranges)
