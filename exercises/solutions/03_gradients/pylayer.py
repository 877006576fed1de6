"""A rule of the user's own gets on the tape: what `PyLayer.apply` does.

A PyLayer is a class with two static methods. `forward(ctx, *args, **kwargs)` computes results from
its arguments, some of them tensors, others not; `backward(ctx, *grads)` takes one gradient for each
result and returns one gradient, or None, for each *tensor* among the arguments. `ctx` is a notebook
that the first leaves for the second.

**`apply(layer, args, kwargs)`** returns what `forward` computes, on the tape with `backward` as its
derivative:

1. every application has a context of its own, a new `PyLayerContext`;
2. `forward` runs once and leaves nothing on the tape itself (`paddle.no_grad()`);
3. if no tape is kept now (`paddle.is_grad_enabled()`), or no tensor among the arguments wants a
   gradient (`stop_gradient` is True for all of them), the results are returned as they are;
4. otherwise `put_on_tape(layer, ctx, inputs, results)` puts one record there, and you return its
   results. `inputs` are the tensors among the arguments in their order; `tensors_in(args, kwargs)`
   lists them, including those in lists.

**`gradients(layer, ctx, grads, count)`** is called on the way back. `grads` is a list of the
gradients of the results, `count` the number of tensors that went in. It returns what
`layer.backward` makes of them as a tuple of length `count`. A backward for one tensor may return
the gradient itself rather than a tuple. If there are not `count` gradients, or one of them is
neither a tensor nor None, raise ValueError with the layer's `__name__` in its text.

    class Double(paddle.autograd.PyLayer):              gradients(Double, ctx, [g], 1)
        forward(ctx, x): return 2 * x                     ->  (2 * g,)
        backward(ctx, g): return 2 * g                  gradients(Double, ctx, [g], 2)
                                                          ->  ValueError: Double.backward …

Source: Paddle API `paddle.autograd.PyLayer`.
"""

import minipaddle as paddle
from minipaddle.autograd import PyLayerContext
from minipaddle.engine.eager.pylayer import put_on_tape, tensors_in


def apply(layer, args, kwargs):
    """The results of `layer.forward`, as one record of the tape."""
    ctx = PyLayerContext()  # new each time: what two applications save must not mix
    inputs = tensors_in(args, kwargs)
    with paddle.no_grad():  # the rule stands for the whole of it
        results = layer.forward(ctx, *args, **kwargs)
    wanted = any(not x.stop_gradient for x in inputs)
    if wanted and paddle.is_grad_enabled():
        return put_on_tape(layer, ctx, inputs, results)
    return results


def gradients(layer, ctx, grads, count):
    """What `layer.backward` makes of the results' gradients: a tuple of `count`."""
    found = layer.backward(ctx, *grads)
    if not isinstance(found, (list, tuple)):  # one gradient, as it is
        found = [found]
    usable = all(g is None or isinstance(g, paddle.Tensor) for g in found)
    if len(found) != count or not usable:
        raise ValueError(f"{layer.__name__}.backward: {count} gradients, tensors or None")
    return tuple(found)
