"""`Dygraph2StaticException`, where Paddle's users look for it."""

from ...core.errors import teach
from ...core.interpreter import note_refusal


class Dygraph2StaticException(Exception):
    """Code that cannot become a program: what disagrees, at which lines, and what to do.

    Source: Paddle `paddle.jit.dy2static.utils.Dygraph2StaticException`.
    """


def refusal(what: str, *, expected: str = "", hint: str = "") -> Dygraph2StaticException:
    """The exception, with a text in the layout of `teach`; no handler of the user's ends it."""
    return note_refusal(Dygraph2StaticException(teach(what, expected=expected, hint=hint)))
