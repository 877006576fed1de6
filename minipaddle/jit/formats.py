"""The formats of other runtimes that a saved model can be written in, by name."""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from ..engine.core.errors import value_error
from .saved import SavedModel


class ExportFormat(NamedTuple):
    """A format: the module that writes it, the end of a file or folder by default, and what comes
    out, for `--help`.

    The module has `write(saved, path, **options) -> list[Path]`, which returns the paths written,
    and `OPTIONS`: the name of each option -> the keywords of `argparse`'s `add_argument`. It is
    imported when somebody wants the format.
    """

    module: str
    ending: str
    about: str

    def load(self) -> ModuleType:
        """The module."""
        return import_module(f"minipaddle.{self.module}")


FORMATS: dict[str, ExportFormat] = {
    "c": ExportFormat(
        "export.c",
        "_c",
        "a folder: model.c, model.h, weights, examples, a Makefile, and paddle_inference_api.h for "
        "programs in C++ that use Paddle's predictors",
    ),
    "wasm": ExportFormat(
        "export.wasm", "_wasm", "a folder: a WebAssembly module and a page that runs it"
    ),
    "onnx": ExportFormat("onnx.exporting", ".onnx", "a file for ONNX Runtime and other frameworks"),
}
"""To add a format, write a row and its module."""


def format_named(name: str) -> ExportFormat:
    """The format of this name; ValueError if there is none."""
    if name not in FORMATS:
        raise value_error(f"there is no format {name!r}", expected=f"one of {', '.join(FORMATS)}")
    return FORMATS[name]


def export(saved: SavedModel, path: str | Path, name: str, /, **options) -> list[Path]:
    """Write a model in the format of that name; returns the paths written."""
    module = format_named(name).load()
    if unknown := options.keys() - module.OPTIONS:
        raise value_error(
            f"the format {name} has no option {min(unknown)!r}",
            expected=f"one of {', '.join(module.OPTIONS)}",
        )
    return module.write(saved, path, **options)
