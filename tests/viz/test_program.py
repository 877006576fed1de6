"""A program as a picture: regions are boxes, states stand beside the data flow."""

import pytest

import minipaddle as paddle
from minipaddle import viz
from minipaddle.engine.eager.control_flow import while_loop
from minipaddle.engine.ir.program import Program
from minipaddle.ir.parser import parse
from minipaddle.viz.collapse import LIMIT
from tests.viz import static_cases as cases
from tests.viz.reading import Drawing

nn = paddle.nn


def firsts(drawn):
    """The first lines of all nodes, sorted."""
    return sorted(n.text.split("\n")[0] for n in drawn.nodes)


# ---- data flow -------------------------------------------------------------------------------


def test_numbers_stand_in_the_label_and_the_line_in_the_tooltip():
    drawn = Drawing(viz.program(cases.static(cases.halves, paddle.ones([2]))))
    node = drawn.node("multiply(·, 2)")
    assert node.text == "multiply(·, 2)\nfloat32[2]"
    assert node.tip.startswith("v1 = multiply(a0, 2) : float32[2]\n")
    assert "static_cases.py:" in node.tip
    assert node.tip.endswith("in halves")
    assert drawn.node("add(·, 1)").text == "add(·, 1)\nfloat32[2]"


def test_a_number_with_many_digits_is_short():
    f = cases.static(lambda x: x * 0.1234567891, paddle.ones([2]))
    drawn = Drawing(viz.program(f))
    assert drawn.node("multiply(·, 0.1235)")
    assert "0.1234567891" in drawn.node("multiply").tip


def test_each_value_goes_from_where_it_was_made_into_the_branches():
    drawn = Drawing(viz.program(cases.static(cases.halves, paddle.ones([2]))))
    assert drawn.arrows() == sorted(
        [
            ("x", "sum"), ("sum", "greater_than(·, 0)"), ("greater_than(·, 0)", "cond"),
            ("cond", "multiply(·, 2)"), ("cond", "neg"),  # the decision
            ("x", "multiply(·, 2)"), ("x", "neg"),
            ("multiply(·, 2)", "float32[2]"), ("neg", "float32[2]"),
            ("float32[2]", "add(·, 1)"),
        ]
    )  # fmt: skip
    assert sorted(f.text for f in drawn.frames) == ["cond", "false", "true"]


def test_the_text_is_the_printed_program():
    f = cases.static(cases.halves, paddle.ones([2]))
    assert viz.program(f).text == str(f.main_program)
    assert viz.program(f.main_program).text == str(f.main_program)


def test_what_a_branch_hands_on_is_a_node_of_its_own():
    drawn = Drawing(viz.program(cases.static(cases.same_or_negative, paddle.ones([2]))))
    assert ("x", "=") in drawn.arrows()
    assert ("=", "float32[2]") in drawn.arrows()
    assert "passed on as it is" in drawn.caption


def test_a_result_that_the_backward_needs_too_is_drawn_as_a_result():
    @paddle.jit.to_static
    def f(x):
        y = x.exp()
        return y, y * 2

    x = paddle.ones([3])
    x.stop_gradient = False
    f(x)
    drawn = Drawing(viz.program(f))
    fills = [drawn.node(text).attribute("fill") for text in ("exp", "multiply(·, 2)")]
    assert fills[0] == fills[1]
    assert "kept for the backward" in drawn.caption


def test_a_loop_goes_round():
    drawn = Drawing(viz.program(cases.static(cases.doubled_until, paddle.ones([2]))))
    assert sorted(f.text for f in drawn.frames) == ["body", "while_loop"]
    (a0,) = [n for n in drawn.nodes if n.text == "a0\nbool[]"]
    back = [e for e in drawn.edges if e.tip == "for the next round"]
    assert len(back) == 2
    assert any(e.name.endswith(f">{a0.name}") for e in back)
    assert all(e.attribute("stroke-dasharray") for e in back)
    assert "carried from round to round" in drawn.caption


