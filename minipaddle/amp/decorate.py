"""`decorate`: the weights of a network in half precision, their masters in its optimizers."""

from __future__ import annotations

from ..core.prelude import dt, require_one_of, runtime_error, type_error
from ..eager.curvature import as_list
from ..nn import Layer
from ..nn.layer.batch_norm import BatchNormND
from ..optimizer import Optimizer
from ..optimizer.master import keep_masters
from .lists import DTYPES


def decorate(
    models, optimizers=None, level="O1", dtype="float16", master_weight=None, save_dtype=None,
    master_grad=False, excluded_layers=None,
):  # fmt: skip
    """Prepare networks and their optimizers for a level of mixed precision, in place.

    At "O2" floating weights and buffers become `dtype`, but for those of batch norms and of
    `excluded_layers` (layers with all below them, or classes); at "O1" they stay. Optimizers keep
    float32 copies of the weights unless `master_weight` is False. With `master_grad` gradients
    become float32 at the end of each backward, so those of several add up there. `state_dict` of
    the models gives weights in `save_dtype`. Models and optimizers are single or lists, and come
    back as they were given: the models, or a pair. Raises TypeError for anything else, ValueError
    for another level or dtype, RuntimeError for a model that is in a `DataParallel` already.

    >>> net = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.BatchNorm1D(2))
    >>> net = paddle.amp.decorate(net, level="O2", dtype="bfloat16")
    >>> net[0].weight.dtype, net[1].weight.dtype
    (paddle.bfloat16, paddle.float32)
    """
    dtype = dt.public(dtype).name
    require_one_of("decorate", ("O1", "O2"), level=level)
    require_one_of("decorate", DTYPES, dtype=dtype)
    require_one_of("decorate", (None, *DTYPES, "float32", "float64"), save_dtype=save_dtype)
    layers = [check(model) for model in as_list(models)]
    own = [] if optimizers is None else as_list(optimizers)
    if wrong := [x for x in own if not isinstance(x, Optimizer)]:
        raise type_error(f"decorate was given {wrong[0]!r:.60}", "an optimizer, or a list of them")
    if level == "O2":
        excluded = () if excluded_layers is None else as_list(excluded_layers)
        for model in layers:
            cast_layers(model, dt.resolve(dtype), excluded, master_grad)
            if save_dtype is not None:
                model.register_state_dict_hook(saving_as(save_dtype))
        for optimizer in own:
            keep_masters(optimizer, master_weight is not False)
    return models if optimizers is None else (models, optimizers)


amp_decorate = decorate


def check(model) -> Layer:
    """A model that can be decorated."""
    if not isinstance(model, Layer):
        raise type_error(f"decorate was given {model!r:.60}", "a Layer, or a list of them")
    if any(p.averaged is not None for p in model.parameters()):
        raise runtime_error(
            "decorate of a model in a DataParallel, which holds its weights already",
            hint="decorate the model first, then DataParallel(model)",
        )
    return model


def cast_layers(model: Layer, dtype, excluded, master_grad: bool) -> None:
    """Cast the weights and buffers of each layer that is not kept in float32."""
    kinds = tuple(kind for kind in excluded if isinstance(kind, type))
    kept = {layer for one in excluded if isinstance(one, Layer) for layer in one.sublayers(True)}
    for layer in model.sublayers(include_self=True):
        if layer in kept or isinstance(layer, (BatchNormND, *kinds)):
            continue
        if getattr(layer, "_cast_to_low_precision", True):
            layer._convert(None, dtype)
            for p in layer.parameters(include_sublayers=False) if master_grad else ():
                if not p.stop_gradient:
                    p.register_hook(cast_to_float32)


def cast_to_float32(g):
    """A gradient for the sum over several backwards."""
    return g.astype("float32")


def saving_as(dtype: str):
    """A hook of `state_dict` that casts floating values."""

    def hook(state: dict) -> None:
        for key, x in state.items():
            if x.spec.dtype in dt.FLOATS and x.dtype != dtype:
                state[key] = x.detach().astype(dtype)
                state[key].name = x.name

    return hook
