"""Utilities: parameters as one vector, clipping in place, weights made of other weights."""

import math

from ..core.prelude import Parameter, Recording, e, movement, runtime_error, same_shape, value_error
from ..tensor import creation, random
from ..tensor.norms import vector_norm
from .functional.norm import as_matrix, normalize, power_iteration
from .names import unique

# ---- all parameters as one -------------------------------------------------------------------


def parameters_to_vector(parameters, name=None):
    """All parameters, flattened and concatenated.

    >>> layer = paddle.nn.Linear(2, 3)
    >>> paddle.nn.utils.parameters_to_vector(layer.parameters()).shape
    [9]
    """
    return movement.concat(*[p.reshape([-1]) for p in parameters], axis=0)


def vector_to_parameters(vec, parameters, name=None) -> None:
    """Write the pieces of a vector into the parameters: undoes `parameters_to_vector`.

    >>> layer = paddle.nn.Linear(2, 1)
    >>> paddle.nn.utils.vector_to_parameters(paddle.arange(3.0), layer.parameters())
    >>> layer.bias.tolist()
    [2.0]
    """
    parameters = list(parameters)
    sizes = tuple(p.spec.size for p in parameters)
    if not same_shape(vec.spec.shape, (sum(sizes),)):
        raise value_error(
            f"vector_to_parameters was given {vec.spec}",
            f"[{sum(sizes)}], the number of elements of all parameters",
        )
    with Recording(False):
        for p, values in zip(parameters, movement.split(vec, sizes=sizes, axis=0), strict=True):
            p.set_value(values.reshape(p.shape))


# ---- gradients, in place ---------------------------------------------------------------------


def select_with_gradients(parameters) -> list:
    listed = [parameters] if not isinstance(parameters, list | tuple) else parameters
    return [p for p in listed if p.grad is not None]


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """Scale all `.grad` by one factor so that their common norm is at most `max_norm`; gives the
    norm there was.

    >>> layer = paddle.nn.Linear(1, 1)
    >>> layer(paddle.full([1, 1], 0.75)).backward()
    >>> paddle.nn.utils.clip_grad_norm_(layer.parameters(), 1.0).item()
    1.25
    """
    owners, p = select_with_gradients(parameters), float(norm_type)
    if not owners:
        return creation.zeros([1])
    with Recording(False):
        each = [vector_norm(owner.grad, p) for owner in owners]
        norm = vector_norm(movement.stack(*each, axis=0), p)
        if error_if_nonfinite and not math.isfinite(norm.item()):
            raise runtime_error(
                f"clip_grad_norm_: the norm of order {norm_type} of the gradients is {norm.item()}",
                hint="error_if_nonfinite=False clips all the same",
            )
        factor = e.minimum(max_norm / (norm + 1e-6), 1.0)
        for owner in owners:
            owner.grad = owner.grad * factor.astype(owner.grad.dtype)
    return norm


def clip_grad_value_(parameters, clip_value) -> None:
    """Cut the elements of all `.grad` to [-clip_value, clip_value].

    >>> layer = paddle.nn.Linear(1, 1)
    >>> layer(paddle.full([1, 1], 7.0)).backward()
    >>> paddle.nn.utils.clip_grad_value_(layer.parameters(), 0.5)
    >>> layer.weight.grad.item()
    0.5
    """
    with Recording(False):
        for owner in select_with_gradients(parameters):
            owner.grad = owner.grad.clip(-clip_value, clip_value)


# ---- weights that are computed from others ---------------------------------------------------


class Computed:
    """A weight that is computed from other parameters before every `forward` of its layer."""

    def __init__(self, layer, name: str, kind: str):
        for hook, _ in layer._forward_pre_hooks.values():
            if isinstance(hook, Computed) and hook.name == name:
                raise RuntimeError(f"{kind} of {name!r}: it is already {type(hook).__name__}")
        if layer._parameters.get(name) is None:
            raise value_error(
                f"{kind} of {name!r}: {type(layer).__name__} has no such parameter",
                ", ".join(layer._parameters),
            )
        self.name = name
        self.weight = layer._parameters.pop(name)

    def settle(self, layer) -> None:
        """Give the layer its weight, and register for the next time."""
        setattr(layer, self.name, self.compute(layer))
        self.handle = layer.register_forward_pre_hook(self)

    def __call__(self, layer, inputs) -> None:
        setattr(layer, self.name, self.compute(layer))

    def compute(self, layer):
        raise NotImplementedError


