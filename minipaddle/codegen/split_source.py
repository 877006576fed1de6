"""A C file in several parts, so that several compilers work at the same time.

Each part holds some of the kernels. The last part holds the program's own functions, and declares
the kernels of the others. Parts are compiled one by one, and linked to one library.
"""

from __future__ import annotations

import re

from ..engine.codegen.kernel import BAD_INDEX, POINTERS
from ..engine.codegen.translation_unit import SHARED, Source, setters, with_prologue

VARIABLES = (SHARED, BAD_INDEX)
"""The helpers that are variables, beside `POINTERS`. The last part defines them, and the others
declare them."""

ONCE_SIZE = 5000
"""A shared function takes a compiler as long as kernels of this many characters: most of its loops
are unrolled."""


def split(source: Source, n: int) -> list[str]:
    """n files that take about equally long to compile."""
    shared = {text: len(shared_functions(text)) for text in source.helpers}
    sizes = {name: len(text) for name, text in source.kernels.items()}
    sizes |= {text: ONCE_SIZE * count for text, count in shared.items() if count}
    shares: list[list[str]] = [[] for _ in range(n)]
    totals = [0] * (n - 1) + [sum(map(len, source.functions))]
    for own in sorted(sizes, key=lambda k: -sizes[k]):
        least = totals.index(min(totals))
        shares[least].append(own)
        totals[least] += sizes[own]
    others = [declaration(k, t) for k, t in source.kernels.items() if k not in shares[-1]]
    calls = [*others, setters(source.prefix, source.helpers), *source.functions]
    return [*(part(source, share) for share in shares[:-1]), part(source, shares[-1], calls)]


def part(source: Source, share: list[str], calls=()) -> str:
    """A file with some of the kernels and helpers; `calls` are further texts of the last one."""
    linkage, head = "" if calls else "extern ", []
    for text in (SHARED, *source.helpers):
        if text in VARIABLES or text in POINTERS:
            text = "\n".join(variable(line, linkage) for line in text.splitlines())
        elif text not in share and shared_functions(text):
            text = "\n".join(f"{function};" for function in shared_functions(text))
        head.append(text.replace("define ONCE static", "define ONCE"))
    kernels = (exported(k, text) for k, text in source.kernels.items() if k in share)
    return with_prologue([*head, *kernels, *calls])


def shared_functions(text: str) -> list[str]:
    """The heads of the functions that are marked with ONCE: one part has their bodies."""
    return re.findall(r"^ONCE (void [^{]*?)\s*{", text, re.MULTILINE)


def variable(line: str, linkage: str) -> str:
    """The definition of a variable without `static`; with `extern`, its declaration."""
    line = line.replace("static ", linkage, 1)
    return line.replace(" = 1", "") if linkage else line


def exported(name: str, text: str) -> str:
    """A kernel that other parts may call."""
    return text.replace(f"static void {name}(", f"void {name}(", 1)


def declaration(name: str, text: str) -> str:
    """The declaration of a kernel of another part."""
    return re.search(rf"^static (void {name}\([^)]*\))$", text, re.MULTILINE)[1] + ";"
