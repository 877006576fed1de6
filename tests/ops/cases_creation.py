"""Operators without inputs, and the copies."""

import numpy as np
import torch

from minipaddle.engine.eager.device import CPU
from tests.ops.cases import Case, fixed, normal, whole

FLOAT32, INT64 = np.dtype("float32"), np.dtype("int64")


def arange(start, stop, step, dtype):
    return lambda: torch.arange(start, stop, step, dtype=dtype)


CASES = {
    "full": [
        Case(
            fixed(),
            lambda: torch.full((2, 3), 1.5),
            {"shape": (2, 3), "value": 1.5, "dtype": FLOAT32},
        ),
        Case(fixed(), lambda: torch.full((), 7), {"shape": (), "value": 7, "dtype": INT64}),
        Case(fixed(), lambda: torch.zeros(0, 3), {"shape": (0, 3), "value": 0, "dtype": FLOAT32}),
    ],
    "arange": [
        Case(fixed(), arange(0, 5, 1, torch.int64), {"size": 5, "dtype": INT64}),
        Case(
            fixed(),
            arange(7, 1, -2, torch.int64),
            {"size": 3, "dtype": INT64, "start": 7, "step": -2},
        ),
        Case(
            fixed(),
            arange(1, 2, 0.25, torch.float32),
            {"size": 4, "dtype": FLOAT32, "start": 1, "step": 0.25},
        ),
    ],
    "eye": [
        Case(fixed(), lambda: torch.eye(3), {"rows": 3, "columns": 3, "dtype": FLOAT32}),
        Case(fixed(), lambda: torch.eye(2, 4), {"rows": 2, "columns": 4, "dtype": FLOAT32}),
    ],
    "assign": [Case(normal(2, 3), torch.clone), Case(whole(0, 9, 4), torch.clone)],
    "move": Case(normal(2, 3), torch.clone, {"place": CPU, "source": CPU}),
}
