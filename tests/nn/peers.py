"""What the tests of images share: agreement with torch to the second derivative, and draws."""

from functools import partial

import numpy as np
import torch

from tests.nn.oracle import agree, values

agree = partial(agree, order=2, rtol=1e-8, atol=1e-9)


def draw(*shapes):
    """A list of normal arrays of these shapes."""
    return [values(*shape, seed=k) for k, shape in enumerate(shapes)]


def near(ours, theirs, tolerance=1e-9):
    """A tensor of ours has the shape and values of an array or a tensor of torch."""
    theirs = theirs.numpy(force=True) if torch.is_tensor(theirs) else np.asarray(theirs)
    assert tuple(ours.shape) == theirs.shape
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=tolerance, atol=tolerance)
