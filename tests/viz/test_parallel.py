"""Pictures of many workers: what they say in words, and what is drawn."""

import pytest

import minipaddle as paddle
from minipaddle import viz
from minipaddle.distributed.simulator import (
    PCIE,
    Cluster,
    TimelinePiece,
    Watch,
    hierarchical,
    ring,
    simulate,
    slow_down,
    timeline_of,
)  # fmt: skip
from minipaddle.engine.passes.async_collectives import async_collectives
from minipaddle.ir.parser import parse
from tests.distributed.test_data_parallel import LAYERS

STEP = [
    TimelinePiece("backward", 0.1, starts=(0,)), TimelinePiece("backward", 0.05, starts=(1,)),
    TimelinePiece("update", 0.01, waits=(0, 1)),
]  # fmt: skip


def test_buckets_and_what_is_computed_while_they_travel():
    picture = viz.buckets(async_collectives(parse(LAYERS), fuse_all_reduce_ops=False))
    assert str(picture).splitlines() == [
        "p: 15 records, 2 buckets",
        "  bucket 0: 2.0 KB, 1 gradient, travels while 4 records are computed",
        "  bucket 1: 2.0 KB, 1 gradient, travels while 1 record is computed",
    ]
    (axis,) = picture.figure.axes
    assert [t.get_text().strip() for t in axis.texts] == ["bucket 0, 2.0 KB", "bucket 1, 2.0 KB"]
    assert len(axis.patches) == 15 + 2
    colours = [p.get_facecolor() for p in axis.patches]
    assert colours[3] == colours[15]  # where bucket 0 starts
    assert colours[9] == colours[15] != colours[16]  # and where it is fetched
    assert colours[2] == colours[15]  # what makes its gradient alone
    assert picture.png().startswith(b"\x89PNG")


def test_timelines_stand_on_one_scale():
    cluster = Cluster(1, 3, PCIE)
    both = [simulate(STEP, [1e8, 1e6], cluster, overlap=on) for on in (True, False)]
    picture = viz.timeline(*both, titles=("on", "off"))
    on, off = str(picture).splitlines()
    assert on.startswith("on: 160.2 ms on 3 devices: compute 160.0 ms, communication 13.5 ms")
    assert off.startswith("off: 173.5 ms")
    first, second = picture.figure.axes
    assert first.get_xlim() == second.get_xlim()
    assert len(first.patches) == len(both[0].spans)


@pytest.mark.parametrize("schedule", [ring(3), hierarchical(2, 2)], ids=lambda s: s.name)
def test_a_collective_ends_with_all_sums_everywhere(schedule):
    lines = str(viz.collective(schedule)).splitlines()
    assert len(lines) == 1 + len(schedule.rounds)
    n = str(schedule.size)
    assert lines[-1].count(n * schedule.parts) == schedule.size
    assert set(lines[0].split("| ", 1)[1]) == {"1", " ", "|"}


def test_each_part_that_came_has_a_frame():
    axes = viz.collective(ring(3)).figure.axes
    assert [len(axis.patches) - 9 for axis in axes] == [0, 3, 3, 3, 3]


def test_what_ranks_did_is_a_timeline_too():
    def rank():
        world = paddle.distributed.get_group()
        x = paddle.ones([1000]).numpy()
        with slow_down(world, Cluster(1, 2, PCIE._replace(latency=0.01))):
            with Watch(world) as watch:
                world.all_reduce(x, wait=False).wait()
            return watch

    found = timeline_of(paddle.distributed.spawn(rank, nprocs=2).results)
    assert {s.device for s in found.spans} == {0, 1}
    assert found.total("communication", 1) > 0.02  # two rounds, however late the threads come
    times = [found.total("idle", k) + found.total("compute", k) for k in (0, 1)]
    assert max(times) == pytest.approx(found.seconds)
    assert "on 2 devices" in str(viz.timeline(found))
