"""The base of learning-rate schedules: the count of steps, and the current rate."""

from functools import wraps
from inspect import Parameter, Signature, signature

from ...eager.hosting import run_on_host
from ...engine.core.dispatch import note_refusal
from ...engine.core.errors import not_supported, runtime_error
from ..rate import Rate


def positive_int(name: str, value) -> int:
    """`value`, if it is a whole number above zero."""
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {value!r}")
    if value <= 0:
        raise ValueError(f"{name} must be positive, not {value}")
    return value


def one_of(name: str, value, allowed):
    """`value`, if it is among `allowed`."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
    return value


def host_step(method):
    """`step` runs in Python: in a captured training step it runs after the program,
    unless every run creates the schedule.
    """
    later = run_on_host(method)

    @wraps(method)
    def step(self, *args, **kwargs):
        return (later if self.rate.waits() else method)(self, *args, **kwargs)

    return step


def guard_reading(method):
    """A schedule's `get_lr` gives a number: a program, which runs later, would keep one value."""

    @wraps(method)
    def get_lr(self):
        if self.rate.is_outside():
            raise note_refusal(
                not_supported(
                    f"{type(self).__name__}.get_lr() in a program: it gives the number of now, "
                    "and the schedule goes on between the runs",
                    hint="scheduler() is the rate at each run",
                )
            )
        return method(self)

    return get_lr


WRAPPERS = {"step": host_step, "get_lr": guard_reading}


class LRScheduler:
    """The base of every schedule: define `get_lr()` from `self.base_lr` and `self.last_epoch`.

    Call `step()` once an epoch (or a batch), after `optimizer.step()`.

    >>> class Halving(paddle.optimizer.lr.LRScheduler):
    ...     def get_lr(self):
    ...         return self.base_lr / 2**self.last_epoch
    >>> rate = Halving(0.8)
    >>> rate.step()
    >>> rate()
    0.4
    """

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False):
        if not isinstance(learning_rate, int | float):
            raise TypeError(f"learning_rate must be a float, not {learning_rate!r}")
        if learning_rate < 0:
            raise ValueError(f"learning_rate must not be negative: {learning_rate}")
        self.base_lr = float(learning_rate)
        self.rate = Rate(learning_rate)
        self.last_epoch = last_epoch
        self.verbose = verbose
        self.step()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        for name, wrapper in WRAPPERS.items():
            if name in vars(cls):
                setattr(cls, name, wrapper(vars(cls)[name]))

    @property
    def last_lr(self) -> float:
        """The rate now."""
        return self.rate.value

    @last_lr.setter
    def last_lr(self, value: float) -> None:
        self.rate.value = value

    def __call__(self) -> float:
        return self.last_lr

    @host_step
    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to the given one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.last_lr = self.get_lr() if epoch is None else self.lr_at(epoch)
        self.print_rate()

    def print_rate(self) -> None:
        """Print the rate if `verbose`."""
        if self.verbose:
            name = type(self).__name__
            print(f"Epoch {self.last_epoch}: {name} set learning rate to {self.last_lr}.")

    def get_lr(self) -> float:
        """The rate at `self.last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def lr_at(self, epoch) -> float:
        """The rate after a jump to `epoch`; differs where `get_lr` goes on from `last_lr`."""
        return self.get_lr()

    def state_keys(self) -> None:
        """Set `self.keys`: the attributes that `state_dict` keeps."""
        self.keys = ["last_epoch", "last_lr"]

    def state_dict(self) -> dict:
        """The state that a later run needs to continue, as plain numbers."""
        self.state_keys()
        return {key: getattr(self, key) for key in self.keys}

    def set_state_dict(self, state_dict: dict) -> None:
        """Load the result of `state_dict`; raises RuntimeError if an entry is missing."""
        self.state_keys()
        for key in self.keys:
            if key not in state_dict:
                raise runtime_error(
                    f"the state of {type(self).__name__} lacks {key!r}",
                    ", ".join(self.keys),
                    hint="scheduler.set_state_dict(other_scheduler.state_dict())",
                )
            setattr(self, key, state_dict[key])

    set_dict = set_state_dict


SELF = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
LAST = [p.replace(annotation=p.empty) for p in signature(LRScheduler).parameters.values()][1:]
"""The arguments that end the signature of every schedule: `last_epoch` and `verbose`."""


def schedule(formula) -> type[LRScheduler]:
    """The schedule whose rate at epoch `t` is a formula of the arguments of its constructor.

    The formula takes `t` by keyword. The arguments are attributes of the schedule. The first call
    happens in the constructor, so the formula also refuses values that make no sense. The base
    rate is `learning_rate`; without such an argument it is the rate at epoch 0.
    """
    arguments = [p for p in signature(formula).parameters.values() if p.name != "t"]
    takes = Signature([SELF, *arguments, *LAST])

    def __init__(self, *args, **kwargs):
        bound = takes.bind(self, *args, **kwargs)
        bound.apply_defaults()
        options = {p.name: bound.arguments[p.name] for p in arguments}
        vars(self).update(options)
        first = options["learning_rate"] if "learning_rate" in options else formula(**options, t=0)
        LRScheduler.__init__(self, first, *(bound.arguments[p.name] for p in LAST))

    def get_lr(self):
        options = {p.name: getattr(self, p.name) for p in arguments}
        if "learning_rate" in options:
            options["learning_rate"] = self.base_lr
        return formula(**options, t=self.last_epoch)

    __init__.__signature__ = takes
    body = {"__init__": __init__, "get_lr": get_lr, "__module__": formula.__module__}
    return type(formula.__name__, (LRScheduler,), body | {"__doc__": formula.__doc__})
