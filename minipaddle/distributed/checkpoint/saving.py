"""`save_state_dict`: each rank writes the pieces that it owns; then, in one step, the checkpoint
exists.
"""

import atexit
import os
import secrets
import threading
from contextlib import suppress
from functools import partial

from ...core import files
from ...core.prelude import Tensor, not_supported, per_rank, type_error, value_error
from ...engine.eager.device import CPU
from ...engine.sharding.array import sharded
from ...io.serialization import write as write_tensors
from ..collectives.tape_or_group import number_in
from ..failures.restarting import note_step
from ..ranks.known_groups import current_groups, group_of
from .agreeing import decide_together, outcomes, raise_or_return, run_together
from .boxes import box_of, choose_owners, fills, volume
from .manifest import FILE, Manifest, SavedTensor, ids, require_natural, size_and_sum
from .nested import flatten_state, format_path


def save_state_dict(
    state_dict,
    path,
    process_group=None,
    coordinator_rank=0,
    unique_id=None,
    async_save=False,
    safetensors=False,
    save_replicas=False,
) -> None:
    """Write sharded and local tensors as a checkpoint that any mesh can load.

    All ranks of `process_group` call it. `state_dict` has tensors, numbers, strings and dicts of
    them; the numbers must agree. `path` is a folder that all ranks see. One of the
    ranks that hold a piece writes it (all ranks hold a local tensor). The folder gets a safetensors
    file of each rank that writes, and `<unique_id>.metadata`, JSON, by the rank
    `coordinator_rank`. Without `unique_id` it is one more than the last one in the folder; a
    checkpoint with the same number is replaced.

    The checkpoint appears complete or not at all: a rank that dies or fails, or a full disk, leaves
    the old one. With `async_save` the tensors are copied, and a thread writes them while training
    continues; the next save, the next load and the rank's end wait for it and raise its error.
    Files are safetensors with any value of `safetensors`; nothing is pickled.

    Raises on all ranks the error of one: TypeError for values that cannot be saved, ValueError for
    a partial tensor (`Partial`) and for ranks that do not fit together, OSError.

    >>> import tempfile
    >>> import minipaddle.distributed as dist
    >>> folder = tempfile.mkdtemp()
    >>> def work(ranks, placement):
    ...     x = paddle.zeros([5]) if placement is None else paddle.arange(5, dtype="float32")
    ...     mesh = dist.ProcessMesh(ranks)
    ...     x = dist.shard_tensor(x, mesh, [placement or dist.Replicate()])
    ...     save_or_load = dist.save_state_dict if placement else dist.load_state_dict
    ...     save_or_load({"x": x}, folder)
    ...     return x.tolist()
    >>> _ = dist.spawn(work, args=([0, 1, 2], dist.Shard(0)), nprocs=3)
    >>> dist.spawn(work, args=([0, 1], None), nprocs=2).results[1]
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    wait_for_save()
    if save_replicas:
        raise not_supported("save_replicas=True", expected="False: a piece is written once")
    here = group_of(process_group)
    if here.rank < 0:
        return
    root, path = number_in(process_group, coordinator_rank), os.path.abspath(path)
    arrays: dict = {}
    descriptions = run_together(here, lambda: describe_state(state_dict, arrays, path, unique_id))
    number, token = descriptions[root]["id"], descriptions[root]["token"]
    manifest, names = plan(descriptions, here, number, token)
    mine = {name: copy_to_host(arrays[name], async_save) for name in names}
    target = os.path.join(path, file_name(here.ranks[here.rank], number, token))
    work = partial(commit, here, root, target, mine, manifest, number)
    if async_save:
        pending.now.start(work)
    else:
        work()


def describe_state(state_dict, arrays: dict, path: str, unique_id) -> dict:
    """Describe this rank's state to the others; put its arrays into `arrays` by their names."""
    if not isinstance(state_dict, dict):
        raise type_error(f"a state dict that is a {type(state_dict).__name__}", expected="a dict")
    tensors, values = [], []
    for keys, x in flatten_state(state_dict).items():
        if not isinstance(x, Tensor):
            values.append([keys, x])
            continue
        array, how = x.array, None
        if sharded(array):
            if any(p.is_partial() for p in array.placements):
                raise value_error(
                    f"{format_path(keys)} is of terms: {[*array.placements]}",
                    expected="pieces or whole tensors",
                    hint="dist.reshard(x, mesh, [dist.Replicate()]) first",
                )
            how = f"{[*array.placements]} on {array.view.mesh}"
        arrays[".".join(keys)] = array
        tensors.append([keys, tuple(array.shape), x.dtype.name, box_of(array), how])
    if unique_id is None:
        unique_id = max(ids(path), default=-1) + 1
    token = secrets.token_hex(8)
    return {"tensors": tensors, "values": values, "id": require_natural(unique_id), "token": token}


