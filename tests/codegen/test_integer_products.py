"""Products of int8 in int32, compiled for several processors: equal to NumPy's to the last bit."""

import numpy as np
import pytest

from minipaddle.codegen.machine import target_processor
from minipaddle.codegen.products.prepacking import constant_inputs
from minipaddle.engine.codegen.kernel import EMITTERS
from minipaddle.engine.codegen.kernel_schedule import KernelSchedule, following
from tests.codegen.compiling import (
    Call,
    call,
    flags_for,
    needs_gcc,
    on_each_processor,
    record_of,
    run_all,
)

pytestmark = needs_gcc
RNG = np.random.default_rng(0)
STRAIGHT = {"x_perm": (0, 1), "y_perm": (0, 1), "out_perm": (0, 1)}
TURNED = {"x_perm": (1, 0), "y_perm": (1, 0), "out_perm": (0, 1)}
EXCHANGED = {"x_perm": (0, 1), "y_perm": (0, 1), "out_perm": (1, 0)}
BATCH = {"x_perm": (0, 1, 2), "y_perm": (0, 2, 1), "out_perm": (1, 0, 2)}
SIZES = [(1, 9, 20), (5, 1, 3), (6, 2, 16), (7, 33, 17), (50, 130, 33), (97, 7, 1), (0, 3, 2)]
MATRICES = [
    *(((m, k), (k, n), STRAIGHT) for m, k, n in [*SIZES, (8, 0, 3)]),
    ((33, 11), (18, 33), TURNED), ((9, 6), (6, 40), EXCHANGED), ((2, 7, 5), (2, 9, 5), BATCH),
]  # fmt: skip
NAMES = "stride", "padding", "dilation", "groups"
IMAGES = [  # image, kernel, attributes
    ((2, 7, 9, 5), (3, 3, 5, 4), ((1, 1), ((1, 1), (1, 1)), (1, 1), 1)),
    ((1, 11, 8, 3), (5, 2, 3, 17), ((2, 1), ((2, 0), (0, 1)), (1, 2), 1)),
    ((3, 6, 6, 8), (1, 1, 8, 16), ((1, 1), ((0, 0), (0, 0)), (1, 1), 1)),
    ((1, 20, 2), (4, 2, 3), ((3,), ((1, 2),), (2,), 1)),
    ((1, 6, 5, 6), (3, 2, 2, 9), ((1, 1), ((1, 1), (0, 1)), (1, 1), 3)),
    ((2, 6, 7, 32), (3, 3, 1, 32), ((2, 1), ((1, 1), (1, 0)), (1, 2), 32)),
    ((1, 5, 9, 21), (2, 5, 1, 21), ((1, 2), ((0, 1), (2, 2)), (2, 1), 21)),
    ((1, 3, 4, 3, 2), (2, 2, 2, 2, 2), ((1, 1, 1), ((0, 1),) * 3, (1, 1, 1), 1)),
]
WHOLE_TILES = [  # image, outputs
    ((2, 9, 10, 16), 20), ((1, 5, 3, 230), 16), ((1, 17, 22, 19), 33), ((1, 7, 7, 64), 16),
]  # fmt: skip
MOST_AT_ONCE = 227
"""Input channels whose sums F(4×4, 3×3) can tell apart."""
LARGEST = np.full((6, 512), -128, "int8")


def bytes_of(shape):
    return RNG.integers(-128, 128, shape).astype("int8")


def calls() -> list[Call]:
    found = [call("product_integer", [bytes_of(x), bytes_of(y)], at) for x, y, at in MATRICES]
    found.append(call("product_integer", [LARGEST, LARGEST.T.copy()], STRAIGHT))
    for x, w, how in IMAGES:
        at = dict(zip(NAMES, how, strict=True))
        for constant in ([], [1])[: 2 if how[-1] == x[-1] else 1]:  # depthwise: both packings
            arrays = [bytes_of(x), bytes_of(w)]
            found.append(call("conv_last_integer", arrays, at, constant=constant))
    return found


def tiled_calls() -> list[Call]:
    """3×3 convolutions with constant kernels, by both of Winograd's tiles."""
    found, at = [], dict(zip(NAMES, ((1, 1), ((1, 1), (1, 0)), (1, 1), 1), strict=True))
    for x, outs in WHOLE_TILES:
        arrays = bytes_of(x), bytes_of((3, 3, x[-1], outs))
        least = np.full(x, -128, "int8"), np.full((3, 3, x[-1], outs), -128, "int8")
        for m in (2, 4):
            with following(KernelSchedule({"winograd": (m, m // 2)})):
                found.append(call("conv_last_integer", arrays, at, constant=[1]))
                if x[-1] > MOST_AT_ONCE:  # where sums would wrap around
                    found.append(call("conv_last_integer", least, at, constant=[1]))
    return found


def check(some, **how):
    for one, (got,) in zip(some, run_all(some, **how), strict=True):
        record = one.record
        want = record.op.evaluate(np, one.inputs, record.attrs)
        np.testing.assert_array_equal(got, want, err_msg=str(record))


@on_each_processor
def test_sums_are_numpys(processor):
    with target_processor(processor):
        some = calls()
    check(some, flags=flags_for(processor))


@pytest.mark.parametrize(
    ("processor", "form", "tiled"),
    [
        ("x86-64-v2", "int8_t", 10),
        ("x86-64-v3", "int8_t", 10),
        ("icelake-server", "fours", 6),
        ("sapphirerapids", "tiles", 6),
    ],
)
def test_tiles_and_loops(processor, form, tiled):
    """A few rows are summed in plain loops: fewer than eight for VNNI, than six for the others."""
    with target_processor(processor):
        sources = [one.kernel.source for one in calls()]
    assert sum(f"integer_rows_{form}(" in source for source in sources) == tiled
    assert sum("integer_rows" in source for source in sources) == tiled


@on_each_processor
def test_winograds_sums_are_exact(processor):
    with target_processor(processor):
        some = tiled_calls()
    for m in (2, 4):
        assert sum(f"winograd_input_{m}" in c.kernel.source for c in some) == 1 + len(WHOLE_TILES)
    check(some, flags=flags_for(processor))
    check(some, threads=2, flags=flags_for(processor))


@pytest.mark.parametrize(
    ("processor", "terms", "columns", "header"),
    [
        ("x86-64-v2", 2, 16, 0),
        ("x86-64-v3", 2, 16, 0),
        ("icelake-server", 4, 32, 128),
        ("sapphirerapids", 64, 32, 0),
    ],
)
@pytest.mark.parametrize(("x", "y", "at"), MATRICES[:5] + MATRICES[8:10])
def test_a_constant_side_is_packed_ahead(x, y, at, processor, terms, columns, header):
    """The kernel says what is to be done: panels of whole columns, of pairs, fours or
    64 of terms.
    """
    arrays = [bytes_of(x), bytes_of(y)]
    record = record_of("product_integer", arrays, **at)
    right = 0 if at is EXCHANGED else 1
    with target_processor(processor), constant_inputs([record.inputs[right]]):
        kernel = EMITTERS["product_integer"](record, "packed")
    assert kernel.prepack.edge is record.inputs[right]
    matrix = np.transpose(arrays[1], at["y_perm"]) if right else arrays[0].T
    k, n = matrix.shape
    panels, filled = -(-n // columns), -(-k // terms) * terms
    assert kernel.prepack.elements == panels * (filled * columns + header)
    assert "integer_panels_" not in kernel.source