def test_a_test_with_records_of_its_own_is_a_box():
    def f(x):
        return while_loop(lambda v: v.sum() < 100.0, lambda v: [v * 2.0], [x])[0]

    drawn = Drawing(viz.program(cases.static(f, paddle.ones([2]))))
    assert sorted(f.text for f in drawn.frames) == ["body", "test", "while_loop"]
    assert ("less_than(·, 100)", "while") in drawn.arrows()
    assert ("while", "multiply(·, 2)") in drawn.arrows()
    assert ("while", "sum") not in drawn.arrows()  # the test comes first


def test_conditions_in_a_loop_with_break():
    graph = viz.program(cases.static(cases.steps_to_one, paddle.to_tensor(7)))
    drawn = Drawing(graph)
    assert [f.text for f in drawn.frames].count("cond") == 3
    assert len({n.name for n in drawn.nodes}) == len(drawn.nodes)
    assert drawn.node("[1]").text == "[1]\nint64[]"  # of the four carried the one that is used
    closed = Drawing(viz.program(cases.static(cases.steps_to_one, paddle.to_tensor(7)), depth=0))
    assert firsts(closed) == ["full", "full", "greater_than(·, 1)", "n", "while_loop"]
    assert closed.node("while_loop").text.endswith("records")


def test_what_a_derivative_keeps_of_the_rounds_is_drawn():
    def f(x):
        y = x
        while y.sum() < 100.0:
            y = y * y
        (g,) = paddle.grad(y.sum(), [x])
        return g

    x = paddle.full([2], 1.5)
    x.stop_gradient = False
    drawn = Drawing(viz.program(cases.static(f, x)))
    tips = {e.tip for e in drawn.edges}
    assert {"how many rounds", "of each round"} <= tips


# ---- states ----------------------------------------------------------------------------------


def test_a_step_has_a_box_for_the_backward_and_one_for_each_update():
    step = cases.training_step(paddle.optimizer.Adam)
    drawn = Drawing(viz.program(step, depth=3))
    labels = [f.text for f in drawn.frames]
    assert {"forward", "backward", "update"} <= {*labels}
    assert sum(label.startswith("new linear_") for label in labels) == 4
    assert labels.count("fc1 (Linear)") == 2  # on the way there and on the way back


def test_a_state_is_updated_by_a_dashed_line():
    step = cases.training_step(paddle.optimizer.Adam)
    drawn = Drawing(viz.program(step, depth=2))
    new = [e for e in drawn.edges if e.tip == "the new value"]
    assert len(new) == 20  # 4 parameters, each with two moments and two powers
    assert all(e.attribute("stroke-dasharray") for e in new)
    names = {n.name: n.text.split("\n")[0] for n in drawn.nodes}
    ends = [tuple(names[x] for x in e.name.split("->")) for e in new]
    assert ("averaged", "moment1_0") in ends
    assert any(a == "adam_step" and b.endswith(".w_0") for a, b in ends)
    assert "20 of them updated" in drawn.caption


def test_a_state_stands_in_each_outermost_box_that_uses_it():
    drawn = Drawing(viz.program(cases.training_step(paddle.optimizer.SGD), depth=4))
    weights = [n for n in drawn.nodes if n.tip.startswith("state") and "[8, 2]" in n.tip]
    assert len(weights) == 3  # forward, backward, update
    assert {n.text.split("\n")[0] for n in weights} >= {"weight"}


def test_a_state_that_is_only_written_is_there():
    net = nn.Linear(2, 2)

    def f(x):
        net.bias.set_value(x)
        return x * 2

    with paddle.no_grad():
        drawn = Drawing(viz.program(cases.static(f, paddle.ones([2]))))
    assert "1 of them updated" in drawn.caption
    assert [e.tip for e in drawn.edges].count("the new value") == 1


def test_a_swap_of_two_states():
    a, b = nn.Linear(2, 2).weight, nn.Linear(2, 2).weight

    def f(x):
        old = a.clone()
        a.set_value(b)
        b.set_value(old)
        return x

    with paddle.no_grad():
        drawn = Drawing(viz.program(cases.static(f, paddle.ones([2]))))
    assert [e.tip for e in drawn.edges].count("the new value") == 2


