"""What a forward keeps for its backward."""

import minipaddle as paddle
from minipaddle import viz


def powers(x, n):
    y, i = x, 0
    while i < n:
        y, i = y * x, i + 1
    return y


def test_zeros_are_made_again_and_not_kept():
    static = paddle.jit.to_static(powers)
    x = paddle.to_tensor(2.0, stop_gradient=False)
    y = static(x, paddle.to_tensor(3))
    captured = static.concrete_program
    kept = captured.program.outputs[captured.residuals :]
    assert kept
    assert not [r for r in kept if r.op.name == "full"]
    y.backward()
    assert x.grad.item() == 32.0


def test_the_picture_of_a_loop_and_its_backward_has_no_line_that_enters_nothing(capfd):
    static = paddle.jit.to_static(powers)
    static(paddle.to_tensor(2.0, stop_gradient=False), paddle.to_tensor(3))
    try:
        viz.joint(static).svg()
    except viz.NoEngineError:
        return
    assert "not inside" not in capfd.readouterr().err
