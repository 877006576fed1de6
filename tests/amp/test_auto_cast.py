"""Which operator computes in which dtype: eagerly, in programs and regions, when recomputed."""

import threading

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.amp import auto_cast
from minipaddle.distributed.fleet.utils import recompute
from minipaddle.nn import functional as F

HALF, BRAIN, SINGLE = paddle.float16, paddle.bfloat16, paddle.float32
X, W = paddle.ones([2, 3]), paddle.ones([3, 4])
IMAGE, KERNEL = paddle.ones([1, 2, 5, 5]), paddle.ones([3, 2, 3, 3])
LOW, LABEL = X.astype("bfloat16"), paddle.to_tensor([0, 2])

O1 = {
    "a product": (lambda: X @ W, BRAIN),
    "a linear layer with its bias": (lambda: F.linear(X, W, paddle.ones([4])), BRAIN),
    "a convolution": (lambda: F.conv2d(IMAGE, KERNEL), BRAIN),
    "einsum": (lambda: paddle.einsum("ij,jk->ik", X, W), BRAIN),
    "attention": (lambda: F.scaled_dot_product_attention(*[IMAGE[..., :4]] * 3), BRAIN),
    "a sum": (lambda: LOW.sum(), SINGLE),
    "softmax": (lambda: F.softmax(LOW), SINGLE),
    "an exponential": (lambda: paddle.exp(LOW), SINGLE),
    "a power": (lambda: LOW**3, SINGLE),
    "cross entropy": (lambda: F.cross_entropy(LOW, LABEL), SINGLE),
    "a loss of several operators": (lambda: F.smooth_l1_loss(LOW, LOW), SINGLE),
    "a layer norm": (lambda: F.layer_norm(LOW, 3), SINGLE),
    "a batch norm": (
        lambda: F.batch_norm(LOW, paddle.zeros([3]), paddle.ones([3]), training=True),
        BRAIN,
    ),
    "a table look-up": (lambda: F.embedding(LABEL, W.astype("bfloat16")), SINGLE),
    "what is in no list, of few bits": (lambda: F.relu(LOW), BRAIN),
    "what is in no list, of float32": (lambda: F.relu(X), SINGLE),
    "what is in no list, of both": (lambda: LOW + X, SINGLE),
    "both, one without axes": (lambda: LOW * paddle.to_tensor(2.0), SINGLE),
    "doubles": (lambda: X.astype("float64") @ W.astype("float64"), paddle.float64),
    "whole numbers": (lambda: LABEL + 1, paddle.int64),
    "a cast that the user writes": (lambda: (X @ W).astype("float64"), paddle.float64),
}


@pytest.mark.parametrize("name", O1)
def test_o1(name):
    function, wanted = O1[name]
    with auto_cast(dtype="bfloat16"):
        eager = function()
        program = paddle.jit.to_static(function)()
    assert eager.dtype == wanted
    assert program.dtype == wanted


def dtypes(**how):
    """The dtypes of a product, a sum, a sigmoid, a look-up, in a block."""
    with auto_cast(dtype="float16", **how):
        y = X @ W
        return y.dtype, y.sum().dtype, F.sigmoid(X).dtype, F.embedding(LABEL, W).dtype


def test_levels():
    assert dtypes(level="O1") == (HALF, SINGLE, SINGLE, SINGLE)
    assert dtypes(level="O2") == (HALF, HALF, SINGLE, SINGLE)
    assert dtypes(level="O2", use_promote=False) == (HALF, HALF, HALF, SINGLE)
    assert dtypes(level="OD") == (HALF, SINGLE, SINGLE, SINGLE)
    assert dtypes(level="O0") == dtypes(enable=False) == (SINGLE,) * 4


def test_custom_lists():
    assert dtypes(custom_white_list=["sigmoid"])[2] == HALF
    assert dtypes(custom_white_list=["reduce_sum"])[1] == HALF
    assert dtypes(custom_black_list={"matmul_v2"})[0] == SINGLE
    with pytest.raises(ValueError, match=r"'exp' in custom_white_list and in custom_black_list"):
        dtypes(custom_white_list=["exp"], custom_black_list=["exp"])


@pytest.mark.parametrize("how", [{"level": "O3"}, {"dtype": "float32"}])
def test_what_there_is_not(how):
    (name,) = how
    with pytest.raises(ValueError, match=f"auto_cast was given {name}="), auto_cast(**how):
        pass


def test_blocks_in_blocks():
    with auto_cast(dtype="bfloat16"):
        with auto_cast(enable=False):
            assert (X @ W).dtype == SINGLE
            with auto_cast(dtype="float16"):
                assert (X @ W).dtype == HALF
        assert (X @ W).dtype == BRAIN
        assert paddle.is_autocast_enabled()
        with pytest.raises(ZeroDivisionError), auto_cast(dtype="float16"):
            raise ZeroDivisionError
        assert (X @ W).dtype == BRAIN == paddle.get_autocast_dtype()
    assert (X @ W).dtype == SINGLE


def test_a_decorator():
    assert auto_cast(dtype="bfloat16")(lambda: X @ W)().dtype == BRAIN


def test_other_threads_do_not_notice():
    found = []
    with auto_cast():
        thread = threading.Thread(target=lambda: found.append((X @ W).dtype))
        thread.start()
        thread.join()
    assert found == [SINGLE]


