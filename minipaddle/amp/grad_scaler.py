"""`GradScaler`: the loss is scaled, so that gradients of few bits do not vanish."""

from typing import NamedTuple
from weakref import ref

from ..core.casting import casting
from ..core.prelude import (
    Recording,
    Tensor,
    current,
    not_supported,
    note_refusal,
    runtime_error,
    type_error,
    value_error,
)
from ..engine.core.dispatch import setting
from ..engine.eager.control_flow import is_static
from ..ops.row_gradient import map_values
from ..optimizer import Optimizer
from .scaling import check_and_unscale, update_scale


class ScalerStage(NamedTuple):
    """How far a step is: "unscaled" or "stepped"; whether it `found` a gradient not finite."""

    name: str
    found: Tensor
    mark: object = None  # of a trace: the call that tells Python after each run


class GradScaler:
    """Scales a loss, and leaves a step out if its gradients are infinite or NaN.

    The scale begins at `init_loss_scaling`. After `incr_every_n_steps` good steps in a row it is
    multiplied by `incr_ratio`, after `decr_every_n_nan_or_inf` bad ones by `decr_ratio`, if
    `use_dynamic_loss_scaling`. Scale, counts and verdict are states of a captured step, which is
    one program. Not enabled it changes nothing.

    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> sgd = paddle.optimizer.SGD(1.0, parameters=[w])
    >>> scaler = paddle.amp.GradScaler(init_loss_scaling=8.0)
    >>> for slope in (2.0, float("inf")):
    ...     scaler.scale((slope * w).sum()).backward()
    ...     scaler.step(sgd)
    ...     scaler.update()
    ...     sgd.clear_grad()
    >>> w.item(), scaler.get_loss_scaling().item()
    (-2.0, 4.0)
    """

    def __init__(
        self, enable=True, init_loss_scaling=65536.0, incr_ratio=2.0, decr_ratio=0.5,
        incr_every_n_steps=2000, decr_every_n_nan_or_inf=1, use_dynamic_loss_scaling=True,
    ):  # fmt: skip
        self._enable, self._dynamic = bool(enable), bool(use_dynamic_loss_scaling)
        self._init = float(init_loss_scaling)
        self.set_incr_ratio(incr_ratio)
        self.set_decr_ratio(decr_ratio)
        self.set_incr_every_n_steps(incr_every_n_steps)
        self.set_decr_every_n_nan_or_inf(decr_every_n_nan_or_inf)
        self._scale = state("loss_scaling", self._init, "float32")
        self._good, self._bad = state("good_steps", 0, "int32"), state("bad_steps", 0, "int32")
        self._found_inf = state("found_inf", False, "bool")  # since the last update
        self._outside: dict = {}  # optimizer -> its stage since then
        self._trace, self._inside = None, {}  # a trace, and the stages in it

    # ---- a step ------------------------------------------------------------------------------

    def scale(self, var):
        """`var`, a loss, times the scale; lists and tuples item by item."""
        if isinstance(var, list | tuple):
            return type(var)(map(self.scale, var))
        if not isinstance(var, Tensor):
            raise type_error(f"GradScaler.scale was given {var!r:.60}", "a tensor")
        return var * self._scale.astype(var.spec.dtype) if self._enable else var

    def unscale_(self, optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale: to clip them, say.

        Raises RuntimeError if that was done since the last `update`.
        """
        if self._enable:
            self._unscale(optimizer)
            self._mark(optimizer)

    def _unscale(self, optimizer) -> None:
        stages = self._stages()
        if optimizer in stages:
            raise order_error("unscale_()", stages[optimizer])
        with Recording(False), casting(None):
            pairs = [(p, p.grad) for p in optimizer._parameter_list]
            pairs = [(p, g) for p, g in pairs if g is not None]
            overflowed = Tensor(False)
            if pairs:

                def unscale(gradients):
                    nonlocal overflowed
                    unscaled, overflowed = check_and_unscale(gradients, self._scale)
                    return unscaled

                gradients = map_values(unscale, [g for _, g in pairs])
                for (p, _), g in zip(pairs, gradients, strict=True):
                    p.grad = g
                self._found_inf.set_value(self._found_inf | overflowed)
        stages[optimizer] = ScalerStage("unscaled", overflowed)

    def step(self, optimizer) -> None:
        """`optimizer.step()`, if all gradients are finite; it unscales them, if that is to be done.

        Raises RuntimeError if a step was made since the last `update`.
        """
        if not self._enable:
            optimizer.step()
            return
        stages = self._stages()
        if optimizer not in stages:
            self._unscale(optimizer)
        elif stages[optimizer].name == "stepped":
            raise order_error("step()", stages[optimizer])
        overflowed = self._unmark(stages.pop(optimizer)).found
        if not is_static(overflowed):
            if not overflowed.item():
                optimizer.step()
        elif getattr(type(optimizer), "step", None) is not Optimizer.step:
            raise note_refusal(
                not_supported(
                    f"GradScaler.step of {type(optimizer).__name__} in a program",
                    "an optimizer that steps parameter by parameter",
                    hint="call the scaler outside of the captured function",
                )
            )
        else:
            with setting(optimizer, unless=overflowed):
                optimizer.step()
        if self._dynamic:
            stages[optimizer] = ScalerStage("stepped", overflowed)

    def update(self) -> None:
        """Let the scale grow or fall, after the steps of all optimizers."""
        if not (self._enable and self._dynamic):
            return
        self._stages().clear()
        states = self._scale, self._good, self._bad
        how = {"incr_every": self._incr_every_n_steps, "incr_ratio": self._incr_ratio}
        how |= {"decr_every": self._decr_every_n_nan_or_inf, "decr_ratio": self._decr_ratio}
        with Recording(False), casting(None):
            scale, good, bad = states
            new = update_scale(scale, self._found_inf, good, bad, **how)
            for x, value in zip(states, new, strict=True):
                x.set_value(value)
            self._found_inf.set_value(self._found_inf & False)

    def minimize(self, optimizer, *args, **kwargs):
        """`step` and `update`, after `scaled.backward()`: ([], pairs of parameter and gradient)."""
        done, pairs = type(optimizer).minimize(Stepping(optimizer, self), *args, **kwargs)
        self.update()
        return done, pairs if current.top.by_hand else [(p, p.grad) for p, _ in pairs]

    # ---- stages ------------------------------------------------------------------------------

    def _stages(self) -> dict:
        """{optimizer: its stage}. A trace has stages of its own: each run repeats them."""
        top = current.top
        if not top.tracing:
            return self._outside
        if self._trace is None or self._trace() is not top:
            self._trace, self._inside = ref(top), {}
            if self._outside:
                raise note_refusal(
                    not_supported(
                        "a captured function that goes on with a step begun outside",
                        hint="call unscale_(), step() and update() in the captured function",
                    )
                )
        return self._inside

    def _mark(self, optimizer) -> None:
        """In a trace: let each run tell Python that it unscaled, unless `step` follows."""
        top = current.top
        if not top.tracing or top.builder is not top.root or top.by_hand:
            return
        top.host(self._unscale_in_run, (optimizer,), {})
        self._inside[optimizer] = self._inside[optimizer]._replace(mark=top.calls[-1])

    def _unmark(self, stage: ScalerStage) -> ScalerStage:
        if stage.mark is not None:
            current.top.calls.remove(stage.mark)
        return stage

    def _unscale_in_run(self, optimizer) -> None:
        self._outside[optimizer] = ScalerStage("unscaled", self._found_inf)

    # ---- its settings ------------------------------------------------------------------------

    def is_enable(self) -> bool:
        """Whether it does anything."""
        return self._enable

    def is_use_dynamic_loss_scaling(self) -> bool:
        """Whether the scale changes."""
        return self._dynamic

    def get_loss_scaling(self) -> Tensor:
        """The scale now."""
        return self._scale

    def get_init_loss_scaling(self) -> float:
        """The scale at the beginning."""
        return self._init

    def set_init_loss_scaling(self, new_init_loss_scaling) -> None:
        """Begin again, with another scale."""
        self._init = float(new_init_loss_scaling)
        self._scale.set_value(self._init)

    def get_incr_ratio(self) -> float:
        """The factor by which the scale grows."""
        return self._incr_ratio

    def set_incr_ratio(self, new_incr_ratio) -> None:
        """Raises ValueError unless it is above 1."""
        if not new_incr_ratio > 1:
            raise value_error(f"GradScaler: incr_ratio={new_incr_ratio!r}", "a number above 1")
        self._incr_ratio = float(new_incr_ratio)

    def get_decr_ratio(self) -> float:
        """The factor by which the scale falls."""
        return self._decr_ratio

    def set_decr_ratio(self, new_decr_ratio) -> None:
        """Raises ValueError unless it is between 0 and 1."""
        if not 0 < new_decr_ratio < 1:
            raise value_error(f"GradScaler: decr_ratio={new_decr_ratio!r}", "between 0 and 1")
        self._decr_ratio = float(new_decr_ratio)

    def get_incr_every_n_steps(self) -> int:
        """After how many good steps in a row the scale grows."""
        return self._incr_every_n_steps

    def set_incr_every_n_steps(self, new_incr_every_n_steps) -> None:
        """Raises ValueError unless it is a whole number from 1 on."""
        self._incr_every_n_steps = counting("incr_every_n_steps", new_incr_every_n_steps)

    def get_decr_every_n_nan_or_inf(self) -> int:
        """After how many bad steps in a row the scale falls."""
        return self._decr_every_n_nan_or_inf

    def set_decr_every_n_nan_or_inf(self, new_decr_every_n_nan_or_inf) -> None:
        """Raises ValueError unless it is a whole number from 1 on."""
        self._decr_every_n_nan_or_inf = counting(
            "decr_every_n_nan_or_inf", new_decr_every_n_nan_or_inf
        )

    # ---- saving ------------------------------------------------------------------------------

    def state_dict(self) -> dict:
        """The scale, the settings and the counts; empty if it is not enabled."""
        if not self._enable:
            return {}
        return {
            "scale": self._scale.numpy().reshape(1), "incr_ratio": self._incr_ratio,
            "decr_ratio": self._decr_ratio, "incr_every_n_steps": self._incr_every_n_steps,
            "decr_every_n_nan_or_inf": self._decr_every_n_nan_or_inf,
            "incr_count": self._good.item(), "decr_count": self._bad.item(),
            "use_dynamic_loss_scaling": self._dynamic,
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict) -> None:
        """Go on from a `state_dict`. Raises RuntimeError if it is empty."""
        if not self._enable:
            return
        if not state_dict:
            raise runtime_error(
                "GradScaler.load_state_dict was given an empty state",
                hint="that of a scaler that was enabled",
            )
        self._init = float(state_dict["scale"].reshape(-1)[0])
        self.set_incr_ratio(state_dict["incr_ratio"])
        self.set_decr_ratio(state_dict["decr_ratio"])
        self.set_incr_every_n_steps(state_dict["incr_every_n_steps"])
        self.set_decr_every_n_nan_or_inf(state_dict["decr_every_n_nan_or_inf"])
        counts = self._init, state_dict["incr_count"], state_dict["decr_count"]
        for x, value in zip((self._scale, self._good, self._bad), counts, strict=True):
            x.set_value(value)
        self._dynamic = bool(state_dict["use_dynamic_loss_scaling"])


class Stepping:
    """An optimizer whose step a scaler makes."""

    def __init__(self, optimizer, scaler: GradScaler):
        self.optimizer, self.scaler = optimizer, scaler

    def step(self) -> None:
        self.scaler.step(self.optimizer)

    def __getattr__(self, name: str):
        return getattr(self.optimizer, name)


def state(name: str, value, dtype: str) -> Tensor:
    """A number that captured steps change: a 0-D tensor."""
    tensor = Tensor(value, dtype)
    tensor.name = name
    return tensor


def counting(name: str, value) -> int:
    """A number of steps."""
    if type(value) is not int or value < 1:
        raise value_error(f"GradScaler: {name}={value!r}", "a whole number from 1 on")
    return value


def order_error(call: str, stage: ScalerStage) -> RuntimeError:
    """The error for a second `unscale_` or `step`."""
    done = {"unscaled": "unscale_()", "stepped": "step()"}[stage.name]
    return runtime_error(
        f"GradScaler.{call} after {done} since the last update()", hint="update() first"
    )
