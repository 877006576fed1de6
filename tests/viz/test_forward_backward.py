"""Forward and backward side by side, and what crosses the cut."""

import pytest

import minipaddle as paddle
from minipaddle import viz
from tests.viz import static_cases as cases
from tests.viz.reading import Drawing

nn = paddle.nn
CROSSING = "#d55e00"


def called(net, *inputs):
    made = paddle.jit.to_static(net)
    made(*inputs)
    return made


def crossing(drawn):
    return [e for e in drawn.edges if e.attribute("stroke") == CROSSING]


def test_the_mlp_keeps_its_input_and_the_tanh():
    graph = viz.joint(called(cases.MLP(), paddle.ones([16, 4])))
    drawn = Drawing(graph)
    assert graph.text.endswith("3 records forward, 8 backward; 2 residuals of 768 B")
    names = {n.name: n.text.split("\n")[0] for n in drawn.nodes}
    ends = {tuple(names[x] for x in e.name.split("->")) for e in crossing(drawn)}
    assert ends == {("x", "summed_outer"), ("tanh", "summed_outer"), ("tanh", "multiply")}
    assert {e.tip for e in crossing(drawn)} == {
        "x: float32[16, 4], 256 B",
        "v2: float32[16, 8], 512 B",
    }
    assert "512 B" in "".join(e.text for e in crossing(drawn))
    assert [f.text for f in drawn.frames].count("fc1 (Linear)") == 2


def test_lines_of_the_backward_lead_back():
    drawn = Drawing(viz.joint(called(cases.MLP(), paddle.ones([16, 4]))))
    names = {n.name: n.text.split("\n")[0] for n in drawn.nodes}
    turned = [tuple(names[x] for x in e.name.split("->")) for e in drawn.edges]
    assert ("linear", "g0") in turned  # drawn from its end: the arrow is at `linear`
    assert drawn.node("g0").attribute("fill") == "#000000"
    assert "gradient that arrives" in drawn.caption


def test_the_results_of_the_backward_say_of_what_they_are_the_gradient():
    net = cases.MLP()
    x = paddle.ones([16, 4])
    x.stop_gradient = False
    drawn = Drawing(viz.joint(called(net, x)))
    labels = {n.text.split("\n")[1] for n in drawn.nodes if "∂" in n.text}
    assert labels == {f"∂/∂ {p.name}" for p in net.parameters()} | {"∂/∂ x"}


def test_a_parameter_is_no_residual_and_stands_on_both_sides():
    drawn = Drawing(viz.joint(called(cases.MLP(), paddle.ones([16, 4]))))
    weights = [n for n in drawn.nodes if n.text == "weight\nfloat32[8, 2]"]
    assert len(weights) == 2
    assert all(n.attribute("stroke") != CROSSING for n in weights)


def test_closed_layers_sum_what_crosses_between_them():
    drawn = Drawing(viz.joint(called(cases.MLP(), paddle.ones([16, 4])), depth=2))
    assert "512 B" in "".join(e.text for e in crossing(drawn))
    all_closed = Drawing(viz.joint(called(cases.MLP(), paddle.ones([16, 4])), depth=0))
    (one,) = crossing(all_closed)
    assert one.text.split("\n")[-1].strip() == "2: 768 B"
    assert sorted(n.text.split("\n")[0] for n in all_closed.nodes) == ["backward", "forward"]


def test_a_view_is_computed_again():
    class Flat(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 2)

        def forward(self, x):
            return self.fc(nn.functional.softmax(x).reshape([4, 6]))

    drawn = Drawing(viz.joint(called(Flat(), paddle.ones([4, 2, 3]))))
    assert drawn.node("reshape again")
    names = {n.name: n.text.split("\n")[0] for n in drawn.nodes}
    ends = [tuple(names[x] for x in e.name.split("->")) for e in crossing(drawn)]
    assert ends == [("softmax", "reshape again")]


def test_a_branch_on_both_sides():
    x = paddle.ones([2])
    x.stop_gradient = False
    drawn = Drawing(viz.joint(cases.static(cases.halves, x)))
    assert [f.text for f in drawn.frames].count("cond") == 2
    assert [n.text for n in drawn.nodes].count("cond") == 2


def test_open_sizes_are_formulas():
    net = paddle.jit.to_static(
        cases.MLP(), input_spec=[paddle.static.InputSpec([None, 4], "float32")]
    )
    net(paddle.ones([16, 4]))
    assert " B" in viz.joint(net).text.splitlines()[-1]


def test_without_a_backward_there_is_nothing_to_join():
    with pytest.raises(ValueError, match="has no backward program"):
        viz.joint(cases.static(cases.halves, paddle.ones([2])))
