"""What is converted, and what is only called.

Converted code calls nothing by itself: `f(x)` has become `_jst.call(f)(x)`, and when the program is
written `call` says what is called instead of `f`. A function of yours is converted first, because
it may have an `if` on a tensor. A library is not: it would take long, and it gains nothing. Write
two functions:

- `converts(function)`: is a Python function to be converted? No, if one of these holds:
    - it is marked by `not_to_static`: `getattr(function, MARK, False)`;
    - it has been converted already: "_jst" is among its `__code__.co_freevars`;
    - it is `async`: its `__code__.co_flags` has one of the bits CO_COROUTINE, CO_ASYNC_GENERATOR;
    - its module is in the set `ignored`, or in a package there (see `ignore_module`). The module's
      name is `function.__globals__.get("__name__")`; that may be missing, or None;
    - it is in this package, PACKAGE, unless it is in one of the packages OPEN: those call functions
      of yours;
    - it is in Python's library: the part of its module's name before the first dot is one of
      `sys.stdlib_module_names`;
    - its file (`__code__.co_filename`) is `installed(filename)`, and its module does not use this
      package. `uses_us(module)` tells: an installed library of models is converted.
  A module "a.b" is in the package "a", and so is "a"; the module "ab" is not.
- `call(function)`: what to call instead of `function`, which is of any kind. Ask for its type:
    - FunctionType, a Python function: `convert_function(function)`, which asks `converts` and gives
      the converted function, or the same one;
    - MethodType, a function with an object: a MethodType of `call(function.__func__)` and its
      `__self__`; the very same method if its function stayed the same;
    - BuiltinMethodType, written in C: `builtin(function)`;
    - a class: `constructing(function)`;
    - functools.partial: a partial of `call` of its function (`.func`, `.args`, `.keywords`);
    - an object with a `__call__` in its class, such as a layer: a MethodType of that function,
      converted by `convert_function`, and the object, unless the object is marked; the object
      itself if nothing changed;
    - anything else: itself.

Source: `tf.autograph` of Moldovan and others, MLSys 2019, which converts recursively, too.
"""

import sys
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from types import BuiltinMethodType, FunctionType, MethodType

from minipaddle.engine.core.errors import PACKAGE
from minipaddle.engine.jit.calling import builtin, constructing, convert_function
from minipaddle.engine.jit.ignore import MARK, OPEN, ignored, installed, uses_us


def converts(function):
    """Is a Python function to be converted?"""
    code = function.__code__
    if getattr(function, MARK, False) or "_jst" in code.co_freevars:
        return False
    if code.co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR):
        return False
    module = function.__globals__.get("__name__") or ""
    if _in_one_of(module, ignored):
        return False
    if _in_one_of(module, [PACKAGE]):
        return _in_one_of(module, OPEN)
    if module.split(".")[0] in sys.stdlib_module_names:
        return False
    return not installed(code.co_filename) or uses_us(module)


def _in_one_of(module, packages):
    return any(module == name or module.startswith(name + ".") for name in packages)


def call(function):
    """What to call instead of `function`."""
    kind = type(function)
    if kind is FunctionType:
        return convert_function(function)
    if kind is MethodType:
        inner = call(function.__func__)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if kind is BuiltinMethodType:
        return builtin(function)
    if isinstance(function, type):
        return constructing(function)
    if kind is partial:
        return partial(call(function.func), *function.args, **function.keywords)
    inner = kind.__call__ if callable(function) else None
    if type(inner) is FunctionType and not getattr(function, MARK, False):
        new = convert_function(inner)
        return function if new is inner else MethodType(new, function)
    return function
