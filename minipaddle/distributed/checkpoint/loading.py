"""`load_state_dict`: each rank reads the rows that its own pieces have in common with the files."""

from __future__ import annotations

import os
from pathlib import Path as File

import safetensors

from ...core.prelude import Tensor, dt, not_supported, type_error, value_error
from ...engine.eager.device import NUMPY, current_place
from ...engine.eager.tensor import wrap
from ...engine.sharding.array import sharded
from ...io.serialization import DTYPES as FORMAT_DTYPES
from ...io.serialization import mend_bools
from ..collectives.tape_or_group import number_in
from ..ranks.known_groups import group_of
from .agreeing import together
from .boxes import Box, assemble, box_of
from .manifest import DTYPES, Manifest, SavedTensor, ids, natural, parse, size_and_sum
from .nested import flat, hollow, put, where
from .saving import wait_for_save


def load_state_dict(
    state_dict,
    path,
    process_group=None,
    coordinator_rank=0,
    unique_id=None,
    offload=False,
    mw_name_compatibility=True,
    aoa_config=None,
    safetensors=False,
    worker_groups=None,
    comm_method="broadcast",
) -> None:
    """Fill the tensors of `state_dict` from a checkpoint of `save_state_dict`, whatever mesh wrote
    it; numbers and strings in it are replaced.

    All ranks of `process_group` call it. A rank reads only rows that its pieces need; each file is
    read once more, by one of the ranks, to compare its sum. `unique_id` is that of the checkpoint
    in the folder `path`; None: the highest. A dict in `state_dict` with no tensor in it or below
    (the states of an optimizer before its first step) gets all that the checkpoint has there,
    whole, for `set_state_dict`. Nothing is changed unless all ranks could read everything.
    `offload`: files are read into host memory in any case. `safetensors`, `comm_method` and
    `mw_name_compatibility` change nothing.

    Raises on all ranks what one raises: FileNotFoundError; ValueError for a damaged file, and for a
    tensor that is not in the checkpoint, or has another shape or dtype there.

    >>> import tempfile
    >>> import minipaddle.distributed as dist
    >>> folder = tempfile.mkdtemp()
    >>> dist.save_state_dict({"x": paddle.arange(3), "epoch": 7}, folder)
    >>> state = {"x": paddle.zeros([3], "int64"), "epoch": 0}
    >>> dist.load_state_dict(state, folder)
    >>> state["x"].tolist(), state["epoch"]
    ([0, 1, 2], 7)
    """
    for name, given in (("aoa_config", aoa_config), ("worker_groups", worker_groups)):
        if given is not None:
            raise not_supported(f"load_state_dict with {name}={given!r:.40}", expected="None")
    wait_for_save()
    here = group_of(process_group)
    if here.rank < 0:
        return
    root, path = number_in(process_group, coordinator_rank), os.path.abspath(path)
    look = lambda: metadata(path, unique_id) if here.rank == root else None
    name, text = together(here, look)[root]
    found: dict = {}  # what this rank has read

    def read() -> None:
        manifest = parse(text, name)
        check_files(path, manifest, here.rank, here.size)
        found.update(find_wanted(state_dict, manifest, path, name))

    together(here, read)
    for place, value in found.items():
        given = target(state_dict, place)
        if isinstance(given, Tensor):
            given.set_value(wrap(on_place_of(given, value)))
        else:
            plain = not isinstance(value, NUMPY.ndarray)
            put(state_dict, place, value if plain else wrap(current_place().move(value)))


def metadata(path: str, unique_id) -> tuple[str, str]:
    """The name of the metadata file, and its text."""
    there = ids(path)
    number = max(there, default=None) if unique_id is None else natural(unique_id)
    if number not in there:
        which = "a checkpoint" if unique_id is None else f"a checkpoint with unique_id={number}"
        raise FileNotFoundError(f"{path} has no file of {which}: it has {there or 'none'}")
    name = os.path.join(path, f"{number}.metadata")
    return name, File(name).read_text("utf-8")


