"""A loop nest's C, run by Python: slow, but it needs no compiler, and buffers may overlap.

Only what a nest is written with: loops, statements that assign, and expressions.
"""

import re

from ..codegen.functions.special import SPECIAL
from ..engine.codegen.kernel import C_TYPES
from ..engine.codegen.scalar import HELPED, PLAIN
from ..engine.eager.device import NUMPY

TYPES = "|".join(C_TYPES.values())


class Cast:
    """A cast, written as a power of it: `float_ ** x` binds as tightly as `(float)x` does in C."""

    def __init__(self, kind):
        self.kind = kind

    def __pow__(self, x):
        return self.kind.type(x)


NAMES = {c: NUMPY.abs if c == "fabs" else getattr(NUMPY, own) for own, c in PLAIN.items()
         if hasattr(NUMPY, own)}  # fmt: skip
NAMES |= {"fabs": NUMPY.abs, "pow": NUMPY.power, "rint": NUMPY.rint}
NAMES |= {f"{c}f": function for c, function in NAMES.items()}
NAMES |= {f"{name}_{kind}": getattr(NUMPY, name) for kind in C_TYPES.values()
          for name in ("power", *HELPED)}  # fmt: skip
NAMES |= {f"{name}_double": getattr(NUMPY, name) for name in SPECIAL}
NAMES |= {f"{name}_": Cast(kind) for kind, name in C_TYPES.items()}
NAMES |= {"INFINITY": NUMPY.inf, "NAN": NUMPY.nan, "INT64_MIN": -(2**63)}
NAMES |= {"true": True, "false": False}


def run_c(source: str, *arrays) -> None:
    """Run the C function of one loop nest on flat arrays, one for each of its parameters.

    >>> import numpy
    >>> from minipaddle.testing.c_in_python import run_c
    >>> x, y = numpy.ones(3), numpy.zeros(3)
    >>> run_c('''static void k(const double *x, double *y)
    ... {
    ...     for (int64_t i = 0; i < 3; i++) {
    ...         y[i] = x[i] > 0 ? x[i] + 1.5 : 0;
    ...     }
    ... }''', x, y)
    >>> y.tolist()
    [2.5, 2.5, 2.5]
    """
    head, _, body = source.partition("\n{\n")
    names = [part.rpartition("*")[2].strip() for part in head[head.index("(") + 1 : -1].split(",")]
    lines = [line for line in map(translate_to_python, body.split("\n")) if line.strip()]
    text = "\n".join(["def kernel(" + ", ".join(names) + "):", *lines])
    namespace: dict = {}
    exec(text, dict(NAMES), namespace)
    namespace["kernel"](*arrays)


def translate_to_python(line: str) -> str:
    """A line of C as a line of Python, with the same indentation."""
    space, code = re.match(r"( *)(.*?);?$", line).groups()
    if code.startswith(("#", "}", "/*")) or not code:
        return ""
    if loop := re.match(r"for \(\w+ (\w+) = (.+); \w+ < (.+); (.+)\) {", code):
        name, first, last, step = loop.groups()
        step = "1" if step.endswith("++") else step.partition("+= ")[2]
        return f"{space}for {name} in range({first}, {last}, {step}):"
    if array := re.match(rf"({TYPES}) (\w+)\[(\d+)\](?: __attribute__.*)?$", code):
        return f"{space}{array[2]} = [0] * {array[3]}"
    target, sign, value = re.match(r"([^=]+?) (\+?=) (.*)$", code).groups()
    target = re.sub(rf"^(const )?({TYPES}) ", "", target)
    return f"{space}{expression(target)} {sign} {expression(value)}"


def expression(text: str) -> str:
    """An expression: casts and suffixes go, `a ? b : c` is turned, indices divide whole numbers."""
    text = re.sub(rf"\(({TYPES})\)", r"\1_ ** ", text)
    text = re.sub(r"(\d\.\d*(?:e[+-]?\d+)?|\de[+-]?\d+)f\b", r"\1", text)
    text = re.sub(r"(\d)U?LL\b", r"\1", text)
    text = re.sub(r"!(?!=)", " not ", text.replace("&&", "and").replace("||", "or"))
    groups = [""]
    for c in text:
        if c in "([":
            groups.append("")
        elif c in ")]":
            inner = turn_conditional(groups.pop())
            groups[-1] += f"({inner})" if c == ")" else f"[{inner.replace('/', '//')}]"
        else:
            groups[-1] += c
    return turn_conditional(groups[0]).strip()


def turn_conditional(text: str) -> str:
    """`a ? b : c` in Python's order; text in parentheses was converted before."""
    test, sign, rest = text.partition(" ? ")
    if not sign:
        return text
    yes, _, no = rest.rpartition(" : ")
    return f"{yes} if {test} else {no}"
