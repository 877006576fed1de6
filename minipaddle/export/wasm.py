"""A model as a WebAssembly module without imports, and a page in one file that runs it offline."""

import base64
import html
import json
import math
import shlex
import subprocess
import sys
import tempfile
import zlib
from importlib.util import find_spec
from pathlib import Path
from string import Template

from ..core.files import replace
from ..engine.codegen.kernel import read_template
from ..engine.core.errors import runtime_error
from ..jit.saved import SavedModel
from .c import OPTIONS as C_OPTIONS
from .c import LibraryFolder
from .header import HeaderArray
from .letters import OPTION as LETTERS
from .letters import as_letters, check_letters, is_reader
from .library import Library

OPTIONS = {
    **LETTERS,
    "title": {"help": "the title of the page"},
    "method": C_OPTIONS["method"],
    "name": C_OPTIONS["name"],
}
PROCESSOR = "wasm-simd"
FLAGS = (
    "-target", "wasm32-freestanding", "-nostdlib", "-Wl,--no-entry", "-msimd128", "-O2", "-s",
    "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fopenmp-simd",
    "-Wno-c23-extensions",
)  # fmt: skip
ARRAYS = {"float": "Float32Array", "double": "Float64Array", "int64_t": "BigInt64Array",
          "int32_t": "Int32Array", "int16_t": "Int16Array", "int8_t": "Int8Array",
          "uint8_t": "Uint8Array", "uint16_t": "Uint16Array"}  # fmt: skip
"""JavaScript's view of an array of each type in C."""
CLASSES = 10
SIDES = range(8, 65)
"""The sides of an image of a digit."""


def write(
    saved: SavedModel,
    path: str | Path,
    *,
    letters: str | None = None,
    title: str | None = None,
    method: str = "forward",
    name: str = "model",
) -> list[Path]:
    """Write the module, its C, and for digits, lines of text and texts a page; returns the paths.

    Raises ValueError for what C cannot compute (`c.write`), RuntimeError without zig.
    """
    library = Library(saved, method, PROCESSOR)
    folder = LibraryFolder(library, name, embed=False)
    kind = kind_of(library, as_letters(letters))
    files = {k: v for k, v in folder.files().items() if k.startswith(f"{name}.")}
    exports = "\n\n".join(
        f'EXPORT("{s.name}") {s.type} *{s.name}(void) {{ return {name}_{s.name}(arena); }}'
        for s in folder.slots
    )
    files["web.c"] = folder.fill("web.c", exports=exports).encode()
    files[f"{name}.wasm"] = module = compile_module(files, name)
    if kind is not None:
        files["index.html"] = page(title or kind.pop("title"), folder, kind, module).encode()
    files["README.md"] = readme(folder, len(module), kind is not None).encode()
    replace({str(Path(path) / file): data for file, data in files.items()})
    return [Path(path) / file for file in files]


def compile_module(files: dict[str, bytes], name: str) -> bytes:
    """The module of these files of C."""
    if find_spec("ziglang") is None:
        raise runtime_error(
            "there is no compiler for WebAssembly",
            expected="zig",
            hint='pip install "minipaddle[zig]", or pip install ziglang',
        )
    with tempfile.TemporaryDirectory() as work:
        for file, data in files.items():
            Path(work, file).write_bytes(data)
        command = [sys.executable, "-m", "ziglang", *words(name)]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"zig failed:\n{done.stderr[:2000]}")
        return Path(work, f"{name}.wasm").read_bytes()


def words(name: str) -> list[str]:
    """The words of zig's command."""
    return ["cc", *FLAGS, f"{name}.c", "web.c", "-o", f"{name}.wasm"]


# ---- the page ----------------------------------------------------------------------------------


def kind_of(library: Library, letters: str | None) -> dict | None:
    """The facts for the page of a model; None if there is no page for such a model."""
    if len(library.inputs) != 1 or not library.outputs:
        return None
    x, y = library.inputs[0].spec, library.outputs[0].spec
    if x.dtype.kind == "i" and x.ndim == 2 and x.shape[0] == 1 and y.ndim == 3:
        letters = check_letters(letters, y.shape[-1], "tokens")
        return letters and {"kind": "text", "letters": letters, "title": "A text, continued"}
    if is_reader(library):
        letters = check_letters(letters, y.shape[-1] - 1, "letters")
        return letters and {"kind": "line", "letters": letters, "title": "What does it say?"}
    side = math.isqrt(x.size)
    square = side * side == x.size and (x.ndim == 2 or x.shape[-1] == side)
    if x.dtype.name != "float32" or not square or y.size != CLASSES:
        return None
    if side not in SIDES:
        return None
    return {"kind": "digit", "side": side, "title": "Which digit is it?"}


def page(title: str, folder: LibraryFolder, kind: dict, module: bytes) -> str:
    """The page, with the compressed module in it."""
    slots = {"inputs": folder.library.inputs, "outputs": folder.library.outputs}
    facts = {key: [*map(describe, some)] for key, some in slots.items()} | kind
    text = read_template("page.html", __file__)
    inside = {
        "TITLE": html.escape(title),
        "FACTS": json.dumps(facts).replace("<", "\\u003c"),
        "MODULE": base64.b64encode(zlib.compress(module, 9)).decode(),
    }
    for word, value in inside.items():
        text = text.replace(f">{word}<", f">{value}<")
    return text


def describe(slot: HeaderArray) -> dict:
    """An input or output, as the page knows it."""
    shape = list(slot.spec.shape)
    return {"name": slot.name, "type": slot.type, "shape": shape, "count": slot.spec.size}


def readme(folder: LibraryFolder, size: int, has_page: bool) -> str:
    """The page about the module."""
    first, last = folder.slots[0], folder.library.outputs[0]
    return Template(read_template("wasm.md", __file__)).substitute(
        folder.words,
        module_size=size,
        about_page="`index.html` holds the module and runs it: open it in a browser (of 2023 or\n"
        "later).\n" * has_page,
        slots=", ".join(s.name for s in folder.slots),
        view=ARRAYS[first.type],
        count=first.spec.size,
        first_spec=first.spec,
        result=ARRAYS[last.type],
        out_count=last.spec.size,
        out_spec=last.spec,
        command=shlex.join(["python", "-m", "ziglang", *words(folder.name)]),
    )
