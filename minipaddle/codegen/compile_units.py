"""A C file as units, which are compiled apart from each other and serve many programs.

A unit is a kernel, or a text of functions that many kernels call (`SharedText`). Its label is a
hash of all that its code depends on: units of two programs with the same label are the same code.
The names of its functions in an object hold the label. A file with units declares the functions
that they call, and defines theirs as weak symbols, because two objects may hold the same unit. The
program's own functions and variables are in one more file.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from ..engine.codegen.kernel import BAD_INDEX, POINTERS
from ..engine.codegen.translation_unit import SHARED, SourceFile, setters, with_prologue
from .open_sizes import OPEN_SIZES

VARIABLES = (SHARED, BAD_INDEX, OPEN_SIZES)
"""The helpers that declare variables, beside `POINTERS`."""

ONCE_SIZE = 5000
"""A shared function takes a compiler as long as kernels of this many characters: most of its loops
are unrolled."""

SHARED_HEAD = re.compile(r"^ONCE (void [^{]*?)\s*{", re.MULTILINE)

CALL = re.compile(r"\b(?!__)\w+(?=\()")

WEAK = "__attribute__((weak, noinline))"


class SharedText(str):
    """The text of functions that many kernels call, each marked with ONCE.

    `needs` are the helpers that the functions call.
    """

    needs: tuple[str, ...]

    def __new__(cls, text: str, *needs: str):
        shared = super().__new__(cls, text)
        shared.needs = needs
        return shared


def share(text: str, *needs: str) -> tuple[str, ...]:
    """The helpers of a kernel that calls the functions of a shared text."""
    return *needs, SharedText(text, *needs)


class Unit(NamedTuple):
    """A kernel or a shared text; `declarations` are those of its functions."""

    name: str
    text: str
    helpers: list[str]  # what its text needs before it, besides other helpers' declarations
    declarations: str
    size: int  # how long it takes to compile, in characters of a kernel


def split_units(source: SourceFile, apart: bool = True) -> dict[str, Unit]:
    """The units of a file, by their labels. Shared functions are units of their own if many files
    are compiled `apart`. Otherwise a file of kernels has those that it needs: the compiler makes
    faster code of a function when it sees all calls.
    """
    units: dict[str, Unit] = {}
    declared: dict[str, str] = {}  # the declarations of a shared text

    def add(text: str, functions: list[str], needs, content: str, size: int) -> None:
        helpers = [declared.get(x) or declare_outside(x) for x in dict.fromkeys((SHARED, *needs))]
        key = with_prologue([*helpers, content])
        label = hashlib.sha256(key.encode()).hexdigest()[:20]
        lines = [f'{each} __asm__("unit_{label}_{k}");' for k, each in enumerate(functions)]
        name = re.search(r"\w+(?=\()", functions[0])[0]
        units[label] = Unit(name, text, helpers, "\n".join(lines), size)

    for text in source.helpers:
        if apart and isinstance(text, SharedText):
            functions = SHARED_HEAD.findall(text)
            weak = text.replace("ONCE void", f"{WEAK} void")
            add(weak, functions, text.needs, text, ONCE_SIZE * len(functions))
            declared[text] = [*units.values()][-1].declarations
    content = {name: text for text, name in source.kernels.written.items()}
    for name, text in source.kernels.texts.items():
        head = re.search(rf"^static (void {name}\([^)]*\))$", text, re.MULTILINE)[1]
        text = text.replace(f"static {head}", f"{WEAK} {head}", 1)
        add(text, [head], source.kernels.needs[name], content[name], len(text))
    return units


def is_variable(helper: str) -> bool:
    """Whether a helper declares variables, and no functions."""
    return helper in VARIABLES or helper in POINTERS


def declare_outside(helper: str) -> str:
    """A helper in a file of units: variables are defined elsewhere."""
    if is_variable(helper):
        return re.sub(r"^static ([^;=]*)( = 1)?;", r"extern \1;", helper, flags=re.MULTILINE)
    return helper


def file_of(chosen: list[Unit]) -> str:
    """A file with some units."""
    helpers = dict.fromkeys(x for unit in chosen for x in unit.helpers)
    kernels = (f"{unit.declarations}\n{unit.text}" for unit in chosen)
    return with_prologue([*helpers, *kernels])


def rest_of(source: SourceFile, units: dict[str, Unit], apart: bool = True) -> str:
    """The file with the program's own functions and variables."""
    head = [x.replace("static ", "") for x in (SHARED, *source.helpers) if is_variable(x)]
    if source.kernels.functions:  # the function that brings weights into their form calls helpers
        others = [x for x in source.helpers if not is_variable(x)]
        head += [x for x in others if not (apart and isinstance(x, SharedText))]
    functions = [setters(source.prefix, source.helpers), *source.functions]
    called = {*CALL.findall("\n".join(functions))}  # others may have parameters of unknown types
    declarations = [unit.declarations for unit in units.values()]
    declarations = [text for text in declarations if not called.isdisjoint(CALL.findall(text))]
    return with_prologue([*head, *declarations, *functions])
