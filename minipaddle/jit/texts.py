"""Texts that hold values which only a run knows: `f"loss {x.item():.3f}"`. `print` takes them, and
the program shows them when it runs; a function returns and keeps them. Any other use is refused.
"""

import re
from itertools import count
from string import Formatter

from ..eager.numbers import Number, kind_of_dtype, refuse_mixed
from ..engine.core.dispatch import current, note_refusal
from ..engine.core.errors import caller, type_error
from ..engine.eager.control_flow import is_static
from ..engine.eager.tensor import wrap
from ..engine.eager.tracer import Tracer
from ..engine.jit.calling import TABLE
from ..engine.jit.transpile import RUNTIME
from .reading import ReadArray, no_array_error

CHARACTER = ord("c")
CONVERSIONS = {-1: lambda x: x, ord("s"): str, ord("r"): repr, ord("a"): ascii, CHARACTER: chr}
"""The functions of `!s`, `!r`, `!a`, by their number in Python's syntax tree; and `chr`."""


class ProgramText:
    """A text of a program. Its `parts` are strings and (value, conversion, format)."""

    __slots__ = ("parts", "shown", "where")

    def __init__(self, parts):
        self.parts, self.where, self.shown = parts, caller(), False
        current.top.texts = [*current.top.texts, self]

    def __add__(self, other):
        return (
            text((self, -1, ""), (other, -1, ""))
            if isinstance(other, str | ProgramText)
            else self.refuse()
        )

    def __radd__(self, other):
        return text((other, -1, ""), (self, -1, "")) if isinstance(other, str) else self.refuse()

    def refuse(self, *args):
        message = "a text with a value: while a program is traced a tensor has no value yet"
        hint = "print the text or return it: that is done when the program runs"
        raise note_refusal(type_error(message, hint=hint, where=self.where))

    __str__ = __repr__ = __format__ = __hash__ = __eq__ = __ne__ = __lt__ = __gt__ = refuse
    __le__ = __ge__ = __len__ = __bool__ = __iter__ = __contains__ = __getitem__ = refuse
    __mul__ = __rmul__ = __mod__ = __rmod__ = __getattr__ = __call__ = refuse


def join_texts(a, b) -> ProgramText:
    """`a + b` of texts."""
    for x in (a, b):
        if not isinstance(x, str | ProgramText):
            raise type_error(f"a text + {type(x).__name__}", expected="two texts")
    return text((a, -1, ""), (b, -1, ""))


def is_later(x) -> bool:
    """Whether only a run knows how a value is written."""
    return current.top.tracing and (type(x) is ProgramText or is_static(x))


def text(*parts):
    """The text of strings and (value, conversion, format) in a row."""
    pieces = []
    for part in parts:
        if type(part) is str:
            pieces.append(part)
            continue
        value, conversion, spec = part
        if type(spec) is ProgramText:
            spec.refuse()
        if type(value) is ProgramText and conversion in (-1, ord("s")) and spec == "":
            pieces += value.parts
            value.shown = True
        elif is_later(value) and type(value) is not ProgramText:
            if f"{conversion}{spec}"[-1] not in "eEfFgG%":
                refuse_mixed(value)
            pieces.append((as_it_is(value), conversion, spec))
        else:
            pieces.append(write_value(value, conversion, spec))
    return "".join(pieces) if all(type(x) is str for x in pieces) else ProgramText(pieces)


def as_it_is(x):
    """The value that a tensor has now: later writes do not change it."""
    if isinstance(x, Number):
        return x
    if type(x) is ReadArray:
        raise no_array_error("the text of an array", "use the tensor itself")
    value = wrap(current.top.now(current.top.lift(x)))
    value.stop_gradient = x.stop_gradient
    return value


def character(x):
    """`chr`."""
    if not is_later(x) or type(x) is ProgramText:
        return chr(x)
    kind = x.kind if isinstance(x, Number) else kind_of_dtype(x.spec.dtype)
    return text((TABLE[int](x) if kind is not float else chr(0.0), CHARACTER, ""))


