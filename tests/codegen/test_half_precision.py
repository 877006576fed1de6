"""Half precision in loops of C: a value is rounded wherever the interpreter rounds it."""

import numpy as np
import pytest
import torch

import minipaddle as paddle


@pytest.mark.parametrize("how", [{}, {"backend": "native"}], ids=str)
def test_every_value_is_rounded(how):
    """A value of half precision is rounded, and overflows, where it is not stored, too."""

    def f(x):
        low = (x.astype("float16") * 3.0 + 1.0).astype("float32") - 2.0
        brain = (x.astype("bfloat16") * 3.0 + 1.0).astype("float32") - 2.0
        return low, brain, (x.astype("float16").sum() * 0.5).astype("float32")

    x = np.float32([1.001, 30000.0, -7e4, 1e-9, 3.3, 2049.0, np.nan])
    low, brain, _ = (paddle.jit.to_static(f, **how) if how else f)(paddle.to_tensor(x))
    for found, kind in ((low, torch.float16), (brain, torch.bfloat16)):
        y = torch.tensor(x).to(kind) * 3.0 + 1.0
        assert np.array_equal(found.numpy(), (y.float() - 2.0).numpy(), equal_nan=True)
    y = (paddle.jit.to_static(f, **how) if how else f)(paddle.full([4], 3e4))
    assert y[2].item() == np.inf
