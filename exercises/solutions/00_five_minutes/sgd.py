"""One step downhill.

A network learns by small steps. For a parameter p we know the derivative g: how much the loss
grows when p grows a little. So the loss shrinks when p moves the other way. Write `sgd(p, g, lr)`:
the new value of p after one step of plain gradient descent,

    p - lr * g

`p` and `g` are tensors of one shape, `lr` (the learning rate) is a tensor of one number. Return the
new value and leave p itself alone: the optimizer writes it into the network.

    p = [1.0, 2.0], g = [10.0, -10.0], lr = 0.1   ->   [0.0, 3.0]

Source: Robbins and Monro, "A Stochastic Approximation Method" (1951).
"""


def sgd(p, g, lr):
    """The parameter's new value: one step of length lr times g, against g."""
    # A new tensor: the caller decides where to write it.
    return p - lr * g
