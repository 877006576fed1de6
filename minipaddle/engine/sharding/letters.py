"""Sharding rules: an operator names the axes of its inputs and results by letters, as einsum does.

`bmk,bkn->bmn` says how pieces of inputs make pieces of the result: axes with one letter are cut
alike. A letter of an input that the result lacks is summed over: each rank has a term then. An axis
without a letter (`.`) has to be whole.

Who writes no rule gets one from its kind: elementwise operators from broadcasting, movements from
their index map, reductions from their axes. An operator without any is computed by all ranks, and a
warning says so.

A letter names blocks of an axis: `reshape` of (heads, 8) to one axis cuts it between blocks of
8. So an axis is (letter, rows in a block).

Source: Xu et al., "GSPMD", 2021; Paddle's `get_phi_spmd_rule`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

from ..core.op import Op, names
from ..core.polynomial import Polynomial
from ..core.record import Spec
from ..core.slots import slot
from ..core.symbols import Loop
from ..ops.elementwise import cast


class Axis(NamedTuple):
    """A letter, and the rows of one of its blocks."""

    letter: str
    unit: int = 1


Axes = tuple[Axis | None, ...]


@dataclass
class LetterRule:
    """The letters of inputs and results.

    terms: for a letter that the result lacks, how the terms of the ranks are combined
    linear: sets of inputs; in each set together the operator is linear
    localise: attributes, specs of the local results, cut axes of each result -> local attributes
    offset: (letter, number of the input that holds positions along that axis)
    empty: whether it takes pieces without a row; otherwise each rank gets a block
    """

    inputs: list[Axes]
    results: list[Axes]
    terms: dict[str, str] = field(default_factory=dict)
    linear: tuple[frozenset[int], ...] = ()
    localise: Callable | None = None
    offset: tuple[str, int] | None = None
    empty: bool = True


JOINS = {"sum": operator.add, "max": max, "min": min, "prod": operator.mul}
"""How a reduction over ranks combines two terms."""


@cache
def collective_of(op: Op) -> str | None:
    """The reduction over ranks that joins two terms as `combine` of a reduction does, if any."""
    m, logical = SimpleNamespace(maximum=max, minimum=min), type(op.identity) is bool
    pairs = ((0, 0), (0, 1), (1, 1)) if logical else ((2, 3), (3, 2), (-2, 2))
    for name, join in JOINS.items():
        if all(op.combine(m, *pair) == join(*pair) for pair in pairs):
            return name
    return None


@slot("sharding.rule_of")
def rule_of(op: Op, specs: list, attrs: dict, results: list[Spec]) -> LetterRule | None:
    """The sharding rule of an operator for inputs of these specs (numbers among them have none);
    None: it has none.
    """
    if op.letters is not None:
        text = op.letters(*specs, **attrs)
        text, more = text if type(text) is tuple else (text, None)
        rule = parse(text)
        rule.localise = set_shape if more == "shape" else None
        rule.offset = more if type(more) is tuple else None
    else:
        rule = DERIVED.get(op.kind, lambda *_: None)(op, specs, attrs, results)
    if rule is None:
        return None
    rule.inputs = [drop_repeated(axes, spec, rule, specs) for axes, spec in zip(rule.inputs, specs)]
    rule.empty = op.kind != "opaque"
    rule.linear = rule.linear or linear_sets(op, specs, results)
    return rule


def drop_repeated(axes: Axes, spec, rule: LetterRule, specs: list) -> Axes:
    """The letters of an input but for axes of size 1 that another input's repeat."""
    sizes = {}
    for own, each in zip(rule.inputs, specs):
        for axis, n in zip(own, each.shape if isinstance(each, Spec) else ()):
            if axis is not None:
                sizes[axis.letter] = max(n, sizes.get(axis.letter, 0))
    shape = spec.shape if isinstance(spec, Spec) else ()
    return tuple(None if a and n == 1 < sizes[a.letter] else a for a, n in zip(axes, shape))


