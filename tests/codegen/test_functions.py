"""Functions of mathematics that we write ourselves, in C: against SciPy in double."""

import numpy as np
import pytest
from scipy import special

from minipaddle.engine.codegen.nest_kernel import emit_nest
from tests.codegen.compiling import (
    FLAGS,
    Call,
    flags_for,
    needs_gcc,
    on_each_processor,
    record_of,
    run_all,
)

pytestmark = needs_gcc

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1e-30, 3e38, -3e38]


def found(name: str, x, flags=FLAGS):
    record = record_of(name, [x])
    ((y,),) = run_all([Call(emit_nest(record, f"kernel_{name}"), record, [x])], flags=flags)
    return y


def ulps(y, wanted) -> float:
    """How many neighbouring floats lie between, at most."""
    return (abs(y - wanted) / np.spacing(abs(wanted).astype(y.dtype)).astype("float64")).max()


@on_each_processor
def test_exponential(processor):
    x = np.linspace(-86.7, 88.722, 200_001).astype("float32")
    assert ulps(found("exp", x, flags_for(processor)), np.exp(x.astype("float64"))) < 1.1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exponential_at_its_ends(dtype):
    """What is no normal number is 0; numbers that are none stay what they are."""
    x = np.array([*SPECIAL, -87.5, -104, -709, 88.73, 710], dtype)
    with np.errstate(all="ignore"):
        wanted = np.exp(x)
    wanted[wanted < 4 * np.finfo(dtype).tiny] = 0
    np.testing.assert_allclose(found("exp", x), wanted, rtol=1e-6)


@pytest.mark.parametrize("flags", [FLAGS, (*FLAGS, "-ffp-contract=off")])
def test_error_function(flags):
    x = np.concatenate([np.linspace(-5, 5, 200_001), np.geomspace(1e-30, 1, 999)]).astype("float32")
    y = found("erf", x, flags)
    assert ulps(y, special.erf(x.astype("float64"))) < 6.6
    assert np.array_equal(np.abs(y[np.abs(x) > 4.1]), np.ones((np.abs(x) > 4.1).sum()))
    assert np.abs(y).max() == 1
    ends = np.array(SPECIAL, "float32")
    np.testing.assert_allclose(found("erf", ends), special.erf(ends), rtol=3e-7)
    assert np.signbit(found("erf", ends)[4])
