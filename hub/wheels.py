"""Networks that lie in other packages' wheels: found where pip put them, never downloaded."""

from importlib.util import find_spec
from pathlib import Path

from minipaddle.engine.core.errors import runtime_error
from minipaddle.onnx.graph import library


def find_file(package: str, name: str, wheel: str) -> Path:
    """A file inside an installed package, which is not imported."""
    spec = find_spec(package)
    folders = [] if spec is None else [*map(Path, spec.submodule_search_locations or ())]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    what = f"the package {package} is not installed" if spec is None else f"{package} has no {name}"
    raise runtime_error(what, hint=f"pip install {wheel}")


def read_letters(path: Path) -> list[str]:
    """The letters of a reader's classes after CTC's blank: those that its file lists, a space."""
    properties = {p.key: p.value for p in library().load(path).metadata_props}
    return [*properties["character"].splitlines(), " "]
