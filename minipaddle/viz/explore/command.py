"""`python -m minipaddle explore FILE.py:NAME -o page.html`: each line of it, down to memory.

examples:
  python -m minipaddle explore train.py:step           (a file that calls step when it is imported)
  python -m minipaddle explore model.py:Net --input 1,3,32,32 -o net.html
  python -m minipaddle explore saved/model.pdmodel -o model.html
"""

import argparse
import inspect
import sys
from pathlib import Path

from ...jit.decorator import to_static
from ...jit.loading import load as load_saved
from ...jit.target import CommandError, build, example_input, load
from ..command import explain
from ..target import forward_of
from . import explore
from .page import Explorer, check_name

SAVED = ".pdmodel"


def main(arguments=None) -> int:
    """Run the command; returns the exit status (2 for a mistake of the user's)."""
    options = parser().parse_args(arguments)
    path = Path(options.output or f"{Path(options.target.rpartition(':')[2]).stem}.html")
    try:
        check_name(path)
        page = explore(find_target(options), timed=not options.no_times)
        print(write_page(page, path))
    except (CommandError, TypeError, ValueError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.text:
        print(page)
    return 0


def parser() -> argparse.ArgumentParser:
    one = argparse.ArgumentParser(
        prog="python -m minipaddle explore",
        description="Write a page that follows each line of a function down to memory.",
        epilog=__doc__.partition("\n\n")[2], formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    shape = "shape of an input, such as 1,3,32,32 or 1,16:int64; once for each input"
    one.add_argument("target", help="FILE.py:NAME (a class, function or instance), or a .pdmodel")
    one.add_argument("--input", help=shape, action="append", default=[], metavar="SHAPE[:DTYPE]")
    one.add_argument("--no-times", action="store_true", help="do not run the program with clocks")
    one.add_argument("--text", action="store_true", help="print the chain of each line, too")
    one.add_argument("-o", "--output", help="file to write: .html")
    return one


def write_page(page: Explorer, path: Path) -> Path:
    try:
        return page.save_as(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror or error}") from None


def find_target(options):
    """The saved model that the options name, or the function or layer, called with the inputs."""
    if options.target.endswith(SAVED):
        return read_saved(options.target)
    file, _, name = options.target.rpartition(":")
    target = load(file, name)
    if is_static(target) and forward_of(target).get_traced_count():  # the file has called it
        return target
    model = build(target, name)
    if not callable(model):
        result = f"{name}() returned" if callable(target) else f"{name} is"
        raise CommandError(f"{result} a {type(model).__name__}, which cannot be called")
    inputs = [example_input(text) for text in options.input]
    check_inputs(model, name, inputs, file if is_static(model) and model is target else "")
    static = model if is_static(model) else to_static(model, backend="native")
    try:
        static(*inputs)
    except Exception as error:
        raise CommandError(explain(error, name, inputs)) from None
    return static


def read_saved(file: str):
    """A saved model."""
    if not Path(file).is_file():
        raise CommandError(f"no file {file}")
    try:
        return load_saved(file.removesuffix(SAVED))
    except OSError as error:
        what = error.filename or file
        raise CommandError(f"{what} cannot be read: {error.strerror or error}") from None


def is_static(target) -> bool:
    """Whether `to_static` has converted a function, or the forward of a layer."""
    return hasattr(forward_of(target), "program_cache")


def check_inputs(model, name: str, inputs, file: str) -> None:
    """Raise CommandError if a model takes more or fewer inputs; `file` has not called it."""
    function = getattr(forward_of(model), "dygraph_function", forward_of(model))
    try:
        inspect.signature(function).bind(*inputs)
    except TypeError as error:
        uncalled = f"{file}, when it is imported, does not call {name}; " if file else ""
        hint = "try: --input SHAPE for each input, such as --input 1,3,32,32"
        raise CommandError(f"{uncalled}{name}: {error}\n  {hint}") from None
