"""How near are numbers that two executors compute?"""

import numpy as np

from minipaddle.engine.executors.executable_cache import backend_named

NEAR = {"float64": 1e-9, "float32": 1e-4, "bfloat16": 2e-2, "float16": 3e-3}


def room(dtype) -> tuple[float, float]:
    """(rtol, atol) for numbers of a dtype: compiled code adds up in another order."""
    near = NEAR.get(np.dtype(dtype).name, 0)
    return near, near / 10


def assert_same(found, wanted, what="", rounding=0.0):
    """Arrays are the same: but for `rounding` where programs are interpreted, which does what eager
    mode does, and but for `room` where MINIPADDLE_BACKEND says that they are compiled.
    """
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype, what
    interpreted = backend_named(None) == "interpreter"
    rtol, atol = (rounding, rounding) if interpreted else room(wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol, atol, err_msg=what)
