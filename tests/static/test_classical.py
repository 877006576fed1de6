"""Programs in three stages: define, compile, execute; the same numbers as real Paddle's."""

import json

import numpy as np
import pytest

import minipaddle as paddle
from tests.static.classical import KEPT, PROGRAMS, outcome

PADDLE = json.loads(KEPT.read_text())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_equal_to_paddle(program):
    found, wanted = outcome(paddle, program), PADDLE[program.__name__]
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, np.array(b), rtol=2e-4, atol=2e-5)
