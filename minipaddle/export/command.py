"""`python -m minipaddle export MODEL --to c`: a model for programs without Python.

examples:
  python -m minipaddle export digits --to c                (what jit.save("digits") wrote)
  python -m minipaddle export digits --to c --input 1,1,8,8 --processor x86-64-v3
  python -m minipaddle export model.py:Net --input 1,1,8,8 --to wasm -o page
"""

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path

from ..engine.core.dim import Dim
from ..engine.passes.specialise import sizes_of, specialise
from ..ir.input_spec import InputSpec
from ..jit.formats import FORMATS, export
from ..jit.loading import load
from ..jit.saved import SavedModel
from ..jit.saving import model_of
from ..jit.target import CommandError, build, read_spec
from ..jit.target import load as object_in_file


def main(arguments=None) -> int:
    """Run the command; returns the exit status (2 for a mistake of the user's)."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    first.add_argument("--to")
    options = vars(parser(first.parse_known_args(arguments)[0].to).parse_args(arguments))
    try:
        target, to, inputs, output = map(options.pop, ("target", "to", "input", "output"))
        name = Path(target.rpartition(":")[2] or target).name
        saved = model(target, [read_spec(text) for text in inputs])
        chosen = {key: value for key, value in options.items() if value is not None}
        paths = export(saved, output or f"{name}{FORMATS[to].ending}", to, **chosen)
    except (CommandError, ValueError, TypeError, OSError) as error:
        text = re.sub(r"\n  at: \S*__main__\.py:.*", "", str(error))  # no line of the user's
        print(f"error: {text}", file=sys.stderr)
        return 2
    print(*paths, sep="\n")
    return 0


def parser(to: str | None) -> argparse.ArgumentParser:
    """The parser, with the options of a format if there is one of this name."""
    one = argparse.ArgumentParser(
        prog="python -m minipaddle export",
        description="Write a model in a form that runs without Python.",
        epilog=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    formats = "; ".join(f"{name}: {form.about}" for name, form in FORMATS.items())
    shape = "shape of an input, such as 1,1,8,8 or 1,16:int64; once for each input"
    many = {"action": "append", "default": [], "metavar": "SHAPE[:DTYPE]"}
    one.add_argument("target", help="the path that jit.save was given, or FILE.py:NAME")
    one.add_argument("--to", required=True, choices=FORMATS, help=formats)
    one.add_argument("--input", help=shape, **many)
    one.add_argument("-o", "--output", help="what to write; by default, a name beside the model's")
    for name, words in (FORMATS[to].load().OPTIONS if to in FORMATS else {}).items():
        one.add_argument(f"--{name.replace('_', '-')}", **{"default": None} | words)
    return one


def model(target: str, specs: list) -> SavedModel:
    """The model that a command names, for inputs of these specs."""
    file, _, name = target.rpartition(":")
    if file.endswith(".py") or target.endswith(".py"):
        if not specs:
            raise CommandError(f"{target}: give the shape of its input, such as --input 1,1,8,8")
        built = build(object_in_file(file, name), name)
        if hasattr(built, "eval"):
            built.eval()
        return model_of(built, [InputSpec(s.shape, s.dtype) for s in specs], {})
    saved = load(target).to_saved_model()
    return fix_inputs(saved, specs) if specs else saved


def fix_inputs(saved: SavedModel, specs: list) -> SavedModel:
    """The model whose `forward` has inputs of these shapes, its open sizes being numbers."""
    if "forward" not in saved.methods:
        raise CommandError(f"--input is for forward; the model has {', '.join(saved.methods)}")
    method = saved.methods["forward"]
    program = method.program
    for k, record in enumerate(program.inputs):
        name, spec = record.attrs["name"], record.spec
        wanted = specs[k] if k < len(specs) else None
        fits = wanted is not None and wanted.dtype == spec.dtype and wanted.ndim == spec.ndim
        if not fits or any(a != b for a, b in zip(wanted.shape, spec.shape) if type(b) is not Dim):
            raise CommandError(f"--input for {name}: {wanted}\n  expected: {spec}")
    if len(specs) > len(program.inputs):
        raise CommandError(f"{len(specs)} times --input, but {len(program.inputs)} inputs")
    program = specialise(program, sizes=sizes_of(program, [s.shape for s in specs]))
    fixed = replace(method, program=program)
    return SavedModel({**saved.methods, "forward": fixed}, saved.states, saved.properties)
