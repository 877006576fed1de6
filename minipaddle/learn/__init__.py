"""The practice loop: exercises, their judge, and the engine that runs on the reader's code."""

from .exercise import Disagreement, Exercise, expect, expect_gradients, expect_that
from .stub import stub_of

__all__ = [
    "Disagreement", "Exercise", "expect", "expect_gradients", "expect_that", "stub_of",
]  # fmt: skip
