"""Which pieces an operator works on: placements of the inputs -> placements of the results.

Each axis of the mesh cuts one letter of the operator's rule. The letters that inputs are cut along
already are the candidates; an input with other placements is moved. If no choice leaves all of
them where they are, the one wins for which the fewest bytes move, now and next: the terms of a
result will be joined, and a result that is not cut along the first input's letter will be moved
back to it. So the rows of a batch stay where they are, and weights come to them. Of equals the
first input's letter wins, and terms are joined rather than kept, except by operators of one input.

Sources: Xu et al., "GSPMD", 2021; Paddle's rules, with which this one is compared in the tests.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from ..core import slots
from ..core.record import Spec
from ..core.slots import slot
from .letters import LetterRule
from .moves import steps_between
from .placements import REPLICATE, Partial, Placement, Placements, Shard, cut, normalize


class Letter(NamedTuple):
    """An axis of the mesh cuts a letter, between groups of `unit` blocks; there are `groups`."""

    letter: str
    unit: int
    groups: int


class Terms(NamedTuple):
    """On an axis of the mesh some inputs stay terms: the operator is linear in them."""

    inputs: frozenset[int]
    op: str


class ShardingPlan(NamedTuple):
    """Placements of the inputs (None for a number) and of the results, and the bytes moved."""

    inputs: list[Placements | None]
    results: list[Placements]
    cost: object


@slot("sharding.propagate")
def propagate(
    rule: LetterRule, specs: list, placed: list, results: list[Spec], mesh_shape: tuple
) -> ShardingPlan:
    """The cheapest plan for inputs of these specs and placements (None for numbers)."""
    choices = [candidates(rule, specs, placed, a) for a in range(len(mesh_shape))]
    chosen = [each for each in product(*choices) if leaves_enough(rule, each, mesh_shape)]
    plans = (plan_for(rule, specs, placed, results, mesh_shape, each) for each in chosen)
    return min(plans, key=lambda plan: plan.cost)


def leaves_enough(rule: LetterRule, chosen, mesh_shape) -> bool:
    """Whether each rank gets a row, where an operator needs one: nothing has no maximum."""
    least: dict[str, int] = {}  # of each letter the groups of the last rank
    for each, parts in zip(chosen, mesh_shape):
        if type(each) is Letter:
            least[each.letter] = cut(least.get(each.letter, each.groups), parts, parts - 1)[1]
    return all(n or (rule.empty and rule.terms.get(x, "sum") == "sum") for x, n in least.items())


@slot("sharding.letters_to_cut")
def letters_to_cut(rule: LetterRule, specs, placed, axis: int) -> list[Letter]:
    """The letters of axes that an axis of the mesh cuts already, those of the first input first."""
    letters = {}
    for axes, spec, placements in zip(rule.inputs, specs, placed):
        own = placements[axis] if placements else REPLICATE
        if own.is_shard() and axes[own.dim] is not None:
            letter, n = axes[own.dim]
            unit = own.unit // n if own.unit % n == 0 else 1
            letters[Letter(letter, unit, spec.shape[own.dim] // (n * unit))] = None
    return [*letters]


@slot("sharding.candidates")
def candidates(rule: LetterRule, specs, placed, axis: int) -> list:
    """The choices of a mesh axis: cut a letter, keep terms, or None: nothing. An operator of
    one input keeps partial sums rather than add them: its consumer may reduce-scatter them.
    """
    kept = []
    for group in rule.linear:
        own = {placed[k] and placed[k][axis] for k in group}
        if len(own) == 1 and own <= {Partial("sum"), Partial("avg")}:
            kept.append(Terms(group, own.pop().op))
    letters = letters_to_cut(rule, specs, placed, axis)
    return [*kept, None] if len(specs) == 1 and kept else [*letters, None, *kept]


@slot("sharding.plan_for")
def plan_for(rule: LetterRule, specs, placed, results, mesh_shape, chosen) -> ShardingPlan:
    """The plan in which each axis of the mesh does what is `chosen` for it."""
    inputs = [
        p and lying(chosen, axes, spec, mesh_shape, {}, k)
        for k, (axes, spec, p) in enumerate(zip(rule.inputs, specs, placed))
    ]
    placements = [
        lying(chosen, axes, spec, mesh_shape, rule.terms)
        for axes, spec in zip(rule.results, results)
    ]
    cost = sum(
        steps_between(spec.nbytes, before, after, mesh_shape, slots.epoch)[0]
        for spec, before, after in zip(specs, placed, inputs) if before is not None
    )  # fmt: skip
    if cost or any(type(each) is Terms for each in chosen):
        cost += cost_of_next_moves(rule, specs, placed, results, placements, mesh_shape)
    return ShardingPlan(inputs, placements, cost)


def lying(chosen, axes, spec: Spec, mesh_shape, terms: dict, k: int | None = None) -> Placements:
    """The placements of a tensor with these letters, if each mesh axis does what is `chosen`:
    input number k, or a result.
    """
    placements = tuple(placement_for(each, axes, terms, k) for each in chosen)
    return normalize(placements, spec.shape, mesh_shape)


@slot("sharding.placement_for")
def placement_for(choice, axes, terms: dict, k: int | None) -> Placement:
    """The placement of a tensor with these letters along a mesh axis that does what `choice` says.

    terms: for a letter that is summed over, how the terms are combined
    k: the number of the input; None: it is a result
    """
    if type(choice) is Terms:
        return Partial(choice.op) if k is None or k in choice.inputs else REPLICATE
    if choice is None:
        return REPLICATE
    for d, axis in enumerate(axes):
        if axis is not None and axis.letter == choice.letter:
            return Shard(d, axis.unit * choice.unit)
    return Partial(terms[choice.letter]) if choice.letter in terms else REPLICATE


def cost_of_next_moves(rule: LetterRule, specs, placed, results, found, mesh_shape):
    """The bytes that will move after the operator if its results have placements `found`: terms
    are joined, and their cuts go back to the first input's letter, where a result has it.
    """
    letters = (letters_to_cut(rule, specs, placed, axis) for axis in range(len(mesh_shape)))
    first, cost = [next(iter(each), None) for each in letters], 0
    for axes, spec, lies in zip(rule.results, results, found):
        home = lying(first, axes, spec, mesh_shape, {})
        then = tuple(h if h.is_shard() or p.is_partial() else p for h, p in zip(home, lies))
        cost += steps_between(spec.nbytes, lies, then, mesh_shape, slots.epoch)[0]
    return cost
