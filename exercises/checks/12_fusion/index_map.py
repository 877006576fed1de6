"""Checks of 12_fusion/index_map."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle.engine.codegen.nest_kernel import emit_nest
from minipaddle.engine.core.polynomial import loop
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.executors.compiler import compiler
from minipaddle.engine.passes.manager import optimized
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Index maps: where an element comes from",
    level="hard",
    minutes=50,
    before=("01_arrays/strides",),
    slots={
        "ops.transpose.source": "transposed",
        "ops.reshape.source": "reshaped",
        "ops.broadcast_to.source": "broadcast",
        "ops.slice.source": "sliced",
        "ops.flip.source": "flipped",
    },
    hints=(
        "Element [1, 2] of a transposed matrix: which row and which column of the matrix is it? "
        "And element 5 of a matrix with three columns that was laid out flat?",
        "A reshape goes through one number, the position. An axis of size 1 that is repeated has "
        "only the place 0. In a slice, ints and None are in `index` but not in both shapes.",
        "transposed: there[perm[d]] = i[d]\n"
        "reshaped: position = (i0 · n1 + i1) · n2 + i2 …; then % and // by x.shape, last axis "
        "first\n"
        "broadcast: the last len(x.shape) of i; 0 where x has size 1\n"
        "sliced: None skips one of i; an int takes none; else start + k · step\n"
        "flipped: n - 1 - k",
    ),
    wrong={
        "the perm the other way round": "there[axis] = i[d] → there[d] = i[axis]",
        "column after column": "zip(i, shape, strict=True) → zip(i[::-1], shape, strict=True)",
        "the last axis slowest": "there.insert(0, position % n) → there.append(position % n)",
        "positions that are not counted on": "position // n → position",
        "new axes at the end": "i[len(shape) - len(x.shape):] → i[:len(x.shape)]",
        "the result's place where x has one": "0 if n == 1 else k → k",
        "the step forgotten": "next(result) * step → next(result)",
        "the start forgotten": "start + next(result) * step → next(result) * step",
        "an int that keeps its axis": "entry % n → entry % n + next(result)",
        "places counted from the end": "entry % n → entry",
        "whole axes forgotten": "[*there, *result] → there",
        "all axes backward": "n - 1 - k if d in axis else k → n - 1 - k",
        "one too far": "n - 1 → n",
        "a new axis that x has too": "next(result) → n = next(sizes)",
    },
    unkillable={
        "there = [0] * len(perm) → there = [-1] * len(perm)": "every place is written",
        "there = [0] * len(perm) → there = [1] * len(perm)": "likewise",
        "position = 0 → position = 1": "whole turns of the first axis, which % takes away",
        "position = 0 → position = -1": "likewise",
        "transposed: right only for positive axes": "a program counts axes from the front",
        "flipped: right only for positive axes": "likewise",
        "for k, n in zip(i, shape, strict=True): → for k, n in zip(i, shape, strict=False):": (
            "there are as many"
        ),
        "return [0 if n == 1 else k for k, n in zip(own, x.shape, strict=True)] → "
        "return [0 if n == 1 else k for k, n in zip(own, x.shape, strict=False)]": "likewise",
    },
)  # fmt: skip

F32 = np.dtype("float32")


def agrees(function, x, y, given, **attrs):
    """Every element of y is the element of x that the function names."""
    for i in np.ndindex(y.shape):
        there = function(list(i), Spec(x.shape, F32), **attrs)
        says = given | {"x": Spec(x.shape, F32), "index of the result": list(i), "element": y[i]}
        expect_that(isinstance(there, list) and len(there) == x.ndim,
                    f"a list of {x.ndim} numbers", given=says, got=there)  # fmt: skip
        inside = all(0 <= k < n for k, n in zip(there, x.shape, strict=True))
        expect_that(inside, "an index into x", given=says, got=there)
        expect(x[tuple(there)], y[i], given=says | {"index into x": there}, why="another element")


def numbered(shape):
    return np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape)


@exercise.property(perm=st.permutations(range(3)))
def transposes(yours, perm):
    """Three axes of 2, 3 and 4 places, in every order."""
    x = numbered((2, 3, 4))
    agrees(yours.transposed, x, x.transpose(perm), {"perm": tuple(perm)}, perm=tuple(perm))


@exercise.property(
    shapes=st.sampled_from(
        [((2, 3), (6,)), ((6,), (2, 3)), ((2, 3), (3, 2)), ((2, 6), (3, 4)), ((1, 4), (2, 2)),
         ((4,), (1, 4, 1)), ((2, 3, 4), (4, 6)), ((2, 2, 3), (3, 1, 4)), ((), (1,)), ((1, 1), ())]
    )
)  # fmt: skip
def reshapes(yours, shapes):
    """Rows become longer, shorter, or all one."""
    old, new = shapes
    x = numbered(old)
    agrees(yours.reshaped, x, x.reshape(new), {"shape": new}, shape=new)


@exercise.property(
    shapes=st.sampled_from(
        [((3,), (2, 3)), ((1, 3), (2, 3)), ((2, 1), (2, 3)), ((1,), (2, 4)), ((), (2, 2)),
         ((2, 3), (4, 2, 3)), ((2, 1, 3), (2, 4, 3)), ((1, 2), (3, 1, 2)), ((2, 3), (2, 3))]
    )
)  # fmt: skip
def broadcasts(yours, shapes):
    """Along axes of size 1, and along new ones in front."""
    old, new = shapes
    x = numbered(old)
    agrees(yours.broadcast, x, np.broadcast_to(x, new), {"shape": new}, shape=new)


ENTRIES = st.one_of(
    st.integers(-3, 2),
    st.just((None, None, None)),
    st.sampled_from([(1, None, None), (None, 2, 1), (None, None, 2), (None, None, -1), (2, 0, -1),
                     (-2, None, None), (0, 3, 2), (-1, -3, -1)]),
)  # fmt: skip


@exercise.property(entries=st.lists(ENTRIES, max_size=3), news=st.sets(st.integers(0, 3)))
def slices(yours, entries, news):
    """Ints, None and triples, also from the end and backward; an axis has 3 places or more."""
    index = list(entries)
    for place in sorted(news):
        index.insert(min(place, len(index)), None)
    x = numbered((3, 4, 5))
    key = tuple(slice(*k) if isinstance(k, tuple) else k for k in index)
    agrees(yours.sliced, x, x[key], {"index": tuple(index)}, index=tuple(index))


@exercise.example
def places_from_the_end(yours):
    """-1 is the last place; and a None beside it is an axis of the result alone."""
    x = numbered((3, 4))
    for index in ((-1,), (None, -2), (-3, None, -4), ((None, None, None), -1), (2, None, 1, None)):
        key = tuple(slice(*k) if isinstance(k, tuple) else k for k in index)
        agrees(yours.sliced, x, x[key], {"index": index}, index=index)


@exercise.property(axis=st.sets(st.integers(0, 2)))
def flips(yours, axis):
    """Any of three axes."""
    x, axis = numbered((2, 3, 4)), tuple(sorted(axis))
    agrees(yours.flipped, x, np.flip(x, axis), {"axis": axis}, axis=axis)


@exercise.example
def seven_axes(yours):
    """Each map on an array of seven axes."""
    x = numbered((2, 1, 3, 1, 2, 1, 2))
    perm, wide = (3, 0, 6, 1, 5, 2, 4), (2, 2, 3, 1, 2, 3, 2)
    index = ((None, None, None),) * 6 + ((None, None, -1),)
    agrees(yours.transposed, x, x.transpose(perm), {"perm": perm}, perm=perm)
    for shape in ((1, 2, 2, 1, 3, 1, 2), (24,)):
        agrees(yours.reshaped, x, x.reshape(shape), {"shape": shape}, shape=shape)
    agrees(yours.broadcast, x, np.broadcast_to(x, wide), {"shape": wide}, shape=wide)
    agrees(yours.sliced, x, x[..., ::-1], {"index": index}, index=index)
    agrees(yours.flipped, x, np.flip(x, (0, 2)), {"axis": (0, 2)}, axis=(0, 2))


@exercise.example
def formulas(yours):
    """With loop variables for numbers each map writes a formula."""
    i, j = loop("i", 3), loop("j", 4)
    spec = Spec((4, 3), F32)
    found = yours.transposed([i, j], spec, perm=(1, 0))
    expect([str(k) for k in found], ["j", "i"], given="transpose, [i, j]")
    found = yours.reshaped([i, j], Spec((12,), F32), shape=(3, 4))
    expect([str(k) for k in found], ["4*i + j"], given="float32[12] as 3 × 4, [i, j]")
    found = yours.reshaped([loop("k", 12)], Spec((3, 4), F32), shape=(12,))
    expect([str(k) for k in found], ["(k//4)", "(k%4)"], given="float32[3, 4] laid flat, [k]")
    found = yours.flipped([i, j], Spec((3, 4), F32), axis=(1,))
    expect([str(k) for k in found], ["i", "-j + 3"], given="the second axis backward, [i, j]")


def moved(x, y):
    """A head of attention is taken out and turned over, part of a row repeated beside it."""
    heads = x.reshape([2, 3, 2, 4]).transpose([0, 2, 1, 3])
    row = y[1, ::2].expand([2, 3, 4])
    return (paddle.flip(heads[:, 1], axis=[1]) * row).tanh() + 1.0


@exercise.example
def one_loop_nest(yours):
    """A chain of movements in a real program is one kernel without a copy, and right."""
    specs = [Spec((2, 3, 8), F32), Spec((2, 8), F32)]
    with exercise.plugged(yours):
        program = trace(lambda x, y: [moved(x, y)], specs, names=["x", "y"]).program
        done = optimized(program).program
        kernels = [r for r in done.records if r.op.name not in ("item", "reshape")]
        says = {"program": str(program), "groups": str(done)}
        expect([r.op.name for r in kernels], ["slice", "fused"], given=says, why="kernels")
        text = emit_nest(kernels[1], "k").source
    expect(text.count("for ("), 3, given={"C": text}, why="loops over three axes, and no copy")
    if compiler() is None:
        return
    x, y = (np.linspace(-1, 1, s.size).reshape(s.shape).astype("float32") for s in specs)
    head = x.reshape(2, 3, 2, 4).transpose(0, 2, 1, 3)[:, 1][:, ::-1]
    with exercise.plugged(yours):
        static = paddle.jit.to_static(moved, backend="native")
        got = static(paddle.to_tensor(x), paddle.to_tensor(y)).numpy()
    expect(got, np.tanh(head * y[1, ::2]) + 1, given={"C": text}, rtol=1e-4, atol=1e-5)
