"""`load_state_dict`: each rank reads the rows of its own shards from the files."""

from __future__ import annotations

import os
from pathlib import Path as File

import safetensors

from ...core.prelude import Tensor, dt, not_supported, type_error, value_error, wrap
from ...engine.eager.device import NUMPY, current_place
from ...engine.sharding.array import sharded
from ...io.serialization import DTYPES as FORMAT_DTYPES
from ...io.serialization import mend_bools
from ..collectives.tape_or_group import number_in
from ..ranks.known_groups import group_of
from .agreeing import run_together
from .boxes import Box, assemble, box_of
from .manifest import DTYPES, Manifest, SavedTensor, ids, parse, require_natural, size_and_sum
from .nested import find_hollow, flatten_state, format_path, put
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

    All ranks of `process_group` call it. A rank reads only rows that its shards need; one of the
    ranks reads each file once more, to compare its sum. `unique_id` is the checkpoint's in the
    folder `path`; None: the highest. A dict in `state_dict` with no tensor in it or below (the
    states of an optimizer before its first step) gets all that the checkpoint has there, as full
    tensors, for `set_state_dict`. Nothing changes unless all ranks could read everything. Files are
    always read into host memory: `offload` changes nothing, nor do `safetensors`, `comm_method` and
    `mw_name_compatibility`.

    Raises on all ranks the error of one: FileNotFoundError; ValueError for a damaged file, and for
    a tensor that is not in the checkpoint, or has another shape or dtype there.

    >>> import tempfile
    >>> import minipaddle.distributed as dist
    >>> folder = tempfile.mkdtemp()
    >>> dist.save_state_dict({"x": paddle.arange(3), "epoch": 7}, folder)
    >>> state = {"x": paddle.zeros([3], "int64"), "epoch": 0}
    >>> dist.load_state_dict(state, folder)
    >>> state["x"].tolist(), state["epoch"]
    ([0, 1, 2], 7)
    """
    for name, argument in (("aoa_config", aoa_config), ("worker_groups", worker_groups)):
        if argument is not None:
            raise not_supported(f"load_state_dict with {name}={argument!r:.40}", expected="None")
    wait_for_save()
    here = group_of(process_group)
    if here.rank < 0:
        return
    root, path = number_in(process_group, coordinator_rank), os.path.abspath(path)
    look = lambda: read_metadata(path, unique_id) if here.rank == root else None
    name, text = run_together(here, look)[root]
    loaded: dict = {}  # by this rank

    def read() -> None:
        manifest = parse(text, name)
        check_files(path, manifest, here.rank, here.size)
        loaded.update(find_wanted(state_dict, manifest, path, name))

    run_together(here, read)
    for keys, value in loaded.items():
        tensor = find_target(state_dict, keys)
        if isinstance(tensor, Tensor):
            tensor.set_value(wrap(move_to_place(tensor, value)))
        else:
            plain = not isinstance(value, NUMPY.ndarray)
            put(state_dict, keys, value if plain else wrap(current_place().move(value)))


def read_metadata(path: str, unique_id) -> tuple[str, str]:
    """The name of the metadata file, and its text."""
    there = ids(path)
    number = max(there, default=None) if unique_id is None else require_natural(unique_id)
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
    """Read what the state dict asks for: {path: array or value}."""
    if not isinstance(state_dict, dict):
        raise type_error(f"a state dict that is a {type(state_dict).__name__}", expected="a dict")
    wanted, files = flatten_state(state_dict), Files(path)
    open_dicts = find_hollow(state_dict)
    unnamed = {
        keys: None
        for keys in [*manifest.tensors, *manifest.values]
        if any(keys[: len(above)] == above for above in open_dicts)
    }
    loaded = {}
    for keys, x in (unnamed | wanted).items():
        if keys in manifest.tensors and (x is None or isinstance(x, Tensor)):
            saved = manifest.tensors[keys]
            box = tuple((0, n) for n in saved.shape) if x is None else check_box(x, saved, keys)
            loaded[keys] = files.read(saved, box)
        elif keys in manifest.values and not isinstance(x, Tensor):
            loaded[keys] = manifest.values[keys]
        else:
            there = ", ".join(map(format_path, [*manifest.tensors, *manifest.values]))
            missing = f"{format_path(keys)} is not in {name}"
            raise value_error(missing, expected=f"one of {there:.300}")
    return loaded


def check_box(x: Tensor, saved: SavedTensor, keys) -> Box:
    """The box that this rank has of a tensor; ValueError if the saved one differs."""
    array = x.array
    if (tuple(array.shape), x.dtype.name) != (saved.shape, saved.dtype):
        raise value_error(
            f"{format_path(keys)} is {x.spec} here", expected=f"{saved.spec}, as in the checkpoint"
        )
    if sharded(array) and any(p.is_partial() for p in array.placements):
        raise value_error(
            f"{format_path(keys)} is of terms: {[*array.placements]}",
            expected="pieces or whole tensors",
        )
    return box_of(array)


def find_target(state, keys):
    """The value at a path of a state dict, or None."""
    for key in keys:
        state = state.get(key) if isinstance(state, dict) else None
    return state


def move_to_place(x: Tensor, rows):
    """Move rows that were read to the place of a tensor, as an array like its own."""
    array = x.array
    moved = x.place.move(rows)
    return array.like(moved) if sharded(array) else moved


class Files:
    """The files of a checkpoint; each is opened once."""

    def __init__(self, path: str):
        self.path, self.open = path, {}

    def read(self, saved: SavedTensor, box: Box):
        """Read the part of a tensor in a box."""
        rows = lambda file, outer, index: mend_bools(self.rows(file, saved, outer, index))
        return assemble(box, DTYPES[saved.dtype].numpy, saved.pieces, rows)

    def rows(self, file: str, saved: SavedTensor, outer: Box, index: tuple):
        """Read rows of a piece from its file."""
        name = os.path.join(self.path, file)
        try:
            if file not in self.open:
                if not os.path.isfile(name):  # who opens a pipe waits for a writer
                    raise FileNotFoundError(name)
                self.open[file] = safetensors.safe_open(name, "np")
            slices = self.open[file].get_slice(saved.name)
            known = dt.public(DTYPES[saved.dtype].numpy), [rows for _, rows in outer]
            there = FORMAT_DTYPES.get(slices.get_dtype()), [*slices.get_shape()]
            if there != known:
                raise value_error(f"{name}: {saved.name} is {there}", expected=f"{known}")
            return slices[index]
        except FileNotFoundError:
            raise FileNotFoundError(f"{name} is missing: it is a part of the checkpoint") from None
        except safetensors.SafetensorError as error:
            raise value_error(f"{name} is damaged: {saved.name}: {error}") from None
