"""The file `<id>.metadata` of a checkpoint: its tensors, and which rows are in which file.

It is JSON:

| key       | value                                                                               |
|-----------|-------------------------------------------------------------------------------------|
| `format`  | `"minipaddle checkpoint 1"`                                                         |
| `files`   | for each file, by name, `bytes` and `crc32`                                         |
| `tensors` | for each tensor `path` (the keys that lead to it), `shape`, `dtype`, `placements`   |
|           | (as text, for people; None: each rank had it whole), and `pieces`: `file`, and      |
|           | `box`, [first row, rows] of each axis                                               |
| `values`  | for each number or string `path` and `value`                                        |

A checkpoint exists once this file does: it gets its name in one step, after all others are on the
disk. The others are safetensors files `<rank>_<id>.<token>.safetensors`, where the token is new for
each save, so that no file of an older checkpoint changes. A file is data, never an instruction:
names, numbers and sizes are checked before they are used.
"""

import json
import os
import re
import zlib
from math import prod
from typing import NamedTuple

from ...core.prelude import dt, value_error
from .boxes import Box, fills, volume
from .nested import Path, format_path, name_paths

FORMAT = "minipaddle checkpoint 1"
FILE = re.compile(r"\d{1,9}_(\d{1,9})\.[0-9a-f]{16}\.safetensors")
METADATA = re.compile(r"(\d{1,9})\.metadata")
DTYPES = {d.name: d for d in dt.DType._by_numpy.values()}


class SavedTensor(NamedTuple):
    """A tensor of a checkpoint: `pieces` are (file, box)."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    pieces: list[tuple[str, Box]]
    placements: str | None = None

    @property
    def spec(self) -> str:
        """Its dtype and shape as errors show them."""
        return f"{self.dtype}{list(self.shape)}"


class Manifest(NamedTuple):
    """The contents of a checkpoint: `tensors` and `values` by path; of each file (bytes, sum)."""

    files: dict[str, tuple[int, int]]
    tensors: dict[Path, SavedTensor]
    values: dict[Path, object]

    def text(self) -> str:
        """The text of the file."""
        tensors = [
            {
                "path": path,
                "shape": x.shape,
                "dtype": x.dtype,
                "placements": x.placements,
                "pieces": [{"file": file, "box": box} for file, box in x.pieces],
            }
            for path, x in self.tensors.items()
        ]
        data = {
            "format": FORMAT,
            "files": {name: {"bytes": n, "crc32": crc} for name, (n, crc) in self.files.items()},
            "tensors": tensors,
            "values": [{"path": path, "value": value} for path, value in self.values.items()],
        }
        return json.dumps(data, indent=1)


def parse(content: str, file: str) -> Manifest:
    """Parse the manifest of a file; ValueError if it makes no sense."""
    try:
        return build(json.loads(content))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise value_error(f"{file} is damaged: {error!r:.160}") from None


def build(data: dict) -> Manifest:
    """Build the manifest from JSON data."""
    if data["format"] != FORMAT:
        raise ValueError(f"the format {data['format']!r:.40}, not {FORMAT!r}")
    files = {}
    for name, entry in data["files"].items():
        if not FILE.fullmatch(name):
            raise ValueError(f"{name!r:.80} is no name of a file of a checkpoint")
        files[name] = require_natural(entry["bytes"]), require_natural(entry["crc32"])
    tensors = [(path_of(entry), read_tensor_entry(entry, files)) for entry in data["tensors"]]
    values = [(path_of(entry), entry["value"]) for entry in data["values"]]
    require_places(name_paths([path for path, _ in [*tensors, *values]]).values())
    require_room([x for _, x in tensors], files)
    return Manifest(files, dict(tensors), dict(values))


def require_places(paths) -> None:
    """ValueError if a path leads through a value that is no dict."""
    for path in (there := set(paths)):
        for k in range(1, len(path)):
            if path[:k] in there:
                outer, inner = format_path(path[:k]), format_path(path)
                raise ValueError(f"{inner} lies in {outer}, which is no dict")


def require_room(tensors: list[SavedTensor], files: dict) -> None:
    """ValueError if files are smaller than the pieces that they should have: no memory is taken for
    a size that is only claimed.
    """
    needed = dict.fromkeys(files, 0)
    for x in tensors:
        for file, box in x.pieces:
            needed[file] += volume(box) * DTYPES[x.dtype].numpy.itemsize
    for file, n in needed.items():
        if n > files[file][0]:
            raise ValueError(f"{file} has {files[file][0]} bytes, its pieces {n}")


def path_of(entry: dict) -> Path:
    """The path of a tensor or value."""
    path = entry["path"]
    if type(path) is not list or not path or any(type(key) is not str for key in path):
        raise ValueError(f"the path {path!r:.80}")
    return tuple(path)


def read_tensor_entry(entry: dict, files: dict) -> SavedTensor:
    """A tensor, whose pieces make the whole."""
    name, shape = ".".join(path_of(entry)), tuple(require_natural(n) for n in entry["shape"])
    pieces = []
    for piece in entry["pieces"]:
        box = tuple((require_natural(start), require_natural(rows)) for start, rows in piece["box"])
        if piece["file"] not in files:
            raise ValueError(f"{name}: no file {piece['file']!r:.80} is listed")
        if any(start + rows > n for (start, rows), n in zip(box, shape, strict=True)):
            raise ValueError(f"{name}: {box} is not inside of {list(shape)}")
        pieces.append((piece["file"], box))
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"{name}: no dtype {entry['dtype']!r:.40}")
    if not prod(shape) == 0 == len(pieces) and not fills(
        [box for _, box in pieces], tuple((0, n) for n in shape)
    ):
        raise ValueError(f"{name}: its pieces do not make the whole of {list(shape)}")
    return SavedTensor(name, shape, entry["dtype"], pieces, entry["placements"])


def require_natural(n) -> int:
    """Return a whole number, 0 or more; ValueError for anything else."""
    if type(n) is not int or n < 0:
        raise ValueError(f"{n!r:.40} where a number of rows or bytes stands")
    return n


# ---- the folder ----------------------------------------------------------------------------------


def ids(folder: str) -> list[int]:
    """The numbers of the checkpoints in a folder."""
    matches = map(METADATA.fullmatch, os.listdir(folder) if os.path.isdir(folder) else [])
    return sorted(int(m[1]) for m in matches if m and os.path.isfile(os.path.join(folder, m[0])))


def prune(folder: str) -> None:
    """Remove all checkpoints of a folder but the newest, and what is left of older saves."""
    if not (there := ids(folder)):
        return
    for number in there[:-1]:  # first what makes it a checkpoint: it is gone in one step
        os.unlink(os.path.join(folder, f"{number}.metadata"))
    for match in filter(None, map(FILE.fullmatch, os.listdir(folder))):
        if int(match[1]) < there[-1]:
            os.unlink(os.path.join(folder, match[0]))


def size_and_sum(path: str) -> tuple[int, int]:
    """The bytes of a file, and their CRC-32."""
    crc, size = 0, 0
    with open(path, "rb") as file:
        while block := file.read(1 << 22):
            crc, size = zlib.crc32(block, crc), size + len(block)
    return size, crc
