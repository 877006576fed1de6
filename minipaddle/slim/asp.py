"""n of m sparsity: in each group of m weights along a sum n stay, as sparse tensor cores want it.

Source: Paddle API `paddle.incubate.asp`; Mishra et al. (2021). On a processor nothing gets faster.
"""

from ..core.missing import namespace
from ..engine.core.errors import type_error
from ..nn import Conv2D, Layer, Linear
from ..optimizer.masked import keep_masks
from .masks import apply_mask, mask_n_of_m

__all__ = [
    "add_supported_layer", "calculate_density", "decorate", "prune_model", "reset_excluded_layers",
    "set_excluded_layers",
]  # fmt: skip

EXCLUDED: set[str] = set()
"""Names of layers and parameters that are left dense."""

SUPPORTED: dict = {Linear: None, Conv2D: None}
"""Classes (or names) of layers that are pruned, with their own function or None."""


def calculate_density(x) -> float:
    """The part of an array that is not zero.

    >>> paddle.incubate.asp.calculate_density(paddle.to_tensor([0.0, 1.0, 3.0, 0.0]).numpy())
    0.5
    """
    return float((x != 0).sum()) / x.size


def set_excluded_layers(param_names, main_program=None) -> None:
    """Leave these parameters dense, or all of the layers of these names (`layer.full_name()`)."""
    EXCLUDED.update(param_names)


def reset_excluded_layers(main_program=None) -> None:
    """Exclude nothing any more."""
    EXCLUDED.clear()


def add_supported_layer(layer, pruning_func=None) -> None:
    """Prune further layers: of a class, or those of which `full_name()` begins with a name.

    `pruning_func(weight, n, m, mask_algo, param_name)` gives (pruned weight, mask) of arrays.
    """
    SUPPORTED[layer] = pruning_func


def decorate(optimizer):
    """The optimizer, which keeps the zeros of pruned weights in all its steps, captured ones too.

    It is the same object, before or after `prune_model`.
    """
    return keep_masks(optimizer)


def prune_model(model, n=2, m=4, mask_algo="mask_1d", with_mask=True) -> dict:
    """Set all but n of m weights to zero, in linear layers and 2-D convolutions: {name: mask}.

    Groups run along the axis that is summed over; weights with fewer than m there stay dense.
    `mask_algo` is mask_1d (n of m in a line), mask_2d_greedy or mask_2d_best (of m lines of m too).
    Without `with_mask` the zeros are not kept in training. Raises ValueError for other algorithms.

    >>> from minipaddle.incubate import asp
    >>> net = paddle.nn.Linear(8, 4)
    >>> adam = asp.decorate(paddle.optimizer.Adam(0.1, parameters=net.parameters()))
    >>> masks = asp.prune_model(net)
    >>> net(paddle.ones([2, 8])).sum().backward()
    >>> adam.step()
    >>> asp.calculate_density(net.weight.numpy())
    0.5
    """
    if not isinstance(model, Layer):
        raise type_error(f"prune_model of {type(model).__name__}", "a paddle.nn.Layer")
    masks = {}
    for layer in model.sublayers(include_self=True):
        known = [k for k in SUPPORTED if is_kind(layer, k)]
        p = getattr(layer, "weight", None)
        if not known or p is None or {layer.full_name(), p.name} & EXCLUDED:
            continue
        array, own = p.numpy(), SUPPORTED[known[-1]]
        if array.shape[0 if array.ndim == 2 else 1] < m and own is None:
            continue
        if own is None:
            mask = mask_n_of_m(array, n, m, mask_algo)
        else:
            _, mask = own(array, n, m, mask_algo, p.name)
        if with_mask:
            masks[p.name] = apply_mask(p, mask)
        else:
            p.set_value(array * mask.astype(array.dtype))
            masks[p.name] = None
    return masks


def is_kind(layer, kind) -> bool:
    """Whether a layer is of a class, or named so."""
    if isinstance(kind, str):
        return layer.full_name().startswith(kind)
    return isinstance(layer, kind)


__getattr__ = namespace("paddle.incubate.asp", globals())
