"""Compare a function of ours with one of torch: values, first and second derivatives."""

import numpy as np
import torch

import minipaddle as paddle


def leaves(arrays, wrt):
    """The arrays as our tensors and as torch's; those at the places `wrt` want gradients."""
    ours = [paddle.to_tensor(a) for a in arrays]
    theirs = [torch.from_numpy(np.array(a)) for a in arrays]
    for k in wrt:
        ours[k].stop_gradient = False
        theirs[k].requires_grad_()
    return ours, theirs


def flat(results) -> list:
    if isinstance(results, list | tuple):
        return [y for part in results for y in flat(part)]
    return [results]


def agree(ours, theirs, *arrays, wrt=None, order=1, rtol=1e-7, atol=1e-10):
    """`ours(*tensors)` and `theirs(*tensors)` have equal values, and derivatives up to `order`.

    `wrt` are the places of the arrays to differentiate by; None is all floating ones. Results may
    be nested.
    """
    if wrt is None:
        wrt = [k for k, a in enumerate(arrays) if np.asarray(a).dtype.kind == "f"]
    xs, ys = leaves(arrays, wrt)
    pairs = list(zip(flat(ours(*xs)), flat(theirs(*ys)), strict=True))
    for a, b in pairs:
        assert a.shape == list(b.shape)
        np.testing.assert_allclose(a.numpy(), b.numpy(force=True), rtol, atol)
    rng = np.random.default_rng(5)
    for _ in range(order):
        pairs = [(a, b) for a, b in pairs if b.requires_grad]
        if not pairs:
            return
        weights = [rng.standard_normal(tuple(b.shape)) for _, b in pairs]
        mine = [(a * paddle.to_tensor(w)).sum() for (a, _), w in zip(pairs, weights)]
        its = [(b * torch.from_numpy(np.asarray(w))).sum() for (_, b), w in zip(pairs, weights)]
        mine = paddle.grad(mine, [xs[k] for k in wrt], create_graph=True, allow_unused=True)
        its = torch.autograd.grad(
            sum(its), [ys[k] for k in wrt], create_graph=True, materialize_grads=True
        )
        pairs = []
        for a, b in zip(mine, its, strict=True):
            got = np.zeros(b.shape) if a is None else a.numpy()
            np.testing.assert_allclose(got, b.numpy(force=True), rtol * 10, atol * 10)
            pairs += [] if a is None else [(a, b)]


def values(*shape, seed=0, low=None, high=None):
    """Normal values, or uniform ones from `low` to `high`, in float64."""
    rng = np.random.default_rng([seed, *shape])
    return rng.standard_normal(shape) if low is None else rng.uniform(low, high, shape)