def parse(text: str) -> LetterRule:
    """The rule that a text says: `bmk,bkn->bmn`. After `|` it says how terms are combined, if not
    by a sum.
    """
    text, _, combine = text.partition("|")
    left, _, right = text.partition("->")
    inputs, results = (
        [tuple(None if c == "." else Axis(c) for c in part) for part in side.split(",")]
        for side in (left, right)
    )
    kept = {axis for axes in results for axis in axes}
    gone = {axis for axes in inputs for axis in axes if axis is not None} - kept
    return LetterRule(inputs, results, {axis.letter: combine or "sum" for axis in gone})


def linear_sets(op: Op, specs: list, results: list[Spec]) -> tuple[frozenset[int], ...]:
    """The sets of inputs in which an operator is linear; a cast between floats is, but for a
    rounding of each term.
    """
    floats = op is cast and all(s.dtype.kind in "fV" for s in (specs[0], results[0]))
    if floats or (op.kind == "movement" and op.source is not None):
        return (frozenset([0]),)
    if op.variadic:
        return (frozenset(range(len(specs))),) if op.linear else ()
    return tuple(frozenset(map(op.inputs.index, each)) for each in op.linear)


# ---- rules from kinds ----------------------------------------------------------------------------


@slot("sharding.broadcast_rule")
def broadcast_rule(op: Op, specs, attrs, results) -> LetterRule:
    """Elementwise: axes count from the last; one of size 1 is repeated, so it has no letter."""
    axes = tuple(map(Axis, names(results[0].ndim)))

    def own(spec):
        if not isinstance(spec, Spec):
            return ()
        last = axes[len(axes) - spec.ndim :]
        return tuple(
            a if n == results[0].shape[len(axes) - spec.ndim + d] else None
            for d, (a, n) in enumerate(zip(last, spec.shape))
        )

    return LetterRule([own(spec) for spec in specs], [axes])


@slot("sharding.reduction_rule")
def reduction_rule(op: Op, specs, attrs, results) -> LetterRule:
    """A reduced axis leaves terms."""
    axes = tuple(map(Axis, names(specs[0].ndim)))
    combine = collective_of(op)
    over, keep = attrs["axis"], attrs["keepdim"]
    if combine is None:
        axes = tuple(None if d in over else a for d, a in enumerate(axes))
    kept = [None if d in over else a for d, a in enumerate(axes) if keep or d not in over]
    terms = {axes[d].letter: combine for d in over} if combine else {}
    return LetterRule([axes], [tuple(kept)], terms)


def movement_rule(op: Op, specs, attrs, results) -> LetterRule | None:
    """An axis of the input that an axis of the result runs along has its letter: the index map
    says so, or the map to parts.
    """
    if len(results) != 1 or (op.source is None and op.parts is None):
        return None
    if "shape" in attrs and op.name not in LOCAL:
        return None
    out = results[0]
    if not out.size:
        return None
    i = [Polynomial({(Loop(f"i{d}", n),): 1}) if n > 1 else 0 for d, n in enumerate(out.shape)]
    axes = [None if n < 2 else Axis(c) for c, n in zip(names(out.ndim), out.shape)]
    if op.source is not None:
        places, restricted = {0: list(op.source(list(i), specs[0], **attrs))}, set()
    else:
        parts = op.parts(list(i), *specs, **attrs)
        if parts is None:
            return None
        places = {k: list(index) for k, index, _ in parts[1]}
        limits = [each for _, _, ranges in parts[1] for each in ranges]
        restricted = {d for each in limits for d in range(out.ndim) if limits_axis(each, d, i, out)}
    inputs, result = [], [None] * out.ndim
    for k, spec in enumerate(specs):
        own = [None] * spec.ndim
        index, all_of_it = places.get(k, ()), spec.size == out.size
        for e, place in enumerate(index):
            for d in range(out.ndim):
                pair = blocks(place, i[d], spec.shape[e], out.shape[d]) if axes[d] else None
                others = [j for f, j in enumerate(index) if f != e and involves(j, i[d])]
                if pair and others and not (all_of_it and pair != (1, 1)):
                    continue
                if (
                    pair
                    and d not in restricted
                    and result[d] in (None, axes[d]._replace(unit=pair[1]))
                ):
                    own[e] = axes[d]._replace(unit=pair[0])
                    result[d] = axes[d]._replace(unit=pair[1])
                    break
        inputs.append(tuple(own))
    shared = [a.letter for own in inputs for a in own if a]
    for d, axis in enumerate(result):  # an axis of several inputs must be one in all of them
        if axis and len(places) > 1 and shared.count(axis.letter) < len(places):
            result[d] = None
            inputs = [
                tuple(None if a and a.letter == axis.letter else a for a in own) for own in inputs
            ]
    return LetterRule(inputs, [tuple(result)], localise=LOCAL.get(op.name))


