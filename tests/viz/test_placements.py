"""How tensors lie on meshes, as pictures."""

import pytest

import minipaddle.distributed as dist
from minipaddle import viz

P, R, S = dist.Partial(), dist.Replicate(), dist.Shard


def test_a_grid_for_each_rank_and_placement():
    mesh = dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])
    picture = viz.placements([5, 6], mesh, [S(0), P], [S(0), S(1)], [S(1), S(0)])
    assert str(picture).splitlines()[2:] == [
        "  reduce_scatter along y: 30 B",
        "[Shard(dim=0), Shard(dim=1)]: [0:3, 0:3] in rank 0; [0:3, 3:6] in rank 1; "
        "[3:5, 0:3] in rank 2; [3:5, 3:6] in rank 3",
        "  all_gather along x: 30 B",
        "  all_to_all along y: 30 B",
        "  a slice along x: 0 B",
        "[Shard(dim=1), Shard(dim=0)]: [0:3, 0:3] in rank 0; [3:5, 0:3] in rank 1; "
        "[0:3, 3:6] in rank 2; [3:5, 3:6] in rank 3",
    ]
    axes = picture.figure.axes
    boxes = [axis.patches[0] for axis in axes]
    found = [(b.get_x(), b.get_y(), b.get_width(), b.get_height()) for b in boxes]
    assert found[4:8] == [(0, 0, 3, 3), (3, 0, 3, 3), (0, 3, 3, 2), (3, 3, 3, 2)]
    assert [bool(b.get_hatch()) for b in boxes] == [True] * 4 + [False] * 8
    assert len({b.get_facecolor() for b in boxes}) == 4
    assert picture.png().startswith(b"\x89PNG")


def test_a_vector_and_what_stays():
    mesh = dist.ProcessMesh([0, 1, 2])
    lines = str(viz.placements([4], mesh, [S(0)], [R], [R], dtype="float64")).splitlines()
    assert lines[1] == "[Shard(dim=0)]: [0:2] in rank 0; [2:4] in rank 1; [4:4] in rank 2"
    assert lines[2] == "  all_gather along d0: 21 B"
    assert lines[3:] == ["[Replicate()]: [0:4] in rank 0, 1, 2"] * 2


@pytest.mark.parametrize("shape", [[], [2, 2, 2], [65]])
def test_what_is_too_large(shape):
    with pytest.raises(ValueError, match="one or two axes of at most 64 elements"):
        viz.placements(shape, dist.ProcessMesh([0]), [R])