def write_value(value, conversion, spec: str) -> str:
    """One value as Python writes it; a conversion may be a format of `%`."""
    if type(conversion) is str:
        return conversion % (value,)
    return format(CONVERSIONS[conversion](value), spec)


def format_text(template: str, *args, **kwargs):
    """`template.format(*args, **kwargs)`."""
    if not any(map(is_later, [*args, *kwargs.values()])):
        return template.format(*args, **kwargs)
    parts, numbers = [], count()
    for before, field, spec, conversion in Formatter().parse(template):
        parts.append(before)
        if field is not None:
            name = re.match(r"[^.\[]*", field)[0]
            value, _ = Formatter().get_field(
                field if name else f"{next(numbers)}{field}", args, kwargs
            )
            spec = format_text(spec, *args, **kwargs) if spec else ""
            parts.append((value, ord(conversion) if conversion else -1, spec))
    return text(*parts)


PERCENT, MISSING = "%", object()
FIELD = re.compile(r"%(?:\((\w+)\))?[#0\- +]*\d*(?:\.\d+)?[hlL]?([diouxXeEfFgGcrsa%])")
"""A place of a value in a format of `%`."""


def percent(template: str, values):
    """`template % values`."""
    operands = values if isinstance(values, tuple) else (values,)
    named = isinstance(values, dict)
    if not any(map(is_later, values.values() if named else operands)):
        return template % values
    parts, rest, end = [], [*operands], 0
    for field in FIELD.finditer(template):
        parts.append(template[end : field.start()])
        end = field.end()
        if field[2] == "%":
            parts.append(PERCENT)
        else:
            value = values[field[1]] if named else rest.pop(0) if rest else MISSING
            parts.append((value, field[0].replace(f"({field[1]})", ""), ""))
    parts.append(template[end:])
    unread = any("%" in x for x in parts if type(x) is str and x is not PERCENT)
    if unread or len(rest) > named or any(x[0] is MISSING for x in parts if type(x) is tuple):
        return template % values  # a format that is not read here, or an error
    return text(*parts)


def replacement(function, conversion: int):
    """The callee in place of `str` or `repr`."""

    def convert(*args, **kwargs):
        if len(args) == 1 and not kwargs and is_later(args[0]):
            return text((args[0], conversion, ""))
        return function(*args, **kwargs)

    return convert


def take_apart(x) -> tuple[list, tuple]:
    """The values in a text, and its parts as an attribute of a program: strings and (whether a
    tensor has stop_gradient, or None for a number; conversion; format).
    """
    x.shown = True
    values = [part[0] for part in x.parts if type(part) is tuple]
    parts = tuple(
        part
        if type(part) is str
        else (None if isinstance(part[0], Number) else part[0].stop_gradient, *part[1:])
        for part in x.parts
    )
    return values, parts


def join_parts(parts: tuple, arrays) -> str:
    """The text, once the values are there."""
    return "".join(x if type(x) is str else write_array(next(arrays), *x) for x in parts)


def write_array(array, stop_gradient, conversion, spec) -> str:
    if stop_gradient is None:
        return write_value(array.item(), conversion, spec)
    x = wrap(array)
    x.stop_gradient = stop_gradient
    return write_value(x, conversion, spec)


def check_shown(tracer, left) -> None:
    """Refuse the texts that nothing has printed, and those among what the function leaves."""
    for x in [*left, *tracer.texts]:
        if type(x) is ProgramText and (not x.shown or any(x is each for each in left)):
            x.refuse()


Tracer.texts = ()
"""The texts that the trace has made."""

TABLE |= {
    str: replacement(str, ord("s")),
    repr: replacement(repr, ord("r")),
    chr: character,
    format: lambda x, spec="": text((x, -1, spec)) if is_later(x) else format(x, spec),
}
RUNTIME.text, RUNTIME.format_text, RUNTIME.percent = text, format_text, percent
