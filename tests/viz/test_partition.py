"""The program of a rank as a picture: its collectives, and how what it is given lies."""

import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle import nn, viz
from minipaddle.viz.style import LOOKS
from tests.viz.reading import Drawing


@pytest.fixture(scope="module")
def picture():
    def step():
        paddle.seed(1)
        net = nn.Linear(8, 4)
        mesh = dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "mp"])
        net.weight = dist.shard_tensor(net.weight, mesh, [dist.Replicate(), dist.Shard(0)])
        function = paddle.jit.to_static(
            lambda x: dist.reshard(net(x).tanh(), mesh, [dist.Replicate()] * 2)
        )
        x = dist.shard_tensor(paddle.ones([6, 8]), mesh, [dist.Shard(0), dist.Shard(1)])
        with paddle.no_grad():
            function(x)
        return function

    return viz.partition(dist.spawn(step, nprocs=4).results[3])


def test_collectives_say_where_they_go_and_what_they_bring(picture):
    collectives = [n for n in Drawing(picture).nodes if "along" in n.text]
    assert [n.text for n in collectives] == [
        "all_reduce\nalong mp, 48 B\nfloat32[3, 4]",
        "all_gather\nalong dp, 48 B\nfloat32[6, 4]",
    ]
    assert {n.attribute("fill") for n in collectives} == {LOOKS["collective"].fill}
    assert picture.text.splitlines()[1:] == [
        "  all_reduce along mp, 48 B: float32[3, 4]",
        "  all_gather along dp, 48 B: float32[6, 4]",
    ]
    assert "2 collectives, 96 B for each rank" in picture.text


def test_what_a_program_is_given_says_how_it_lies(picture):
    drawn = Drawing(picture)
    assert drawn.node("x [S0, S1]").text.endswith("float32[3, 4]")
    assert drawn.node("weight [R, S0]").text.endswith("float32[4, 4]")


def test_there_must_be_pieces():
    function = paddle.jit.to_static(lambda x: x * 2)
    function(paddle.ones([2]))
    for target in (function, nn.Linear(2, 2)):
        with pytest.raises(RuntimeError, match="called with such tensors"):
            viz.partition(target)
