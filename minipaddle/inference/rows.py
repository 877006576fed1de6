"""Whether the rows of a batch are independent: then requests may share a run, and rows may pad it.

Sharding rules prove it (`engine/sharding`). If every rank of a mesh held one row, and no operator
moved a row or added terms of several rows, then no row of a result depends on another row. Where
the rules cannot prove that, as for a norm over the batch, the rows are not independent.
"""

from ..engine.core.dim import Dim
from ..engine.core.record import Record, Spec
from ..engine.executors.native import CannotCompile, fix_sizes
from ..engine.ir.program import ITEM, NUMBER, Program, open_sizes
from ..engine.ops.creation import full
from ..engine.passes.manager import optimized
from ..engine.passes.specialise import sizes_of
from ..engine.sharding.letters import rule_of
from ..engine.sharding.placements import REPLICATE, Shard
from ..engine.sharding.propagate import propagate
from ..tensor.generator import GeneratorStorage

ROWS = 101
"""The batch of the proof: a prime, so that no reshape hides a factor of it."""
OTHERS = (13, 17, 19, 23, 29, 31, 37, 41)
"""The other open sizes, each its own."""
ONE_ROW = (Shard(0),)
WHOLE = (REPLICATE,)


def batch_of(program: Program) -> str | None:
    """The name of the size that all inputs and outputs have in front; None if there is none."""
    specs = [r.spec for r in [*program.inputs, *program.outputs]]
    firsts = [spec.shape[0] if spec.shape else None for spec in specs]
    first = firsts[0] if firsts else None
    one = isinstance(first, Dim) and first.text in first.atoms and all(n == first for n in firsts)
    return first.text if one else None


def rows_independent(program: Program) -> bool:
    """Whether row k of each output depends on row k of each input alone.

    >>> from minipaddle.inference.rows import rows_independent
    >>> from minipaddle.ir.parser import parse
    >>> rows_independent(parse('''program p(x: float32[batch, 3]) {
    ...   v1 = sum(x, axis=(1,), keepdim=False) : float32[batch]  return v1 }'''))
    True
    """
    batch = batch_of(program)
    if batch is None or any(isinstance(s.storage, GeneratorStorage) for s in program.states):
        return False
    if any(state.update is not None for state in program.states):
        return False
    names = sorted(open_sizes(program) - {batch})
    if len(names) > len(OTHERS):
        return False
    sizes = {batch: ROWS, **dict(zip(names, OTHERS, strict=False))}
    try:
        known = fix_sizes(program, sizes)
        sizes_of(program, [r.shape for r in known.given])
        known = optimized(known, {}, until="decompose").program
    except (CannotCompile, ValueError):
        return False
    return proves(known)


def proves(program: Program) -> bool:
    """Whether each operator works on one row for itself, in a program of `ROWS` rows."""
    placed: dict[Record, object] = dict.fromkeys(program.inputs, ONE_ROW)
    placed |= {state.record: WHOLE for state in program.states}
    for record in program.records:
        if record.op is ITEM:
            placed[record] = placed[record.inputs[0]][record.attrs["k"]]
            continue
        results = results_of(record, placed)
        if results is None:
            return False
        placed[record] = results if record.dtype is None else results[0]
    return all(placed[r] == ONE_ROW for r in program.outputs)


def results_of(record: Record, placed: dict) -> list | None:
    """The placements of a record's results, if no row has to move; otherwise None."""
    placements = [None if x.op is NUMBER else placed[x] for x in record.inputs]
    results = list(record.shape) if record.dtype is None else [record.spec]
    if not any(each and each[0].is_shard() for each in placements):
        return [WHOLE] * len(results)
    specs = [x.attrs["value"] if x.op is NUMBER else x.spec for x in record.inputs]
    rule = rule_of(record.op, specs, record.attrs, results)
    if rule is None:
        return None
    plan = propagate(rule, specs, placements, results, (ROWS,))
    for x, before, after in zip(record.inputs, placements, plan.inputs, strict=True):
        if before != after and not is_uniform(x):
            return None
    return None if any(each[0].is_partial() for each in plan.results) else plan.results


def is_uniform(x: Record) -> bool:
    """Whether all rows of a value are the same, whatever their number."""
    return x.op is full and isinstance(x.spec, Spec)