def norm_except(v, dim: int):
    """The 2-norm over all axes but `dim`, kept as 1; over all axes if `dim` is -1."""
    return vector_norm(v, 2, [d for d in range(v.spec.ndim) if d != dim], keepdim=True)


class WeightNorm(Computed):
    """weight = g · v / |v|."""

    def __init__(self, layer, name, dim):
        super().__init__(layer, name, "weight_norm")
        ndim = self.weight.spec.ndim
        if dim is not None and not -ndim <= dim < ndim:
            raise value_error(f"weight_norm was given dim={dim}", f"an axis of {self.weight.spec}")
        self.dim = -1 if dim is None else dim % ndim
        with Recording(False):
            norm = norm_except(self.weight, self.dim)
            norm = norm.reshape([] if dim is None else [self.weight.spec.shape[self.dim]])
        for suffix, values in (("v", self.weight), ("g", norm)):
            parameter = Parameter(values, name=unique(f"{layer.full_name()}.w"))
            layer.add_parameter(f"{name}_{suffix}", parameter)

    def compute(self, layer):
        v, g = getattr(layer, f"{self.name}_v"), getattr(layer, f"{self.name}_g")
        shape = [n if d == self.dim else 1 for d, n in enumerate(v.spec.shape)]
        return v * (g.reshape(shape) / norm_except(v, self.dim))


def weight_norm(layer, name="weight", dim=0):
    """Learn a weight's length (`weight_g`, one per index of axis `dim`) and direction (`weight_v`)
    apart. `dim=None` gives one length for all.

    Source: Salimans and Kingma 2016.

    >>> layer = paddle.nn.utils.weight_norm(paddle.nn.Linear(2, 3))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_v', 'weight_g']
    """
    WeightNorm(layer, name, dim).settle(layer)
    return layer


def remove_weight_norm(layer, name="weight"):
    """Make the weight a parameter again.

    >>> layer = paddle.nn.utils.weight_norm(paddle.nn.Linear(2, 3))
    >>> list(paddle.nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    for hook, _ in list(layer._forward_pre_hooks.values()):
        if isinstance(hook, WeightNorm) and hook.name == name:
            with Recording(False):
                values = hook.compute(layer)
            hook.handle.remove()
            for part in (name, f"{name}_g", f"{name}_v"):
                delattr(layer, part)
            weight = Parameter(values, name=unique(f"{layer.full_name()}.w"))
            layer.add_parameter(name, weight)
            return layer
    raise ValueError(f"weight_norm of {name!r} not found in {layer}")


class SpectralNorm(Computed):
    """weight = weight_orig / its largest singular value, followed by power iteration."""

    def __init__(self, layer, name, steps, eps, dim):
        super().__init__(layer, name, "spectral_norm")
        if steps <= 0:
            raise value_error(f"spectral_norm was given n_power_iterations={steps}", "1 or more")
        self.steps, self.eps, self.dim = steps, eps, dim
        layer.add_parameter(f"{name}_orig", self.weight)
        with Recording(False):
            for suffix, n in zip("uv", as_matrix(self.weight, dim).spec.shape):
                start = normalize(random.randn([n], self.weight.dtype), axis=0, epsilon=eps)
                layer.register_buffer(f"{name}_{suffix}", start)

    def compute(self, layer):
        weight = getattr(layer, f"{self.name}_orig")
        u, v = (getattr(layer, f"{self.name}_{k}") for k in "uv")
        matrix = as_matrix(weight, self.dim)
        if layer.training:
            kept = u, v
            u, v = power_iteration(matrix, u, v, self.steps, self.eps)
            for buffer, value in zip(kept, (u, v)):
                buffer.set_value(value)
        return weight / (u @ (matrix @ v))


def spectral_norm(layer, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a weight by its largest singular value, tracked by power iteration while training.

    `dim` is the axis of the outputs: 1 for `Linear` and transposed convolutions, 0 for others.
    Source: Miyato et al. 2018.

    >>> layer = paddle.nn.utils.spectral_norm(paddle.nn.Linear(2, 3))
    >>> list(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    if dim is None:
        kind = type(layer).__name__
        dim = 1 if kind == "Linear" or kind.endswith("Transpose") else 0
    SpectralNorm(layer, name, n_power_iterations, eps, dim).settle(layer)
    return layer


__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "remove_weight_norm",
    "spectral_norm", "vector_to_parameters", "weight_norm",
]  # fmt: skip
