"""Values that a later group alone uses are computed there, where that leaves less to store."""

import numpy as np
import pytest

from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.ir.control import fused
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.passes.fusion import fuse
from minipaddle.ir.parser import parse

TANH = """program p(x: float32[8, 8], w: float32[8, 8]) {
  v1 = multiply(x, 2.0) : float32[8, 8]
  v2 = tanh(v1) : float32[8, 8]
  v3 = multiply(v2, v2) : float32[8, 8]
  v4 = subtract(1, v3) : float32[8, 8]
  v5 = matmul(v2, w) : float32[8, 8]
  v6 = multiply(v5, v4) : float32[8, 8]
  v7 = %s : float32[8, 8]
  return v6, v7
}"""


def stored(text: str) -> list[list[str]]:
    """What each group of a program stores, by the operators' names; and it computes the same."""
    program = parse(text)
    found = fuse(program)
    arrays = [np.random.default_rng(0).normal(size=r.shape).astype("f4") for r in program.inputs]
    for a, b in zip(Run(NUMPY)(program, arrays), Run(NUMPY)(found, arrays), strict=True):
        np.testing.assert_array_equal(a, b)
    regions = [r.attrs["region"] for r in found.records if r.op is fused]
    return [[r.op.name for r in region.outputs] for region in regions]


def test_what_a_derivative_is_made_of_is_stored_alone():
    """The later group reads tanh anyway, or in the place of 1 - tanh²."""
    assert stored(TANH % "add(v6, v2)") == [["tanh"], ["multiply", "add"]]
    assert stored(TANH % "add(v6, 1.0)") == [["tanh"], ["multiply", "add"]]


@pytest.mark.parametrize(
    ("other", "first"),
    [
        ("add(v4, v5)", ["tanh"]),  # the same later group
        ("matmul(v4, w)", ["tanh", "subtract"]),  # somebody else
        ("add(v3, 1.0)", ["tanh", "subtract", "add"]),  # a part of it, its own group
    ],
)
def test_what_others_use_too(other, first):
    assert stored(TANH % other)[0] == first


def test_two_values_are_not_read_in_the_place_of_one():
    (first, second) = stored("""program p(x: float32[8, 8], w: float32[8, 8]) {
      v1 = tanh(x) : float32[8, 8]
      v2 = exp(x) : float32[8, 8]
      v3 = multiply(v1, v2) : float32[8, 8]
      v4 = matmul(v1, w) : float32[8, 8]
      v5 = matmul(v2, v4) : float32[8, 8]
      v6 = sin(v5) : float32[8, 8]
      v7 = multiply(v6, v3) : float32[8, 8]
      return v7
    }""")
    assert first == ["tanh", "exp", "multiply"]
    assert second == ["multiply"]


def test_a_small_value_is_not_exchanged_for_a_large_one():
    """A sum over rows, and what is made of it: the later group would read what was summed."""
    (first, second) = stored("""program p(x: float32[8, 8], w: float32[8, 8]) {
      v1 = tanh(x) : float32[8, 8]
      v2 = sum(v1, axis=(1,), keepdim=True) : float32[8, 1]
      v3 = sin(v2) : float32[8, 1]
      v4 = matmul(v1, w) : float32[8, 8]
      v5 = exp(v4) : float32[8, 8]
      v6 = multiply(v5, v3) : float32[8, 8]
      return v6
    }""")
    assert first == ["tanh", "sin"]
    assert second == ["multiply"]