def test_what_is_kept_for_the_backward_is_framed():
    net = paddle.jit.to_static(cases.MLP())
    net(paddle.ones([16, 4]))
    drawn = Drawing(viz.program(net))
    assert drawn.node("tanh").attribute("stroke") == "#d55e00"
    assert not [
        n for n in drawn.nodes if n.text[:6] == "affine" and n.attribute("stroke") == "#d55e00"
    ]
    assert "kept for the backward" in drawn.caption


# ---- size ------------------------------------------------------------------------------------


def test_depth_closes_boxes():
    step = cases.training_step(paddle.optimizer.Adam)
    closed = Drawing(viz.program(step, depth=0))
    assert firsts(closed) == ["backward", "forward", "update", "x", "y"]
    assert "updates of parameters, closed" in closed.caption
    assert "static_cases.py" in closed.node("update").tip
    once = Drawing(viz.program(step, depth=1))
    assert len([n for n in once.nodes if n.text.startswith("new linear")]) == 4
    assert [f.text for f in once.frames] == ["forward", "backward", "update"]  # in order


def test_of_a_long_program_the_newest_part_is_drawn():
    def f(x):
        for _ in range(300):
            x = paddle.tanh(x)
        return x

    made = cases.static(f, paddle.ones([2]))
    drawn = Drawing(viz.program(made, depth=1))
    assert len(drawn.nodes) == 301
    line = Drawing(viz.program(made))
    assert len(line.nodes) <= LIMIT


def test_a_long_program_of_many_lines():
    tanh = "  v{} = tanh({}) : float32[2]"
    body = "\n".join(tanh.format(k + 1, f"v{k}" if k else "x") for k in range(300))
    made = parse(f"program f(x: float32[2]) {{\n{body}\n  return v300\n}}")
    drawn = Drawing(viz.program(made))
    assert len(drawn.nodes) == LIMIT
    assert drawn.node("… 152 more")


@pytest.mark.timeout(60)
def test_a_resnet_is_drawn_quickly():
    models = pytest.importorskip("minipaddle.vision.models.resnet")
    net = paddle.jit.to_static(models.resnet18())
    net(paddle.ones([1, 3, 64, 64]))
    drawn = Drawing(viz.program(net))
    assert 20 < len(drawn.nodes) <= LIMIT
    assert "layer4" in "".join(f.text for f in drawn.frames)
    backward = viz.program(net.forward.concrete_program.backward)
    assert len(Drawing(backward).nodes) <= LIMIT


def test_many_inputs_stand_where_they_are_used():
    net = nn.Sequential(nn.Linear(2, 4), cases.MLP(), nn.Linear(2, 4), cases.MLP())
    made = paddle.jit.to_static(net)
    made(paddle.ones([3, 2]))
    back = made.forward.concrete_program.backward
    assert len(back.inputs) > 8
    drawn = Drawing(viz.program(back, depth=0))
    assert firsts(drawn) == ["Sequential"]


# ---- what else -------------------------------------------------------------------------------


def test_the_readers_rule_is_marked():
    f = cases.static(lambda x: paddle.tanh(x), paddle.ones([2]))
    made = f.main_program
    with paddle.plugged("ops.tanh.vjp", lambda g: g * 0):
        drawn = Drawing(viz.program(made))
    assert drawn.node("tanh").text.split("\n")[0] == "tanh [yours]"


def test_an_input_that_is_the_result_has_two_rims():
    drawn = Drawing(viz.program(cases.static(lambda x: x, paddle.ones([2]))))
    assert len(drawn.nodes) == 1
    assert len([e for e in drawn.nodes[0].element.iter() if e.tag.endswith("ellipse")]) == 2


def test_an_empty_program():
    assert Drawing(viz.program(Program())).nodes == []


def test_a_line_of_a_program_that_was_read_is_said():
    record = "v1 = tanh(x) : float32[2]  @ 'net.py:3, in f'"
    made = parse(f"program f(x: float32[2]) {{\n  {record}\n  return v1\n}}")
    assert "net.py:3" in Drawing(viz.program(made)).node("tanh").tip


def test_what_is_no_program_is_refused():
    with pytest.raises(TypeError, match=r"viz\.tape draws") as caught:
        viz.program(paddle.tanh)
    assert "expected: a Program" in str(caught.value)
    with pytest.raises(ValueError, match="no program yet"):
        viz.program(paddle.jit.to_static(cases.halves))
