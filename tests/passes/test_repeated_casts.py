"""Half precision is widened where it is read, and stored as it is."""

import numpy as np
import pytest

from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.ir.control import fused
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.passes.fusion import fuse
from minipaddle.ir.parser import parse
from minipaddle.passes.repeated_casts import repeated_casts

TEXT = """program p(x: bfloat16[8, 8], w: float32[8, 8]) {
  v1 = multiply(x, 2.0) : bfloat16[8, 8]
  v2 = cast(v1, dtype=float32) : float32[8, 8]
  v3 = exp(v2) : float32[8, 8]
  v4 = matmul(v3, w) : float32[8, 8]
  %s
  return v4, v6
}"""


def cast_again(text: str):
    """The program after the pass and fusion, which computes the same; and its number of casts."""
    program = parse(text)
    found = repeated_casts(program)
    groups = fuse(found)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=r.shape).astype(r.dtype) for r in program.inputs]
    for other in (found, groups):
        for a, b in zip(Run(NUMPY)(program, arrays), Run(NUMPY)(other, arrays), strict=True):
            np.testing.assert_array_equal(a, b)
    return groups, sum(r.op.name == "cast" for r in found.records)


def stored(groups) -> list[str]:
    """What the groups store, by dtype."""
    regions = [r.attrs["region"] for r in groups.records if r.op is fused]
    return [str(x.dtype) for region in regions for x in region.outputs]


@pytest.mark.parametrize(
    "more",
    [
        "v6 = add(v2, v4) : float32[8, 8]",
        "v5 = reshape(v2, shape=(64,)) : float32[64]\n  v6 = sin(v5) : float32[64]",
        "v5 = after(v2, v4) : float32[8, 8]\n  v6 = sin(v5) : float32[8, 8]",
    ],
)
def test_each_reader_has_a_cast(more):
    """Also one that reads a view, or waits for another value."""
    _, casts = cast_again(TEXT % more)
    assert casts == 2


def test_a_later_group_reads_halves():
    groups, casts = cast_again(TEXT % "v6 = add(v2, v4) : float32[8, 8]")
    assert casts == 2
    assert stored(groups) == ["bfloat16", "float32", "float32"]  # v1 and exp, then the sum


@pytest.mark.parametrize(
    "more",
    [
        "v6 = matmul(w, v2) : float32[8, 8]",  # no loop nest
        "v5 = after(w, v2) : float32[8, 8]\n  v6 = sin(v5) : float32[8, 8]",  # one reader
    ],
)
def test_one_cast_stays(more):
    _, casts = cast_again(TEXT % more)
    assert casts == 1


def test_a_result_is_computed_once():
    _, casts = cast_again((TEXT % "v6 = add(v2, v4) : float32[8, 8]").replace("v4, v6", "v2, v6"))
    assert casts == 1
