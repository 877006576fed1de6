"""Saving and loading 100 MiB of float32 beside PyTorch: `./run bench checkpoints`.

A dict of one tensor, and one of 200, in a temporary folder. Ours goes to the disk before it takes
the file's name; PyTorch leaves that to the system.
"""

from __future__ import annotations

import tempfile
from functools import partial

import numpy as np

import minipaddle as paddle

from .timing import interleaved, report

BYTES = 100 << 20


def run(threads: int, arguments=()) -> None:
    try:
        import torch
    except ImportError:
        torch = None
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, 200):
            arrays = np.random.default_rng(0).random((count, BYTES // 4 // count), "float32")
            ours, theirs = f"{folder}/ours", f"{folder}/theirs"
            state = {f"w{k}": paddle.to_tensor(a) for k, a in enumerate(arrays)}
            saving = {"minipaddle": partial(paddle.save, state, ours)}
            loading = {"minipaddle": partial(paddle.load, ours)}
            if torch is not None:
                peer = {f"w{k}": torch.from_numpy(a) for k, a in enumerate(arrays)}
                saving["torch"] = partial(torch.save, peer, theirs)
                loading["torch"] = partial(torch.load, theirs)
            what = f"{count} tensor{'s' * (count > 1)}"
            rows[f"save {what}"] = interleaved(saving, title=f"save {what}")
            rows[f"load {what}"] = interleaved(loading, title=f"load {what}")
    report("100 MiB", rows)
