"""Operators by dtype, and where numbers stop being finite."""

import math

import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.amp import auto_cast
from minipaddle.amp.debugging import (
    DebugMode,
    TensorCheckerConfig,
    check_layer_numerics,
    check_numerics,
    collect_operator_stats,
    disable_operator_stats_collection,
    disable_tensor_checker,
    enable_operator_stats_collection,
    enable_tensor_checker,
)

PRINT = DebugMode.CHECK_NAN_INF


@pytest.fixture
def check():
    """Switches a checker on, and off at the end."""
    yield lambda *args, **how: enable_tensor_checker(TensorCheckerConfig(True, *args, **how))
    disable_tensor_checker()


def table(text: str) -> dict:
    """{operator: calls in float16, bfloat16, float32, others}."""
    rows = [line.split("|") for line in text.strip().splitlines()[1:]]
    return {name.strip(): tuple(map(int, counts)) for name, *counts in rows}


def test_operators_by_dtype(capsys):
    x = paddle.ones([2, 2])
    x.stop_gradient = False
    with auto_cast(dtype="bfloat16"), collect_operator_stats():
        y = x @ x
        with auto_cast(dtype="float16"):
            y = x @ y.astype("float32")
        loss = y.sum()
        y.argmax()
    loss.backward()  # is not counted
    found = table(capsys.readouterr().out)
    assert found["matmul"] == (1, 1, 0, 0)
    assert found["sum"] == (0, 0, 1, 0)
    assert found["argmax"] == (0, 0, 0, 1)
    assert found["cast"][2] == 2


def test_the_backward_counts_too(capsys):
    x = paddle.ones([2, 2], "float16")
    x.stop_gradient = False
    enable_operator_stats_collection()
    (x @ x).sum().backward()
    disable_operator_stats_collection()
    disable_operator_stats_collection()  # nothing more to print
    assert table(capsys.readouterr().out)["matmul"] == (3, 0, 0, 0)


def test_where_it_began(check, capsys):
    check(PRINT)
    x = paddle.to_tensor([0.0, 4.0], stop_gradient=False)
    y = paddle.sqrt(x) * 2  # its slope at 0 is infinite
    y.sum().backward()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("divide in the backward of sqrt: float32[2] has 0 NaN, 1 infinite")
    assert "test_debugging.py:" in line
    assert line.endswith("in test_where_it_began")
    z = paddle.log(x)
    (z + 1).exp()  # what follows from it is no new beginning
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["log"]


def test_an_error_at_the_line(check):
    check()
    with pytest.raises(FloatingPointError, match=r"divide: float32\[1\] has 0 NaN, 1 infinite"):
        paddle.ones([1]) / paddle.zeros([1])


def test_what_is_checked(check, capsys):
    check(PRINT, checked_op_list=["log", "exp"], skipped_op_list=["exp"])
    zero = paddle.zeros([1])
    paddle.log(zero), paddle.exp(zero + 1000), 1 / zero
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["log"]


def test_steps_and_a_file(check, tmp_path):
    config = TensorCheckerConfig(True, PRINT, str(tmp_path / "logs"), debug_step=[1, 2])
    enable_tensor_checker(config)
    for step in range(3):
        config.update_and_check_step_id(step)
        paddle.log(paddle.zeros([step + 1]))
    text = (tmp_path / "logs/worker_0.log").read_text()
    assert "float32[2]" in text
    assert text.count("\n") == 1


def test_every_result(check, capsys):
    check(DebugMode.CHECK_ALL)
    paddle.ones([2]) + 1
    assert "add: float32[2] has 0 NaN, 0 infinite, 0 zero; largest 2.0" in capsys.readouterr().out


def test_numbers_too_large_for_float16(check, capsys):
    check(DebugMode.CHECK_ALL_FOR_OVERFLOW)
    paddle.ones([1]) * 65504.0
    paddle.ones([1]) * 65536.0
    assert capsys.readouterr().out.count("largest 65536.0") == 1


def test_the_numbers_of_a_tensor():
    counts, values = check_numerics(
        paddle.to_tensor([0.0, math.nan, math.inf, 1.0]), "op", "x", PRINT
    )
    assert counts.tolist() == [1, 1, 1]
    assert math.isnan(values.tolist()[2])
    counts, values = check_numerics(paddle.to_tensor([0.0, 3.0]), "op", "x")
    assert (counts.tolist(), values.tolist()) == ([0, 0, 1], [3.0, 0.0, 1.5])
    with pytest.raises(TypeError, match="expected: a floating tensor"):
        check_numerics(paddle.ones([1], "int32"), "op", "x")


def test_a_program_checks_after_each_run():
    @paddle.jit.to_static
    def f(x):
        y = paddle.log(x)
        check_numerics(y, "log", "y")
        return y * 2

    assert f(paddle.ones([2])).tolist() == [0.0, 0.0]
    with pytest.raises(FloatingPointError, match=r"log: y, float32\[2\], has 0 NaN, 1 infinite"):
        f(paddle.to_tensor([0.0, 1.0]))


def test_a_layer():
    class Root(nn.Layer):
        @check_layer_numerics
        def forward(self, x):
            return paddle.sqrt(x - 2)

    assert Root()(paddle.full([1], 6.0)).item() == 2.0
    with pytest.raises(FloatingPointError, match="sqrt"):
        Root()(paddle.ones([1]))
    with pytest.raises(FloatingPointError, match="Root: its first input"):
        Root()(paddle.to_tensor([math.nan]))
    assert math.isnan(paddle.sqrt(paddle.to_tensor(-1.0)).item())  # the block is over


def test_disabled_in_another_block(check, capsys):
    check(PRINT)
    with auto_cast(), pytest.raises(RuntimeError, match="disabled in another block"):
        disable_tensor_checker()
    disable_tensor_checker()
    assert math.isinf(paddle.log(paddle.zeros([1])).item())
    assert "log" not in capsys.readouterr().out


def test_a_flag_lets_nan_be_an_error():
    paddle.set_flags({"FLAGS_check_nan_inf": True})
    try:
        with pytest.raises(FloatingPointError, match="log"):
            paddle.log(paddle.zeros([1]))
    finally:
        paddle.set_flags({"FLAGS_check_nan_inf": False})
    assert paddle.get_flags("FLAGS_check_nan_inf") == {"FLAGS_check_nan_inf": False}
    assert paddle.log(paddle.zeros([1])).item() == -math.inf
