"""Pushes of several workers as one step, and workers that keep the others waiting."""

from ...engine.core.slots import slot
from ...engine.eager.device import NUMPY
from ...engine.eager.tensor import wrap
from ...engine.ops.gather import scatter_sum

SLOW = 2.0
"""Who takes this many times as long as others holds them up."""


def combine(ids, counts, rows):
    """The different ids in rising order, and for each the sums of its counts and rows: [n], [n],
    [n, width].
    """
    ids, at = NUMPY.unique(ids, return_inverse=True)
    if len(ids) == len(at):
        order = NUMPY.argsort(at)
        return ids, counts[order], rows[order]
    shape = (len(ids), rows.shape[1])
    rows = scatter_sum(wrap(rows), wrap(at), shape=shape, axis=0).array
    return ids, NUMPY.bincount(at, counts).astype("int64"), rows


def join(pushes: list[dict]) -> tuple:
    """(ids, counts, gradients) of a step of all workers: the mean of their gradients."""
    parts = [NUMPY.concatenate([p[name] for p in pushes]) for name in ("ids", "counts", "rows")]
    ids, counts, rows = combine(*parts)
    return ids, counts, rows / len(pushes)


@slot("ps.stragglers")
def stragglers(seconds: dict[int, list[float]], factor: float = SLOW) -> list[int]:
    """The workers that delay the others, in rising order.

    `seconds` has for each worker the times of its latest steps, without its waiting for others; the
    last of them may not have ended. A worker is a straggler if its median is more than `factor`
    times the median of the medians of the other workers.
    """
    medians = {w: float(NUMPY.median(s)) for w, s in seconds.items() if len(s)}
    slow = []
    for worker, median in medians.items():
        others = [m for w, m in medians.items() if w != worker]
        if others and median > factor * float(NUMPY.median(others)):
            slow.append(worker)
    return sorted(slow)
