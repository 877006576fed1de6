"""`python -m minipaddle draw FILE.py:Model --input 1,3,32,32 -o graph.svg`: only the picture.

examples:
  python -m minipaddle draw model.py:Net --input 1,3,32,32 -o net.svg
  python -m minipaddle draw model.py:Net                      (the tree of its layers)
  python -m minipaddle draw model.py:gpt --input 1,16:int64 --depth 2
  python -m minipaddle draw model.py:Net --what program --input 1,3,32,32
  python -m minipaddle draw model.py:Net --what joint --input 1,3,32,32
  python -m minipaddle draw model.py:step --what transpiling --stage if_else
  python -m minipaddle draw tanh --what operator -o tanh.png
"""

import argparse
import difflib
import importlib.util
import inspect
import re
import sys
import traceback
from contextlib import contextmanager, suppress
from itertools import groupby, pairwise
from pathlib import Path

from ..engine.core.dtype import FLOATS, resolve
from ..engine.eager.tensor import Tensor
from ..jit.decorator import to_static
from ..nn.layer.layers import Layer
from ..nn.layer.tree import child_name
from ..tensor.creation import ones, zeros
from .engine import KINDS
from .joint import joint
from .module import module
from .operator import operator
from .program import program
from .tape import tape
from .transpiling import transpiling

WHATS = ["tape", "module", "operator", "program", "joint", "transpiling"]
FORMATS = ", ".join(f".{k}" for k in KINDS)


class CommandError(Exception):
    """A message for the user, instead of a traceback."""


def main(arguments=None) -> int:
    """Run the command; returns the exit status (2 for a mistake of the user's)."""
    options = parser().parse_args(arguments)
    try:
        path = draw(options)
    except CommandError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(path)
    return 0


def parser() -> argparse.ArgumentParser:
    one = argparse.ArgumentParser(
        prog="python -m minipaddle draw",
        description="Draw a model, a function or an operator.",
        epilog=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shape = "shape of an input, such as 1,3,32,32 or 1,16:int64; once for each input"
    many = {"action": "append", "default": [], "metavar": "SHAPE[:DTYPE]"}
    one.add_argument("target", help="FILE.py:NAME (a class, function or instance), or an operator")
    one.add_argument("--input", help=shape, **many)
    one.add_argument("--what", choices=WHATS, help="what to draw")
    one.add_argument("--stage", help="of --what transpiling one converter, such as if_else")
    one.add_argument("--depth", type=int, help="how many levels of layers to open")
    one.add_argument("-o", "--output", help=f"file to write: {FORMATS}")
    return one


def draw(options) -> Path:
    """Draw the picture that the options describe; returns the file written."""
    what = options.what or ("tape" if options.input else "module")
    file, _, name = options.target.rpartition(":")
    if what == "operator":
        name = options.target
        with explain_errors():
            graph = operator(name)
    else:
        graph = picture(what, load(file, name), name, options)
    path = Path(options.output or f"{name}.svg")
    if path.suffix.removeprefix(".").lower() not in KINDS:
        raise CommandError(f"{path}: the ending must be one of {FORMATS}")
    try:
        return graph.save_as(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror or error}") from None


@contextmanager
def explain_errors():
    """Turn an error in the block into one of the user's."""
    try:
        yield
    except (KeyError, TypeError, OSError) as error:
        raise CommandError(str(error.args[0])) from None


# ---- the target ------------------------------------------------------------------------------


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
    try:
        spec.loader.exec_module(user)
    except Exception as error:
        raise CommandError(f"{file} could not be run: {last_line(error, file)}") from None
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


# ---- the picture -----------------------------------------------------------------------------


def picture(what: str, found, name: str, options):
    """The graph of a model or function."""
    model = build(found, name)
    if what == "module":
        if not isinstance(model, Layer):
            hint = "for its tape give --input, such as --input 1,3,32,32"
            raise CommandError(f"{name} is no layer, so it has no tree; {hint}")
        return module(model, options.depth)
    if what == "transpiling":
        with explain_errors():
            return transpiling(found if inspect.isfunction(found) else model, options.stage)
    if not callable(model):
        raise CommandError(f"{name} is a {type(model).__name__}, which cannot be called")
    inputs = [example_input(text) for text in options.input]
    try:
        if what == "tape":
            return tape(model, *inputs, depth=options.depth)
        function = to_static(model)
        function(*inputs)
        draw = program if what == "program" else joint
        return draw(function, depth=options.depth)
    except Exception as error:
        raise CommandError(explain(error, name, inputs)) from None


def example_input(text: str) -> Tensor:
    """A tensor from `1,3,32,32` or `1,16:int64`: ones, or zeros where numbers are whole."""
    match = re.fullmatch(r"\s*((?:\d+\s*,\s*)*\d*)\s*(?::\s*(\w+))?\s*", text)
    try:
        dtype = resolve(match[2] or "float32")
    except TypeError as error:
        why = str(error) if match else "expected a shape, such as 1,3,32,32 or 1,16:int64"
        raise CommandError(f"--input {text}: {why}") from None
    shape = [int(n) for n in match[1].split(",") if n.strip()]
    if dtype not in FLOATS:
        return zeros(shape, dtype)
    x = ones(shape, dtype)
    x.stop_gradient = False
    return x


def explain(error: Exception, name: str, inputs) -> str:
    """The error, with the layer and the inputs that led to it."""
    given = ", ".join(str(x.spec) for x in inputs)
    text = "".join(traceback.format_exception_only(error)).strip()
    path = layers_in(error)
    where = f"\n  in: {path}" if path else ""
    return f"{name}({given}) failed: {text}{where}\n  try: another --input"


def layers_in(error: Exception) -> str:
    """`Net.features.0 (Conv2D)`: the layers being called when an error was raised."""
    owners = (frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__))
    layers = [layer for layer, _ in groupby(x for x in owners if isinstance(x, Layer))]
    if not layers:
        return ""
    names = [type(layers[0]).__name__, *(child_name(a, b) for a, b in pairwise(layers))]
    return f"{'.'.join(names)} ({type(layers[-1]).__name__})"
