"""When is a weight whole: gathered once and kept, or gathered again?

A weight that is stored in pieces is gathered before its use in the forward, and used again in the
backward. Kept in between it takes memory all the time; let go, it travels twice. So keep it if its
next use is near, and gather it again if others come first. Write `stays_of(found, ahead, least)`,
which says when each weight is whole:

- `found` is a list of gathers, one for each weight. `gather.uses` are the times at which it is
  used, numbers of records, in order; there is at least one. `gather.record.spec.nbytes` are the
  bytes of the whole weight.
- Return a list of `Stay(gather, first, last)`: the weight is whole from its use at time `first`
  until its use at time `last`. Every use of a gather is in one of its stays. They are sorted by
  `first`; of those that begin at the same time the one of the earlier gather comes first.
- Two uses of a weight that follow each other are *apart* if, from the one to the other, more than
  `ahead` other weights are used. (Another weight counts once, however often it is used there; a use
  at the very time of one of the two counts, too.) Then a stay ends at the one, and the next begins
  at the other. Otherwise both are in one stay.
- A weight of fewer than `least` bytes has one stay, whatever its uses: its message is nearly all
  latency.

    ahead = 1, uses of a: 1, 6, of b: 2, 5, of c: 3, 4
        ->  a from 1 to 1, b from 2 to 5, c from 3 to 4, a from 6 to 6

Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
2020, section 7.2.2; `reshard_after_forward` of PyTorch's FSDP2.
"""

from minipaddle.passes.gathers import Stay


def stays_of(found, ahead, least) -> list:
    """The times during which weights are whole, in the order in which they begin."""
    stays = []
    for gather in found:
        first = last = gather.uses[0]
        for use in gather.uses[1:]:
            between = [
                g for g in found if g is not gather and any(last <= t <= use for t in g.uses)
            ]
            if len(between) > ahead and gather.record.spec.nbytes >= least:
                stays.append(Stay(gather, first, last))
                first = use
            last = use
        stays.append(Stay(gather, first, last))
    return sorted(stays, key=lambda stay: stay.first)
