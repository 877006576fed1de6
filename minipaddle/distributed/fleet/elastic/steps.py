"""The steps of a training loop that continues from its last complete checkpoint."""

import sys
from collections.abc import Iterator

from ....engine.core.errors import type_error, value_error
from ....engine.core.rank import among, hash_64
from ....engine.core.slots import slot
from ....tensor.generator import GENERATOR
from ...checkpoint.agreeing import run_together
from ...checkpoint.loading import load_state_dict
from ...checkpoint.manifest import ids, prune
from ...checkpoint.saving import save_state_dict, wait_for_save
from ...collectives.python_objects import all_gather_object
from ...failures.restarting import note_step
from ...ranks.known_groups import current_groups


def steps(total: int, every: int, state: dict, folder: str) -> Iterator[int]:
    """The numbers of the steps that are left of `total`, for a `for` loop in all ranks.

    Before the first, `state` is loaded from the newest complete checkpoint in `folder`, if there is
    one, whatever ranks wrote it. After each `every` steps, and at the end, it is copied, and a
    thread writes it while training continues. Once it is complete, all older checkpoints are
    removed from the folder.

    state: by name, models, optimizers, all objects with `state_dict` and `set_state_dict`; and
    dicts of tensors and numbers, which change in place. The checkpoint has the generator of random
    numbers, too: each rank's own, or, if the ranks draw the same, one for all.

    The losses equal those of the uninterrupted run if the batches do: see `own_samples`. If each
    rank draws numbers of its own (dropout), that needs as many ranks as before. Raises the errors
    of `load_state_dict` and `save_state_dict`.

    >>> import tempfile
    >>> from minipaddle.distributed.fleet import elastic
    >>> folder = tempfile.mkdtemp()
    >>> def train(total):
    ...     done = {"steps": []}
    ...     for step in elastic.steps(total, 2, {"done": done}, folder):
    ...         done["steps"] = [*done["steps"], step]
    ...     return done["steps"]
    >>> train(3), train(5)
    ([0, 1, 2], [0, 1, 2, 3, 4])
    """
    if every < 1:
        raise value_error(f"a checkpoint every {every} steps", expected="1 or more")
    first = resume(total, state, folder)
    for step in range(first, total):
        yield step
        done = step + 1
        if step == first and among.now[0] == 0:
            note_step()
        if done % every == 0 or done == total:
            finish(folder)
            save_state_dict(snapshot(state, done), folder, unique_id=done, async_save=True)
    finish(folder)


def finish(folder: str) -> None:
    """Wait for the checkpoint that a thread writes; then remove the others."""
    wait_for_save()
    if among.now[0] == 0:
        prune(folder)


def snapshot(state: dict, done: int) -> dict:
    """The state dict to save after `done` steps, with the tensors of `state` themselves."""
    generators: list = []
    all_gather_object(generators, list(GENERATOR.get_state()))
    states = {name: dict_of(name, x) for name, x in state.items()}
    return {"state": states, "elastic": {"step": done, "generators": generators}}


def dict_of(name: str, x) -> dict:
    """The state dict of an object; a dict itself."""
    if isinstance(x, dict):
        return x
    if not hasattr(x, "state_dict"):
        raise type_error(
            f"state[{name!r}] is a {type(x).__name__}", expected="a dict, or what has state_dict()"
        )
    return x.state_dict()


def resume(total: int, state: dict, folder: str) -> int:
    """Load the newest complete checkpoint; return the number of steps before it."""
    if not run_together(current_groups().world, lambda: ids(folder))[0]:
        return 0
    loaded = snapshot(state, 0)
    load_state_dict(loaded, folder)
    for name, x in state.items():
        if not isinstance(x, dict):
            (getattr(x, "set_state_dict", None) or x.load_state_dict)(loaded["state"][name])
    (rank, ranks), saved = among.now, loaded["elastic"]
    GENERATOR.set_state(generator_of(rank, saved["generators"]))
    if rank == 0:
        before, where = len(saved["generators"]), f"step {saved['step']} of {total}"
        event = f"goes on from {where}; ranks: {ranks} now, {before} when it was saved in {folder}"
        print(f"elastic: {event}", file=sys.stderr, flush=True)
    return saved["step"]


@slot("elastic.generator_of")
def generator_of(rank: int, saved: list) -> tuple[int, int]:
    """The (key, counter) of a rank's generator after a restart, its own of all ranks'. If all had
    the same, a new rank gets it; else it draws numbers of its own.
    """
    if rank < len(saved):
        return tuple(saved[rank])
    if all(each == saved[0] for each in saved):
        return tuple(saved[0])
    return hash_64(saved, rank) >> 1, 0
