"""The base of optimizers: groups of parameters, the order of a step, and saved states.

An optimizer is its `rule`: a formula from a parameter, its gradient, the learning rate and the
states it keeps to their new values. Every write happens in one place, `Optimizer.advance`, so a
captured training step sees each state change exactly once.
"""

import warnings
from functools import wraps
from inspect import signature
from math import inf
from typing import ClassVar
from weakref import ref

from ..core.casting import casting
from ..core.prelude import (
    Recording,
    Tensor,
    current,
    dt,
    runtime_error,
    type_error,
    value_error,
    where,
)
from ..engine.eager.tensor import wrap
from ..engine.sharding.array import sharded
from ..ops.row_gradient import AllRows, choose_rows
from .groups import make_group, make_groups, make_regularizer
from .lr import LRScheduler
from .master import upcast
from .rate import Rate, traces
from .update import update_in_c


class ParameterState:
    """The state of an optimizer for one parameter.

    `states` are tensors by name, `dtype` is what the rule computes in, `half` says that the
    parameter is stored in less, `master` is its copy in `dtype` (or None), and `options` are the
    hyperparameters the rule reads.
    """

    __slots__ = ("dtype", "half", "master", "options", "states")

    def __init__(self, options, states: dict, dtype, half: bool, master):
        self.options, self.states, self.master = options, states, master
        self.dtype, self.half = dtype, half


