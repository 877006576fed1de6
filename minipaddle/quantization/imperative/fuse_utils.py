"""Batch norms that become part of the convolution or linear layer before them."""

from copy import deepcopy

from ... import nn
from ...engine.core.errors import value_error

NORMS = nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D, nn.BatchNorm
PRODUCTS = nn.Linear, nn.Conv1D, nn.Conv2D, nn.Conv3D


def fuse_layers(model, layers_to_fuse, inplace=False):
    """The model, in which each pair of names [product, norm] is one layer: at inference, batch norm
    is a factor and a term for each output, which weights and bias can hold.

    A quantized network then rounds what the norm would have computed, and nothing is left to do
    between two products but a bias. The norm's place is taken by an `Identity`. A copy, unless
    `inplace`. Raises ValueError for a model in training mode, and for other layers.

    >>> from minipaddle.quantization.imperative.fuse_utils import fuse_layers
    >>> net = paddle.nn.Sequential(paddle.nn.Conv2D(1, 2, 3), paddle.nn.BatchNorm2D(2)).eval()
    >>> fused, x = fuse_layers(net, [["0", "1"]]), paddle.ones([1, 1, 3, 3])
    >>> bool((fused(x) - net(x)).abs().max() < 1e-6), type(fused[1]).__name__
    (True, 'Identity')
    """
    if model.training:
        raise value_error(
            "fuse_layers was given a model in training mode", hint="call model.eval() first"
        )
    model = model if inplace else deepcopy(model)
    for first, second in layers_to_fuse:
        layer, norm = find(model, first), find(model, second)
        if not (isinstance(layer, PRODUCTS) and isinstance(norm, NORMS)):
            pair = f"{first} (a {type(layer).__name__}), {second} (a {type(norm).__name__})"
            raise value_error(f"fuse_layers: {pair}", "a Linear or a convolution, and a batch norm")
        fold(layer, norm)
        parent, _, name = second.rpartition(".")
        setattr(find(model, parent), name, nn.Identity())
    return model


def find(model, name: str):
    """The layer with a name such as "blocks.0.conv"."""
    for part in filter(None, name.split(".")):
        if part not in model._sub_layers:
            raise value_error(
                f"fuse_layers: no layer {name!r}", f"one of {', '.join(model._sub_layers)}"
            )
        model = model._sub_layers[part]
    return model


def fold(layer, norm) -> None:
    """Let a product do what the norm after it does."""
    factor = (norm._variance + norm._epsilon).rsqrt()
    factor = factor if norm.weight is None else factor * norm.weight
    bias = -norm._mean if layer.bias is None else layer.bias - norm._mean
    bias = bias * factor if norm.bias is None else bias * factor + norm.bias
    shape = [-1] + [1] * (layer.weight.ndim - 1)
    scaled = layer.weight * (factor if isinstance(layer, nn.Linear) else factor.reshape(shape))
    layer.weight.set_value(scaled.detach())
    held = nn.initializer.Assign(bias.detach().numpy())
    layer.bias = layer.create_parameter([bias.size], nn.ParamAttr(initializer=held), is_bias=True)
