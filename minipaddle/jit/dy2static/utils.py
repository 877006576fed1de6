"""`Dygraph2StaticException`, where Paddle's users look for it."""

from dis import get_instructions
from types import CodeType

from ...engine.jit.refusal import Dygraph2StaticException, refusal

__all__ = ["Dygraph2StaticException", "mention", "refusal"]


def mention(codes: list, word: str):
    """The line where one of the codes, or one inside them, first names something."""
    for code in (waiting := [*codes]):
        waiting += [c for c in code.co_consts if type(c) is CodeType]
        for step in get_instructions(code):
            if step.argval == word:
                return code, step.offset
    return None
