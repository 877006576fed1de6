"""Factories: a kind of observer or quanter with its arguments, one of which each layer gets."""

import inspect
import sys


class QuanterFactory:
    """Makes quanters of one kind with the same arguments."""

    kind: type | None = None
    """The class of the quanters; a subclass may override `_get_class` instead."""

    def __init__(self, *args, **kwargs):
        self._args, self._kwargs = args, kwargs

    args = property(lambda self: self._args)
    kwargs = property(lambda self: self._kwargs)

    def _get_class(self) -> type:
        return self.kind

    def _instance(self, layer):
        """The quanter for a layer."""
        return self._get_class()(layer, *self._args, **self._kwargs)

    def __repr__(self) -> str:
        arguments = [*map(str, self._args), *(f"{k}={v}" for k, v in self._kwargs.items())]
        return f"{type(self).__name__}({','.join(arguments)})"


ObserverFactory = QuanterFactory


class FactoryOfKind(QuanterFactory):
    """A factory that takes the arguments of its `kind` and shows the defaults, too."""

    def __init_subclass__(cls):
        _, *rest = inspect.signature(cls.kind).parameters.values()  # without the layer
        cls.__signature__ = inspect.Signature(rest)

    def __init__(self, *args, **kwargs):
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        super().__init__(**bound.arguments)


def quanter(class_name):
    """Decorator for a quanter's class: its factory, called `class_name`, appears in its module.

    >>> from minipaddle.quantization import BaseQuanter, QuantConfig, quanter
    >>> @quanter("Signs")
    ... class SignsLayer(BaseQuanter):
    ...     def __init__(self, layer, bits=1):
    ...         super().__init__()
    ...         self.bits = bits
    ...     def forward(self, input):
    ...         return input.sign()
    ...     scales = zero_points = quant_axis = lambda self: None
    ...     bit_length = lambda self: self.bits
    >>> Signs(bits=2)._instance(None).bit_length()
    2
    """

    def register(target):
        factory = type(class_name, (QuanterFactory,), {"kind": target, "__doc__": target.__doc__})
        factory.__module__ = target.__module__
        names = sys._getframe(1).f_globals
        names[class_name] = factory
        if "__all__" in names:
            names["__all__"].append(class_name)
        return target

    return register
