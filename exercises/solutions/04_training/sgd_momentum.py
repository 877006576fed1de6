"""Momentum, and Nesterov's look ahead.

Write two rules of an optimizer. Both get, for one parameter,

- `p` its value and `g` its gradient, tensors of one shape;
- `lr` the learning rate, a tensor of one number;
- `velocity` what the last step handed back, of p's shape, zeros at first;
- `mu` a number from 0 to 1: how much of the velocity stays;

and both return a pair: (the new value of p, the new velocity). Return new tensors and write into
none of those given: the engine keeps a velocity for every parameter and hands it back in the next
step.

`momentum`:  v = mu * velocity + g,  p moves by -lr * v.
`nesterov`:  v is the same, but p moves by -lr * (g + mu * v): one step further along v.

    p = 1, g = 1, lr = 0.5, velocity = 4, mu = 0.5
    momentum:  v = 3,  p = 1 - 0.5 * 3 = -0.5
    nesterov:  v = 3,  p = 1 - 0.5 * (1 + 0.5 * 3) = -0.25

This is Paddle's form, where the learning rate stands outside the velocity: when a schedule changes
it, old steps are rescaled too. Source: Polyak (1964); Sutskever et al., "On the importance of
initialization and momentum in deep learning" (2013).
"""


def momentum(p, g, lr, velocity, *, mu):
    """(the new parameter, the new velocity): one step along what past gradients agree on."""
    velocity = mu * velocity + g  # a steady g adds up to g / (1 - mu)
    return p - lr * velocity, velocity


def nesterov(p, g, lr, velocity, *, mu):
    """(the new parameter, the new velocity), looking one step ahead."""
    velocity = mu * velocity + g
    # The next step will hold mu * velocity anyway: take that part of it now.
    return p - lr * (g + mu * velocity), velocity
