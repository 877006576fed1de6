"""Functions that are never converted: builtins, libraries, this package, what the user names."""

from __future__ import annotations

import sys
import sysconfig
from functools import cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from pathlib import Path
from types import FunctionType, ModuleType

from ..core.errors import PACKAGE
from ..core.slots import slot

MARK = "__jst_skip__"

OPEN = (f"{PACKAGE}.nn.layer",)
"""Parts of this package that call the user's code, and so are converted like it."""

ignored: set[str] = set()
"""Names of modules whose functions are called as they are."""


@slot("jit.converts")
def converts(function: FunctionType) -> bool:
    """Whether a function is the user's, so that its control flow must be converted."""
    if getattr(function, MARK, False) or "_jst" in function.__code__.co_freevars:
        return False
    if function.__code__.co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR):
        return False
    module = function.__globals__.get("__name__") or ""
    if any(within(module, name) for name in ignored):
        return False
    if within(module, PACKAGE):
        return any(within(module, name) for name in OPEN)
    if module.partition(".")[0] in sys.stdlib_module_names:
        return False
    return not installed(function.__code__.co_filename) or uses_us(module)


def ours(function: FunctionType) -> bool:
    """Whether it is a function of this package."""
    return within(function.__globals__.get("__name__") or "", PACKAGE)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@cache
def installed(filename: str) -> bool:
    """Whether a file belongs to an installed library."""
    path = Path(filename)
    return any(path.is_relative_to(sysconfig.get_path(kind)) for kind in ("purelib", "platlib"))


@cache
def uses_us(module: str) -> bool:
    """Whether an installed module is built on this package: then it holds models."""
    space = vars(sys.modules.get(module, object)) if module in sys.modules else {}
    owners = [getattr(x, "__name__" if isinstance(x, ModuleType) else "__module__", None)
              for x in space.values()]  # fmt: skip
    return any(isinstance(name, str) and within(name, PACKAGE) for name in owners)
