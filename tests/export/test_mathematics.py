"""The functions that stand in for C's mathematical library, against NumPy and SciPy."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
import scipy.special

from minipaddle.engine.codegen.translation_unit import BINARY, HEADERS, UNARY, declarations
from minipaddle.export.mathematics import replace_libm
from minipaddle.testing.exported import FLAGS

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 5e-324, 2.2e-308, -2.5])
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
         "acosh": "arccosh", "atanh": "arctanh", "atan2": "arctan2", "pow": "power"}  # fmt: skip
SCIPY = {
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "lgamma": lambda x: np.where(x == -np.inf, np.inf, scipy.special.gammaln(x)),  # as C has it
}
LOOSE = {"pow": 2e-13, "lgamma": 1e-12, "erfc": 1e-12}
"""Relative errors that are larger than the others: see `mathematics.py`."""
WIDTH = {"tan": 100.0, "sin": 1e5, "cos": 1e5, "lgamma": 50.0, "erfc": 6.0, "pow": 30.0}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """All functions over arrays, in a library without libm and libc."""
    folder = tmp_path_factory.mktemp("mathematics")
    text = f"{HEADERS}\n" + "\n".join(
        declarations({f"{n}{s}" for n in FUNCTIONS for s in ("", "f")})
    )
    for name in FUNCTIONS:
        for T, suffix in (("double", ""), ("float", "f")):
            call = f"{name}{suffix}(x[k]{', y[k]' * (name in BINARY)})"
            head = f"void all_{name}{suffix}(long n, const {T} *x, const {T} *y, {T} *z)"
            text += f"\n{head} {{ for (long k = 0; k < n; k++) z[k] = {call}; }}"
    (folder / "all.c").write_text(replace_libm(text))
    made = folder / "all.so"
    subprocess.run(
        ["gcc", "-O1", *FLAGS, "-shared", "-fPIC", "-nostdlib", folder / "all.c", "-o", made],
        check=True,
    )
    undefined = subprocess.run(["nm", "-u", made], capture_output=True, text=True, check=True)
    assert {line.split()[-1] for line in undefined.stdout.splitlines()} <= {"memcpy"}
    return ctypes.CDLL(str(made), ctypes.RTLD_GLOBAL)


FUNCTIONS = (*UNARY, *BINARY)


def points(name):
    """Numbers from tiny to large, with both signs, and odd ones."""
    wide, rng = WIDTH.get(name, 700.0), np.random.default_rng(len(name))
    return np.concatenate([
        rng.uniform(-1, 1, 2000), rng.uniform(-wide, wide, 2000), rng.uniform(-4, 4, 1000),
        10.0 ** rng.uniform(-300, 0, 500), 10.0 ** rng.uniform(-20, np.log10(wide), 500), ODD,
    ])  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_that_of_the_library(library, name, dtype):
    with np.errstate(all="ignore"):
        x = points(name).astype(dtype)
        y = np.random.default_rng(0).permutation(points(name)).astype(dtype)
        if name in BINARY:  # each odd number beside each
            x, y = (np.concatenate([a, b.ravel()]) for a, b in
                    zip((x, y), np.meshgrid(*[ODD.astype(dtype)] * 2)))  # fmt: skip
        other = SCIPY.get(name) or getattr(np, NUMPY.get(name, name))
        inputs = [x, y] if name in BINARY else [x]
        want = other(*(a.astype("float64") for a in inputs)).astype(dtype)
    got = np.empty_like(x)
    function = getattr(library, f"all_{name}{'f' * (dtype == 'float32')}")
    function(ctypes.c_long(x.size), *(ctypes.c_void_p(a.ctypes.data) for a in (x, y, got)))
    rtol = LOOSE.get(name, 2e-15) if dtype == "float64" else 1.3e-7
    atol = 1e-14 if name == "lgamma" else 1e-307 if dtype == "float64" else 2e-38
    np.testing.assert_allclose(got, want, rtol, atol)
    if name in ("fmax", "fmin"):  # either zero may be the larger
        return
    assert (np.signbit(got) == np.signbit(want))[(want == 0) & (got == 0)].all()
