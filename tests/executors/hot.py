"""Hot code in tests: compiled at once, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import pytest

import minipaddle as paddle
from minipaddle.executors import hot

compiles = pytest.mark.skipif(not hot.has_compiler(), reason="no C compiler")


@contextmanager
def flag(on: bool) -> Iterator[None]:
    """In the block eager mode is compiled where it is hot, or not."""
    names = ["FLAGS_eager_kernels", "FLAGS_eager_programs"]
    before = paddle.get_flags(names)
    paddle.set_flags(dict.fromkeys(names, on))
    try:
        yield
    finally:
        paddle.set_flags(before)


def by_numpy(function):
    with flag(False):
        return function()


@contextmanager
def at_once() -> Iterator[None]:
    """In the block all is hot at its third use, and nothing is known at first."""
    with ExitStack() as stack:
        stack.enter_context(flag(True))
        stack.enter_context(mock.patch.multiple(hot.EagerKernel, start=1, serve=1))
        for cache in [*hot.CACHES]:
            for known in (cache.codes, cache.noted):
                stack.enter_context(mock.patch.dict(known, clear=True))
        yield


def served(codes) -> int:
    """How many of some codes C computes."""
    return sum(code.executable is not None for code in codes)
