"""The gradient flow: its numbers are the real gradients' norms, and trouble is marked."""

import math

import numpy as np
import pytest
import torch

import minipaddle as paddle
from minipaddle import viz
from minipaddle.viz import gradient_norms as norms
from tests.viz.reading import Drawing

nn = paddle.nn


def leaf(values, dtype="float32"):
    return paddle.to_tensor(values, dtype=dtype, stop_gradient=False)


def test_norms_are_those_of_torch():
    values = np.linspace(-1, 2, 6).reshape(2, 3)
    x = torch.tensor(values, requires_grad=True)
    t = torch.tanh(x)
    y = t * x
    for v in (t, y):
        v.retain_grad()
    (y**2).sum().backward()
    mine = leaf(values, "float64")
    drawn = Drawing(viz.gradient_flow(((paddle.tanh(mine) * mine) ** 2).sum()))
    tips = {e.tip for e in drawn.edges}
    for name, value in (("input", x), ("tanh", t), ("multiply", y)):
        norm = value.grad.norm().item()
        assert f"‖g‖ {norm:.1e}" in drawn.node(name).text
        found = [float(tip.split("= ")[1]) for tip in tips if "= " in tip]
        assert any(math.isclose(v, norm, rel_tol=1e-12) for v in found)
    np.testing.assert_allclose(mine.grad.numpy(), x.grad.numpy())


def test_it_is_an_ordinary_backward():
    x = leaf([3.0, 4.0])
    loss = (x * x).sum()
    graph = viz.gradient_flow(loss)
    assert x.grad.tolist() == [6.0, 8.0]
    assert loss.record.hooks is None
    assert "freed" not in graph.source
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        viz.gradient_flow(loss)
    loss = (x * x).sum()
    viz.gradient_flow(loss, retain_graph=True)
    viz.gradient_flow(loss)
    assert x.grad.tolist() == [18.0, 24.0]


def test_hooks_of_the_user_run_first_and_stay():
    x = leaf([3.0, 4.0])
    y = x * 1
    y.register_hook(lambda g: g * 10)
    hooks = y.record.hooks
    text = viz.gradient_flow((y * y).sum()).text
    assert "multiply(v1, 1) : float32[2]  ‖g‖ 1.0e+02" in text
    assert y.record.hooks is hooks


def test_lines_get_wider_and_change_colour_with_the_logarithm():
    x = leaf([1.0])
    drawn = Drawing(viz.gradient_flow((x * 1e2 * 1e-5).sum()))
    widths = [
        float(e.attribute("stroke-width")) for e in drawn.edges if e.attribute("stroke-width")
    ]
    assert len(set(widths)) > 1
    assert norms.width(1e-7) == norms.width(0) < norms.width(1e-3) < norms.width(1.0)
    assert norms.width(1e3) == norms.width(1e9) == norms.width(math.nan) == "5.00"
    assert [norms.colour(v) for v in (0, 1e-9, 1e9)] == [
        norms.LOW,
        norms.LOW,
        norms.HIGH,
    ]
    assert norms.colour(10**-1.5) == norms.MIDDLE
    assert norms.colour(math.nan) == norms.colour(math.inf) == norms.RED


@pytest.mark.parametrize(
    ("factor", "mark", "word"),
    [
        (1e-9, "▼", "vanishing"),
        (1e5, "▲", "exploding"),
        (math.inf, "✖", "nan or inf"),
        (math.nan, "✖", "nan or inf"),
        (0.0, "▼", "vanishing"),
    ],
)
def test_trouble_is_marked(factor, mark, word):
    x = leaf([1.0, 1.0])
    graph = viz.gradient_flow((paddle.tanh(x) * paddle.full([2], factor)).sum())
    drawn = Drawing(graph)
    assert mark in drawn.node("tanh").text
    assert mark not in drawn.node("sum").text
    assert drawn.node("tanh").attribute("stroke") == norms.colour(factor)
    assert f"{word}" in graph.text.split("\n")[-1]
    assert "▼ vanishing (below 1e-06)" in drawn.caption


def test_a_record_no_gradient_reaches_says_so():
    x = leaf([1.0])
    y = paddle.tanh(x)
    with paddle.plugged("ops.exp.vjp", lambda g: None):
        text = viz.gradient_flow((paddle.exp(y) + x).sum()).text
    assert "tanh(v1) : float32[1]  no gradient" in text


def test_results_of_several_are_measured_together():
    x = leaf([1.0, 2.0, 3.0, 4.0])
    a, b = paddle.split(x, 2)
    text = viz.gradient_flow((a * 3 + b * 4).sum()).text
    expected = math.sqrt(2 * 9 + 2 * 16)
    line = next(line for line in text.split("\n") if " split(" in line)
    assert line.endswith(f"‖g‖ {expected:.1e}")


def test_closed_layers_tell_the_norm_of_their_parameters():
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    loss = net(paddle.ones([2, 3])).sum()
    drawn = Drawing(viz.gradient_flow(loss, depth=0))
    total = math.sqrt(sum(float((p.grad**2).sum()) for p in net.parameters()))
    assert f"parameters ‖g‖ {total:.1e}" in drawn.node("Sequential").text
    only = Drawing(viz.gradient_flow(nn.Sequential(nn.Tanh())(leaf([1.0])).sum(), depth=0))
    assert "‖g‖" not in only.node("Sequential").text


# ---- layers after a backward -----------------------------------------------------------------


def test_a_layer_shows_the_norm_of_each_parameters_gradient():
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
    net(paddle.ones([2, 3])).sum().backward()
    graph = viz.gradient_flow(net)
    drawn = Drawing(graph)
    for k in (0, 2):
        for name in ("weight", "bias"):
            grad = getattr(net[k], name).grad
            norm = math.sqrt(float((grad.astype("float64") ** 2).sum()))
            node = drawn.node(f"{k} (Linear)")
            assert f"‖g‖ {norm:.1e}" in next(t for t in node.text.split("\n") if t.startswith(name))
            assert f"{name}: ‖g‖ = {norm!r}" in node.tip
    assert drawn.node("1 (Tanh)").text == "1 (Tanh)"
    assert graph.text.endswith(graph.text.split("\n")[-1])
    assert "4 parameter tensors; norms from" in graph.text
    assert "exploding" in drawn.caption


def test_a_parameter_without_gradient_says_so():
    net = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    net[0](paddle.ones([1, 3])).sum().backward()
    assert "no gradient" in viz.gradient_flow(net).text
    net.clear_gradients(set_to_zero=False)
    with pytest.raises(ValueError, match=r"call loss.backward\(\) first"):
        viz.gradient_flow(net)


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match="expected: a loss"):
        viz.gradient_flow([1])
