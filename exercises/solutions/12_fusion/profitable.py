"""What fusion saves: bytes before, and bytes after.

Memory is the bill of a kernel that computes little. So count what travels. Write two functions:

- `traffic(records, outputs)`: the bytes that one kernel of these records moves, if `outputs` are
  the records it has to store. `Nest(records, outputs)` works out their loop nest (and raises
  NotOneNest if there is none: let it). Of a nest you need:
    - `nest.reading()`: tuples (stage, row, load), one or more for each place where memory is read:
      at which stage of a row, and a node; `nest.loaded_input(load)` is the input it reads;
    - `nest.size // nest.rows`: how many elements a row has; 1 if nothing is reduced.
  The bytes of a value are `record.spec.nbytes`. Each output is written once, and each input read
  once, if a row fits into the cache: the length of a row, times the sum of `dtype.itemsize` of all
  different inputs, is at most CACHE. If it does not, a later stage finds nothing of what an earlier
  one has read. Then an input counts once for each different stage that reads it.

- `profitable(fusion, records)`: should these records be one group? False if there is no such nest
  (here, catch NotOneNest). Otherwise True if the kernel moves no more bytes than those that the
  records are in now do together: `fusion.of[record]` is the group of a record, a group has
  `.records`, and `fusion.outputs(records)` are those that others need. Equal is good enough: a step
  that saves next to nothing may be what lets the next one save a lot, as the square root of a row's
  variance does in a layer norm.

    softmax of float32[4, 64]: 1 KB read, 1 KB written. Of float32[4, 1000000]: three times 16 MB
    read, one for each stage, and 16 MB written.

Source: Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for
multicore architectures", 2009: what a kernel is bound by.
"""

from minipaddle.engine.passes.nest import Nest, NotOneNest

CACHE = 1 << 22


def traffic(records, outputs) -> int:
    """The bytes that one kernel of these records moves."""
    nest = Nest(records, outputs)
    stages = {}
    for stage, _, load in nest.reading():
        stages.setdefault(nest.loaded_input(load), set()).add(stage)
    row = nest.size // nest.rows * sum(x.dtype.itemsize for x in stages)
    read = sum(x.spec.nbytes * (len(at) if row > CACHE else 1) for x, at in stages.items())
    return read + sum(x.spec.nbytes for x in outputs)


def profitable(fusion, records) -> bool:
    """Should these records be one group?"""
    try:
        together = traffic(records, fusion.outputs(records))
        groups = {fusion.of[record] for record in records}
        apart = sum(traffic(g.records, fusion.outputs(g.records)) for g in groups)
    except NotOneNest:
        return False
    return together <= apart
