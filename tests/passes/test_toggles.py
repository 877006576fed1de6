"""Every switch of a BuildStrategy: what it changes, that it changes no result, what is refused."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle.engine.core.record import Spec
from minipaddle.engine.executors.executable_cache import ExecutableCache
from minipaddle.engine.passes.manager import PASSES, figures, optimized
from minipaddle.static.strategy import LEFT_OUT, TOGGLES
from tests.passes.programs import cases, program_of, same_results

pytestmark = pytest.mark.sweep(one_in=4)

F = paddle.nn.functional


def added(x, y):
    return F.relu(x + y)


def normed(x, y):
    return F.relu(batch_norm(x))


def normed_and_added(x, y):
    return batch_norm(x) + y


def batch_norm(x):
    mean, var = paddle.zeros([4]), paddle.ones([4])
    return F.batch_norm(x, mean, var, weight=var + 1.0, bias=var, training=True)


def product(x, y):
    return F.gelu(paddle.matmul(x[0, 0], y[0, 0]))


def convolution(x, y):
    weight = paddle.ones([4, 4, 3, 3])
    return F.conv2d(F.gelu(F.conv2d(x, weight, padding=1)), weight, padding=1)


def outer_products(x, y):
    x, y = x.reshape([2, 64, 1]), y.reshape([2, 1, 64])
    return paddle.matmul(x[0], y[0]) + paddle.matmul(x[1], y[1])


RULES = {
    "enable_addto": outer_products,
    "enable_auto_fusion": added,
    "fuse_elewise_add_act_ops": added,
    "fuse_bn_act_ops": normed,
    "fuse_bn_add_act_ops": normed_and_added,
    "fuse_gemm_epilogue": product,
    "fuse_resunit": convolution,
}
"""For the toggle of a rule a function in which it has something to do."""


def made(function):
    image = Spec((2, 4, 4, 4), np.dtype("float32"))
    return program_of(function, image, image)


def strategy_with(**values):
    strategy = paddle.static.BuildStrategy()
    for name, value in values.items():
        setattr(strategy, name, value)
    return strategy


@pytest.mark.parametrize("toggle", RULES)
def test_without_a_rule_more_is_moved(toggle):
    program = made(RULES[toggle])
    on = optimized(program, strategy_with(**{toggle: True}))
    off = optimized(program, strategy_with(**{toggle: False}))
    assert figures(on.program) == figures(optimized(program).program)
    assert figures(off.program).moved > figures(on.program).moved
    same_results(program, off.program, rtol=1e-4, atol=1e-4)
    others = strategy_with(**{name: False for name in RULES if name != toggle})
    rest = optimized(program, others).program  # what others say is not for this rule
    same_results(program, rest, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", dict.fromkeys(PASSES))
def test_each_pass_can_be_left_out(name):
    """Of a training step as of what is at hand here: the results are the same."""
    case = cases("models_vision.LeNet, step")[-1]
    done = optimized(case.program, strategy_with(**{name: False}))
    assert name not in [s.name for s in done.snapshots]
    same_results(case.program, done.program, case.arrays, rtol=1e-4, atol=1e-5)


def test_the_memory_plan_is_told():
    """Without sharing everything has memory of its own; without reuse in place there is more."""
    program = program_of(lambda x: F.softmax((x @ x).exp() @ x).exp() @ x, (32, 32))
    how = {"fusion": False, "epilogue": False}
    usual, apart, kept = (
        optimized(program, how | more).planned()
        for more in ({}, {"memory_optimize": False}, {"enable_inplace": False})
    )
    assert usual.size == usual.live < kept.size < apart.size
    pieces = sum(each.buffer.nbytes for each in apart.allocations)
    assert apart.size == pieces
    assert apart.live == usual.live
    assert optimized(program, strategy_with(memory_optimize=None)).planned().size == (
        optimized(program).planned().size
    )
    assert kept.size == kept.live


def test_the_schedule_is_told():
    def late(x):
        a, b = x.exp(), x.tanh()
        return a.sum() * b.sum()

    program = program_of(late, (64, 64))
    kept, free = (optimized(program, fusion=False, sequential_run=on) for on in (True, False))
    assert [r.op.name for r in kept.program.records][:2] == ["exp", "tanh"]
    assert [r.op.name for r in free.program.records][:2] == ["exp", "sum"]
    assert free.planned().live < kept.planned().live


def test_the_compiler_is_told():
    assert ExecutableCache(None, strategy_with(build_cinn_pass=True)).backend == "native"
    assert ExecutableCache(None, strategy_with(build_cinn_pass=False)).backend == "interpreter"
    assert (
        ExecutableCache("interpreter", strategy_with(build_cinn_pass=True)).backend == "interpreter"
    )


def test_the_table_is_read_off_the_passes():
    assert {t.where for t in TOGGLES.values()} >= {f"passes.{name}" for name in PASSES}
    assert TOGGLES["fuse_gemm_epilogue"].where == "passes.epilogue"
    assert TOGGLES["memory_optimize"][1:3] == (True, "memory.plan")
    assert TOGGLES["budget"].default == 0.66  # what the list of passes sets, not the pass alone
    assert not TOGGLES.keys() & LEFT_OUT.keys()
    assert all(t.doc for t in TOGGLES.values())


def test_every_switch_of_paddle_is_known():
    """Each name of `paddle.static.BuildStrategy` 3.3.1 switches something, or says why not."""
    usual = strategy_with()
    for name in PADDLE.split():
        assert hasattr(usual, name) is not (name in LEFT_OUT), name
    assert set(LEFT_OUT) <= set(PADDLE.split())


PADDLE = """
allow_cuda_graph_capture async_mode bkcl_comm_num build_cinn_pass cache_runtime_context
debug_graphviz_path enable_addto enable_auto_fusion enable_backward_optimizer_op_deps
enable_inplace fuse_adamw fuse_all_optimizer_ops fuse_all_reduce_ops fuse_bn_act_ops
fuse_bn_add_act_ops fuse_broadcast_ops fuse_dot_product_attention fuse_elewise_add_act_ops
fuse_gemm_epilogue fuse_relu_depthwise_conv fuse_resunit fused_attention fused_feedforward
hierarchical_allreduce_inter_nranks memory_optimize mkldnn_enabled_op_types nccl_comm_num
num_trainers onednn_enabled_op_types reduce_strategy sequential_run sync_batch_norm trainer_id
trainers_endpoints use_hierarchical_allreduce
"""


def test_what_switches_nothing_says_so():
    strategy = strategy_with()
    with pytest.raises(
        AttributeError, match=r"sync_batch_norm switches nothing here: .*convert_sync_batchnorm"
    ):
        strategy.sync_batch_norm = True
    with pytest.raises(TypeError, match="enable_addto = 'yes'"):
        strategy.enable_addto = "yes"
    with pytest.raises(AttributeError, match=r"has no 'fuse_gemm'(.|\n)*fuse_gemm_epilogue"):
        strategy.fuse_gemm = True


def test_a_strategy_prints_its_table():
    strategy = strategy_with(fusion=False, enable_inplace=True)
    lines = str(strategy).splitlines()
    assert [line.split()[:3] for line in lines if line.startswith("*")] == [
        ["*", "fusion", "False"],
        ["*", "enable_inplace", "True"],
    ]
    assert all(f" {name} " in f"{strategy}\n" for name in TOGGLES)
    assert strategy.chosen == {"fusion": False, "enable_inplace": True}
