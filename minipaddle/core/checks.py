"""Checks of arguments that many functions share. Each error says what was given and expected."""

from ..engine.core.dtype import FLOATS
from ..engine.core.errors import not_supported, type_error, value_error


def require_one_of(name: str, allowed, **options) -> None:
    """Raise ValueError unless each of the options has one of the allowed values."""
    for option, value in options.items():
        if value not in allowed:
            *others, last = map(repr, allowed)
            raise value_error(
                f"{name} was given {option}={value!r}", f"{', '.join(others)} or {last}"
            )


def refuse_unsupported(name: str, **options) -> None:
    """Raise NotImplementedError for an option that is set but not supported."""
    for option, value in options.items():
        if value:
            raise not_supported(
                f"{name} was given {option}={value!r}, which MiniPaddle does not support",
                hint=f"leave {option} out",
            )


def require_floats(name: str, x) -> None:
    """Raise TypeError unless the dtype of x is floating: a silent cast would hide a mistake."""
    if x.spec.dtype not in FLOATS:
        raise type_error(
            f"{name} was given {x.spec}", "a floating dtype", hint='x.astype("float32") first'
        )


def require_ndim(name: str, x, *allowed: int, least: int = 0) -> None:
    """Raise ValueError unless x has an allowed number of dimensions, or `least` or more."""
    ndim = x.spec.ndim
    if ndim < least or (allowed and ndim not in allowed):
        exact = " or ".join(map(str, allowed))
        wanted = f"{exact} dimensions" if allowed else f"{least} dimensions or more"
        raise value_error(f"{name} was given {x.spec}", wanted)
