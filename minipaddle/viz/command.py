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
import inspect
import sys
import traceback
from contextlib import contextmanager
from itertools import groupby, pairwise
from pathlib import Path

from ..jit.decorator import to_static
from ..jit.target import CommandError, build, example_input, load
from ..nn.layer.layers import Layer
from ..nn.layer.tree import child_name
from .forward_backward import joint
from .graph_engine import KINDS
from .module import module
from .operator import operator
from .program import program
from .tape import tape
from .transpiling import transpiling

WHATS = ["tape", "module", "operator", "program", "joint", "transpiling"]
FORMATS = ", ".join(f".{k}" for k in KINDS)


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
        prog="python -m minipaddle draw", description="Draw a model, a function or an operator.",
        epilog=__doc__.partition("\n\n")[2], formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
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


def explain(error: Exception, name: str, inputs) -> str:
    """The error, with the layer and the inputs that led to it."""
    specs = ", ".join(str(x.spec) for x in inputs)
    text = "".join(traceback.format_exception_only(error)).strip()
    path = layers_in(error)
    where = f"\n  in: {path}" if path else ""
    return f"{name}({specs}) failed: {text}{where}\n  try: another --input"


def layers_in(error: Exception) -> str:
    """`Net.features.0 (Conv2D)`: the layers being called when an error was raised."""
    owners = (frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__))
    layers = [layer for layer, _ in groupby(x for x in owners if isinstance(x, Layer))]
    if not layers:
        return ""
    names = [type(layers[0]).__name__, *(child_name(a, b) for a, b in pairwise(layers))]
    return f"{'.'.join(names)} ({type(layers[-1]).__name__})"
