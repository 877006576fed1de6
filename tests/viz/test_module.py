"""The tree of layers: parts, counts, what is shared, what is folded."""

import pytest

import minipaddle as paddle
from minipaddle import viz
from minipaddle.viz.tape import LIMIT
from tests.viz.reading import Drawing

nn = paddle.nn


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        self.register_buffer("steps", paddle.zeros([3]))
        self.scale = self.create_parameter([2])

    def forward(self, x):
        return self.body(x) * self.scale


def test_text_form():
    net = Net()
    net.body[0].bias.trainable = False
    assert viz.module(net).text == (
        "Net: 60 parameters\n"
        "  scale [2]  2\n"
        "  steps [3]  buffer\n"
        "  body (Sequential): 58 parameters\n"
        "    0 (Linear): 40 parameters\n"
        "      weight [4, 8]  32\n"
        "      bias [8]  8  frozen\n"
        "    1 (Tanh): 0 parameters\n"
        "    2 (Linear): 18 parameters\n"
        "      weight [8, 2]  16\n"
        "      bias [2]  2\n"
        "5 layers; 60 parameters, 52 of them trainable"
    )


def test_every_layer_is_a_node_and_every_child_an_edge():
    drawn = Drawing(viz.module(Net(), title="a net"))
    assert len(drawn.nodes) == 5
    assert drawn.arrows() == [
        ("Net", "body (Sequential)"),
        ("body (Sequential)", "0 (Linear)"),
        ("body (Sequential)", "1 (Tanh)"),
        ("body (Sequential)", "2 (Linear)"),
    ]
    assert (
        drawn.node("0 (Linear)").text == "0 (Linear)\n40 parameters\nweight [4, 8]  32\nbias [8]  8"
    )
    assert "weight [4, 8]" in drawn.node("0 (Linear)").tip
    assert "a net · 5 layers" in drawn.caption
    assert "frozen parameter or buffer" in drawn.caption


def test_depth_closes_what_lies_below():
    drawn = Drawing(viz.module(Net(), depth=1))
    assert len(drawn.nodes) == 2
    closed = drawn.node("❒ body (Sequential)")
    assert closed.text.split("\n")[1] == "3 layers inside, 58 parameters"
    assert "open with depth=2" in closed.tip
    assert Drawing(viz.module(Net(), depth=0)).nodes[0].text.startswith("❒ Net\n4 layers inside")


def test_a_large_model_is_folded_to_150_nodes():
    net = nn.Sequential(*[Net() for _ in range(40)])
    drawn = Drawing(viz.module(net))
    assert len(drawn.nodes) == 41 + 40
    assert len(Drawing(viz.module(net, depth=9)).nodes) == 1 + 40 * 5


def test_of_very_many_children_the_first_are_drawn():
    net = nn.Sequential(*[nn.Tanh() for _ in range(200)])
    graph = viz.module(net)
    drawn = Drawing(graph)
    assert len(drawn.nodes) == LIMIT
    assert drawn.node("…").text == f"… {200 - (LIMIT - 2)} more"
    assert graph.text.split("\n")[-2] == f"  … {200 - (LIMIT - 2)} more"
    assert len(Drawing(viz.module(net, depth=1)).nodes) == 201
    fits = nn.Sequential(*[nn.Tanh() for _ in range(LIMIT - 1)])
    assert len(Drawing(viz.module(fits)).nodes) == LIMIT


def test_a_shared_layer_is_drawn_and_counted_once():
    shared = nn.Linear(2, 2)

    class Pair(nn.Layer):
        def __init__(self):
            super().__init__()
            self.a = nn.Sequential(shared)
            self.b = nn.Sequential(shared)

    graph = viz.module(Pair())
    drawn = Drawing(graph)
    assert len(drawn.nodes) == 4
    assert len(drawn.edges) == 4
    assert "0: shared, see above" in graph.text
    assert graph.text.endswith("4 layers; 6 parameters, 6 of them trainable")


def test_odd_names_are_drawn_as_they_are():
    net = nn.Layer()
    net.add_sublayer("a<b>&", nn.Tanh())
    assert Drawing(viz.module(net)).node("a<b>& (Tanh)")


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match=r"module\(\) of int\n  expected: a paddle.nn.Layer"):
        viz.module(3)


def test_missing_parts_are_left_out():
    layer = nn.Linear(2, 2, bias_attr=False)
    layer.register_buffer("nothing", None)
    assert "bias" not in viz.module(layer).text
    assert "nothing" not in viz.module(layer).text
