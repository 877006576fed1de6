"""A bias and bounds are done to sums while they are in registers."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from tests.codegen.compiling import needs_gcc

pytestmark = needs_gcc


@pytest.mark.parametrize(
    ("channels", "activation"),
    [(5, F.relu6), (24, None), (70, F.relu)],
    ids=["relu6", "bias", "relu"],
)
def test_convolutions(channels, activation):
    """Few columns and many, sums in one pass and in several, whole tiles and parts of tiles."""
    paddle.seed(0)
    wide, groups = 9 * channels, {"groups": channels}
    net = nn.Sequential(
        nn.Conv2D(3, channels, 3, stride=2, padding=2), nn.Conv2D(channels, channels, 3, **groups),
        nn.Conv2D(channels, wide, 1), nn.Conv2D(wide, channels, 1), nn.Conv2D(channels, 3, 5),
    ).eval()  # fmt: skip

    def forward(x):
        for layer in net:
            x = layer(x) if activation is None else activation(layer(x))
        return x

    x = 3 * paddle.randn([1, 3, 24, 22])
    x[0, 1, 3, 4], x[0, 2, 20, 20] = float("nan"), float("inf")
    with paddle.no_grad():
        want = forward(x).numpy()
        run = paddle.jit.to_static(forward, backend="native")
        np.testing.assert_allclose(run(x).numpy(), want, rtol=2e-5, atol=2e-5)
    assert np.isnan(want).any()
    assert np.isfinite(want).any()
    source = run.executables[0].source.own
    assert source.count("(const float[]){") >= 5
    assert "first_row" not in source
