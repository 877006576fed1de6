"""Every operator with open sizes: one program, run at several sizes, equals eager mode.

For each case of `tests/ops/cases_*.py` and each size that occurs in its inputs, all axes of that
size are opened. What an attribute ties to one number (`reshape` to a fixed shape) the program
assumes, and says so in its guards: there only that one size is tried.
"""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.dim import symbol
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.device import NUMPY
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.engine.ir.verifier import verify
from minipaddle.engine.jit.cache import allowed
from minipaddle.ir.parser import parse
from tests.ops.test_operators import CASES, select

pytestmark = pytest.mark.sweep(one_in=3)

FIXED = {
    "unstack": "as many results as the size says",
    "move": "a program lives on one device",
    "choose_distinct": "draws without repetition: fewer places than draws are an error",
}
"""Operators for which a size must be a number, and why."""


def resized(x: np.ndarray, old: int, new: int) -> np.ndarray:
    """x with the axes of size `old` having `new`, by repeating or leaving out."""
    for axis, n in enumerate(x.shape):
        if n == old:
            x = x.take(np.arange(new) % old, axis)
    return x


def computed(op, attrs, inputs, order: int) -> list:
    """The results of an operator, and the gradients of the sum of their squares."""
    with paddle.set_grad_enabled(True):
        for x in inputs:
            if isinstance(x, paddle.Tensor) and x.spec.dtype.kind == "f" and order:
                x.stop_gradient = False
        y = op(*inputs, **attrs)
        ys = list(y) if isinstance(y, tuple) else [y]
        losses = [(v * v).sum() for v in ys if not v.stop_gradient]
        leaves = [x for x in inputs if isinstance(x, paddle.Tensor) and not x.stop_gradient]
        if not losses:
            return ys
        grads = paddle.grad(losses, leaves, allow_unused=True)
    return [v.detach() for v in ys] + [g for g in grads if g is not None]


def arranged(arrays, inputs):
    """The inputs of a case with tensors for its arrays."""
    rest = iter(arrays)
    return [next(rest) if isinstance(x, np.ndarray) else x for x in inputs]


def open_programs(name, k):
    """For each size in the inputs of a case: the program for which it is open, the size, and a
    function of another one that gives the program's arrays, and what eager mode computes of them;
    None where eager mode cannot, or where the program is not for that size.
    """
    op, case = OPS[name], CASES[name][k]
    inputs = case.build(np.random.default_rng(0))
    arrays = [x for x in inputs if isinstance(x, np.ndarray)]
    order = case.order if case.check is None and case.wrt is None else 0
    attrs = op.defaults | case.attrs
    for old in sorted({n for x in arrays for n in x.shape} - {0}):
        n = symbol("n", hint=old)
        specs = [Spec(tuple(n if s == old else s for s in x.shape), x.dtype) for x in arrays]
        program = trace(lambda *xs: computed(op, attrs, arranged(xs, inputs), order), specs).program

        def at(new, old=old, program=program):
            if not allowed(program.guards, {"n": new}):
                assert new != old
                return None
            now = [resized(x, old, new) for x in arrays]
            try:
                wanted = computed(op, attrs, arranged(map(paddle.to_tensor, now), inputs), order)
            except (ValueError, IndexError, TypeError, RuntimeError):
                return None
            return [*now, *(s.storage.read() for s in program.states)], wanted

        yield program, old, at


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@select(lambda op, case: op.name not in FIXED)
def test_open_sizes(name, k):
    for turn, (program, old, at) in enumerate(open_programs(name, k)):
        verify(program)
        if turn == 0:
            assert str(parse(str(program))) == str(program)
        for arrays, wanted in filter(None, map(at, (old, old + 2, 1))):
            got = Run(NUMPY)(program, arrays)
            for a, b in zip(got, wanted, strict=False):
                np.testing.assert_allclose(a, b.numpy(), rtol=1e-6, atol=1e-9)
