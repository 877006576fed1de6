"""Models as commands name them: `FILE.py:NAME`, and their inputs, such as `1,3,32,32`."""

import difflib
import importlib.util
import inspect
import re
import sys
import traceback
from contextlib import suppress
from pathlib import Path

from ..engine.core.dtype import FLOATS, resolve
from ..engine.core.record import Spec
from ..engine.eager.tensor import Tensor
from ..nn.layer.layers import Layer
from ..tensor.creation import ones, zeros


class CommandError(Exception):
    """A message for the user, instead of a traceback."""


def load(file: str, name: str):
    """The object called `name` in `file`."""
    if not file:
        raise CommandError(f"{name}: give FILE.py:NAME, such as model.py:Net")
    path = Path(file)
    if not path.is_file():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.py")], 1)
        raise CommandError(f"no file {file}" + (f"; did you mean {near[0]}?" if near else ""))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    user = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules[path.stem] = user
    arguments, sys.argv = sys.argv, [file]
    try:
        spec.loader.exec_module(user)
    except SystemExit as end:
        raise CommandError(f"{file} ended before {name} was there: exit({end})") from None
    except Exception as error:
        raise CommandError(f"{file} could not be run: {last_line(error, file)}") from None
    finally:
        sys.argv = arguments
    if not hasattr(user, name):
        own = [n for n, v in vars(user).items() if callable(v) and not n.startswith("_")]
        near = difflib.get_close_matches(name, own, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; it has {', '.join(own) or 'nothing'}"
        raise CommandError(f"{file} has no {name!r}{hint}")
    return getattr(user, name)


def last_line(error: Exception, file: str) -> str:
    """The error, and the innermost line of the user's file that led to it."""
    text = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "paddle":
        return f"{text}\n  try: import minipaddle as paddle"
    lines, own = traceback.extract_tb(error.__traceback__), Path(file).resolve()
    where = [f for f in lines if Path(f.filename).resolve() == own]
    return f"{text}\n  at: {file}:{where[-1].lineno}" if where else text


def build(found, name: str):
    """The model: a class of layers is instantiated, a function that needs no argument called."""
    is_class = isinstance(found, type) and issubclass(found, Layer)
    if not (is_class or (inspect.isfunction(found) and needs_nothing(found))):
        return found
    try:
        return found()
    except TypeError as error:
        hint = f"try: a function or instance in your file, such as  small = {name}(...)"
        raise CommandError(f"{name}() could not be made: {error}\n  {hint}") from None


def needs_nothing(function) -> bool:
    """Whether a function takes no arguments: it builds a model; a model takes its input."""
    with suppress(TypeError):
        return bool(inspect.signature(function).bind())
    return False


def example_input(text: str) -> Tensor:
    """A tensor from `1,3,32,32` or `1,16:int64`: ones, or zeros where numbers are whole."""
    shape, dtype = read_spec(text)
    if dtype not in FLOATS:
        return zeros(shape, dtype)
    x = ones(shape, dtype)
    x.stop_gradient = False
    return x


def read_spec(text: str) -> Spec:
    """The shape and dtype that `1,3,32,32` or `1,16:int64` says."""
    match = re.fullmatch(r"\s*((?:\d+\s*,\s*)*\d*)\s*(?::\s*(\w+))?\s*", text)
    try:
        dtype = resolve(match[2] or "float32")
    except TypeError as error:
        why = str(error) if match else "expected a shape, such as 1,3,32,32 or 1,16:int64"
        raise CommandError(f"--input {text}: {why}") from None
    return Spec(tuple(int(n) for n in match[1].split(",") if n.strip()), dtype)