def blocks(place, i, n: int, m: int) -> tuple[int, int] | None:
    """(rows of the input, rows of the result) of one block, if a position `place` on an axis of n
    rows runs along the index i of an axis of m rows; None if it does not.
    """
    if not isinstance(place, Polynomial):
        return None
    if place == i:
        return (1, 1) if n == m else None
    if n > m > 0 and n % m == 0:  # several axes become one: place = i·unit + (less than unit)
        rest = place - i * (n // m)
        if not involves(rest, i) and within(rest, n // m):
            return n // m, 1
    if m > n > 0 and m % n == 0 and is_quotient(place, i, m // n):
        return 1, m // n
    return None


def is_quotient(place, i, unit: int) -> bool:
    """Whether a position is i // unit, by one division or by several: (i // a) // b."""
    if place == i // unit:
        return True
    symbol = next(iter(place.atoms)) if isinstance(place, Polynomial) and place.atoms else None
    if getattr(symbol, "sign", "") != "//" or place.terms != {(symbol,): 1}:
        return False
    return unit % symbol.under == 0 and is_quotient(symbol.over, i, unit // symbol.under)


def limits_axis(limit: tuple, d: int, i: list, out: Spec) -> bool:
    """Whether a range (index, low, high) leaves out elements along axis d of the result."""
    at, low, high = limit
    return involves(at, i[d]) and not (at == i[d] and (low, high) == (0, out.shape[d]))


def involves(rest, i) -> bool:
    """Whether a position depends on an index."""
    both = isinstance(rest, Polynomial) and isinstance(i, Polynomial)
    return both and not i.loops.isdisjoint(rest.loops)


def within(rest, unit: int) -> bool:
    """Whether a position is one of the first `unit`."""
    low, high = rest.ends if isinstance(rest, Polynomial) else (rest, rest)
    return low is not None and high is not None and low >= 0 and high < unit


DERIVED = {"elementwise": broadcast_rule, "reduction": reduction_rule, "movement": movement_rule}


# ---- attributes that hold sizes ------------------------------------------------------------------


def set_shape(attrs: dict, local: Spec, cut: set[int]) -> dict:
    """The attribute `shape` is the result's shape."""
    return attrs | {"shape": local.shape}


def keep_whole_slices(attrs: dict, local: Spec, cut: set[int]) -> dict:
    """An axis that is cut was selected whole: on its piece, too."""
    index, d = [], 0
    for k in attrs["index"]:
        index.append((None, None, None) if type(k) is tuple and d in cut else k)
        d += not isinstance(k, int)
    return attrs | {"index": tuple(index)}


def keep_whole_places(attrs: dict, local: Spec, cut: set[int]) -> dict:
    """An axis of the result that is cut was filled whole."""
    index = [(None, None, None) if d in cut else k for d, k in enumerate(attrs["index"])]
    return attrs | {"index": tuple(index), "shape": local.shape}


LOCAL = {
    "unslice": keep_whole_places,
    "reshape": set_shape,
    "broadcast_to": set_shape,
    "slice": keep_whole_slices,
}
"""For movements whose attributes hold sizes: the attributes for pieces."""
