"""Paddle's functions on tensors, on threads; what carries them is tested by the conformance."""

import threading

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist


def ranks(work, nprocs=3):
    return dist.spawn(work, nprocs=nprocs, timeout=10).results


def test_views_and_repeated_memory_are_written_as_they_look():
    """A transposed view, a slice and an expanded tensor: no gap in memory is needed."""

    def work():
        base = lambda: paddle.arange(6, dtype="float32").reshape([2, 3])
        turned, part, same = base().T, base()[:, 1:], paddle.ones([1]).expand([3])
        for x in (turned, part, same):
            dist.all_reduce(x)
        dist.broadcast(same, src=2)
        return turned.tolist(), part.tolist(), same.tolist()

    whole = 3 * np.arange(6.0).reshape(2, 3)
    assert ranks(work) == [(whole.T.tolist(), whole[:, 1:].tolist(), [3.0] * 3)] * 3


def test_lists_that_hold_tensors_are_filled():
    def work():
        rank = dist.get_rank()
        mine = paddle.to_tensor(float(rank))  # no axis at all
        found = [paddle.zeros([]) for _ in range(3)]
        dist.all_gather(found, mine)
        task = dist.all_gather(late := [], mine, sync_op=False)
        task.wait()
        swapped = []
        dist.alltoall(swapped, [paddle.full([k + 1, 2], 10.0 * rank + k) for k in range(3)])
        return [x.item() for x in found], len(late), [x.shape for x in swapped]

    with pytest.raises(ValueError, match="do not ask for the same"):
        ranks(work)  # rank k awaits rows of the shapes it sends

    def of_stated_shapes():
        rank = dist.get_rank()
        swapped = [paddle.zeros([rank + 1, 2]) for _ in range(3)]
        dist.alltoall(swapped, [paddle.full([k + 1, 2], 10.0 * rank + k) for k in range(3)])
        return [x.shape for x in swapped], [x[0, 0].item() for x in swapped]

    expected = [([[k + 1, 2]] * 3, [float(k), 10.0 + k, 20.0 + k]) for k in range(3)]
    assert ranks(of_stated_shapes) == expected


def test_rows_of_one_tensor():
    def work():
        rank = dist.get_rank()
        x = paddle.full([3], float(rank))
        out = paddle.zeros([[6, 0, 3][rank]])
        sent, received = [2, 0, 1], [[2] * 3, [0] * 3, [1] * 3][rank]
        dist.alltoall_single(out, x, sent, received)
        return out.tolist()

    assert ranks(work) == [[0.0, 0.0, 1.0, 1.0, 2.0, 2.0], [], [0.0, 1.0, 2.0]]


def test_ranks_of_a_group_are_numbered_as_all_are():
    def work():
        odd = dist.new_group([2, 1])
        x = paddle.to_tensor([float(dist.get_rank())])
        dist.broadcast(x, src=2, group=odd)
        task = dist.reduce(x, dst=1, group=odd)
        dist.barrier(odd)
        if odd.rank < 0:
            assert task is None
            assert not odd.is_member()
            assert (dist.get_rank(odd), dist.get_world_size(odd)) == (-1, 2)
            assert odd.get_group_rank(2) == 1
            assert "[1, 2]" in repr(odd)
            assert dist.send(x, 1, odd) is None
            assert dist.recv(x, 1, odd) is None
            dist.all_gather_object([], 1, odd)
            dist.broadcast_object_list([1], 1, odd)
            dist.scatter_object_list([], [1], 1, odd)
        else:
            with pytest.raises(ValueError, match=r"rank 0(?s:.*)one of \[1, 2\]"):
                dist.broadcast(x, src=0, group=odd)
            assert dist.get_group(odd.id) is odd
            assert odd.is_member()
            assert (odd.nranks, odd.name, odd.process_group) == (2, "_default_pg1", odd)
        again = dist.new_group()
        dist.destroy_process_group(again)
        with pytest.raises(ValueError, match="group 2"):
            dist.get_group(2)
        return x.item()

    assert ranks(work) == [0.0, 4.0, 2.0]


