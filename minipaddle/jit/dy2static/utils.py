"""`Dygraph2StaticException`, where Paddle's users look for it."""

from dis import get_instructions
from types import CodeType

from ...engine.core.dispatch import note_refusal
from ...engine.core.errors import teach


class Dygraph2StaticException(Exception):
    """Code that cannot become a program: what disagrees, at which lines, and what to do.

    Source: Paddle `paddle.jit.dy2static.utils.Dygraph2StaticException`.
    """


def refusal(what: str, *, expected="", hint="", where=None) -> Dygraph2StaticException:
    """The exception, with a text in the layout of `teach`; no handler of the user's ends it."""
    text = teach(what, expected=expected, hint=hint, where=where)
    return note_refusal(Dygraph2StaticException(text))


def mention(codes: list, word: str):
    """The line where one of the codes, or one inside them, first names something."""
    for code in (waiting := [*codes]):
        waiting += [c for c in code.co_consts if type(c) is CodeType]
        for step in get_instructions(code):
            if step.argval == word:
                return code, step.offset
    return None
