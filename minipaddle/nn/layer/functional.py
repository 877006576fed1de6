"""`Functional`: a layer that only calls a function, with arguments fixed at construction."""

from __future__ import annotations

import inspect

from .layers import Layer

OUTSIDE = ("training",)
"""Arguments that are not fixed at construction: the layer's mode at the time of the call."""


class Functional(Layer):
    """The base of layers without parameters: `class ReLU(Functional, function=F.relu)`.

    The constructor takes what `function` takes after its first `inputs` arguments, with the same
    names, order and defaults; each is an attribute that may be changed later. `fixed` restricts
    them to the names given.
    """

    def __init_subclass__(cls, function=None, inputs: int = 1, fixed=None, **kwargs):
        super().__init_subclass__(**kwargs)
        if function is None:
            return
        parameters = list(inspect.signature(function).parameters.values())[inputs:]
        names = {p.name for p in parameters} if fixed is None else fixed
        kept = [p for p in parameters if p.name in names and p.name not in OUTSIDE]
        cls.function = staticmethod(function)
        cls.arguments = tuple(p.name for p in kept if p.name != "name")
        cls.outside = tuple(p.name for p in parameters if p.name in OUTSIDE)
        cls.constructor = inspect.Signature(kept)
        if "__init__" not in cls.__dict__:
            cls.__signature__ = cls.constructor

    def __init__(self, *args, **kwargs):
        super().__init__()
        try:
            bound = self.constructor.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}{self.constructor}: {error}") from None
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            setattr(self, name, value)

    def forward(self, *inputs, **named):
        own = self.__dict__
        for name in self.arguments:
            named[name] = own[name]
        for name in self.outside:
            named[name] = getattr(self, name)
        return self.function(*inputs, **named)

    def extra_repr(self) -> str:
        named = [(k, self.__dict__[k]) for k in self.arguments]
        name = self.__dict__.get("name")
        return ", ".join(f"{k}={v}" for k, v in [*named, *([("name", name)] if name else [])])
