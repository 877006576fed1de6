"""Kernels under the sanitizers of GCC: no access outside of a buffer, no undefined behaviour."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.codegen.compiling import needs_gcc

SCRIPT = """
import numpy as np
from tests.codegen import test_back_to_back_gemm as b, test_convolution as c, test_indexing as i
from tests.codegen import test_integer_products as w, test_pooling as p, test_product as m
from tests.codegen.compiling import HERE, call, run_all

flags = ("-O1", f"-march={HERE}", "-fno-trapping-math", "-fopenmp", "-g",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
         "-fno-sanitize=alignment")
products = [((9, 33), (33, 17), m.PLAIN), ((5, 33), (40, 33), m.TURNED),
            ((20, 33), (40, 33), m.TURNED), ((33, 20), (33, 40), m.ORDERS[4]),
            ((2, 9, 5), (1, 5, 40), {"x_perm": (0, 1, 2), "y_perm": (0, 1, 2),
                                     "out_perm": (2, 0, 1)})]
calls = [call("product", m.arrays(xs, ys, d), at) for xs, ys, at in products
         for d in ("float32", "float64", "float16")]
settings = [*c.three((7, 9), (3, 3), c.ONE, c.EVEN, c.ONE, channels=17, outs=18),
            *c.three((7, 9), (3, 2), (2, 3), c.EVEN, c.ONE, channels=3, outs=5),
            *c.three((9, 9), (3, 3), c.ONE, c.EVEN, c.ONE, groups=5, channels=1, outs=1),
            *c.three((9, 9), (3, 3), c.ONE, c.EVEN, (2, 1), groups=2)]
calls += c.calls_of(settings, "float32")
rng = np.random.default_rng(0)
calls += [call(name, *p.arrays_of(name, "float32", rng)) for name in p.NAMES]
run_all(calls + b.calls() + w.calls()[4::5], 1, flags=flags)
print("clean")
"""


def runtime() -> str | None:
    """The address sanitizer's library, which must be in a process before everything else."""
    if shutil.which("gcc") is None or sys.platform != "linux":
        return None
    found = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    )
    path = found.stdout.strip()
    return path if Path(path).is_absolute() else None


@needs_gcc
@pytest.mark.slow
def test_kernels_stay_in_their_buffers():
    library = runtime()
    if library is None:
        pytest.skip("needs GCC's address sanitizer, on Linux")
    world = {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT], env={**os.environ, **world},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.endswith("clean\n"), done.stderr[-3000:]
