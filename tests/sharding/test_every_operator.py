"""Every operator on tensors in pieces: the whole of its results is what one process computes."""

from itertools import product

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed.tensors.dist_tensor import view_of
from minipaddle.engine.core.op import OPS
from minipaddle.engine.core.record import Spec
from minipaddle.engine.eager.tensor import wrap
from minipaddle.engine.sharding.array import ShardedArray, cut_whole
from minipaddle.engine.sharding.placements import Partial, ProcessMesh, Replicate, Shard
from tests.ops.test_operators import ALL, CASES, listed

pytestmark = pytest.mark.sweep(one_in=2)

MESHES = [[0, 1, 2], [[0, 1], [2, 3]]]
DRAWS = 2


def random_placements(rng, array, mesh):
    """Placements of an array: mostly shards."""
    found = []
    for _ in range(mesh.ndim):
        kind = rng.random()
        if array.ndim and kind < 0.6:
            found.append(Shard(int(rng.integers(array.ndim))))
        elif kind < 0.8 and array.dtype.kind == "f":
            found.append(Partial())
        else:
            found.append(Replicate())
    return tuple(found)


def on_pieces(case, number: int, draw: int, mesh):
    """The inputs of a case: whole, and in pieces that lie at random."""
    whole, pieces = [], []
    rng, view = np.random.default_rng([number, draw]), view_of(mesh)
    for x in case.build(np.random.default_rng(number)):
        if not isinstance(x, np.ndarray):
            whole.append(x)
            pieces.append(x)
            continue
        x = x.astype("float64") if x.dtype.kind == "f" else x
        whole.append(paddle.to_tensor(x))
        pieces.append(wrap(cut_whole(x, random_placements(rng, x, mesh), view)))
    return whole, pieces


def compare(ranks) -> list[str]:
    """What differs, of all operators on one mesh; the first rank compares."""
    mesh, wrong = ProcessMesh(ranks), []
    for number, draw in product(range(len(ALL)), range(DRAWS)):
        name, k = ALL[number]
        op, case = OPS[name], CASES[name][k]
        whole, pieces = on_pieces(case, number, draw, mesh)
        places = [x.array for x in pieces if isinstance(x, paddle.Tensor)]
        try:
            found = [y.array for y in listed(op(*pieces, **case.attrs))]
            found = [y.get() if type(y) is ShardedArray else y for y in found]
            expected = [] if dist.get_rank() else listed(op(*whole, **case.attrs))
            for y, z in zip(found, expected, strict=dist.get_rank() == 0):
                assert Spec(y.shape, y.dtype) == z.spec
                np.testing.assert_allclose(y, z.array, rtol=1e-9, atol=1e-9, equal_nan=True)
        except Exception as error:
            wrong.append(f"{name} {case.attrs} of {places}: {type(error).__name__}: {error}"[:600])
    return wrong


@pytest.mark.filterwarnings("ignore:.* has no sharding rule")
@pytest.mark.parametrize("ranks", MESHES, ids=str)
def test_every_operator(ranks):
    size = np.size(ranks)
    results = dist.spawn(compare, args=(ranks,), nprocs=size).results
    assert not results[0], "\n".join(results[0][:3])


def test_an_operator_without_a_rule_says_so():
    """All ranks compute all of it, then: users learn that nothing is saved there."""

    def work():
        x = dist.shard_tensor(paddle.eye(4), dist.ProcessMesh([0, 1]), [Shard(0)])
        return paddle.linalg.inv(x).tolist()

    with pytest.warns(UserWarning, match="inverse has no sharding rule: each rank computes all"):
        found = dist.spawn(work, nprocs=2).results
    assert found == [np.eye(4).tolist()] * 2
