"""How large the first weights are.

Three functions of plain numbers. A weight has two **fans**: fan in, how many numbers flow into one
output of the layer, and fan out, how many outputs one input flows into.

`fans(shape)` gives the pair (fan in, fan out) of a weight of this shape, a tuple of ints:

    ()                           (1, 1)     a single number
    (n,)                         (n, n)     a vector
    (inputs, outputs)            (inputs, outputs): Paddle's linear layers
    (outputs, inputs, *window)   a convolution's kernel: both times the places in the window

`kaiming_std(fan, gain)` is the standard deviation that keeps a signal's size: a sum of `fan` terms,
each a weight times a number of size 1, must have the size `gain`.

`xavier_std(fan_in, fan_out, gain)` is a compromise between forward and backward: its variance (the
square of the standard deviation) is gain² divided by the mean of both fans.

    fans((64, 32)) = (64, 32)      fans((8, 3, 5, 5)) = (75, 200)
    kaiming_std(64, 2.0) = 0.25    xavier_std(3, 5, 1.0) = 0.5

Source: He et al., "Delving Deep into Rectifiers" (2015); Glorot and Bengio, "Understanding the
difficulty of training deep feedforward neural networks" (2010).
"""

import math


def fans(shape):
    """(fan in, fan out) of a weight of this shape."""
    raise NotImplementedError


def kaiming_std(fan, gain):
    """The standard deviation of weights that make a sum of `fan` terms of size `gain`."""
    raise NotImplementedError


def xavier_std(fan_in, fan_out, gain):
    """The standard deviation whose square is gain² over the mean of the fans."""
    raise NotImplementedError