def test_groups_that_can_not_be():
    for wrong in ([0, 0], [1], [], [-1]):
        with pytest.raises(ValueError, match="different ranks, 0 to 0"):
            dist.new_group(wrong)
    with pytest.raises(ValueError, match="backend='nccl' of ranks that talk by threads"):
        dist.new_group(backend="nccl")
    assert dist.new_group(backend="threads").get_group_rank(3) == -1
    dist.destroy_process_group()


def test_what_is_missing_is_said():
    x = paddle.ones([2])
    for call, message in [
        (lambda: dist.scatter(x), "scatter without tensor_list"),
        (lambda: dist.gather(x), "gather without gather_list"),
        (lambda: dist.reduce_scatter(x, [x, x]), "2 tensors for 1 ranks"),
        (lambda: dist.irecv(x), "irecv from any rank"),
        (lambda: dist.P2POp(dist.send, x, 0), "P2POp of"),
        (lambda: dist.scatter_object_list([], [1, 2]), "2 objects for 1 ranks"),
        (lambda: dist.get_group().scatter(x.array), "scatter from rank 0, which gives nothing"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="lock"):
        dist.all_gather_object([], threading.Lock())
    dist.wait(x)


def test_objects_hold_tensors():
    def work():
        rank = dist.get_rank()
        found = []
        dist.all_gather_object(found, {"w": paddle.full([rank + 1], 2.0), "n": [rank, None, "ü"]})
        return [(each["w"].tolist(), each["n"]) for each in found]

    assert ranks(work) == [[([2.0] * (k + 1), [k, None, "ü"]) for k in range(3)]] * 3


def test_in_programs():
    """Sends, receives, gathers and sums that a traced function asks for, on both executors."""

    def step(x):
        rank, size = dist.get_rank(), dist.get_world_size()
        y = x * 2
        dist.all_reduce(y)
        dist.all_reduce(y, dist.ReduceOp.MAX)
        dist.send(y + rank, (rank + 1) % size)
        got = paddle.zeros([2])
        dist.recv(got, (rank - 1) % size)
        found = []
        dist.all_gather(found, got)
        return y + paddle.concat(found).sum()

    def work():
        x = paddle.ones([2]) * dist.get_rank()
        paths = [step, *(paddle.jit.to_static(step, backend=b) for b in ("interpreter", "native"))]
        return [path(x).tolist() for path in paths]

    assert ranks(work) == [[[48.0, 48.0]] * 3] * 3


def test_gradients_through_functions_in_place():
    """d(Σ_r max_s x_s²)/dx: the largest of all takes the gradient of all losses."""

    def work():
        x = paddle.to_tensor([1.0 + dist.get_rank()], stop_gradient=False)
        y = x * x
        dist.all_reduce(y, dist.ReduceOp.MAX)
        y.backward()
        leaf = paddle.to_tensor([1.0], stop_gradient=False)
        dist.all_reduce(leaf)
        return y.item(), x.grad.item(), leaf.item(), leaf.is_leaf

    assert ranks(work) == [(9.0, g, 3.0, True) for g in (0.0, 0.0, 18.0)]


def test_environment(monkeypatch):
    monkeypatch.setenv("PADDLE_PG_TIMEOUT", "1500")

    def work():
        env = dist.ParallelEnv()
        group = dist.init_parallel_env()
        identity = env.rank, env.world_size, env.local_rank, env.nranks, env.device_id
        return identity, group.timeout, dist.is_initialized(), dist.is_available()

    found = dist.spawn(work, nprocs=2).results
    assert found == [((k, 2, k, 2, 0), 1.5, True, True) for k in range(2)]
    assert not dist.is_initialized()
    assert dist.init_parallel_env().size == 1
    assert dist.is_initialized()
    dist.destroy_process_group()


def test_samplers_know_their_rank():
    def work():
        return list(paddle.io.DistributedBatchSampler(range(12), 2))

    assert ranks(work, 2) == [[[0, 1], [4, 5], [8, 9]], [[2, 3], [6, 7], [10, 11]]]


@pytest.mark.parametrize("space", [dist, dist.fleet], ids=lambda m: m.__name__)
def test_every_public_name_shows_how_it_is_used(space):
    public = {k: v for k, v in vars(space).items() if callable(v) and not k.startswith("_")}
    assert len(public) >= 7
    assert [name for name, x in public.items() if ">>>" not in (x.__doc__ or "")] == []
