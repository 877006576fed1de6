"""A sum that nobody sees the terms of: each client adds masks that cancel in the sum.

Two clients share a secret number; of the two equal masks that it yields for a round one adds, the
other subtracts. Arithmetic is on whole numbers modulo 2³², in which a masked number is uniform.
When a client leaves, its partners hand out the masks they shared with it. A server that lied about
who left could then read a late update: against that the protocol has a second mask, and splits
secrets into shares; Flower's SecAgg+ does so (`flower.py`). NumPy's generator is not made for
secrets, either: this is to learn from.

Source: Bonawitz et al., "Practical secure aggregation for privacy-preserving machine learning"
(2017).
"""

from __future__ import annotations

from ..engine.core.errors import value_error
from ..engine.eager.device import NUMPY

SCALE = 2.0**16
"""Steps of the fixed point in 1."""


def draw_mask(own, secrets: dict, number: int, shape):
    """The sum of a client's masks in round `number`, uint32: those with the partners in `secrets`.

    own: the client's name; secrets: {name of a partner: the number that the two share}

    >>> a = paddle.privacy.draw_mask(0, {1: 7}, 0, (3,))
    >>> b = paddle.privacy.draw_mask(1, {0: 7}, 0, (3,))
    >>> (a + b).tolist()
    [0, 0, 0]
    """
    total = NUMPY.zeros(shape, "uint32")
    for partner, secret in secrets.items():
        mask = NUMPY.random.default_rng([secret, number]).integers(0, 2**32, shape, "uint32")
        total = total + mask if own < partner else total - mask
    return total


def mask_array(array, own, secrets: dict, number: int):
    """The numbers that a client sends for an array: fixed point with masks, uint32, its shape.

    Raises ValueError for numbers from 2¹⁴ on, which leave no room for a sum.

    >>> import numpy as np
    >>> sent = [paddle.privacy.mask_array(np.array([0.5]), k, {1 - k: 7}, 0) for k in (0, 1)]
    >>> paddle.privacy.open_sum(sent)
    array([1.], dtype=float32)
    """
    largest = float(NUMPY.abs(array).max(initial=0.0))
    if not largest < 2**14:
        raise value_error(f"an array with {largest:g}", f"numbers below {2**14}")
    fixed = NUMPY.round(array * SCALE).astype("int64").astype("uint32")
    return fixed + draw_mask(own, secrets, number, fixed.shape)


def open_sum(sent: list, left: list = ()):
    """The sum of the clients' arrays, float32, of what they sent.

    left: of each client that sent, the mask of its secrets with those that did not (`draw_mask`)

    >>> import numpy as np
    >>> sent = paddle.privacy.mask_array(np.array([0.5]), 0, {1: 7}, 0)
    >>> paddle.privacy.open_sum([sent], [paddle.privacy.draw_mask(0, {1: 7}, 0, (1,))])
    array([0.5], dtype=float32)
    """
    total = sum(sent) - sum(left, NUMPY.zeros_like(sent[0]))
    return (total.view("int32") / SCALE).astype("float32")
