"""Constants, and batch norms folded into convolutions."""

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.engine.core.record import Spec
from minipaddle.engine.passes.dead_code import dead_code
from minipaddle.engine.passes.folding import LARGEST, ConstantStorage, folding
from minipaddle.engine.passes.manager import optimized
from minipaddle.passes.batch_norm import batch_norm
from tests.passes.programs import body, draw_arrays, program_of, same_results


def after(f, *shapes, **options):
    program = program_of(f, *shapes)
    found = dead_code(folding(program, **options))
    same_results(program, found, own_states(program), rtol=0, atol=0)
    return found


def own_states(program):
    inputs = draw_arrays(program)[: len(program.inputs)]
    return [*inputs, *(s.storage.read() for s in program.states)]


def names(program):
    return [r.op.name for r in program.records]


def constants(program):
    return [s for s in program.states if isinstance(s.storage, ConstantStorage)]


def test_a_number_everywhere_becomes_full():
    found = after(lambda x: x + (paddle.full([2, 3], 2.0) * 3.0 + 1.0).t().reshape([2, 3]), (2, 3))
    assert body(found) == (
        "v1 = full(shape=(2, 3,), value=7.0, dtype=float32) : float32[2, 3]\n"
        "v2 = add(x, v1) : float32[2, 3]\n"
        "return v2"
    )


def test_another_value_becomes_a_state():
    found = after(lambda x: x * paddle.cos(paddle.arange(3, dtype="float32")), (2, 3))
    (state,) = constants(found)
    assert state.name == "cos_folded"
    np.testing.assert_array_equal(state.storage.read(), np.cos(np.arange(3, dtype="f4")))
    assert body(found).splitlines()[1:] == [
        "v1 = multiply(x, cos_folded) : float32[2, 3]", "return v1",
    ]  # fmt: skip


def test_what_is_free_stays():
    program = program_of(lambda x: x + paddle.arange(6, dtype="float32").reshape([2, 3]), (2, 3))
    assert folding(program) is program


def test_nan_and_the_sign_of_zero():
    found = after(lambda x: x + (paddle.full([3], -0.0) * 1.0), (2, 3))
    assert "value=-0.0" in str(found)
    found = after(lambda x: x + paddle.full([3], float("nan")) * 2.0, (2, 3))
    assert "value=nan" in str(found)


def test_a_large_constant_is_computed_every_time():
    n = LARGEST + 1
    program = program_of(lambda x: x * paddle.cos(paddle.arange(n, dtype="float32")), (n,))
    assert folding(program) is program
    found = after(lambda x: x * paddle.cos(paddle.full([n], 0.0)).sum(), (3,))
    assert not found.states, "a number that a large array leads to"


def test_what_raises_is_left_to_the_run():
    def f(x):
        return paddle.gather(paddle.arange(3).cos(), paddle.full([1], 7, "int64")) + x

    program = program_of(f, (1,))
    assert "take" in names(folding(program))


def test_weights_are_constants_only_if_frozen():
    w = nn.Linear(3, 2).weight

    def f(x):
        return paddle.matmul(x, w.detach().exp() * 2.0)

    assert not constants(after(f, (2, 3)))
    found = after(f, (2, 3), frozen=True)
    assert names(found) == ["matmul"]
    assert [s.name for s in constants(found)] == [f"{w.name}_folded"]


def test_a_state_that_is_updated_is_no_constant():
    w = paddle.ones([3])

    def f(x):
        w.set_value(w + x)
        return w * 2.0

    program = program_of(f, (3,))
    assert folding(program, frozen=True) is program


def test_randomness_is_no_constant():
    program = program_of(lambda x: nn.functional.dropout(x, 0.5), (3,))
    assert "base_of" in names(folding(program, frozen=True))


def test_in_a_branch():
    def f(x):
        return paddle.static.nn.cond(
            x.sum() > 0, lambda: x + paddle.full([3], 2.0) * 3.0, lambda: x
        )

    assert "value=6.0" in str(after(f, (3,)))


def test_a_constant_result_is_copied():
    program = program_of(lambda x: (x * 1.0, paddle.arange(3, dtype="float32").cos()), (3,))
    done = optimized(program, until="dead_code").program
    assert names(done) == ["assign", "assign"]
    same_results(program, done)


# ---- batch norm ------------------------------------------------------------------------------


def network(bias):
    paddle.seed(3)
    net = nn.Sequential(
        nn.Conv2D(3, 4, 3, padding=1, bias_attr=bias), nn.BatchNorm2D(4), nn.ReLU(),
        nn.Conv2D(4, 6, 3, groups=2, bias_attr=bias), nn.BatchNorm2D(6),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for w in [*net.parameters(), *net.buffers()]:
        w.set_value((rng.random(w.shape) + 0.5).astype("f4"))
    net.eval()
    return net


@pytest.mark.parametrize("bias", [None, False], ids=["bias", "no bias"])
def test_batch_norm_goes_into_the_weights(bias):
    program = program_of(network(bias), (2, 3, 6, 5))
    done = optimized(program, until="dead_code", frozen=True).program
    assert names(done).count("conv_last") == 2
    assert not {"multiply", "rsqrt", "sqrt", "divide"} & set(names(done))
    assert names(done).count("add") == 2
    same_results(program, done, own_states(program), rtol=1e-5)


def test_batch_norm_stays_where_weights_may_change():
    program = program_of(network(None), (2, 3, 6, 5))
    assert batch_norm(program) is program


def test_batch_norm_in_training_stays():
    net = network(None)
    net.train()
    program = program_of(net, (2, 3, 6, 5))
    assert batch_norm(program, frozen=True) is program


def test_a_convolution_that_is_used_twice_stays():
    net = network(False)

    def f(x):
        y = net[0](x)
        return net[1](y), y

    program = program_of(f, (2, 3, 6, 5))
    assert batch_norm(program, frozen=True).records == program.records


def test_a_factor_from_the_image_stays():
    """Squeeze and excite, for one image: it looks like a number for each channel."""
    conv = nn.Conv2D(3, 4, 1)

    def f(x):
        return conv(x) * x.mean(axis=[2, 3], keepdim=True)[:, :1].expand([1, 4, 1, 1])

    program = program_of(f, (1, 3, 6, 5))
    assert batch_norm(program, frozen=True).records == program.records


def test_open_sizes():
    from minipaddle.engine.core.dim import symbol

    n = symbol("n", 4)
    spec = Spec((n, 3), np.dtype("f4"))
    found = dead_code(folding(program_of(lambda x: x + paddle.full([3], 1.0) * 2.0, spec)))
    assert "value=2.0" in str(found)
