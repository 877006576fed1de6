"""C's mathematical functions without its library: a text for each function that a file calls.

Functions of doubles are within a few units in the last place (`pow` loses digits where y log x is
large, `sin` and `cos` above a million); those of floats are computed with doubles.
"""

import re
from functools import cache

from ..engine.codegen.kernel import read_template
from ..engine.codegen.translation_unit import (
    BINARY,
    LONG_EXPONENTIAL,
    UNARY,
    VECTOR,
    WORD,
    mathematics,
)

PREFIX = "own_"
DECLARED = re.compile(r"^(?:VECTOR )?(?:float|double) (\w+)\([^)]*\);\n", re.MULTILINE)
EXACT = {"fabs", "copysign", "fmax", "fmin"}
"""Functions that are the same for floats, computed as floats or as doubles."""


@cache
def definitions() -> dict[str, str]:
    """The text of each function by its own name, each after those that it calls."""
    texts = read_template("mathematics.c", __file__).strip().split("\n\n")
    by_name = {re.search(r"\w+(?=\()", re.sub(r"/\*.*\*/", "", x))[0]: x for x in texts}
    for name in (*UNARY, *BINARY):
        own = PREFIX + name
        if name in BINARY:
            text = f"static inline float {own}f(float x, float y) {{ return (float){own}(x, y); }}"
        else:
            text = f"static inline float {own}f(float x) {{ return (float){own}(x); }}"
        by_name.setdefault(f"{own}f", text)
    return by_name


def replace_libm(text: str) -> str:
    """A file with functions of its own in place of those that it declares. Those of the engine that
    it defines by a macro, such as `expf`, stay.
    """
    text = text.replace(VECTOR, "").replace(LONG_EXPONENTIAL, "")
    names = [name for name in DECLARED.findall(text) if name in mathematics()]
    names = [name for name in names if f"#define {name}(" not in text]
    own = collect_functions({PREFIX + name for name in names})
    macros = [f"#define {name} {PREFIX}{name}" for name in names]
    head = "\n\n".join([*own, "\n".join(macros)]) if names else ""
    first = DECLARED.search(text)
    if first is None:
        return text
    return f"{text[: first.start()]}{head}\n{DECLARED.sub('', text[first.start() :])}"


def collect_functions(names: set[str]) -> list[str]:
    """The texts of these functions and of those that they call, in order."""
    functions = []
    for name, text in reversed(definitions().items()):
        if name in names:
            functions.append(text)
            names = names | {*WORD.findall(text)}
    return functions[::-1]