def test_a_derivative_has_the_dtype_of_its_value():
    x, w = X.clone(), W.clone()
    x.stop_gradient = w.stop_gradient = False
    with auto_cast(dtype="bfloat16"):
        low = x.astype("bfloat16")
        y = F.sigmoid(low @ w)
        inside = paddle.grad(y, [low, w], retain_graph=True)
    outside = paddle.grad(y, [low, w])
    assert [g.dtype for g in outside] == [g.dtype for g in inside] == [BRAIN, SINGLE]
    for a, b in zip(inside, outside, strict=True):
        assert np.array_equal(a.numpy(), b.numpy())


def test_gradients_add_up_in_their_dtype_within_a_block():
    w = W.clone()
    w.stop_gradient = False
    with auto_cast(level="O2", use_promote=False):
        for _ in range(2):
            (X @ w).sum().backward()
    assert w.grad.dtype == SINGLE
    assert w.grad.numpy().tolist() == [[4.0] * 4] * 3


def test_a_program_for_each_policy():
    static = paddle.jit.to_static(lambda x: x @ W)
    for _ in range(2):
        assert static(X).dtype == SINGLE
        for dtype in ("float16", "bfloat16"):
            with auto_cast(dtype=dtype):
                assert static(X).dtype == dtype
    assert len(static.program_cache) == 3
    assert static.cache.misses[1].reason == "mixed precision is O1 in float16, was None"


def branching(x, w):
    with auto_cast(dtype="bfloat16"):
        y = x @ w
        if y.sum() > 0:
            y = y @ y.T
        i = paddle.zeros([], "int64")
        while i < 2:
            y = F.sigmoid(y @ y)
            i += 1
        return y.sum()


def test_branches_and_loops():
    found = []
    for function in (branching, paddle.jit.to_static(branching)):
        w = paddle.to_tensor([[0.1, -0.2], [0.3, 0.4], [0.5, -0.6]], stop_gradient=False)
        loss = function(X, w)
        loss.backward()
        found.append((loss.item(), w.grad.numpy().tolist(), str(w.grad.dtype)))
    assert found[0] == found[1]
    assert found[0][2] == "paddle.float32"


def test_what_is_computed_again_is_cast_again():
    found = []
    for call in (lambda f, x: f(x), recompute):
        w = W.clone()
        w.stop_gradient = False
        x = paddle.to_tensor([[0.3, 0.7, 1.1]], stop_gradient=False)
        with auto_cast(dtype="bfloat16"):
            loss = call(lambda x, w=w: F.sigmoid(x @ w / 3).sum(), x)
        loss.backward()
        found.append((x.grad.numpy().tolist(), w.grad.numpy().tolist()))
    assert found[0] == found[1]


def test_tensors_in_pieces():
    def work():
        mesh = paddle.distributed.ProcessMesh([0, 1], ["x"])
        shard = lambda x, k: paddle.distributed.shard_tensor(
            x, mesh, [paddle.distributed.Shard(k)], stop_gradient=False
        )
        with auto_cast(dtype="bfloat16"):
            x, w = shard(paddle.ones([4, 2]) / 3, 0), shard(paddle.ones([2, 4]), 1)
            y = x @ w
            loss = y.sum()
        loss.backward()
        return str(y.dtype), str(loss.dtype), w.grad.numpy().tolist()

    x, w = paddle.ones([4, 2]) / 3, paddle.ones([2, 4])
    w.stop_gradient = False
    with auto_cast(dtype="bfloat16"):
        (x @ w).sum().backward()
    for result in paddle.distributed.spawn(work, nprocs=2).results:
        assert result == ("paddle.bfloat16", "paddle.float32", w.grad.numpy().tolist())


def test_a_profile_changes_nothing():
    net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    with auto_cast(dtype="bfloat16"):
        wanted = net(X)
        with paddle.viz.profile():
            inside = net(X)
    with paddle.viz.profile(), auto_cast(dtype="bfloat16"):
        outside = net(X)
    assert inside.dtype == outside.dtype == wanted.dtype == SINGLE
    assert inside.tolist() == outside.tolist() == wanted.tolist()


def test_a_static_program():
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x = paddle.static.data("x", [2, 3])
            with auto_cast(dtype="bfloat16"):
                y = x @ W
                z = y.sum()
            assert (y.dtype, z.dtype) == (BRAIN, SINGLE)
        exe = paddle.static.Executor()
        found = exe.run(main, feed={"x": np.ones((2, 3), "float32") / 3}, fetch_list=[y, z])
    finally:
        paddle.disable_static()
    third = paddle.full([2, 3], 1 / 3)
    with auto_cast(dtype="bfloat16"):
        wanted = third @ W
    assert np.array_equal(found[0], wanted.numpy())


def test_an_optimizer_steps_in_its_own_dtype():
    found = []
    for inside in (False, True):
        paddle.seed(0)
        net = nn.Linear(3, 2)
        adam = paddle.optimizer.Adam(0.1, parameters=net.parameters())
        net(X).sum().backward()
        with auto_cast(inside, level="O2", use_promote=False):
            adam.step()
        found.append(net.weight.numpy().tolist())
    assert found[0] == found[1]
