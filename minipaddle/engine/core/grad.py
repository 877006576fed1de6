"""The reverse walk: one function differentiates the eager tape and a program.

A *cotangent* of a value v is ∂L/∂v, how much the result L changes with v: an array of v's shape.
The walk begins with the cotangents of the results and passes the records, newest first. At each
record the operator's rules give the cotangents of the inputs. Three things make that right:

- A record is passed after all records that used it: `history` gives the order.
- A value used twice receives the sum of the cotangents from its uses: `accumulate`.
- A value that was broadcast receives the sum over its copies: `fit`.

Source: reverse accumulation, Griewank and Walther, "Evaluating Derivatives", 2nd ed., chapter 3.
"""

from __future__ import annotations

from .dim import same_shape
from .dispatch import current
from .errors import runtime_error, type_error, value_error
from .record import FREED, Record
from .slots import slot


class TupleCotangent(dict):
    """The cotangent of a tuple of results: {place: cotangent}, for the results that were used."""

    def __add__(self, other):
        met = {k: self[k] + g if k in self else g for k, g in other.items()}
        return TupleCotangent(self | met)


@slot("autograd.history")
def history(roots) -> list[Record]:
    """Every record the roots were computed from, oldest first: inputs before uses."""
    seen, stack = set(roots), list(roots)
    while stack:
        for edge in stack.pop().inputs:
            if edge is not None and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return sorted(seen, key=Record.time.__get__)


def leading_to(order, wanted) -> set[Record]:
    """The wanted records, and those of `order` (oldest first) that depend on one."""
    useful = set(wanted)
    for record in order:
        if not useful.isdisjoint(record.inputs):
            useful.add(record)
    return useful


@slot("autograd.pull_back")
def pull_back(seeds, wanted=None, *, blocked=frozenset(), release: bool = False) -> dict:
    """Cotangents of the wanted records (of the leaves, if None), given those of the results.

    `seeds` are pairs (record, cotangent). No cotangent passes a blocked record. With `release` each
    record frees its saved values once it has been passed, so memory falls during the walk.
    """
    cotangents: dict[Record, object] = {}  # sums so far, of records not yet passed
    for record, g in seeds:
        accumulate(cotangents, record, g)
    order = history(cotangents)
    if wanted is None:
        wanted, useful = {record for record in order if not record.inputs}, set(order)
    else:
        useful = leading_to(order, wanted)
    useful -= blocked
    gradients, top = {}, current.top
    outer = top.passing
    try:
        while order:  # newest first: every use of a value is seen before the value itself
            record = order.pop()
            g = cotangents.pop(record, None)
            if g is None or record not in useful:
                continue
            top.passing = record
            if record.hooks:
                g = apply_hooks([*record.hooks], g)
            if record in wanted:
                gradients[record] = g
            if record.inputs:
                for edge, gx in input_cotangents(record, g, useful):
                    if type(gx) is TupleCotangent:  # each result of a tuple adds up by itself
                        held = cotangents.setdefault(edge, TupleCotangent())
                        for place, piece in gx.items():
                            accumulate(held, place, piece)
                    else:
                        accumulate(cotangents, edge, gx)
                if release:
                    record.saved = FREED
    finally:
        top.passing = outer
    return gradients


@slot("autograd.accumulate")
def accumulate(cotangents: dict, record: Record, g) -> None:
    """Add one more path's contribution: a value used twice receives the sum of both."""
    before = cotangents.get(record)
    cotangents[record] = g if before is None else before + g  # never in place: g may be shared


@slot("autograd.apply_hooks")
def apply_hooks(hooks, g):
    """The cotangent after its hooks, in the order they were registered; None changes nothing."""
    for hook in hooks:
        changed = hook(g)
        g = g if changed is None else changed
    return g


def input_cotangents(record: Record, g, useful):
    """Pairs (input record, its cotangent) for every input of `record` that leads somewhere."""
    if record.saved is FREED:
        of = record.inputs[0].op if record.op.name == "item" else record.op
        raise runtime_error(
            f"backward a second time through {of.name}: what it kept for its "
            "derivative was freed by the first backward",
            hint="call the first one with retain_graph=True, or compute the result again",
            where=record.where,
        )
    if record.op.pull is not None:
        return record.op.pull(record, g, useful)
    g, op, pairs = fill_zeros(record, g) if type(g) is TupleCotangent else g, record.op, []
    for k, edge in enumerate(record.inputs):
        if edge is None or edge not in useful:
            continue
        rule = op.rules.get(0 if op.variadic else k)
        gx = rule(record, g, k) if rule is not None else None
        if gx is not None:
            pairs.append((edge, gx if type(gx) is TupleCotangent else fit(gx, edge, record, k)))
    return pairs


def fill_zeros(record: Record, pieces: TupleCotangent) -> list:
    """The cotangents of all results: zeros for results that were not used."""
    like = next(iter(pieces.values()))
    specs = enumerate(record.shape)
    return [pieces[k] if k in pieces else current.top.full(s, 0, like) for k, s in specs]


def fit(gx, edge: Record, record: Record, k: int):
    """A cotangent in the shape and dtype of the input it belongs to.

    Broadcasting repeats values, so its adjoint sums. Elementwise rules need not handle it.
    """
    if type(gx) is tuple:
        raise type_error(f"the rule of {record.op.name} for input {k} gives a tuple", "one tensor")
    shape, dtype = gx.array.shape, gx.array.dtype
    if shape != edge.shape:
        if record.op.kind != "elementwise" and not same_shape(shape, edge.shape):
            raise value_error(
                f"the derivative of {record.op.name} for input {k} has shape {list(shape)}",
                expected=f"{list(edge.shape)}, the shape of that input",
                where=record.where,
            )
        if record.op.kind == "elementwise":
            gx = gx.sum_to(edge.shape)
    return gx if dtype == edge.dtype else gx.astype(edge.dtype)
