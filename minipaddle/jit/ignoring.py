"""Functions and modules that users exclude from conversion."""

import inspect
from textwrap import dedent
from types import ModuleType

from ..engine.core.dispatch import describe
from ..engine.core.errors import type_error
from ..engine.jit import ignore
from ..engine.jit.to_static import StaticFunction


class Unconverted(StaticFunction):
    """A function that `not_to_static` excludes, after `to_static`: calls run it as it is."""

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    @property
    def code(self) -> str:
        """The source, as it is written. Source: Paddle `StaticFunction.code`."""
        return dedent(inspect.getsource(self.function))


def not_to_static(func=None):
    """Decorator: call a function as it is, its control flow staying Python's.

    >>> @paddle.jit.not_to_static
    ... def log(x):
    ...     return x
    """
    if func is None:
        return not_to_static
    setattr(getattr(func, "__func__", func), ignore.MARK, True)  # a method has no attributes
    return func


def ignore_module(modules: list) -> None:
    """Call the functions of these modules as they are.

    >>> import json
    >>> paddle.jit.ignore_module([json])
    """
    modules = modules if isinstance(modules, list | tuple) else [modules]
    for module in modules:
        if not isinstance(module, ModuleType):
            raise type_error(f"ignore_module was given {describe(module)}", expected="modules")
        ignore.ignored.add(module.__name__)
