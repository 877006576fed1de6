"""Groups of an optimizer's parameters, each with its own options."""

from types import SimpleNamespace

from ..core.prelude import Tensor, current, type_error, value_error
from ..regularizer import L2Decay, WeightDecayRegularizer


def make_groups(parameters) -> list[dict]:
    """The list of dicts that `parameters` means."""
    if parameters is None and current.top.by_hand:
        return [{"params": []}]  # `minimize` fills it with the program's parameters
    if parameters is None:
        raise value_error(
            "the optimizer was given no parameters",
            hint="paddle.optimizer.SGD(0.1, parameters=model.parameters())",
        )
    if isinstance(parameters, Tensor | dict | str):
        raise TypeError(
            f"parameters must be a list of parameters or of dicts, not {type(parameters).__name__}"
        )
    if callable(getattr(parameters, "parameters", None)):
        raise type_error(
            f"the optimizer was given a {type(parameters).__name__}, not its parameters",
            hint="parameters=model.parameters()",
        )
    listed = list(parameters)
    return listed if listed and isinstance(listed[0], dict) else [{"params": listed}]


def make_group(given, defaults: dict) -> SimpleNamespace:
    """One group's options: its own, otherwise the optimizer's."""
    if not isinstance(given, dict) or "params" not in given:
        raise ValueError('a parameter group is a dict with "params": [...]')
    unknown = given.keys() - defaults.keys() - {"params"}
    if unknown:
        raise value_error(
            f"the parameter group has an unknown option {min(unknown)!r}",
            ", ".join(["params", *defaults]),
        )
    group = SimpleNamespace(**(defaults | given))
    params = group.params
    group.params = [params] if isinstance(params, Tensor) else list(params)
    for p in group.params:
        if not isinstance(p, Tensor):
            raise TypeError(f"an optimizer changes parameters, not {type(p).__name__} {p!r:.40}")
    if group.grad_clip is not None and not callable(group.grad_clip):
        raise TypeError(f"grad_clip must be a paddle.nn.ClipGradBy..., not {group.grad_clip!r}")
    return group


def make_regularizer(decay) -> WeightDecayRegularizer | None:
    """The regularizer for the argument `weight_decay=`."""
    if decay is None or isinstance(decay, WeightDecayRegularizer):
        return decay
    if isinstance(decay, int | float):
        return L2Decay(decay) if decay else None
    raise TypeError(f"weight_decay must be a number or a paddle.regularizer, not {decay!r}")
