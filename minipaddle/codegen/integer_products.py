"""Products of int8 in int32, as plain loops. The innermost one runs through the result's columns,
so the compiler makes vectors of it.
"""

from __future__ import annotations

from ..engine.codegen.kernel import Kernel, emits, function
from ..engine.codegen.plain_products import loops_over
from ..engine.codegen.writer import condition, in_c
from ..engine.core.polynomial import loop
from ..engine.ops.movement import ravel
from .c_text import epilogue_after
from .product import product_of


def emit_loops(record, name: str, rows, parameters, axes, places, ranges=()) -> Kernel:
    """Loops over `axes`. `places` are the indices into the memory of the result and of the two
    inputs; what is out of `ranges` adds nothing.
    """
    loops = [a for axis in axes for a in axis.loops]
    heads = [f"for (int64_t {a} = 0; {a} < {a.extent}; {a}++)" for a in loops]
    heads += [f"if {condition(ranges)}"] if condition(ranges) != "(true)" else []
    out, x, y = map(in_c, places)
    lines = [f"memset(out0, 0, {record.spec.nbytes});"]
    lines += ["    " * depth + head for depth, head in enumerate(heads)]
    lines.append("    " * len(heads) + f"out0[{out}] += in0[{x}] * in1[{y}];")
    body = "".join(f"    {line}\n" for line in lines) + epilogue_after(rows, record.spec)
    return Kernel(name, function(record, name, body, parameters=parameters))


@emits("product_integer")
def emit_product(record, name: str, rows=None, parameters=()) -> Kernel:
    """The kernel of a product of int8 matrices."""
    (x, y), out = (e.spec for e in record.inputs), record.spec
    p = product_of(x, y, out, **record.attrs, keep_order=True)
    if not out.size:
        return Kernel(name, function(record, name, "", parameters=parameters))
    letters = [*(f"b{k}" for k in range(len(p.batch))), "m", "k", "n"]
    axes = [(loop(c, a.size), a) for c, a in zip(letters, (*p.batch, p.m, p.k, p.n), strict=True)]
    places = [sum(i * getattr(a, step) for i, a in axes) for step in ("out", "x", "y")]
    if p.exchanged:
        places[1:] = places[:0:-1]
    return emit_loops(record, name, rows, parameters, [i for i, _ in axes], places)


@emits("conv_last_integer")
def emit_convolution(record, name: str, rows=None, parameters=()) -> Kernel:
    """The kernel of a convolution of int8 images [N, *size, C] with kernels [*kernel, in, out]."""
    (x, w), out, attrs = (e.spec for e in record.inputs), record.spec, record.attrs
    if not out.size:
        return Kernel(name, function(record, name, "", parameters=parameters))
    *kernel, inner, outs = w.shape
    outer = outs // attrs["groups"]
    n, g, c, o = (
        loop(letter, count)
        for letter, count in zip("ngco", (out.shape[0], attrs["groups"], inner, outer))
    )
    taps, pixels = loops_over("t", kernel), loops_over("p", out.shape[1:-1])
    terms = zip(pixels, attrs["stride"], taps, attrs["dilation"], attrs["padding"], strict=True)
    image = [p * stride + t * dilation - low for p, stride, t, dilation, (low, _) in terms]
    places = [
        ravel([n, *pixels, g * outer + o], out.shape),
        ravel([n, *image, g * inner + c], x.shape),
        ravel([*taps, c, g * outer + o], w.shape),
    ]
    ranges = [(at, 0, m) for at, m in zip(image, x.shape[1:-1], strict=True)]
    axes = [n, *pixels, *taps, g, c, o]
    return emit_loops(record, name, rows, parameters, axes, places, ranges)
