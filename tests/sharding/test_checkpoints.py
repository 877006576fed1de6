"""A checkpoint of one mesh loads on any other, and training goes on with it."""

import inspect
import json
import os
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed.checkpoint import loading
from minipaddle.nn import functional as F

from .checkpoints import ARRAYS, LAYOUTS, S, check, read, times, write
from .models import GPT, R, first_axis, megatron, replicated


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder for each layout, with the checkpoint that it wrote."""
    found = {}
    for layout in LAYOUTS:
        found[layout] = str(tmp_path_factory.mktemp("checkpoint"))
        write(layout, found[layout])
    return found


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize(("wrote", "reads"), [*product(LAYOUTS, LAYOUTS)])
def test_any_mesh_loads_what_any_wrote(written, wrote, reads):
    check(read(reads, written[wrote]))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_piece_is_written_once(written, layout):
    folder = Path(written[layout])
    found = json.loads((folder / "0.metadata").read_text())
    whole = sum(a.nbytes for a in ARRAYS.values()) + 2 * 35
    loaded = [paddle.load(folder / name, return_numpy=True) for name in found["files"]]
    assert sum(a.nbytes for each in loaded for a in each.values()) == whole
    assert len(loaded) == LAYOUTS[layout][0]  # each rank has some of the work
    assert sorted(os.listdir(folder)) == sorted(["0.metadata", *found["files"]])


def test_a_rank_reads_only_the_rows_of_its_pieces(written, monkeypatch):
    seen = []
    rows = loading.Files.rows

    def counted(self, *args):
        found = rows(self, *args)
        seen.append(found.nbytes)
        return found

    monkeypatch.setattr(loading.Files, "rows", counted)

    def work():
        mesh = dist.ProcessMesh([0, 1, 2, 3])
        x = dist.shard_tensor(paddle.zeros([7, 5]), mesh, [S(0)])
        dist.load_state_dict({"inner": {"deep": {"matrix": x}}}, written["2x2"])

    dist.spawn(work, nprocs=4)
    assert sum(seen) == ARRAYS["matrix"].nbytes


def test_numbers_of_checkpoints(tmp_path):
    for k in range(3):
        write("rows of 4", tmp_path, times(k + 1), unique_id=None)
    check(read("one", tmp_path), times(3))
    check(read("one", tmp_path, unique_id=1), times(2))
    write("2x2", tmp_path, times(2), unique_id=0, coordinator_rank=2)
    check(read("one", tmp_path, unique_id=0), times(2))
    named = [
        name
        for k in range(3)
        for name in json.loads((tmp_path / f"{k}.metadata").read_text())["files"]
    ]
    assert sorted(os.listdir(tmp_path)) == sorted([*named, *(f"{k}.metadata" for k in range(3))])


def test_an_empty_dict_gets_all(written):
    found = {}
    dist.load_state_dict(found, written["2x2"])
    deep = {name: x.numpy() for name, x in found["inner"]["deep"].items()}
    check([(deep, found["half"].astype("float32").numpy(), found["epoch"], (*found["more"],))])


def test_a_group_of_some_ranks(tmp_path):
    def work():
        group = dist.new_group([1, 2])
        state = {"x": paddle.ones([3]) * 2}
        dist.save_state_dict(state, tmp_path, group, coordinator_rank=2)
        state["x"].zero_()
        dist.load_state_dict(state, tmp_path, group, coordinator_rank=1)
        return state["x"].tolist()

    assert dist.spawn(work, nprocs=3).results == [[0.0] * 3, [2.0] * 3, [2.0] * 3]


# ---- training ------------------------------------------------------------------------------------

WAYS = {
    "one": (1, None, None, None),
    "data": ([0, 1, 2], replicated, [S(0)], None),
    "data x tensor": ([[0, 1], [2, 3]], lambda n, s: megatron(n, s, [R]), [S(0)], None),
    "ZeRO-3": ([0, 1, 2, 3], first_axis, [S(0)], None),
}


class Training:
    """A GPT, its optimizer with a schedule, and steps of both."""

    def __init__(self, way: str):
        paddle.seed(3)
        mesh, place, self.inputs, _ = WAYS[way]
        self.mesh = place and dist.ProcessMesh(mesh)
        self.net = GPT(dropout=0.0)
        if place:
            for name, p in self.net.named_parameters():
                dist.shard_tensor(p, self.mesh, place(name, p.spec))
        self.rate = paddle.optimizer.lr.StepDecay(0.02, step_size=2, gamma=0.5)
        self.optimizer = paddle.optimizer.AdamW(
            self.rate, epsilon=1e-4, parameters=self.net.parameters()
        )

    def run(self, first: int, last: int) -> list[float]:
        losses = []
        for k in range(first, last):
            rng = np.random.default_rng(k)
            x, y = (paddle.to_tensor(rng.integers(0, 32, (4, 8))) for _ in range(2))
            if self.mesh:
                x, y = (dist.shard_tensor(each, self.mesh, self.inputs) for each in (x, y))
            scores = self.net(x)
            loss = F.cross_entropy(scores.reshape([-1, 32]), y.reshape([-1]))
            loss.backward()
            self.optimizer.step()
            self.optimizer.clear_grad()
            self.rate.step()
            losses.append(float(loss))
        return losses

    def save(self, folder, **options):
        state = {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}
        dist.save_state_dict(state, folder, **options)

    def load(self, folder):
        for p in self.net.parameters():
            p.set_value(paddle.zeros_like(p))
        state = {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}
        dist.load_state_dict(state, folder)
        self.optimizer.set_state_dict(state["optimizer"])


def spawned(way: str, work) -> list:
    return dist.spawn(work, args=(way,), nprocs=np.size(WAYS[way][0])).results


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A function: of a way a checkpoint after two of four steps, and the losses of an uninterrupted
    run.
    """

    @cache
    def found(way):
        folder = tmp_path_factory.mktemp("training")

        def work(way):
            training = Training(way)
            losses = training.run(0, 2)
            training.save(folder)
            return losses + training.run(2, 4)

        return folder, spawned(way, work)[0]

    return found


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize(
    ("wrote", "reads"), [*zip(WAYS, WAYS), *zip(WAYS, [*WAYS][1:]), ("ZeRO-3", "one")]
)
def test_training_goes_on(trained, wrote, reads):
    folder, losses = trained(wrote)

    def work(way):
        training = Training(way)
        training.load(folder)
        return training.run(2, 4)

    for found in spawned(reads, work):
        np.testing.assert_allclose(found, losses[2:], rtol=1e-5)
        assert wrote != reads or found == losses[2:]


