"""Open sizes in C: each operator at several sizes, and few texts for many lengths."""

import re
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minipaddle as paddle
from minipaddle import nn
from minipaddle.codegen.open_sizes import OpenSize, as_arguments, as_literals, wants_literals
from minipaddle.engine.codegen.kernel import Kernel
from minipaddle.engine.core.dim import symbol
from minipaddle.engine.executors.native import CannotCompile, Executable
from tests.ops.test_operators import select
from tests.static.test_open_operators import FIXED, open_programs

F = nn.functional


# ---- numbers that know their formula ------------------------------------------------------------

NUMBERS = st.integers(1, 40)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["+", "-", "*", "//", "%", "-//", "r//", "r%", "r-"]), st.integers(1, 70)
    ),
    max_size=6,
)


def apply(sign: str, x, k: int):
    if sign == "-//":
        return -(-x // k)
    a, b = (k, x) if sign[0] == "r" else (x, k)
    sign = sign.lstrip("r")
    if sign in ("//", "%") and not b:
        return x
    return {"+": a + b, "-": a - b, "*": a * b}.get(sign) or (a // b if sign == "//" else a % b)


@given(NUMBERS, STEPS)
def test_the_formula_of_a_size_is_its_value(n, steps):
    size, number = OpenSize(n, symbol("size_0", n)), n
    for sign, k in steps:
        if sign not in "+-*" and not (size and number):
            continue
        size, number = apply(sign, size, k), apply(sign, number, k)
    assert size == number
    text = re.sub(r"(?<!/)/(?!/)", "//", f"{size}")
    assert eval(text, {"size_0": n}) == number
    assert not re.search(r"%[^()]*-\d", text)  # C divides what is not negative


def test_sizes_survive_a_copy():
    size = as_arguments({"n": 5})["n"] * 3
    assert f"{deepcopy(size)}" == f"{size}" == "(3*size_0)"


# ---- every operator ------------------------------------------------------------------------------


REPEATED = {"qr", "searchsorted"}
"""Operators that want independent columns, or sorted numbers: `resized` repeats them."""


@pytest.mark.sweep(one_in=6)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@select(lambda op, case: op.name not in {*FIXED, *REPEATED})
def test_operators(name, k):
    *_, (program, old, at) = [*open_programs(name, k)] or [(None, 0, lambda n: None)]
    for new in (old, old + 37):
        if (case := at(new)) is None:
            continue
        arrays, wanted = case
        try:
            executable = Executable(program, sizes={"n": new})
        except CannotCompile:  # only a run knows a size
            return
        for a, b in zip(executable(program, arrays), wanted, strict=False):
            b = b.numpy()
            close = 1e-5 if b.dtype == np.float32 else 1e-9
            np.testing.assert_allclose(a, b, rtol=close, atol=close * 10)


# ---- lengths and pictures ------------------------------------------------------------------------


class Attention(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 48), nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.first(self.norm(x)).reshape([b, t, 3, 2, 8]).unbind(2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).reshape([b, t, d])
        return x + F.gelu(self.last(y))


class Pictures(nn.Layer):
    """Gates are smooth: one of a million numbers is so near 0 that rounding decides a ReLU's."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2D(3, 16, 3, padding=1), nn.BatchNorm2D(16), nn.Silu(), nn.MaxPool2D(2, 2),
            nn.Conv2D(16, 16, 3, padding=1), nn.Silu(), nn.Conv2D(16, 8, 3, stride=2),
            nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(8, 3),
        )  # fmt: skip

    def forward(self, x):
        return self.net(x)


class Steps(nn.Layer):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(4, 8)

    def forward(self, x):
        return self.cell(x)[0][:, -1]


@pytest.mark.parametrize(
    ("make", "shape", "sizes"),
    [
        (Attention, (2, None, 16), range(33, 64, 2)),
        (Attention, (2, None, 16), range(64, 200, 27)),
        (Pictures, (2, 3, None, None), range(106, 131, 4)),
        (Steps, (3, None, 4), range(130, 150, 3)),
    ],
)
def test_one_library_serves_many_sizes(make, shape, sizes):
    paddle.seed(0)
    layer = make()
    loss = paddle.jit.to_static(
        lambda x: (layer(x) ** 2).mean(),
        input_spec=[paddle.static.InputSpec(shape)],
        backend="native",
    )
    rng = np.random.default_rng(0)
    for n in sizes:
        free = iter((n, n + 6))
        x = rng.standard_normal([next(free) if k is None else k for k in shape], "float32")
        losses, gradients = [], []
        for forward in (loss, lambda x: (layer(x) ** 2).mean()):
            losses.append(forward(paddle.to_tensor(x)))
            losses[-1].backward()
            gradients.append([p.grad.numpy() for p in layer.parameters() if p.grad is not None])
            layer.clear_gradients()
        np.testing.assert_allclose(losses[0].numpy(), losses[1].numpy(), rtol=1e-4)
        for a, b in zip(*gradients, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)
    (captured,) = (each for row in loss.cache.entries.values() for each in row)
    executables = [*captured.executables.compiled.values()]
    assert len(executables) == 2 * len(sizes)
    assert len({e.source.text for e in executables}) == 2  # forward and backward


def test_products_of_few_rows():
    """Some products have a function for their number of rows; an open one has none."""
    x = paddle.rand([8, 64])
    double = paddle.jit.to_static(
        lambda x, y: x @ y, backend="native",
        input_spec=[paddle.static.InputSpec([None, 8]), paddle.static.InputSpec([8, 64])],
    )  # fmt: skip
    for n in (1, 2, 3, 30):
        y = paddle.rand([n, 8])
        np.testing.assert_allclose(double(y, x).numpy(), y.numpy() @ x.numpy(), rtol=1e-5)


@pytest.mark.parametrize("text", ["fewsize_0_float(x);", "enum { N = size_0 };", "row[size_0u];"])
def test_a_size_that_must_be_a_literal(text):
    n = as_arguments({"n": 5})["n"]
    assert wants_literals(Kernel("k", text))
    assert not wants_literals(Kernel("k", f"for (i = 0; i < {n}; i++)"))
    with as_literals():
        assert f"few{n}_float" == "few5_float"
