"""Paddle's lists, and which of our operators they mean."""

import json
from pathlib import Path

import pytest

import minipaddle as paddle
from minipaddle.amp import lists
from minipaddle.core.casting import AS_OPERATORS
from minipaddle.engine.core.slots import OPS

RECORD = json.loads((Path(__file__).parents[1] / "data/amp_lists.json").read_text())
EVERY = {
    name
    for colour in ("white", "black")
    for levels in RECORD[colour].values()
    for own in levels.values()
    for name in own
}


@pytest.mark.parametrize("colour", ["white", "black"])
def test_the_lists_are_those_of_paddle(colour):
    ours = {"white": paddle.amp.white_list, "black": paddle.amp.black_list}[colour]()
    assert ours == {
        dtype: {level: set(own) for level, own in levels.items()}
        for dtype, levels in RECORD[colour].items()
    }


def test_each_name_means_an_operator_or_has_a_reason():
    known = {*OPS, *AS_OPERATORS}
    named = {name for name in EVERY if {*lists.OURS.get(name, name).split()} <= known}
    assert sorted(named | {*lists.ABSENT}) == sorted(EVERY)
    assert not named & {*lists.ABSENT}
    assert {own for names in lists.OURS.values() for own in names.split()} <= known


def test_an_operator_has_all_of_its_names():
    assert lists.names(OPS["affine"]) == {"affine", "linear_v2", "fused_gemm_epilogue"}
