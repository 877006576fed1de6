"""Slices of values that depend on their place alone are created in their size."""

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
import minipaddle.nn.functional as F
from minipaddle.distributed.simulator import pretend
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.manager import optimized
from minipaddle.ir.parser import parse
from minipaddle.passes.slice_creations import slice_creations
from tests.passes.programs import results

MASK = """program p(a: float32[4], state: int64[]) {{
  v1 = arange(start=3, step=2, size=24, dtype=int64) : int64[24]
  v2 = random_uniform(v1, state, low=0.0, high=1.0, dtype=float32) : float32[24]
  v3 = reshape(v2, shape=(6, 4,)) : float32[6, 4]
  v4 = multiply(v3, 2.0) : float32[6, 4]
  v5 = slice({of}, index=({index})) : float32[{shape}]
  return v5{more}
}}"""
GIVEN = [np.arange(4, dtype="float32"), np.array(77)]


def program(of="v4", index="(2, 5, 1,),", shape="3, 4", more=""):
    return parse(MASK.format(of=of, index=index, shape=shape, more=more))


def test_a_rank_draws_its_rows_of_a_mask():
    before = program()
    after = dead_code(slice_creations(before))
    arange, draw = (r for r in after.records if r.op.name in ("arange", "random_uniform"))
    assert (arange.attrs["start"], arange.spec.shape, draw.spec.shape) == (19, (12,), (12,))
    assert [r.op.name for r in after.records].count("slice") == 0
    np.testing.assert_array_equal(*(results(p, GIVEN)[0] for p in (before, after)))


@pytest.mark.parametrize(
    "changed",
    [
        {"more": ", v4"},  # all of it is needed anyway
        {"more": ", v2"},
        {"index": "(0, 6, 2,),"},  # every other row
        {"index": "(0, 6, 1,), (1, 3, 1,),", "shape": "6, 2"},  # columns of rows
    ],
)
def test_other_slices_stay(changed):
    before = program(**changed)
    assert "slice" in [r.op.name for r in slice_creations(before).records]
    np.testing.assert_array_equal(
        *(results(p, GIVEN)[0] for p in (before, slice_creations(before)))
    )


def test_dropout_draws_as_much_on_any_mesh():
    """Elements drawn by a rank with two rows of the batch, alone and among many."""

    def drawn(ranks):
        mesh = dist.ProcessMesh([*range(ranks)])
        x = dist.shard_tensor(paddle.ones([2 * ranks, 16]), mesh, [dist.Shard(0)])
        step = paddle.jit.to_static(lambda x: F.dropout(x, 0.1).exp().sum())
        step(x)
        ((captured,),) = step.cache.entries.values()
        ((part, _),) = captured.executables.parts.values()
        found = optimized(part, fusion=False).program.records
        return [r.spec.size for r in found if r.op.name == "random_uniform"]

    assert pretend(drawn, (1,), ranks=1) == pretend(drawn, (64,), ranks=64) == [32]
