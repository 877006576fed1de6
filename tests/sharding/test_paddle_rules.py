"""Placements of results, against the answers of Paddle's own rules (`tests/data/README.md`).

A case has letters for the axes, as its recorder read them; here they become a `Rule`.
"""

import json
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from minipaddle.engine.core.record import Spec
from minipaddle.engine.sharding.letters import parse
from minipaddle.engine.sharding.moves import steps_between
from minipaddle.engine.sharding.placements import Partial, Replicate, Shard
from minipaddle.engine.sharding.propagate import cost_of_next_moves, propagate

DIFFERENT = {
    "sums of a norm or of a logarithm are no sums: Paddle's answer is wrong": ("logsumexp p_norm"),
    "the sliced axis stays cut, though other rows are asked for: Paddle's answer is wrong": (
        "strided_slice"
    ),
    "images are cut without the neighbours' rows: Paddle's answer is wrong": (
        "conv2d conv2d_transpose conv3d depthwise_conv2d"
    ),
    "the terms of a cut vocabulary are joined inside the operator": (
        "cross_entropy_with_softmax softmax_with_cross_entropy"
    ),
    "cut along the index, which leaves terms": "scatter scatter_nd_add",
    "Paddle wants scale and shift whole": "batch_norm instance_norm",
    "Paddle knows less: axes that could stay cut are joined": (
        "concat stack where expand_as take_along_axis fused_dropout_add linear_v2 "
        "fused_gemm_epilogue fused_rotary_position_embedding flash_attention nonzero"
    ),
    "the letters do not say how terms are combined": "mean_all reduce_base",
    "axes that are merged have no letters here; `letters.blocks` knows them": "reshape reshape2",
}
"""Names whose answers differ in some cases, by the reason."""


LACKING = ("gather", "gather_nd")
"""In conflicts Paddle leaves an index cut though the result is not: a rank lacks places."""


@cache
def recorded() -> list:
    path = Path(__file__).parents[1] / "data/sharding_rules.json"
    return json.loads(path.read_text(encoding="utf-8"))["forward"]


def placements(answer, mesh, terms=()) -> tuple:
    """Placements from Paddle's form: for each axis of a tensor the axis (or axes) of the mesh."""
    found = [Replicate()] * len(mesh)
    for dim, axes in enumerate(answer):
        for axis in axes if isinstance(axes, list) else [axes]:
            if axis >= 0:
                found[axis] = Shard(dim)
    for axis, op in terms:
        found[axis] = Partial(op.lower())
    return tuple(found)


def cases(kind: str):
    """(name, our plan, Paddle's inputs, Paddle's results, specs, how they lie, mesh) of the cases
    that Paddle answers.
    """
    for name, letters, mesh, tensors, _, of_kind, answer in recorded():
        if of_kind != kind or not isinstance(answer, list):
            continue
        text = "".join("." if c.isupper() or c == "1" else c for c in letters)
        specs = [Spec(tuple(shape), np.dtype("float32")) for shape, _ in tensors]
        left, right = text.split("->")
        sizes = {}
        for axes, spec in zip(left.split(","), specs):
            sizes |= dict(zip(axes, spec.shape))
        results = [
            Spec(tuple(sizes.get(c, 1) for c in axes), np.dtype("float32"))
            for axes in right.split(",")
        ]
        placed = [placements(axes, mesh) for _, axes in tensors]
        plan = propagate(parse(text), specs, placed, results, tuple(mesh))
        theirs = [[placements(axes, mesh, terms) for axes, terms in side] for side in answer]
        yield name, plan, *theirs, specs, results, placed, tuple(mesh), parse(text)


@pytest.mark.sweep
def test_where_nothing_has_to_move():
    """In more than 3,000 cases the answers are Paddle's; the names of the others are listed."""
    known = {name: why for why, names in DIFFERENT.items() for name in names.split()}
    same, different = Counter(), defaultdict(list)
    for name, plan, _, theirs, _, _, placed, mesh, _ in cases("plain"):
        if plan.results == theirs:
            same[name] += 1
        else:
            different[name].append(f"{name} {placed} on {mesh}: {plan.results}, Paddle {theirs}")
    assert [x for name, found in different.items() if name not in known for x in found] == []
    assert sorted(known.keys() - different.keys() - {"nonzero"}) == []
    assert same.total() > 3400
    assert same["matmul"] == 294


@pytest.mark.sweep
def test_where_something_has_to_move():
    """Of conflicts that Paddle resolves, not one is resolved with more bytes here."""
    count = 0
    for name, plan, inputs, theirs, specs, results, placed, mesh, rule in cases("conflict"):
        if name in LACKING or name in " ".join(DIFFERENT.values()).split():
            continue
        moves = [
            steps_between(s.nbytes, before, after, mesh)[0]
            for s, before, after in zip(specs, placed, inputs)
        ]
        after = cost_of_next_moves(rule, specs, placed, results, theirs, mesh)
        assert plan.cost <= sum(moves) + (after if any(moves) else 0), (name, placed, mesh)
        count += 1
    assert count > 500
