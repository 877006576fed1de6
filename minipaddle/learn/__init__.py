"""The practice loop: exercises, their judge, and the engine that runs on the reader's code."""

from importlib import import_module as _import

from .comparison import Disagreement, expect, expect_gradients, expect_that
from .exercise import Exercise
from .stub import stub_of

_LATER = {
    "mine": "report", "engine": "report", "judge_file": "process", "scoreboard": "scores",
    "write_stubs": "sync", "GpuReport": "gpu_report",
}  # fmt: skip
"""Modules imported when first asked for, as checks do not need them and should start quickly."""

__all__ = [
    "Disagreement", "Exercise", "GpuReport", "engine", "expect", "expect_gradients", "expect_that",
    "judge_file", "load_ipython_extension", "mine", "scoreboard", "stub_of", "write_stubs",
]  # fmt: skip


def __getattr__(name: str):
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import(f"{__name__}.{_LATER[name]}"), name)


def load_ipython_extension(shell) -> None:
    """`%load_ext minipaddle.learn` in a notebook: the magics of `minipaddle.learn.magic`."""
    from .magic import Practice

    shell.register_magics(Practice)
