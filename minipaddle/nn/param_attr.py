"""The attributes of a parameter, and how parameters are created."""

from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass

from ..core.prelude import Parameter, Spec, dt, per_rank, type_error
from ..engine.core.dispatch import InterpreterStack, current, interpreter
from .initializer import Constant, Initializer, XavierUniform, defaults, values_of
from .names import unique


@dataclass(eq=False)
class ParamAttr:
    """Name, initializer, learning-rate factor, regularizer, trainability of a parameter.

    `learning_rate` multiplies the optimizer's; `need_clip=False` exempts the parameter from
    gradient clipping.

    >>> frozen = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(2.0), trainable=False)
    >>> layer = paddle.nn.Linear(1, 1, weight_attr=frozen)
    >>> layer.weight.item(), layer.weight.stop_gradient
    (2.0, True)
    """

    name: str | None = None
    initializer: Initializer | None = None
    learning_rate: float = 1.0
    regularizer: object = None
    trainable: bool = True
    do_model_average: bool = True
    need_clip: bool = True

    def __post_init__(self):
        if self.initializer is not None and not isinstance(self.initializer, Initializer):
            raise type_error(
                f"ParamAttr was given initializer={self.initializer!r}",
                "an object of paddle.nn.initializer, such as Constant(0.0)",
            )


def as_attr(attr) -> ParamAttr | None:
    """The `ParamAttr` for an argument such as `weight_attr=`; None for False, which means no
    parameter.
    """
    if attr is None or attr is True:
        return ParamAttr()
    if attr is False:
        return None
    if isinstance(attr, ParamAttr):
        return attr
    if isinstance(attr, str):
        return ParamAttr(name=attr)
    if isinstance(attr, Initializer):
        return ParamAttr(initializer=attr)
    if hasattr(attr, "coeff"):  # a regularizer alone, as Paddle allows
        return ParamAttr(regularizer=attr)
    raise type_error(
        f"a parameter was described by {attr!r}",
        "paddle.ParamAttr, an initializer, a name, or False for no parameter",
    )


class LazyParameter(Parameter):
    """A parameter whose values are drawn when they are first read; `initialize()` draws them now.

    Then it is a `Parameter` like any other.
    """

    def __init__(self, initializer: Initializer, shape: tuple, dtype, name: str, trainable: bool):
        super().__init__([], dtype, name, trainable)
        self.promised = initializer, shape, self.__dict__.pop("array").dtype

    @property
    def spec(self) -> Spec:
        return super().spec if "array" in self.__dict__ else Spec(*self.promised[1:])

    shape = property(lambda self: list(self.spec.shape))
    dtype = property(lambda self: dt.public(self.spec.dtype))
    size = property(lambda self: self.spec.size)

    def __getattr__(self, name: str):
        if name != "array":
            return super().__getattr__(name)
        with interpreter(InterpreterStack.bottom()):
            self.array = values_of(*self.promised).array
        self.__class__ = Parameter
        return self.array

    def __deepcopy__(self, memo):
        self.initialize()
        return deepcopy(self, memo)

    def initialize(self) -> None:
        """Draw the values now."""
        self.array  # noqa: B018


class LazyGuard:
    """Layers made inside draw the values of their parameters when these are first needed.

    >>> with paddle.LazyGuard():
    ...     layer = paddle.nn.Linear(2, 3)
    >>> layer.weight.shape
    [2, 3]
    >>> layer.weight.initialize()
    """

    depth = per_rank(0)

    def __enter__(self):
        self.depth.now += 1

    def __exit__(self, *exc):
        self.depth.now -= 1


def make_parameter(shape, dtype, attr, is_bias: bool, default_initializer, prefix: str):
    """The parameter that `attr` describes, or None if `attr` is False."""
    attr = as_attr(attr)
    if attr is None:
        return None
    initializer = (
        attr.initializer
        or defaults["bias" if is_bias else "weight"]
        or default_initializer
        or (Constant(0.0) if is_bias else XavierUniform())
    )
    name = attr.name or unique(f"{prefix}.{'b' if is_bias else 'w'}")
    dtype = dt.default() if dtype is None else dt.resolve(dtype)
    shape = tuple(int(n) for n in shape)
    top = current.top
    with top.outside() if top.by_hand else nullcontext():
        if LazyGuard.depth.now and not current.top.tracing:
            parameter = LazyParameter(initializer, shape, dtype, name, attr.trainable)
        else:
            values = values_of(initializer, shape, dtype)
            parameter = Parameter(values, dtype, name, attr.trainable)
    if top.by_hand:
        top.note_parameter(parameter, lambda: values_of(initializer, shape, dtype))
    parameter.optimize_attr = {"learning_rate": attr.learning_rate}
    parameter.regularizer = attr.regularizer
    parameter.need_clip = attr.need_clip
    return parameter


def create_parameter(
    shape, dtype, name=None, attr=None, is_bias=False, default_initializer=None
) -> Parameter:
    """A parameter outside any layer.

    >>> paddle.create_parameter([2], "float32", is_bias=True).tolist()
    [0.0, 0.0]
    """
    attr = ParamAttr(name=name) if attr is None else attr
    return make_parameter(shape, dtype, attr, is_bias, default_initializer, "create_parameter")
