"""`Dygraph2StaticException`: the error for code that cannot become a program."""

from ..core.dispatch import note_refusal
from ..core.errors import teach


class Dygraph2StaticException(Exception):
    """Code that cannot become a program: what disagrees, at which lines, and what to do.

    Source: Paddle `paddle.jit.dy2static.utils.Dygraph2StaticException`.
    """


def refusal(what: str, *, expected="", hint="", where=None) -> Dygraph2StaticException:
    """The exception, with a text in the layout of `teach`; no handler of the user's ends it."""
    message = teach(what, expected=expected, hint=hint, where=where)
    return note_refusal(Dygraph2StaticException(message))
