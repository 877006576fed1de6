"""The three files of a saved model, read together while another process may replace them."""

import math
import os
import time
from contextlib import suppress
from pathlib import Path

from ..core.files import require_file, waiting
from ..engine.core.errors import value_error
from ..ir.parser import LONGEST
from .saved import FIRST_LINE, VERSION, DamagedModel, sum_of, sum_of_weights

LARGEST = 4 * LONGEST
"""Bytes a model or a description may have."""
PATIENCE = 10.0
"""Seconds to look for a complete model while others keep saving it."""


def together(prefix: str) -> tuple[str, bytes, bytes, str]:
    """The programs, the description and the weights of one save, and their fault.

    While another process saves, or after one was killed, some names have the new files and others
    the old; the rest of the new ones waits beside them (`core/files.py`). So each file is looked
    for by the sum that the model names, again as long as the names change.
    """
    paths = [f"{prefix}{ending}" for ending in (".pdmodel", ".pdiparams.info", ".pdiparams")]
    deadline = time.monotonic() + PATIENCE
    while True:
        before = stamps(paths)
        try:
            models, descriptions, weights = map(candidates, paths, (LARGEST, LARGEST, math.inf))
        except FileNotFoundError:
            if stamps(paths) == before or time.monotonic() > deadline:
                raise
            continue
        contents = belonging(paths[0], models[0], descriptions, weights)
        for model in models[1:] if contents[-1] else []:
            with suppress(ValueError):  # it was never finished
                other = belonging(paths[0], model, descriptions, weights)
                contents = contents if other[-1] else other
        if not contents[-1] or stamps(paths) == before or time.monotonic() > deadline:
            return contents


def stamps(paths: list[str]) -> list:
    """The stamp of a file: it changes when the file is replaced, or waits to be."""
    stats = [os.stat(path) if os.path.exists(path) else None for path in paths]
    return [[s and (s.st_ino, s.st_mtime_ns) for s in stats], *map(waiting, paths)]


def candidates(path: str, largest: float) -> list[bytes]:
    """The bytes of the file of that name, then of those that wait for it, which are read first: one
    that is renamed meanwhile is found at one of both places.
    """
    contents = []
    for name in (*waiting(path), path):
        require_file(name)
        if os.path.getsize(name) > largest:
            raise DamagedModel(f"{name} is larger than {largest:,} bytes")
        contents.append(Path(name).read_bytes())
    return contents[::-1]


def belonging(name: str, model: bytes, descriptions: list, weights: list) -> tuple:
    """The return value of `together`, for one `.pdmodel`."""
    try:
        text = model.decode()
    except UnicodeDecodeError as error:
        raise DamagedModel(f"{name}: {error}") from None
    first = FIRST_LINE.match(text)
    if first is None:
        raise DamagedModel(f"{text[:60]!r} is not the first line of a model")
    version, sums, programs = int(first[1]), first[2].split(), text[first.end() :]
    if version != VERSION:
        age, hint = ("a newer", "update it") if version > VERSION else ("an older", "save it again")
        fact = f"{name} has the format {version}: {age} MiniPaddle wrote it"
        raise value_error(fact, expected=f"the format {VERSION}", hint=hint)
    sums += [""] * 3
    description, right = matching(descriptions, sums[1], sum_of)
    data, good = matching(weights, sums[2], sum_of_weights)
    ours = sum_of(programs.encode()) == sums[0]
    names = ["the programs", "the description", "the weights"]
    wrong = [name for name, fits in zip(names, (ours, right, good), strict=True) if not fits]
    problem = f"damaged, or not of one save (another SHA-256): {', '.join(wrong)}"
    return programs, description, data, problem if wrong else ""


def matching(files: list[bytes], total: str, sum_) -> tuple[bytes, bool]:
    """The bytes with this sum; the first, and False, if none has it."""
    fits = [data for data in files if sum_(data) == total]
    return (fits or files)[0], bool(fits)
