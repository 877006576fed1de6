"""Items a second that a DataLoader hands out, beside PyTorch's: `./run bench loader`.

An item is a picture of 28×28 floats and a label, as numbers of NumPy: next to nothing is computed,
so what is measured is the way from a data set to a batch. Workers start anew with each epoch, or
they stay. The loaders run in turn, an epoch each; the medians of the clock's time are shown.
"""

from __future__ import annotations

import statistics
import time
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table

from minipaddle import io

ITEMS, ROUNDS = 8192, 7


def data_sets(library) -> dict:
    """The same items by number and as a stream, as data sets of a library."""
    rng = np.random.default_rng(0)
    images, labels = rng.random((ITEMS, 28, 28), "float32"), np.arange(ITEMS)

    class Numbered(library.Dataset):
        def __getitem__(self, k):
            return images[k], labels[k]

        def __len__(self):
            return ITEMS

    class Stream(library.IterableDataset):
        def __iter__(self):
            info = library.get_worker_info()
            first, step = (info.id, info.num_workers) if info else (0, 1)
            return iter((images[k], labels[k]) for k in range(first, ITEMS, step))

    return {"by number": Numbered(), "a stream": Stream()}


def epoch(loader) -> float:
    """The seconds of an epoch, all items counted and the labels added up."""
    began, total = time.perf_counter(), 0
    for _, labels in loader:
        total += int(labels.sum())
    assert total == ITEMS * (ITEMS - 1) // 2
    return time.perf_counter() - began


def run(threads: int, arguments=()) -> None:
    libraries = {"minipaddle": io}
    try:
        import torch.utils.data as peer

        libraries["torch"] = peer
    except ImportError:
        print("loader: no PyTorch to compare with")
    data = {name: data_sets(library) for name, library in libraries.items()}
    table = Table(
        "data set", "workers", "batch", *libraries, "ours / torch", title="items a second"
    )
    for kind, workers, size in product(data["minipaddle"], (0, 1, 2), (32, 64)):
        for stay in (False, True)[: 1 + bool(workers)]:
            how = {"batch_size": size, "num_workers": workers, "persistent_workers": stay}
            loaders = {
                name: library.DataLoader(data[name][kind], **how)
                for name, library in libraries.items()
            }
            for loader in loaders.values():
                epoch(loader)
            rounds = [{name: epoch(each) for name, each in loaders.items()} for _ in range(ROUNDS)]
            rates = [ITEMS / statistics.median(r[name] for r in rounds) for name in libraries]
            ratio = f"{rates[0] / rates[1]:.2f}" if "torch" in libraries else "–"
            started = f"{workers}{', which stay' * stay}"
            table.add_row(kind, started, str(size), *(f"{rate:,.0f}" for rate in rates), ratio)
    Console().print(table)
