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
    raise NotImplementedError
