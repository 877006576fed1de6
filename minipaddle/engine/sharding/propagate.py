"""Which pieces an operator works on: placements of the inputs -> placements of the results.

Each axis of the mesh cuts one letter of the operator's rule. The letters that inputs are cut along
already are the candidates; an input that lies otherwise has to be moved. If no choice leaves all of
them where they are, the one wins for which fewer bytes move; a result of which each rank gets a
term counts as the move that will join the terms. Of equals the first input's letter wins, and terms
are joined rather than kept, except by operators of one input.

Sources: Xu et al., "GSPMD", 2021; Paddle's rules, with which this one is compared in the tests.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import NamedTuple

from ..core.record import Spec
from ..core.slots import slot
from .letters import Rule
from .moves import cost_of_move, steps_between
from .placements import REPLICATE, Partial, Placement, Placements, Shard, cut, normalized


class Letter(NamedTuple):
    """An axis of the mesh cuts a letter, between groups of `unit` blocks; there are `groups`."""

    letter: str
    unit: int
    groups: int


class Terms(NamedTuple):
    """On an axis of the mesh some inputs stay terms: the operator is linear in them."""

    inputs: frozenset[int]
    op: str


class Plan(NamedTuple):
    """How the inputs have to lie (None for a number), how the results will, and the bytes moved."""

    inputs: list[Placements | None]
    results: list[Placements]
    cost: object


@slot("sharding.propagate")
def propagate(
    rule: Rule, specs: list, placed: list, results: list[Spec], mesh_shape: tuple
) -> Plan:
    """The cheapest plan for inputs of these specs that lie as `placed` says (None for numbers)."""
    choices = [candidates(rule, specs, placed, a, mesh_shape) for a in range(len(mesh_shape))]
    chosen = [each for each in product(*choices) if leaves_enough(rule, each, mesh_shape)]
    plans = (plan_for(rule, specs, placed, results, mesh_shape, each) for each in chosen)
    return min(plans, key=lambda plan: plan.cost)


def leaves_enough(rule: Rule, chosen, mesh_shape) -> bool:
    """Whether each rank gets a row, where an operator needs one: nothing has no maximum."""
    least: dict[str, int] = {}  # of each letter the groups of the last rank
    for each, parts in zip(chosen, mesh_shape):
        if type(each) is Letter:
            least[each.letter] = cut(least.get(each.letter, each.groups), parts, parts - 1)[1]
    needed = [x for x in least if not rule.empty or rule.terms.get(x, "sum") != "sum"]
    return all(least[letter] for letter in needed)


def candidates(rule: Rule, specs, placed, axis: int, mesh_shape) -> list:
    """What an axis of the mesh may do: cut a letter, keep terms, or None: nothing. An operator of
    one input keeps terms rather than join them: who comes next may scatter or add them.
    """
    found, kept = {}, {}
    for k, (spec, placements) in enumerate(zip(specs, placed)):
        own = placements[axis] if placements else REPLICATE
        if own.is_shard() and rule.inputs[k][own.dim] is not None:
            letter, n = rule.inputs[k][own.dim]
            unit = own.unit // n if own.unit % n == 0 else 1
            blocks = spec.shape[own.dim] // (n * unit)
            found[Letter(letter, unit, blocks)] = None
        if own.is_partial():
            for group in rule.linear:
                alike = all(placed[j] and placed[j][axis] == own for j in group)
                if k in group and alike and own.op in ("sum", "avg"):
                    kept[Terms(group, own.op)] = None
    return [*kept, None] if len(specs) == 1 and kept else [*found, None, *kept]


def plan_for(rule: Rule, specs, placed, results, mesh_shape, chosen) -> Plan:
    """The plan in which each axis of the mesh does what is `chosen` for it."""
    inputs = [
        None if p is None else wanted(axes, k, spec, chosen, mesh_shape)
        for k, (axes, spec, p) in enumerate(zip(rule.inputs, specs, placed))
    ]
    found = [resulting(rule, axes, s, chosen, mesh_shape) for axes, s in zip(rule.results, results)]
    moves = [
        steps_between(tuple(spec.shape), spec.dtype.itemsize, before, after, mesh_shape)[0]
        for spec, before, after in zip(specs, placed, inputs) if before is not None
    ]  # fmt: skip
    cost = sum(moves)
    if cost or any(type(each) is Terms for each in chosen):
        cost += sum(cost_of_terms(spec, p, mesh_shape) for spec, p in zip(results, found))
    return Plan(inputs, found, cost)


def wanted(axes, k: int, spec: Spec, chosen, mesh_shape) -> Placements:
    """How input k has to lie."""
    found = [shard_along(axes, each) for each in chosen]
    found = [
        Partial(each.op) if type(each) is Terms and k in each.inputs else p
        for each, p in zip(chosen, found)
    ]
    return normalized(tuple(found), spec.shape, mesh_shape)


def resulting(rule: Rule, axes, spec: Spec, chosen, mesh_shape) -> Placements:
    """How a result lies."""
    found = []
    for each in chosen:
        placement = shard_along(axes, each)
        if type(each) is Terms:
            placement = Partial(each.op)
        elif each is not None and placement is REPLICATE and each.letter in rule.terms:
            placement = Partial(rule.terms[each.letter])
        found.append(placement)
    return normalized(tuple(found), spec.shape, mesh_shape)


def shard_along(axes, each) -> Placement:
    """A shard along the axis that has the letter; without one, all of it."""
    if type(each) is Letter:
        for d, axis in enumerate(axes):
            if axis is not None and axis.letter == each.letter:
                return Shard(d, axis.unit * each.unit)
    return REPLICATE


def cost_of_terms(spec: Spec, placements: Placements, mesh_shape):
    """The bytes that joining the terms of a result will move."""
    total = 0
    for axis, p in enumerate(placements):
        if p.is_partial():
            others = prod(n for n, q in zip(mesh_shape, placements) if q.is_shard())
            total += cost_of_move(spec.nbytes, mesh_shape[axis], p, REPLICATE) / others
    return total
