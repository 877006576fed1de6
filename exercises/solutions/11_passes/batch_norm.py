"""Folding batch norm: at inference it is not there.

When a network has been trained, its weights and running statistics stay what they are. Then batch
norm multiplies each channel by a number f and adds a number t, and the convolution before it can do
that by itself, with other weights:

    f · (conv(x, w) + b) + t  =  conv(x, w · f) + (b · f + t)

That saves one pass over the image. Write two functions:

- `folds(x, w, **rest)`, the condition of all rules. It gets what a rule stands for: the image x,
  the kernel w [O, C, k, k] (or with one axis k, or three, and C is the channels of a group), and by
  name the rest: numbers of the convolution such as `groups`, and tensors (`isinstance(v, Var)`)
  such as b, f and t. True if every one of these tensors has the shape [1, O, 1, 1], with as many
  axes as the image: a number for each channel; and if `of_states(made_by(v))` is True for it: it is
  made of weights alone. Then the new kernel can be computed once and for all; with a factor that
  comes from the image it would be computed for each image, and the sum above would not even be
  right.
- `rules()`: a list of three rules for `rewritten`, all with `folds` as their condition and
  `alone=True`, so that nobody else uses the convolution:
    - conv(x, w) · f                    →   conv(x, w · f)
    - (conv(x, w) + b) · f              →   conv(x, w · f) + b · f
    - (conv(x, w) + b) + t              →   conv(x, w) + (b + t)
  The convolution is `conv(x, w, stride=…, padding=…, dilation=…, groups=…)`: its four numbers are
  keyword parameters of `before` and come back as those of `after`. f has the shape [1, O, 1, 1],
  and what multiplies output o of the kernel stands at w[o]. Name the tensors as above; `reshape(f,
  shape=…)` gives another shape, `f.spec.size` is how many there are.

    conv → add b → multiply f → add t     ->    conv (kernel w · f) → add (b · f + t)

Source: Jacob and others, "Quantization and training of neural networks for efficient
integer-arithmetic-only inference", CVPR 2018, section 3.2.
"""

from minipaddle.engine.ops.conv import conv
from minipaddle.engine.ops.movement import reshape
from minipaddle.engine.ops.var import Var
from minipaddle.engine.passes.patterns import RewriteRule
from minipaddle.engine.passes.rewriting import made_by
from minipaddle.passes.batch_norm import of_states


def folds(x, w, **rest) -> bool:
    """Is every tensor besides image and kernel a number for each channel, made of weights?"""
    channels = [1] * w.spec.ndim
    channels[1] = w.spec.shape[0]
    for value in rest.values():
        if not isinstance(value, Var):
            continue
        if value.spec.shape != tuple(channels) or not of_states(made_by(value)):
            return False
    return True


def _plain(x, w, stride, padding, dilation, groups):
    return conv(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)


def _scaled(x, w, f, **numbers):
    each_output = (f.spec.size, *[1] * (w.spec.ndim - 1))
    return conv(x, w * reshape(f, shape=each_output), **numbers)


def _times(x, w, f, *, stride, padding, dilation, groups):
    return _plain(x, w, stride, padding, dilation, groups) * f


def _plus_times(x, w, b, f, *, stride, padding, dilation, groups):
    return (_plain(x, w, stride, padding, dilation, groups) + b) * f


def _plus_plus(x, w, b, t, *, stride, padding, dilation, groups):
    return (_plain(x, w, stride, padding, dilation, groups) + b) + t


def rules() -> list:
    """What is looked for, and what is written instead."""
    return [
        RewriteRule(_times, _scaled, folds, alone=True),
        RewriteRule(
            _plus_times,
            lambda x, w, b, f, **numbers: _scaled(x, w, f, **numbers) + b * f,
            folds,
            alone=True,
        ),
        RewriteRule(
            _plus_plus,
            lambda x, w, b, t, **numbers: _plain(x, w, **numbers) + (b + t),
            folds,
            alone=True,
        ),
    ]
