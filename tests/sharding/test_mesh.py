"""Meshes and placements, asked as Paddle was: its answers stand in `dist_behaviours.json`."""

import json
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist

RECORD = Path(__file__).parents[1] / "data" / "dist_behaviours.json"
ANSWERS = {
    question: answer
    for question, answer in json.loads(RECORD.read_text())["behaviours"]
    if question.startswith(("ProcessMesh(", "Shard(", "Replicate(", "hash(Shard"))
}
NAMES = {name: getattr(dist, name) for name in ("ProcessMesh", "Shard", "Replicate", "Partial")}
OTHERWISE = {
    # Paddle's mesh does not know its own ranks here, and names are not part of what is equal there
    'ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"]).get_rank_by_dim_and_process_id("x", 2)',
    'ProcessMesh([0, 1], dim_names=["x"]) == ProcessMesh([0, 1], dim_names=["y"])',
    # a string is a list of names of one letter; several axes may cut one, in their order alone
    'ProcessMesh([0, 1], dim_names="x")',
    "Shard(0, shard_order=1)",
}


@pytest.mark.parametrize("question", [q for q in ANSWERS if q not in OTHERWISE])
def test_answers_are_paddles(question):
    """What Paddle refuses is refused."""
    answer = ANSWERS[question]
    if "Error: " in answer:
        with pytest.raises((TypeError, ValueError)):
            eval(question, dict(NAMES))
    else:
        assert repr(eval(question, dict(NAMES))) == answer


def test_a_mesh_of_three_axes():
    mesh = dist.ProcessMesh(np.arange(12).reshape(2, 3, 2), ["x", "y", "z"])
    assert (mesh.get_dim_size("y"), mesh.dim_size(2)) == (3, 2)
    assert (mesh.contains(11), mesh.contains(12)) == (True, False)
    assert mesh.get_rank_by_dim_and_process_id("y", 9) == 1
    assert mesh.get_rank_by_dim_and_process_id("y", 12) == -1
    moved = mesh.get_mesh_with_dim("y")
    assert (moved.shape, moved.dim_names) == ([3, 2, 2], ["y", "x", "z"])
    assert moved.mesh.tolist() == mesh.mesh.swapaxes(0, 1).tolist()
    part = mesh.get_mesh_with_dim("y", 2)
    assert (part.dim_names, part.process_ids) == (["x", "z"], [4, 5, 10, 11])
    assert (mesh[1, :, 0].dim_names, mesh[1, :, 0].process_ids) == (["y"], [6, 8, 10])
    assert mesh[1, 2, 0].process_ids == [10]


def test_the_groups_of_a_mesh():
    """Those who differ from a rank along an axis, in the order of the mesh; they can talk."""

    def work():
        mesh = dist.ProcessMesh([[3, 1], [0, 2]], ["x", "y"])
        group = mesh.get_group("x")
        assert mesh.get_submesh_with_dim("x").get_group() is not None
        x = paddle.to_tensor(float(dist.get_rank()))
        dist.all_reduce(x, group=group)
        with pytest.raises(ValueError, match=r"get_group\(\) of .*\n  expected: one of \['x', 'y'"):
            mesh.get_group()
        return mesh.get_submesh_with_dim("x").process_ids, group.ranks, x.item()

    columns = {3: [3, 0], 0: [3, 0], 1: [1, 2], 2: [1, 2]}
    for rank, found in enumerate(dist.spawn(work, nprocs=4).results):
        assert found == (columns[rank], columns[rank], 3.0)


def test_a_rank_outside_has_no_part_of_a_mesh():
    with pytest.raises(ValueError, match="rank 0 is not in the mesh"):
        dist.ProcessMesh([1, 2], ["x"]).get_submesh_with_dim("x")


def test_how_a_tensor_in_pieces_shows_itself():
    """As Paddle's: where it lies, and the whole."""

    def work():
        mesh = dist.ProcessMesh([0, 1], dim_names=["x"])
        x = dist.shard_tensor(paddle.arange(3.0), mesh, [dist.Shard(0)])
        return repr(x), x._local_shape

    for k, (shown, local) in enumerate(dist.spawn(work, nprocs=2).results):
        assert local == [2 - k]
        assert shown == (
            "Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True, process_mesh="
            "{shape: [2], process_ids: [0,1], dim_names: [x]}, placements=[Shard(dim=0)], "
            "GlobalDenseTensor=\n       [0., 1., 2.])"
        )
    assert paddle.ones([2])._local_value() is paddle.ones([2])._local_shape is None
