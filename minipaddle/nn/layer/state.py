"""The state dict of a layer, and the dtype and device of its values."""

import warnings
from collections import OrderedDict
from collections.abc import Mapping

from ...core.prelude import Tensor, dt, type_error


class LayerState:
    """The state of `Layer`: saving, loading, casting and moving it."""

    # ---- saving and loading ------------------------------------------------------------------

    def state_dict(
        self, destination=None, include_sublayers: bool = True, structured_name_prefix: str = "",
        use_hook: bool = True, keep_vars: bool = True,
    ) -> OrderedDict:  # fmt: skip
        """Parameters and persistable buffers by path; they are the live tensors, not copies.

        With `keep_vars=False` they are detached.

        >>> list(paddle.nn.Sequential(paddle.nn.Linear(2, 3)).state_dict())
        ['0.weight', '0.bias']
        """
        states = OrderedDict() if destination is None else destination
        prefix = structured_name_prefix
        transient = self._non_persistable_buffer_names_set
        for name, part in [*self._parameters.items(), *self._buffers.items()]:
            if part is not None and name not in transient:
                states[prefix + name] = part if keep_vars else part.detach()
        for name, layer in self._sub_layers.items() if include_sublayers else ():
            if layer is not None:
                layer.state_dict(states, True, f"{prefix}{name}.", use_hook, keep_vars)
        for hook in self._state_dict_hooks.values() if use_hook else ():
            changed = hook(states)
            states = states if changed is None else changed
        return states

    def to_static_state_dict(self, *args, **kwargs) -> OrderedDict:
        """The same as `state_dict`, non-persistable buffers included."""
        states = self.state_dict(*args, **kwargs)
        states.update((name, b) for name, b in self.named_buffers() if name not in states)
        return states

    def set_state_dict(self, state_dict, use_structured_name: bool = True) -> tuple[list, list]:
        """Copy values in by path (or by parameter name); returns (missing, unexpected) keys.

        A missing key and a shape that does not fit are warned about and left out, as in Paddle; a
        dtype that does not fit is a TypeError.

        >>> net = paddle.nn.Linear(1, 1)
        >>> net.set_state_dict({"weight": paddle.ones([1, 1]), "bias": paddle.zeros([1])})
        ([], [])
        """
        if not isinstance(state_dict, Mapping):
            raise type_error(
                f"set_state_dict was given a {type(state_dict).__name__}",
                "a dict of tensors by path, as state_dict() gives",
                hint="paddle.load(path) reads one from a file",
            )
        own = self.state_dict(use_hook=False)
        if not use_structured_name:
            own = {part.name: part for part in own.values()}
        missing, misfits, fitting = [], [], []
        if own and own.keys().isdisjoint(state_dict):
            warnings.warn(nothing_fits(self, own, state_dict), stacklevel=2)
            return [*own], [*state_dict]
        for key, part in own.items():
            if key not in state_dict:
                missing.append(key)
                warnings.warn(f"skip loading {key}: the given state has no such key", stacklevel=2)
                continue
            value = as_tensor(state_dict[key])
            if value.spec.shape != part.spec.shape:
                missing.append(key)
                misfits.append(key)
                warnings.warn(
                    f"skip loading {key}: the layer's is {part.spec}, the given is {value.spec}",
                    stacklevel=2,
                )
                continue
            require_dtype(key, part, value)
            fitting.append((part, value))
        for part, value in fitting:
            part.set_value(value)
        return missing, misfits + [key for key in state_dict if key not in own]

    set_dict = load_dict = load_state_dict = set_state_dict

    # ---- dtype and device --------------------------------------------------------------------

    def to(self, device=None, dtype=None, blocking=None, non_blocking=None):
        """Move every parameter and buffer to a device, and the floating ones to a dtype, in place.

        >>> paddle.nn.Linear(2, 2).to(dtype="float64").weight.dtype
        paddle.float64
        """
        wanted = None if dtype is None else dt.resolve(dtype)
        for layer in self.sublayers(include_self=True):
            layer._convert(device, wanted)
        return self

    def _convert(self, device, dtype) -> None:
        """Move and cast the parameters and buffers of this layer, without its sublayers."""
        for part in [*self._parameters.values(), *self._buffers.values()]:
            if part is not None:
                convert(part, device, dtype)
        if dtype is not None:
            self._dtype = dt.public(dtype).name

    def astype(self, dtype=None):
        """Cast floating parameters and buffers, in place."""
        return self.to(dtype=dtype)

    def float(self, excluded_layers=None):
        """Cast to float32."""
        return self._cast_except("float32", excluded_layers)

    def float16(self, excluded_layers=None):
        """Cast to float16."""
        return self._cast_except("float16", excluded_layers)

    def bfloat16(self, excluded_layers=None):
        """Cast to bfloat16."""
        return self._cast_except("bfloat16", excluded_layers)

    def _cast_except(self, dtype: str, excluded_layers):
        """Cast, leaving out layers of the excluded classes (or the excluded layers themselves)."""
        listed = excluded_layers if isinstance(excluded_layers, list | tuple) else [excluded_layers]
        classes = tuple(kind for kind in listed if isinstance(kind, type))
        wanted = dt.resolve(dtype)
        for layer in self.sublayers(include_self=True):
            if not isinstance(layer, classes) and not any(layer is one for one in listed):
                layer._convert(None, wanted)
        return self

    def cpu(self):
        """Move to the CPU."""
        return self.to("cpu")

    def cuda(self, device=None):
        """Move to a GPU."""
        return self.to("gpu" if device is None else f"gpu:{device}")


def nothing_fits(layer, own: dict, given) -> str:
    """The warning that a state dict has no key of the layer's."""
    theirs = f"it has {', '.join([*given][:3])}" if given else "it is empty"
    return (
        f"nothing of the given state belongs to {type(layer).__name__}, which stays as it is: "
        f"{theirs}; the layer has {', '.join([*own][:3])}"
    )


def as_tensor(value) -> Tensor:
    """A loaded value as a tensor: NumPy arrays are converted."""
    return value if isinstance(value, Tensor) else Tensor(value)


def require_dtype(key: str, part: Tensor, value: Tensor) -> None:
    if value.spec.dtype != part.spec.dtype:
        raise type_error(
            f"loading {key}: the given value is {value.spec}",
            f"{part.spec}, as the layer has it",
            hint="cast the value with astype, or the layer with layer.to(dtype=...)",
        )


def convert(part: Tensor, device, dtype) -> None:
    """Move one tensor, and cast it when it is floating; it stays the same Python object."""
    if dtype is not None and part.spec.dtype not in dt.FLOATS:
        dtype = None
    if device is not None or (dtype is not None and dtype != part.spec.dtype):
        place = part.place if device is None else device
        grad = None if part.grad is None else Tensor(part.grad, dtype, place)
        part.array, part.record = Tensor(part.detach(), dtype, place).array, None
        part.grad = grad
