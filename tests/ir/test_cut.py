"""What a forward keeps for its backward."""

import pytest

import minipaddle as paddle
from minipaddle import nn, viz
from minipaddle.engine.ir import cut


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


def make_one_by_one(late, program, wanted, free):
    """The same values made again one at a time, the last that can be made first."""
    order = {r: k for k, r in enumerate(program.records)}
    needed = cut.residuals_of(late, program, wanted)
    while more := next(attempts(needed, order, free), None):
        late = [*more, *late]
        needed = cut.residuals_of(late, program, wanted)
    return sorted(set(late), key=order.get), needed


def attempts(needed, order, free):
    for record in reversed([r for r in needed if r in order and r not in free]):
        have = {*needed, *free} - {record}
        rules = [lambda r, have: [r] if cut.is_view(r) else cut.remade(r, have, 3)]
        yield from filter(None, (rule(record, have) for rule in rules + cut.RECOMPUTED))


def gelus(x, depth=3):
    for _ in range(depth):
        x = nn.functional.gelu(x.reshape([2, -1]).T).reshape([4, 2, 3]) * x.sum()
    return nn.functional.softmax(x).transpose([1, 0, 2])


MODELS = {
    "gelus": (gelus, [4, 2, 3]),
    "lstm": (nn.LSTM(3, 4, num_layers=2), [2, 5, 3]),
    "attention": (nn.TransformerEncoderLayer(8, 2, 16), [2, 5, 8]),
}


@pytest.mark.parametrize("name", MODELS)
def test_values_made_again_together_are_those_made_one_by_one(name, monkeypatch):
    model, shape = MODELS[name]
    again, programs = cut.again, []

    def compared(*arguments):
        assert again(*arguments) == make_one_by_one(*arguments)
        programs.append(arguments[1])
        return again(*arguments)

    monkeypatch.setattr(cut, "again", compared)
    paddle.jit.to_static(model)(paddle.to_tensor(paddle.rand(shape), stop_gradient=False))
    assert programs


def test_the_tries_grow_as_the_program_does(monkeypatch):
    tries, is_view = [], cut.is_view  # each try asks it once
    monkeypatch.setattr(cut, "is_view", lambda x: tries.append(x) or is_view(x))
    counts = []
    for depth in (10, 20, 40):
        tries.clear()
        x = paddle.rand([4, 2, 3])
        x.stop_gradient = False
        paddle.jit.to_static(lambda x, depth=depth: gelus(x, depth))(x)
        counts.append(len(tries))
    assert counts[0] > 10
    assert counts[2] - counts[1] <= 2.1 * (counts[1] - counts[0])