class Optimizer:
    """The base of every optimizer: define `rule`, and `states` if it keeps any.

    `parameters` is a list of parameters, or of dicts: {"params": [...], "learning_rate": a factor
    on the rate, "weight_decay": ..., "grad_clip": ..., and any hyperparameter of the optimizer}.
    `weight_decay` is a number (L2) or a `paddle.regularizer`; a parameter's own regularizer comes
    first. Gradients are clipped, then decayed, then given to the rule.

    >>> class SignDescent(paddle.optimizer.Optimizer):
    ...     @staticmethod
    ...     def rule(o, p, g, lr):
    ...         return (p - lr * g.sign(),)
    >>> w = paddle.create_parameter([1], "float32", is_bias=True)
    >>> optimizer = SignDescent(0.5, parameters=[w])
    >>> (3 * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [-0.5]
    """

    options: ClassVar[dict] = {}  # hyperparameters; a group may give its own
    multi_precision = False  # whether a parameter in half precision has a copy in single
    unless: Tensor | None = None  # a condition (0-D) under which a step changes nothing

    def __init__(
        self, learning_rate, parameters=None, weight_decay=None, grad_clip=None, name=None
    ):
        self._use(learning_rate)
        self._name = name
        self._states: dict[Tensor, ParameterState] = {}
        self._trace = ref(current.top) if traces() else None
        shared = {"learning_rate": 1.0, "weight_decay": weight_decay, "grad_clip": grad_clip}
        defaults = self.options | shared
        self._param_groups = [make_group(g, defaults) for g in make_groups(parameters)]
        for each in self._param_groups:
            self._set_decay(each)
        self._parameter_list = [p for g in self._param_groups for p in g.params]
        if not self._parameter_list and parameters is not None:
            warnings.warn(
                f"{type(self).__name__} was given no parameters: a step changes nothing (a "
                "generator that was read before is empty); give model.parameters()",
                stacklevel=3,
            )
        if len(set(self._parameter_list)) < len(self._parameter_list):
            raise ValueError("a parameter was given to the optimizer twice")
        self._keys = {p: p.name or f"parameter_{k}" for k, p in enumerate(self._parameter_list)}

    def _use(self, learning_rate) -> None:
        if isinstance(learning_rate, LRScheduler):
            self._rate = learning_rate.rate
        elif isinstance(learning_rate, int | float):
            self._rate = Rate(learning_rate)
        else:
            raise type_error(
                f"the learning rate is {learning_rate!r:.40}, of type "
                f"{type(learning_rate).__name__}",
                "a float or a schedule of paddle.optimizer.lr",
                hint="the learning rate comes first: Adam(0.1, parameters=model.parameters())",
            )
        self._learning_rate = learning_rate

    def adopt(self, parameters) -> None:
        """Add parameters to an optimizer that was created without any."""
        new = [p for p in parameters if p not in self._keys]
        self._param_groups[0].params += new
        self._parameter_list += new
        self._keys |= {p: p.name for p in new}

    # ---- what an optimizer defines -----------------------------------------------------------

    @staticmethod
    def states(o, shape: tuple) -> dict:
        """{name: (shape, first value)} of the states for a parameter of `shape`."""
        return {}

    @staticmethod
    def rule(o, p, g, lr, *states) -> tuple:
        """The new parameter, then the new states in the order of `states`."""
        raise NotImplementedError("an optimizer defines rule(o, p, g, lr, *states)")

    def keeps_rows(self, o) -> bool:
        """Whether a step leaves the rows without gradient as they are."""
        return False

    def _set_decay(self, group) -> None:
        """Convert the given `weight_decay` to the form that a step uses."""
        group.weight_decay = make_regularizer(group.weight_decay)

    def options_for(self, p, group):
        """The options the rule sees for the parameter `p`."""
        return group

    # ---- a step ------------------------------------------------------------------------------

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        with Recording(False), casting(None):
            for group in self._param_groups:
                pairs = self._gradients(group)
                if not update_in_c(self, group, pairs):
                    for p, g in pairs:
                        self.advance(group, p, g)

    def _clip(self, group) -> list:
        """Pairs (parameter, gradient) of the parameters with a gradient, clipped if wanted."""
        pairs = []
        for p in group.params:
            g = self.gradient_of(p)
            if g is not None and not p.stop_gradient:
                pairs.append((p, g))
        return pairs if group.grad_clip is None else group.grad_clip(pairs)

    def _gradients(self, group) -> list:
        """Pairs (parameter, gradient for the rule)."""
        pairs = self._clip(group)
        for k, (p, g) in enumerate(pairs):
            if regularizer := getattr(p, "regularizer", None) or group.weight_decay:
                pairs[k] = p, g + regularizer.gradient(self.value_of(p))
        return pairs

    def gradient_of(self, p) -> Tensor | None:
        """The gradient of a parameter as a step takes it."""
        return p.grad

    def value_of(self, p) -> Tensor:
        """A parameter as a step takes it."""
        return p

    def place_state(self, p, name: str, state: Tensor) -> Tensor:
        """A new state with its placements: sharded like its parameter."""
        array = current.top.fetch_array(p)
        state.array = array.beside(state.array) if sharded(array) else state.array
        return state

    def master_of(self, p, dtype) -> Tensor:
        """The copy of a parameter in more precision, for which a rule computes."""
        return wrap(current.top.fetch_array(p).astype(dtype))

    def advance(self, group, p, g) -> None:
        """One parameter's step: the only place where parameters and states are written."""
        kept = self._states.get(p) or self._create_state(group, p)
        rows = AllRows(g) if type(g) is Tensor else choose_rows(self, kept.options, g)
        states, master = kept.states.values(), kept.master
        value, g = rows.read(self.value_of(p)), rows.gradient
        if kept.half:
            value, g = upcast(value, None if master is None else rows.read(master), g, kept.dtype)
        lr, scale = self._rate.tensor(kept.dtype), group.learning_rate
        if p.is_parameter:  # its own factor, from its `ParamAttr`
            scale *= p.optimize_attr["learning_rate"]
        lr = lr if scale == 1.0 else lr * scale
        old = [value, *map(rows.read, states)]
        g = g if self.unless is None else where(self.unless, 0.0, g)  # rule and choice: one walk
        new = self.rule(kept.options, value, g, lr, *old[1:])
        if self.unless is not None:
            new = [where(self.unless, *pair) for pair in zip(old, new, strict=True)]
        rows.write(p, new[0])
        if master is not None:
            rows.write(master, new[0])
        for state, new_state in zip(states, new[1:]):
            rows.write(state, new_state)

    def _create_state(self, group, p) -> ParameterState:
        """States are made outside any program: they are tensors from the start. If the traced
        function made the optimizer, and nothing keeps it, each run begins with these values.
        """
        half = p.spec.dtype in dt.HALVES
        dtype = dt.float32.numpy if half else p.spec.dtype
        options = self.options_for(p, group)
        m = p.place.module
        states = {
            name: Tensor(m.full(shape, value), dtype if type(value) is float else "int64", p.place)
            for name, (shape, value) in self.states(options, p.spec.shape).items()
        }
        for name, state in states.items():
            states[name] = self.place_state(p, name, state)
            states[name].name = self._key(p, name)  # in a captured step they are known by it
        master = self.master_of(p, dtype) if half and self.multi_precision else None
        if self._trace is not None and self._trace() is current.top:
            current.top.note_first_values(states.values(), master)
        kept = self._states[p] = ParameterState(options, states, dtype, half, master)
        return kept

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """`step()`, after `loss.backward()` was called; returns ([], [(parameter, gradient)])."""
        if current.top.by_hand:
            return current.top.minimize(self, loss, parameters, no_grad_set)
        if startup_program is not None or parameters is not None or no_grad_set is not None:
            raise NotImplementedError(
                "minimize takes only the loss here: give the parameters to the optimizer"
            )
        pairs = [(p, p.grad) for p in self._parameter_list if p.grad is not None]
        self.step()
        return [], pairs

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Set every gradient to zeros, or forget it."""
        for p in self._parameter_list:
            p.clear_gradient(set_to_zero)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """PyTorch's spelling of `clear_grad(not set_to_none)`."""
        self.clear_grad(not set_to_none)

    clear_gradients = clear_grad

    # ---- the learning rate -------------------------------------------------------------------

    def get_lr(self) -> float:
        """The learning rate now."""
        return self._rate.value

    def set_lr(self, value: float) -> None:
        """Change the learning rate; raises RuntimeError if a schedule decides it."""
        if isinstance(self._learning_rate, LRScheduler):
            raise runtime_error(
                "set_lr on an optimizer whose learning rate is a schedule",
                hint="set_lr_scheduler(another schedule)",
            )
        if not isinstance(value, int | float):
            raise TypeError(f"set_lr takes a float, not {value!r}")
        if self._rate.waits():
            return current.top.host(Optimizer.set_lr, (self, value), {})
        self._learning_rate = self._rate.value = float(value)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Let `scheduler` decide the learning rate from now on."""
        if not isinstance(scheduler, LRScheduler):
            raise TypeError(f"set_lr_scheduler takes a schedule, not {scheduler!r}")
        if self._rate.waits():
            return current.top.host(Optimizer.set_lr_scheduler, (self, scheduler), {})
        self._use(scheduler)

    # ---- saving ------------------------------------------------------------------------------

    def _key(self, p, state: str) -> str:
        """Paddle's name of a state: parameter, optimizer's name if any, state, number."""
        return "_".join([self._keys[p], *([self._name] if self._name else []), state, "0"])

    def state_dict(self) -> dict:
        """States by name (as Paddle names them), master weights, and the schedule's numbers.

        Empty for an optimizer without states; before the first step there are none yet.
        Powers of beta are 0-D here, [1] in Paddle; `set_state_dict` takes both.
        """
        states = {
            self._key(p, name): state
            for name in dict.fromkeys(n for kept in self._states.values() for n in kept.states)
            for p, kept in self._states.items()
            for state in [kept.states[name]]
        }
        masters = {self._keys[p]: k.master for p, k in self._states.items() if k.master is not None}
        if masters:
            states["master_weights"] = masters
        if isinstance(self._learning_rate, LRScheduler):
            states["LR_Scheduler"] = self._learning_rate.state_dict()
        return states

    def set_state_dict(self, state_dict: dict) -> None:
        """Load the result of `state_dict`.

        Raises ValueError when nothing in it belongs to this optimizer's parameters, when a
        parameter's states are incomplete, or when a shape does not fit.
        """
        schedule = state_dict.get("LR_Scheduler")
        if schedule is not None and isinstance(self._learning_rate, LRScheduler):
            self._learning_rate.set_state_dict(schedule)
        names = state_dict.keys() - {"LR_Scheduler", "master_weights"}
        taken = set()
        for group in self._param_groups:
            for p in group.params:
                taken |= self._take_over(group, p, state_dict)
        if names and not taken:
            raise value_error(
                f"nothing in this state dict belongs to {type(self).__name__}'s parameters: "
                f"it has {min(names)!r}, they are called {', '.join(self._keys.values()):.80}",
                hint="load it into the same kind of optimizer, over a model built in the same "
                "order in a fresh process (layers are numbered as they are made)",
            )

    set_dict = load_state_dict = set_state_dict

    def _take_over(self, group, p, state_dict: dict) -> set:
        """Load the states of one parameter; their names, none if there are none."""
        names = self.states(self.options_for(p, group), p.spec.shape)
        keys = {name: self._key(p, name) for name in names}
        common = state_dict.keys() & set(keys.values())
        master = state_dict.get("master_weights", {}).get(self._keys[p])
        if not common and master is None:
            return common
        if len(common) < len(keys):
            missing = sorted(set(keys.values()) - common)
            raise ValueError(f"the state dict lacks {', '.join(missing)}")
        kept = self._states.get(p) or self._create_state(group, p)
        for name, key in keys.items():
            load(kept.states[name], state_dict[key], key)
        if kept.master is not None and master is not None:
            load(kept.master, master, f"{self._keys[p]} (master weight)")
        return common


def load(state: Tensor, value, key: str) -> None:
    """Write a loaded value over a state."""
    value = Tensor(value, state.dtype, state.place)
    if value.size != state.size:
        raise ValueError(f"{key} has shape {value.shape} in the state dict, {state.shape} here")
    state.set_value(value if value.shape == state.shape else value.reshape(state.shape))


NOT_OPTIONS = {"multi_precision", "use_lowprecision_moment", "use_multi_tensor"}
"""Arguments that change no formula."""
LIMITS = {"beta1": 1, "beta2": 1, "epsilon": inf, "momentum_decay": inf, "rho": inf}
"""Options that are at least 0 and less than this."""


def constructor(init):
    """Decorator of an optimizer's `__init__`: its signature is Paddle's, its body checks values.

    The arguments that `Optimizer.__init__` has go there; the others are the options.
    """
    takes = signature(init)
    shared = takes.parameters.keys() & signature(Optimizer.__init__).parameters.keys()
    own = takes.parameters.keys() - shared - NOT_OPTIONS

    @wraps(init)
    def call(self, *args, **kwargs):
        bound = takes.bind(self, *args, **kwargs)
        bound.apply_defaults()
        arguments = bound.arguments
        self.options = {name: arguments[name] for name in takes.parameters if name in own}
        for name, value in self.options.items():
            if value is None and takes.parameters[name].default is not None:
                raise ValueError(f"{type(self).__name__} needs {name}, and None was given")
            if name in LIMITS:
                self.options[name] = check_limits(name, float(value))
        self.multi_precision = arguments.get("multi_precision", False)
        init(self, *args, **kwargs)
        Optimizer.__init__(**{name: arguments[name] for name in shared})

    return call


def check_limits(name: str, value: float) -> float:
    """The value of an option; raises ValueError outside of its limits."""
    if value < 0:
        raise ValueError(f"{name} must not be negative: {value}")
    if value >= LIMITS[name]:
        raise ValueError(f"{name} must be less than {LIMITS[name]}: {value}")
    return value
