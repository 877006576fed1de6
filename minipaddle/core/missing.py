"""Names that are not where a program looks for them: where they are, why there is none, and which
is nearest.
"""

from __future__ import annotations

import difflib
import sys
from functools import wraps
from importlib.abc import Loader
from importlib.machinery import ModuleSpec

from . import elsewhere
from .left_out import reason

INVENTED = {
    "paddle.jit.transform": "paddle.quantization.QAT trains with rounded weights",
    "paddle.quantization.QuantConfig(activate_quantizer=)": "the parameter is activation=",
    "paddle.quantization.QuantConfig(activation_quantizer=)": "the parameter is activation=",
    "paddle.quantization.QuantConfig(weight_quantizer=)": "the parameter is weight=",
    "paddle.quantization.quant_aware": "paddle.quantization.QAT does it",
    "paddle.quantization.quant_post_static": "paddle.quantization.PTQ does it",
    "paddle.slim.AdaptorBase": "paddle.slim.Distill takes pairs of layers as a list of dicts",
    "paddle.slim.dist.AdaptorBase": "paddle.slim.Distill takes pairs of layers as a list of dicts",
    "paddle.slim.dist.DML": "it is paddle.slim.DML",
    "paddle.slim.dist.Distill": "it is paddle.slim.Distill",
    "paddle.slim.dist.merge": "call the teacher beside the student: no programs are merged",
}
"""Names, and parameters, that texts about Paddle mention and Paddle never had -> what there is."""


class Refusals:
    """Gives `import paddle.fft` and `from paddle import fft` the message of `paddle.fft`; and
    `import paddle.jit.transform` that of a name which Paddle never had.

    Python asks the last entry of `sys.meta_path` when no other finds the module.
    """

    @classmethod
    def find_spec(cls, fullname: str, path=None, target=None) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        name = f"paddle.{rest}"
        if package == elsewhere.PACKAGE and name in INVENTED:
            raise ImportError(never_had(name), name=fullname)
        why = reason(name) if package == elsewhere.PACKAGE and rest else None
        if why is not None:
            raise ImportError(f"{name}: {why}", name=fullname)
        return None


class RenamedModules(Loader):
    """Makes modules of Paddle, as `nn.initializer.kaiming`, whose names MiniPaddle has elsewhere.

    Python asks it after those who find files, so a file of that name comes first.
    """

    @classmethod
    def find_spec(cls, fullname: str, path=None, target=None) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        known = package == elsewhere.PACKAGE and f"paddle.{rest}" in elsewhere.MODULES
        return ModuleSpec(fullname, cls(), is_package=True) if known else None

    def exec_module(self, module) -> None:
        """Every name is found when it is asked for."""
        name = f"paddle.{module.__name__.partition('.')[2]}"
        module.__doc__ = f"Names of `{name}` that MiniPaddle has elsewhere."
        module.__getattr__ = namespace(name, vars(module))


def never_had(name: str) -> str:
    """The message for an invented name."""
    return f"Paddle never had {name}; {INVENTED[name]}"


def refuse_invented(name: str):
    """Decorator: keyword arguments that are invented raise TypeError with the real ones.

    >>> from minipaddle.core.missing import refuse_invented
    >>> config = refuse_invented("paddle.quantization.QuantConfig")(lambda activation: activation)
    >>> config(weight_quantizer=3)
    Traceback (most recent call last):
    TypeError: Paddle never had paddle.quantization.QuantConfig(weight_quantizer=); the parameter is weight=
    """  # noqa: E501

    def decorate(function):
        @wraps(function)
        def call(*args, **kwargs):
            for path in (f"{name}({key}=)" for key in kwargs):
                if path in INVENTED:
                    raise TypeError(never_had(path))
            return function(*args, **kwargs)

        return call

    return decorate


class LazyMessage:
    """The text of an error about a missing name, formatted when somebody reads it."""

    def __init__(self, *args):
        self.args = args

    def __str__(self) -> str:
        return format_missing(*self.args)

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self):
        return str, (str(self),)


def missing(name: str, space: str, existing) -> AttributeError:
    """The error for `space.name`; `existing()` gives the names that exist.

    `hasattr`, and `getattr` with a default, raise this error only to drop it. The search for the
    nearest name reads every name there is, so it waits until somebody reads the message.

    >>> from minipaddle.core.missing import missing
    >>> print(missing("zero", "paddle", lambda: ["ones", "zeros"]))
    MiniPaddle has no paddle.zero; the nearest name is paddle.zeros
    """
    return AttributeError(LazyMessage(name, space, existing))


def format_missing(name: str, space: str, existing) -> str:
    """The message for `space.name`: why it is left out, or which name is nearest."""
    if name.startswith("_"):
        return f"{space} has no attribute {name!r}"
    why = reason(f"{space}.{name}")
    if why is not None:
        return f"{space}.{name}: {why}"
    if f"{space}.{name}" in INVENTED:
        return never_had(f"{space}.{name}")
    known = {other.lower(): other for other in existing() if not other.startswith("_")}
    near = difflib.get_close_matches(name.lower(), known, 1)
    hint = f"; the nearest name is {space}.{known[near[0]]}" if near else ""
    return f"MiniPaddle has no {space}.{name}{hint}"


def namespace(space: str, names: dict):
    """A module's `__getattr__`: `__getattr__ = namespace("paddle.hub", globals())`.

    It finds what `elsewhere.toml` lists, and refuses the rest. Modules below the module may be
    imported, even where it is one file.
    """
    if space in elsewhere.PARENTS:
        names.setdefault("__path__", [])

    def __getattr__(name: str):
        value = elsewhere.find(f"{space}.{name}")
        if value is not None:
            return value
        raise missing(name, space, names.keys)

    return __getattr__


def name_spaces() -> None:
    """Give all modules of `elsewhere.FACES` their `namespace`."""
    for name in elsewhere.FACES:
        module = sys.modules[f"{elsewhere.PACKAGE}.{name}"]
        module.__getattr__ = namespace(f"paddle.{name}", vars(module))
