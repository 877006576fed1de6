"""NCCL: the conformance of all groups, on a stand-in for its module and on GPUs where there are."""

import inspect
import time
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.distributed as dist
from minipaddle.distributed.ranks.nccl import NCCLGroup
from minipaddle.engine.core.op import OPS
from minipaddle.engine.eager.device import current_place
from tests.distributed import faulty, train
from tests.distributed.conformance import conformance
from tests.gpu import fake_nccl
from tests.gpu.fake_cupy import Array, cupy

NAMES = (Path(__file__).parents[1] / "data" / "nccl_names.txt").read_text().split()


@pytest.fixture
def gpus(gpu, monkeypatch):
    """How many ranks can have a GPU each."""
    if gpu == "stand-in":
        fake_nccl.install(cupy.cuda, Array, monkeypatch, gpus=4)
    else:
        pytest.importorskip("cupy.cuda.nccl", reason="no NCCL")
    return min(4, current_place().module.cuda.runtime.getDeviceCount())


class OnGPU:
    """A group of NCCL's that takes and gives NumPy arrays, as the conformance suite has them."""

    def __init__(self, group):
        self.group = group

    def __getattr__(self, name):
        return getattr(self.group, name)

    def barrier(self):
        self.group.barrier()

    def call(self, name, host, *args, wait=True, **kwargs):
        m = current_place().module
        there = m.asarray(host.copy())
        args = [m.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
        work = getattr(self.group, name)(there, *args, wait=False, **kwargs)

        def fetched(found):
            host[...] = there.get()
            return host if found is there else found.get()

        fetch = Fetched(work, lambda found: fetched(found) if found is not None else None)
        return fetch.wait() if wait else fetch


class Fetched:
    """A collective whose result is fetched from the GPU."""

    def __init__(self, work, fetch):
        self.work, self.fetch, self.found = work, fetch, self

    def wait(self):
        if self.found is self:
            self.found = self.fetch(self.work.wait())
        return self.found

    def is_completed(self):
        return self.work.is_completed()


def forwarded(name):
    return lambda self, *args, **kwargs: self.call(name, *args, **kwargs)


for name in (
    "all_reduce", "reduce", "reduce_scatter", "broadcast", "all_gather", "gather", "scatter",
    "all_to_all", "send", "recv",
):  # fmt: skip
    setattr(OnGPU, name, forwarded(name))


def test_conformance(gpus):
    def work():
        world = dist.init_parallel_env()
        world = world if gpus > 1 else NCCLGroup.of(world)
        assert world.backend == "nccl"
        new_group = lambda ranks: OnGPU(dist.new_group(ranks)) if gpus > 1 else OnGPU(world)
        size = conformance(OnGPU(world), new_group)
        assert paddle.get_device() == f"gpu:{world.rank}"
        dist.destroy_process_group()
        return size

    assert dist.spawn(work, nprocs=gpus, timeout=60).results == [gpus] * gpus


def test_the_script_that_trains_on_threads_and_processes(gpus, gpu, monkeypatch):
    """Unchanged, with the curve of one rank."""
    curves = {ranks: train.main(ranks) for ranks in (1, gpus)}
    np.testing.assert_allclose(curves[gpus], curves[1], rtol=1e-4)


@pytest.mark.parametrize("way", ["data", "tensor", "ZeRO-3"])
def test_captured_steps_in_pieces(gpus, way):
    """On a mesh of two axes, six rows among four ranks: the losses of one rank."""

    def work():
        world = dist.init_parallel_env()
        assert world.backend == ("nccl" if world.size > 1 else "threads")
        paddle.seed(1)
        step = faulty.step(way, shape=(-1, 2 if world.size > 1 else 1))
        losses = [step() for _ in range(3)]
        dist.destroy_process_group()
        return losses

    (alone,) = dist.spawn(work, nprocs=1).results
    for losses in dist.spawn(work, nprocs=gpus, timeout=60).results:
        np.testing.assert_allclose(losses, alone, rtol=1e-5)


MOVES = [
    [dist.Shard(0), dist.Replicate(), dist.Shard(1), dist.Shard(0)],
    [dist.Partial(), dist.Replicate(), dist.Partial(), dist.Shard(1)],
    [dist.Partial("max"), dist.Shard(0), dist.Replicate()],
]


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("moves", MOVES, ids=str)
def test_moves_of_unequal_pieces(gpus, moves, captured):
    """13 rows and 5 columns: the values stay, and the gradient is that of the whole."""
    value = np.arange(1.0, 66, dtype="float32").reshape(13, 5)

    def work():
        dist.init_parallel_env()
        mesh = dist.ProcessMesh([*range(gpus)])
        x = dist.shard_tensor(paddle.to_tensor(value), mesh, moves[:1])
        x.stop_gradient = False

        def moved(x):
            for placement in moves[1:]:
                x = dist.reshard(x, mesh, [placement])
            return x

        y = (paddle.jit.to_static(moved) if captured else moved)(x)
        assert y.placements == moves[-1:]
        (y * y).sum().backward()
        found = y.numpy(), x.grad.numpy(), y._local_value().place.is_gpu_place()
        dist.destroy_process_group()
        return found

    for values, gradient, on_gpu in dist.spawn(work, nprocs=gpus, timeout=60).results:
        np.testing.assert_array_equal(values, value)
        np.testing.assert_array_equal(gradient, 2 * value)
        assert on_gpu


def test_what_is_refused(gpus):
    group = NCCLGroup.of(dist.get_group())
    with pytest.raises(TypeError, match=r"all_reduce by NCCL of an array on the CPU"):
        group.all_reduce(np.ones(2))
    with pytest.raises(TypeError, match="NCCL cannot add up int16"):
        group.all_reduce(current_place().module.asarray(np.ones(2, "int16")))
    group.close()


def test_a_rank_that_fails_ends_the_wait_of_the_others(gpu, monkeypatch):
    """A GPU that waits for one that never comes is told to stop."""
    if gpu == "cuda":
        pytest.skip("the stand-in's event that never comes")
    fake_nccl.install(cupy.cuda, Array, monkeypatch, gpus=4)
    monkeypatch.setattr(fake_nccl.Event, "done", False)
    heard = []

    def work():
        world, x = dist.init_parallel_env(), paddle.ones([2])
        if world.rank == 1:
            time.sleep(0.3)
            raise ValueError("gone")
        try:
            world.start_reduction("all_reduce", x.array, "sum").wait()
        except dist.PeerFailed as error:
            heard.append((str(error), world.communicator.alive))
            raise

    def alone(self, *call):
        return [call[0]] * self.ndev

    monkeypatch.setattr(fake_nccl.NcclCommunicator, "meet", alone)
    with pytest.raises(ValueError, match="gone"):
        dist.spawn(work, nprocs=3, timeout=5)
    assert heard == [("rank 1 failed: ValueError: gone", False)] * 2
    heard.clear()
    with pytest.raises(dist.CollectiveTimeout, match=r"number 2 waited 0\.2 s"):
        dist.spawn(late, nprocs=2, timeout=0.2)


def late():
    """Rank 1 computes on when rank 0 waits for it."""
    world = dist.init_parallel_env()
    if world.rank == 1:
        world.barrier()
        return
    world.start_reduction("all_reduce", paddle.ones([2]).array, "sum").wait()


def test_the_stand_in_is_called_as_cupys_module_is():
    """Names and parameters; what the stand-in has and CuPy lacks would be found only on a GPU."""
    methods = dict(n.removeprefix("NcclCommunicator.").split("(") for n in NAMES if "(" in n)
    for name, function in vars(fake_nccl.NcclCommunicator).items():
        if name[0] != "_" and name != "meet":
            assert ",".join(inspect.signature(function).parameters) + ")" == methods[name]
    constants = {n for n in vars(fake_nccl.nccl) if n not in ("NcclCommunicator", "available")}
    assert constants <= set(NAMES)


def test_operators_with_arrays_of_a_gpu(gpu):
    """On threads that share one GPU the world is one of threads; its arrays stay where they are."""

    def work():
        dist.init_parallel_env()
        x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        y = OPS["all_gather"](x, nranks=dist.get_world_size())
        (y * y).sum().backward()
        return dist.get_backend(), x.place.is_gpu_place(), x.grad.tolist()

    if gpu == "cuda" and current_place().module.cuda.runtime.getDeviceCount() > 1:
        pytest.skip("there is a GPU for each")
    assert dist.spawn(work, nprocs=2, timeout=20).results == [("THREADS", True, [4.0, 8.0])] * 2
