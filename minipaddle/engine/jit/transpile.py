"""A function with Python's control flow -> the same function, whose control flow asks the runtime.

The converted function shares globals, closure cells and defaults with the user's; its lines are
those of the user's file.
"""

from __future__ import annotations
import __future__

import ast
import threading
from collections.abc import Callable, Iterator
from functools import partial, reduce, update_wrapper
from operator import or_
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import NamedTuple

from ..core import slots
from ..core.errors import type_error
from ..core.slots import PLUGGED
from .converters import CONVERTERS, Conversion
from .source import Definition, source_of
from .templates import fill, stand
from .walking import survey

WATCHERS: list = []
"""Each is called with a function that was converted."""

INSTRUMENTS = [lambda tree, owner: (tree, None)]
"""The last one is called with a converted tree and the name of the class around it. It gives the
tree that is compiled, of which the text shows nothing, and what it reads."""
READERS: list = []  # each is called with a function that gets converted code, and what it reads

RUNTIME = ModuleType("_jst", "What converted code calls; `runtime` puts the functions in.")
FACTORY = "_jst_factory"
FUTURE = reduce(or_, (getattr(__future__, name).compiler_flag
                      for name in __future__.all_feature_names))  # fmt: skip


class Converted(NamedTuple):
    """The result of a conversion: the code, and the tree it was compiled from."""

    code: CodeType
    tree: ast.AST
    epoch: int
    names: object


_cache: dict[tuple, Converted] = {}
_converting = threading.RLock()
"""Only one thread converts at a time: CPython 3.11 counts the depth of trees for all threads
   together, and raises SystemError if two convert at once."""


def transpile(function: Callable) -> Callable:
    """The converted function; of a method, a method. Raises SourceMissing without its source.

    >>> from minipaddle.engine.jit.transpile import transpile
    >>> from textwrap import dedent
    >>> transpile(dedent)("  a")
    'a'
    """
    if isinstance(function, MethodType):
        return MethodType(transpile(function.__func__), function.__self__)
    if isinstance(function, partial):
        return partial(transpile(function.func), *function.args, **function.keywords)
    if not isinstance(function, FunctionType):
        raise type_error(f"transpile was given {function!r:.80}", expected="a Python function")
    code, *_, names = conversion(function)
    for note in READERS:
        note(function, names)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells["_jst"] = CellType(RUNTIME)
    closure = tuple(cells[name] for name in code.co_freevars)
    space, name = function.__globals__, function.__name__
    converted = FunctionType(code, space, name, function.__defaults__, closure)
    converted.__kwdefaults__ = function.__kwdefaults__
    return update_wrapper(converted, function)


def code_text(function: Callable) -> str:
    """The converted source of a function or a method."""
    return ast.unparse(conversion(getattr(function, "__func__", function)).tree)


def conversion(function: FunctionType) -> Converted:
    """The converted code of a function, from the cache if nothing was plugged in since."""
    code = function.__code__
    key = code, code.co_filename
    entry = _cache.get(key)
    if entry is None or entry.epoch != slots.epoch:
        with _converting:
            source = source_of(function)
            *_, (_, tree) = passes(function, source)
            instrumented, names = INSTRUMENTS[-1](tree, source.owner)
            code = compile_factory(instrumented, source, code)
            entry = _cache[key] = Converted(code, tree, slots.epoch, names)
        for watch in WATCHERS:
            watch(function)
    return entry


def passes(function: FunctionType, source: Definition) -> Iterator[tuple[str, ast.Module]]:
    """The tree as it is written, and after each converter.

    Converters that have nothing to do are skipped, unless a reader's code may have made work.
    """
    tree, idle = ast.Module([statement(source.node)], []), None
    context = Conversion(source.owner)
    yield "", tree
    for converter in CONVERTERS:
        if idle is None:
            idle = set() if PLUGGED else survey(tree)
        if converter.__name__ not in idle:
            tree = converter(tree, context)
            idle = None if getattr(converter, "makes_work", False) else idle
        yield converter.__name__, tree


def statement(node) -> ast.stmt:
    return ast.copy_location(ast.Expr(node), node) if isinstance(node, ast.Lambda) else node


# ---- compiling -----------------------------------------------------------------------------------


def compile_factory(tree: ast.Module, source: Definition, code: CodeType) -> CodeType:
    """The code of the converted function, made where its free variables are to be found.

    A factory binds them, and a class of the right name encloses a method, for `__private`.
    """
    body, at = tree.body, tree.body[0]
    free = [n for n in code.co_freevars if not (source.owner and n == "__class__")]
    if source.owner:
        body = [stand(ast.ClassDef(source.owner, [], [], body, []), at)]
    name = source.owner or getattr(source.node, "name", None)
    if name is not None and name not in free:  # in the function it means what it means outside
        body = [stand(ast.Global([name]), at), *body]
    (factory,) = fill(f"def {FACTORY}(): body", at, body=body)
    factory.args.args = [stand(ast.arg(name), at) for name in ("_jst", *free)]
    module = ast.Module([factory], [])
    if PLUGGED:  # a reader's converter may make nodes that stand nowhere
        ast.fix_missing_locations(module)
    flags = code.co_flags & FUTURE
    compiled = compile(module, source.filename, "exec", flags=flags, dont_inherit=True)
    for _ in range(3 if source.owner else 2):
        compiled = next(c for c in compiled.co_consts if isinstance(c, CodeType))
    return rename_code(compiled, code.co_name, compiled.co_qualname, code.co_qualname)


def rename_code(code: CodeType, name: str, factory: str, qualname: str) -> CodeType:
    """Blocks bear the name of their function, so that a traceback shows it."""
    block = any(n.startswith("_jst_") for n in (code.co_name, *code.co_varnames[:1]))
    name = name if block else code.co_name
    consts = tuple(
        rename_code(c, name, factory, qualname) if isinstance(c, CodeType) else c
        for c in code.co_consts
    )
    qualified = qualname + code.co_qualname.removeprefix(factory)
    return code.replace(co_name=name, co_qualname=qualified, co_consts=consts)
