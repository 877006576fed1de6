"""The reverse walk: one function differentiates the eager tape and a program.

Source: reverse accumulation, Griewank and Walther, "Evaluating Derivatives", 2nd ed., chapter 3.
"""

from __future__ import annotations

from .errors import teach
from .interpreter import current
from .record import FREED, Record


def history(roots) -> list[Record]:
    """Every record the roots were computed from, oldest first: inputs before uses."""
    seen, stack = set(roots), list(roots)
    while stack:
        for edge in stack.pop().inputs:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return sorted(seen, key=lambda record: record.time)


def leading_to(order, wanted) -> set[Record]:
    """The records of `order` (oldest first) that depend on a wanted one, and those themselves."""
    useful = set(wanted)
    for record in order:
        if not useful.isdisjoint(record.inputs):
            useful.add(record)
    return useful


def pull_back(seeds, wanted=None, *, blocked=frozenset(), release: bool = False) -> dict:
    """Cotangents of the wanted records (of the leaves, if None), given those of the results.

    `seeds` are pairs (record, cotangent). No cotangent passes a blocked record. With `release` each
    record lets go of what it kept as soon as it has been passed, so memory falls while the walk
    goes.
    """
    cotangents: dict[Record, object] = {}
    for record, g in seeds:
        accumulate(cotangents, record, g)
    order = history(cotangents)
    useful = (set(order) if wanted is None else leading_to(order, wanted)) - blocked
    found, top = {}, current.top
    outer = top.passing
    try:
        while order:  # newest first: every use of a value is seen before the value itself
            record = order.pop()
            g = cotangents.pop(record, None)
            if g is None or record not in useful:
                continue
            top.passing = record
            for hook in record.hooks or ():
                changed = hook(g)
                g = g if changed is None else changed
            if not record.inputs if wanted is None else record in wanted:
                found[record] = g
            if record.inputs:
                for edge, gx in input_cotangents(record, g, useful):
                    accumulate(cotangents, edge, gx)
                if release:
                    record.saved = FREED
    finally:
        top.passing = outer
    return found


def accumulate(cotangents: dict, record: Record, g) -> None:
    """Add one more path's contribution: a value used twice receives the sum of both."""
    before = cotangents.get(record)
    if before is None:
        cotangents[record] = g
    elif isinstance(g, dict):  # pieces of a tuple, one for each `item` taken out of it
        cotangents[record] = before | {k: before[k] + v if k in before else v for k, v in g.items()}
    else:
        cotangents[record] = before + g


def input_cotangents(record: Record, g, useful):
    """Yield (input record, its cotangent) for every input of `record` that leads somewhere."""
    if record.saved is FREED:
        of = record.inputs[0].op if record.op.name == "item" else record.op
        raise RuntimeError(
            teach(
                f"backward a second time through {of.name}: what it kept for its "
                "derivative was freed by the first backward",
                hint="call the first one with retain_graph=True, or compute the result again",
                where=record.where,
            )
        )
    if isinstance(g, dict):
        like = next(iter(g.values()))
        g = [g[k] if k in g else current.top.full(s, 0, like) for k, s in enumerate(record.shape)]
    for k, edge in enumerate(record.inputs):
        if edge is None or edge not in useful:
            continue
        rule = record.op.rule(k)
        gx = rule(record, g, k) if rule is not None else None
        if gx is not None:
            yield edge, gx if isinstance(gx, dict) else fit(gx, edge, record, k)


def fit(gx, edge: Record, record: Record, k: int):
    """A cotangent in the shape and dtype of the input it belongs to.

    Broadcasting repeats values, so its adjoint sums: an elementwise rule need not know of it.
    """
    spec = gx.spec
    if spec.shape != edge.shape:
        if record.op.kind != "elementwise":
            raise ValueError(
                teach(
                    f"the derivative of {record.op.name} for input {k} has shape "
                    f"{list(spec.shape)}",
                    expected=f"{list(edge.shape)}, the shape of that input",
                    where=record.where,
                )
            )
        gx = gx.sum_to(edge.shape)
    return gx if spec.dtype == edge.dtype else gx.astype(edge.dtype)