def plan(descriptions: list, here, number: int, token: str) -> tuple[Manifest, list[str]]:
    """The manifest, still without sums, and the names of the tensors that this rank writes. Every
    rank makes the same; ValueError if the descriptions do not fit together.
    """
    tensors, values, holders, weights = {}, {}, {}, {}
    for rank, all_of in zip(here.ranks, descriptions, strict=True):
        for path, value in all_of["values"]:
            first = values.setdefault(path, value)
            if repr(first) != repr(value):
                message = f"{format_path(path)} is {value!r} in rank {rank}, {first!r} before it"
                raise value_error(message)
        for path, shape, dtype, box, how in all_of["tensors"]:
            name = ".".join(path)
            first = tensors.setdefault(path, SavedTensor(name, shape, dtype, [], how))
            if (first.shape, first.dtype) != (shape, dtype):
                other = SavedTensor(name, shape, dtype, []).spec
                message = f"{format_path(path)} is {other} in rank {rank}, {first.spec} before it"
                raise value_error(message)
            if volume(box):
                holders.setdefault((path, box), []).append(rank)
                weights[path, box] = volume(box)
    names, me = [], here.ranks[here.rank]
    for (path, box), rank in choose_owners(holders, weights, here.ranks).items():
        tensors[path].pieces.append((file_name(rank, number, token), box))
        names += [tensors[path].name] if rank == me else []
    for path, x in tensors.items():
        x.pieces.sort(key=lambda piece: piece[1])
        if not fills([box for _, box in x.pieces], tuple((0, n) for n in x.shape)):
            boxes = [box for _, box in x.pieces]
            raise value_error(
                f"the pieces of {format_path(path)} do not make the whole of {x.spec}: {boxes}",
                hint="all ranks give it the same mesh and placements",
            )
    return Manifest({}, tensors, values), names


def file_name(rank: int, number: int, token: str) -> str:
    """The name of a rank's file."""
    return f"{rank}_{number}.{token}.safetensors"


def copy_to_host(array, copied: bool):
    """Copy a rank's piece to a NumPy array in row-major order."""
    local = CPU.move(array.local if sharded(array) else array)
    return local.copy(order="C") if copied or not local.flags.c_contiguous else local


# ---- writing -------------------------------------------------------------------------------------


def commit(here, root: int, target: str, arrays: dict, manifest: Manifest, number: int) -> None:
    """Write this rank's file; when all ranks have, the rank `root` publishes the checkpoint."""
    ready = lambda answers: publish(target, number, manifest, lambda: outcomes(answers, here))
    raise_or_return(decide_together(here, root, lambda: write(target, arrays), ready))


def write(target: str, arrays: dict) -> list | None:
    """Write a rank's file to the disk: [its name, its bytes, their sum]; None if it is empty."""
    if not arrays:
        return None
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        files.write(target, partial(write_tensors, arrays, {}), target)
        return [os.path.basename(target), *size_and_sum(target)]
    except BaseException:
        with suppress(OSError):
            os.unlink(target)
        raise


def publish(target: str, number: int, manifest: Manifest, reports) -> None:
    """Publish the checkpoint: its metadata gets its name when all else is on the disk. Then remove
    the files of an older one with the same number; after a failure, the files of this one.
    """
    folder, token = os.path.dirname(target), os.path.basename(target).split(".")[1]
    path = os.path.join(folder, f"{number}.metadata")
    try:
        sums = {name: (size, crc) for name, size, crc in filter(None, reports())}
        neighbour = files.neighbour_of(path)
        files.write(neighbour, manifest._replace(files=sums).text().encode(), path)
        files.sync_folder(folder)
        os.replace(neighbour, path)
        note_step()
    except BaseException:
        remove(folder, path, lambda name, _: f".{token}." in name)
        raise
    with suppress(OSError):  # from here on the checkpoint exists
        files.sync_folder(folder)
    remove(folder, path, lambda name, of: of == number and name not in sums)


def remove(folder: str, path: str, unwanted) -> None:
    """Remove unwanted files of a folder, and files that wait for the name `path`."""
    with suppress(OSError):
        matches = [match for match in map(FILE.fullmatch, os.listdir(folder)) if match]
        names = [m[0] for m in matches if unwanted(m[0], int(m[1]))]
        for each in [*files.waiting(path), *(os.path.join(folder, name) for name in names)]:
            os.unlink(each)


class Pending:
    """The checkpoint that a thread of this rank writes, if one does."""

    def __init__(self):
        self.thread, self.error = None, None

    def __copy__(self):
        return Pending()

    def start(self, work) -> None:
        """Let a thread do some work; the rank's end waits for it."""
        if wait_for_save not in current_groups().before_end:
            current_groups().before_end.append(wait_for_save)
        self.thread = threading.Thread(target=self.run, args=(work,), name="checkpoint")
        self.thread.start()

    def run(self, work) -> None:
        try:
            work()
        except BaseException as error:
            self.error = error

    def wait(self) -> None:
        """Wait until it is written; raise the error of the thread, once."""
        if self.thread is not None:
            self.thread.join()
            self.thread, error, self.error = None, self.error, None
            if error is not None:
                error.add_note("(in the thread of save_state_dict with async_save=True)")
                raise error


pending = per_rank(Pending())


def wait_for_save() -> None:
    """Wait for the checkpoint that a thread of this rank writes; raise its error."""
    pending.now.wait()


atexit.register(wait_for_save)  # of a process that is a rank itself