def check_files(path: str, manifest: Manifest, rank: int, size: int) -> None:
    """Raise ValueError if a file is damaged: each file is read by one rank."""
    for name, known in sorted(manifest.files.items())[rank::size]:
        file = os.path.join(path, name)
        if not os.path.isfile(file):
            raise FileNotFoundError(f"{file} is missing: it is a part of the checkpoint")
        if (now := size_and_sum(file)) != known:
            wrong = [f"{n} bytes with the CRC-32 {crc:08x}" for n, crc in (now, known)]
            raise value_error(f"{file} is damaged: it has {wrong[0]}", expected=wrong[1])


def find_wanted(state_dict, manifest: Manifest, path: str, name: str) -> dict:
    """{path: array or value} of what the state dict asks for."""
    if not isinstance(state_dict, dict):
        raise type_error(f"a state dict that is a {type(state_dict).__name__}", expected="a dict")
    given, files = flat(state_dict), Files(path)
    open_dicts = hollow(state_dict)
    whole = {
        place: None
        for place in [*manifest.tensors, *manifest.values]
        if any(place[: len(above)] == above for above in open_dicts)
    }
    found = {}
    for place, x in (whole | given).items():
        if place in manifest.tensors and (x is None or isinstance(x, Tensor)):
            saved = manifest.tensors[place]
            box = tuple((0, n) for n in saved.shape) if x is None else check_box(x, saved, place)
            found[place] = files.read(saved, box)
        elif place in manifest.values and not isinstance(x, Tensor):
            found[place] = manifest.values[place]
        else:
            there = ", ".join(map(where, [*manifest.tensors, *manifest.values]))
            raise value_error(f"{where(place)} is not in {name}", expected=f"one of {there:.300}")
    return found


def check_box(x: Tensor, saved: SavedTensor, place) -> Box:
    """The box that this rank has of a tensor that is like the saved one."""
    array = x.array
    if (tuple(array.shape), x.dtype.name) != (saved.shape, saved.dtype):
        raise value_error(
            f"{where(place)} is {x.spec} here", expected=f"{saved.spec}, as in the checkpoint"
        )
    if sharded(array) and any(p.is_partial() for p in array.placements):
        raise value_error(
            f"{where(place)} is of terms: {[*array.placements]}", expected="pieces or whole tensors"
        )
    return box_of(array)


def target(state, place):
    """The value at a place of a state dict, or None."""
    for key in place:
        state = state.get(key) if isinstance(state, dict) else None
    return state


def on_place_of(x: Tensor, piece):
    """A piece that was read, as an array like that of a tensor."""
    array = x.array
    moved = x.place.move(piece)
    return array.like(moved) if sharded(array) else moved


class Files:
    """The files of a checkpoint: each is opened once."""

    def __init__(self, path: str):
        self.path, self.open = path, {}

    def read(self, saved: SavedTensor, box: Box):
        """The rows of a tensor that a box has."""
        rows = lambda file, outer, index: mend_bools(self.rows(file, saved, outer, index))
        return assemble(box, DTYPES[saved.dtype].numpy, saved.pieces, rows)

    def rows(self, file: str, saved: SavedTensor, outer: Box, index: tuple):
        """Rows of a piece that a file has."""
        name = os.path.join(self.path, file)
        try:
            if file not in self.open:
                if not os.path.isfile(name):  # who opens a pipe waits for a writer
                    raise FileNotFoundError(name)
                self.open[file] = safetensors.safe_open(name, "np")
            piece = self.open[file].get_slice(saved.name)
            known = dt.public(DTYPES[saved.dtype].numpy), [rows for _, rows in outer]
            there = FORMAT_DTYPES.get(piece.get_dtype()), [*piece.get_shape()]
            if there != known:
                raise value_error(f"{name}: {saved.name} is {there}", expected=f"{known}")
            return piece[index]
        except FileNotFoundError:
            raise FileNotFoundError(f"{name} is missing: it is a part of the checkpoint") from None
        except safetensors.SafetensorError as error:
            raise value_error(f"{name} is damaged: {saved.name}: {error}") from None