def test_paddle_save_gathers_what_lies_in_pieces(tmp_path):
    """As Paddle's does: all ranks call it, and each has the whole."""

    def work():
        mesh, place = dist.ProcessMesh([0, 1, 2]), [S(0)]
        x = dist.shard_tensor(paddle.to_tensor(ARRAYS["matrix"]), mesh, place)
        paddle.save({"x": x}, str(tmp_path / f"{dist.get_rank()}.pdparams"))
        found = paddle.load(str(tmp_path / f"{dist.get_rank()}.pdparams"))["x"]
        again = dist.shard_tensor(paddle.zeros([7, 5]), mesh, place)
        again.set_value(found)
        return found.is_dist(), found.numpy(), again.placements, again.numpy()

    for is_dist, found, placements, again in dist.spawn(work, nprocs=3).results:
        assert not is_dist
        assert placements == [S(0)]
        np.testing.assert_array_equal(found, ARRAYS["matrix"])
        np.testing.assert_array_equal(again, ARRAYS["matrix"])


@pytest.mark.parametrize("name", ["save_state_dict", "load_state_dict"])
def test_signatures(name):
    data = Path(__file__).parents[1] / "data" / "distributed_signatures.json"
    known = json.loads(data.read_text())["signatures"][f"paddle.distributed.{name}"]
    own = inspect.signature(getattr(dist, name)).parameters.values()
    assert [(p.name, repr(p.default)) for p in own if p.default is not p.empty] == [
        (p["name"], p["default"]) for p in known if "default" in p
    ]
    assert [p.name for p in own] == [p["name"] for p in known]
