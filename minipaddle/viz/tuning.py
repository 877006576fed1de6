"""How a search for faster kernels went: the best so far after each trial."""

from __future__ import annotations

from ..tuning import Tuned
from .curves import COLOURS, Curves
from .picture import Picture


def tuning(tuned: Tuned) -> Picture:
    """The best time so far of each kernel that was searched, as a part of its default's.

    Flat at 1: nothing was faster than what the rules choose. Of many kernels those with most
    trials are drawn.

    >>> from minipaddle import viz
    >>> from minipaddle.tuning import Tuned
    >>> print(viz.tuning(Tuned(None, [], 2.0, 1.0, 2, {"k0_add": [1.25, 0.5]})))
    k0_add: step 2  part of the default's time 0.5 ██▁
    """
    curves = Curves(live=False)
    searched = [kernel for kernel, found in tuned.curves.items() if found]
    dearest = sorted(searched, key=lambda kernel: -len(tuned.curves[kernel]))
    for kernel in dearest[: len(COLOURS)]:
        for trial, best in enumerate(tuned.best_so_far(kernel)):
            curves.log(trial, run=kernel, **{"part of the default's time": best})
    return curves.picture()
