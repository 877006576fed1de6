"""Derived layers: `Functional` from a function, `Dimensional` from a class of images."""

import ast
import inspect
import re

from ..functional.windows import LAYOUTS, for_axes
from .layers import Layer

OUTSIDE = ("training",)
"""Arguments that are not fixed at construction: the layer's mode at the time of the call."""


class Functional(Layer):
    """The base of layers without parameters: `class ReLU(Functional, function=F.relu): ...`.

    The constructor takes what `function` takes after its first `inputs` arguments, with the same
    names, order and defaults; each is an attribute that may be changed later. `fixed` restricts
    them to the names given, in that order. A layer without a docstring has that of its function,
    with examples that make the layer and call it.
    """

    _shown: tuple = ()
    """The arguments that `repr` shows; all if empty."""
    quiet: tuple = ("name",)
    """Those that it shows only where they are not the default."""

    def __init_subclass__(cls, function=None, inputs: int = 1, fixed=None, **kwargs):
        super().__init_subclass__(**kwargs)
        if function is None:
            return
        parameters = dict(list(inspect.signature(function).parameters.items())[inputs:])
        names = [p for p in parameters if p not in OUTSIDE] if fixed is None else fixed
        cls.function = staticmethod(function)
        cls.arguments = tuple(p for p in (*names, *OUTSIDE) if p in parameters and p != "name")
        cls._shown = cls._shown or tuple(names)
        cls.__signature__ = inspect.Signature([parameters[p] for p in names])
        cls.__doc__ = cls.__doc__ or describe(cls.__name__, function, inputs)

    def __init__(self, *args, **kwargs):
        super().__init__()
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}{self.__signature__}: {error}") from None
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            setattr(self, name, value)

    def forward(self, *inputs, **named):
        for name in self.arguments:
            named[name] = getattr(self, name)
        return self.function(*inputs, **named)

    def extra_repr(self) -> str:
        defaults = self.__signature__.parameters
        values = [(k, getattr(self, k)) for k in self._shown]
        shown = [(k, v) for k, v in values if k not in self.quiet or v != defaults[k].default]
        return ", ".join(f"{k}={v}" for k, v in shown)


def describe(layer: str, function, inputs: int) -> str:
    """The docstring of `function`, rewritten for the layer that calls it."""
    called, path = rf"paddle\.(nn\.functional\.)?{function.__name__}\b", f"paddle.nn.{layer}"
    text, mark, examples = inspect.getdoc(function).partition(">>>")
    text = re.sub(called, path, text)
    lines = (mark + examples).splitlines(keepends=True)
    return text + "".join(rewrite_line(line, called, path, inputs) for line in lines)


def rewrite_line(line: str, called: str, path: str, inputs: int) -> str:
    """A line of an example with `Layer(p)(x)` in place of `function(x, p)`."""
    if not re.search(rf"{called}\(", line):
        return line
    source = line.removeprefix(">>> ")
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    call = next(node for node in calls if re.fullmatch(called, ast.unparse(node.func)))
    arguments = [ast.get_source_segment(source, part) for part in (*call.args, *call.keywords)]
    fixed = ", ".join(part for part in arguments[inputs:] if part != "training=False")
    mode = ".eval()" if "training=False" in arguments else ""
    rewritten = f"{path}({fixed}){mode}({', '.join(arguments[:inputs])})"
    return line.replace(ast.get_source_segment(source, call), rewritten)


class Dimensional(Layer):
    """The base of layers for one, two or three image axes: `class Conv3D(Convolution, n=3): ...`.

    Where `data_format` is None it is the one with channels first, which the signature shows. A
    layer without a docstring has that of its base, which is about images.
    """

    n = 0
    """Image axes."""

    def __init_subclass__(cls, n: int = 0, **kwargs):
        super().__init_subclass__(**kwargs)
        if not n:
            return
        cls.n = n
        own = inspect.signature(cls)
        layout = own.parameters["data_format"].replace(default=LAYOUTS[n][0])
        parameters = {**own.parameters, "data_format": layout}
        cls.__signature__ = own.replace(parameters=list(parameters.values()))
        cls.__doc__ = cls.__doc__ or for_axes(cls.__base__.__doc__, n)

    def layout(self, data_format: str | None) -> str:
        """The data format asked for, or the one with channels first."""
        return LAYOUTS[self.n][0] if data_format is None else data_format
