"""Batch norm, in training and in evaluation.

Write `batch_norm(x, running_mean, running_var, weight, bias, training, momentum, epsilon, axis)`.

`x` is a tensor of two dimensions or more. Its dimension number `axis` counts the channels: [N, C]
and [N, C, H, W] have them on axis 1, [N, H, W, C] on axis 3. The four tensors after x have one
number for each channel, shape [C]; `weight` and `bias` may be None, which means no scaling and no
shift. The result has the shape of x: in each channel

    weight * (x - mean) / √(var + epsilon) + bias

- In training (`training` is True) mean and var are those of this batch: taken over all dimensions
  but `axis`, the variance as the mean square distance from the mean, divided by the count (not by
  the count minus 1). And the running statistics move, in Paddle's convention:

      running = momentum * running + (1 - momentum) * that of this batch

  Write them into the tensors given: `running_mean.set_value(...)`, under `paddle.no_grad()`.
- In evaluation mean and var are `running_mean` and `running_var`, and nothing is written.

Use tensors all the way: the tape then finds the derivative by itself, including the part that comes
from the mean and the variance, which change with x.

    x = [[1.0], [3.0]], training, epsilon = 0:  mean 2, var 1  ->  [[-1.0], [1.0]]
    momentum = 0.9, running mean 0 before:  0.9 * 0 + 0.1 * 2 = 0.2 after

Source: Ioffe and Szegedy, "Batch Normalization" (2015); Paddle API
`paddle.nn.functional.batch_norm`.
"""

import minipaddle as paddle


def batch_norm(x, running_mean, running_var, weight, bias, training, momentum, epsilon, axis):
    """Every channel normalised, scaled, shifted; training moves the running statistics."""
    shape = [-1 if d == axis else 1 for d in range(x.ndim)]  # the shape in which a [C] meets x
    if training:
        others = [d for d in range(x.ndim) if d != axis]
        mean = x.mean(others, keepdim=True)
        var = ((x - mean) ** 2).mean(others, keepdim=True)
        with paddle.no_grad():  # statistics are not part of the loss
            _move(running_mean, mean, momentum)
            _move(running_var, var, momentum)
    else:
        mean, var = running_mean.reshape(shape), running_var.reshape(shape)
    y = (x - mean) * paddle.rsqrt(var + epsilon)
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def _move(running, batch, momentum):
    """Paddle's momentum is the share of the old that stays; elsewhere it is that of the new."""
    running.set_value(momentum * running + (1 - momentum) * batch.reshape([-1]))
