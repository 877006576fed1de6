"""The links of an explorer's page are whole: from each line to its records, kernels, C, memory."""

from functools import cache
from pathlib import Path

import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.distributed.fleet.utils import recompute
from minipaddle.nn import functional as F
from minipaddle.viz.explore.facts import StepFacts
from minipaddle.viz.explore.text import families_of

from .steps import STEPS, training_step


@cache
def facts_of(name: str) -> dict:
    return StepFacts(STEPS[name](), timed=False).json


def rows_of(facts: dict, stage: int) -> list:
    """The records of a stage, with the runs that it shares with the stage before."""
    rows: list = []
    for each in facts["stages"][: stage + 1]:
        before, rows = rows, []
        for row in each["recs"]:
            rows += before[row[0] : row[1]] if len(row) == 2 else [row]
    return rows


@pytest.fixture(params=STEPS)
def facts(request):
    return facts_of(request.param)


def test_each_record_is_in_one_kernel(facts):
    """Or it computes nothing: a view, an item, the control flow itself."""
    kernels = [t for k in facts["kernels"] for t in k["tracks"]]
    assert len(kernels) == len(set(kernels))
    rest = {t for t, *_ in rows_of(facts, len(facts["stages"]) - 1)} - set(kernels)
    names = {facts["tracks"][t][0] for t in rest}
    assert names <= {"item", "reshape", "cond", "while_loop", "assign", "after"}, names


def test_each_kernel_has_a_line_of_the_user(facts):
    for kernel in facts["kernels"]:
        assert any(facts["tracks"][t][2] >= 0 for t in kernel["tracks"]), kernel["name"]


def test_lines_of_c_belong_to_their_kernels(facts):
    lines = facts["c"].split("\n")
    for kernel in facts["kernels"]:
        if kernel["lines"]:
            first, last = kernel["lines"]
            assert f" {kernel['name']}(" in "\n".join(lines[first - 1 : last])
            assert lines[last - 1] == "}"
            assert f"{kernel['name']}(" in lines[kernel["call"] - 1]
    for line, tracks in facts["own"].items():
        users = [
            k for k in facts["kernels"] if k["lines"] and k["lines"][0] <= line <= k["lines"][1]
        ]
        assert set(tracks) <= {t for k in users for t in k["tracks"]}, lines[line - 1]


def test_most_records_have_lines_of_c(facts):
    """Of nine in ten fused kernels the lines are known for themselves."""
    fused = [k for k in facts["kernels"] if k["lines"] and len(k["tracks"]) > 1]
    known = [k for k in fused if any(k["lines"][0] <= n <= k["lines"][1] for n in facts["own"])]
    assert len(known) >= 0.9 * len(fused), [k["name"] for k in fused if k not in known]


def test_each_place_of_the_arena_is_of_a_track(facts):
    readers = {f"n{kernel['name']}" for kernel in facts["kernels"]}
    for offset, nbytes, start, end, tracks, reader in facts["arena"]["blocks"]:
        assert tracks
        assert reader in readers or reader[:1] in ("", "t")  # nothing, or the host
        assert 0 <= offset <= offset + nbytes <= facts["arena"]["size"]
        assert start < end


def test_each_line_lives_or_is_gone(facts):
    """What a line computed is there after each pass, or something that came from it, or is gone."""
    families, gone = families_of(facts["tracks"]), set()
    first = [t for t, *_ in rows_of(facts, 0)]
    for k, stage in enumerate(facts["stages"]):
        gone |= set(stage["gone"])
        there = {t for t, *_ in rows_of(facts, k)}
        for track in first:
            assert families[track] & there or families[track] <= gone


def test_stages_say_what_changed(facts):
    before = {t for t, *_ in rows_of(facts, 0)}
    for k, stage in enumerate(facts["stages"][1:], 1):
        now = {t for t, *_ in rows_of(facts, k)}
        assert set(stage["gone"]) == before - now
        assert set(stage["new"]) == now - before
        before = now


def test_records_read_what_is_there(facts):
    for k in range(len(facts["stages"])):
        rows = rows_of(facts, k)
        there = [t for t, *_ in rows]
        assert len(there) == len(set(there))
        assert {t for _, read, *_ in rows for t in read} <= set(there)


def test_no_folders_of_this_machine(facts):
    assert str(Path(__file__).parent) not in str(facts)


def test_same_step_same_facts():
    step = STEPS["mlp"]()
    assert StepFacts(step, timed=False).json == StepFacts(step, timed=False).json


def test_who_reads_a_value_last():
    """Of an image that stays for the backward: the gradient of the pooling, not a copy's reader."""
    facts = StepFacts(STEPS["conv"](), timed=False).json
    ops, blocks = [row[0] for row in facts["tracks"]], facts["arena"]["blocks"]
    readers = [b[5] for b in blocks if "conv_last" in {ops[t] for t in b[4]}]
    assert readers
    assert all(reader.endswith("max_pool_last_grad") for reader in readers)


class Recomputed(nn.Layer):
    """A layer that is computed again for the backward pass; what leaves `hidden` is kept."""

    def __init__(self, twice: bool):
        super().__init__()
        self.fc, self.head, self.twice = nn.Linear(4, 8), nn.Linear(8, 3), twice

    def forward(self, x):
        def hidden(x):
            return F.gelu(self.fc(x))

        return self.head(recompute(hidden, x) if self.twice else hidden(x))


@pytest.mark.parametrize("twice", [False, True])
def test_what_is_computed_again_is_named(twice):
    step = training_step(Recomputed(twice), paddle.ones([2, 4]), paddle.to_tensor([0, 2]))
    facts = StepFacts(step, timed=False).json
    groups = [[int(t) for t in ts.split(".")] for ts in {*facts["twins"].values()}]
    names = sorted(tuple(facts["tracks"][t][0] for t in ts) for ts in groups)
    assert names == ([("add", "add"), ("product", "product")] if twice else [])
    assert {*facts["twins"]} == {t for ts in groups for t in ts}
