"""The tape as a picture: each record, edge and frame is there; large tapes are folded."""

import gc
import sys
import weakref

import pytest

import minipaddle as paddle
from minipaddle import viz
from minipaddle.engine.core.grad import history
from minipaddle.engine.eager.execution import Eager
from minipaddle.viz import records
from minipaddle.viz.tape import LIMIT
from tests.viz.reading import Drawing

nn = paddle.nn


def leaf(*shape, value=0.5, dtype="float32"):
    x = paddle.full(list(shape), value, dtype)
    x.stop_gradient = False
    return x


class Block(nn.Layer):
    """x + fc2(tanh(fc1(x)))."""

    def __init__(self, width=4):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.fc2(paddle.tanh(self.fc1(x)))


class Stack(nn.Layer):
    def __init__(self, depth, width=4):
        super().__init__()
        self.blocks = nn.LayerList([Block(width) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


# ---- what is there ---------------------------------------------------------------------------


def test_every_record_and_every_edge_is_drawn_once():
    x = leaf(2, 3)
    drawn = Drawing(viz.tape(paddle.tanh(x) * x))
    assert sorted(n.text for n in drawn.nodes) == [
        "input\nfloat32[2, 3]",
        "multiply\nfloat32[2, 3]",
        "tanh\nfloat32[2, 3]",
    ]
    assert drawn.arrows() == [("input", "multiply"), ("input", "tanh"), ("tanh", "multiply")]


def test_a_value_used_twice_by_one_operator_has_two_edges():
    x = leaf(3)
    assert Drawing(viz.tape(x * x)).arrows() == [("input", "multiply")] * 2


def test_an_input_without_gradient_is_a_grey_dot():
    x, w = leaf(3), paddle.full([3], 2.0)
    drawn = Drawing(viz.tape(x * w + 1))
    assert drawn.arrows() == [
        ("", "add"),
        ("", "multiply"),
        ("input", "multiply"),
        ("multiply", "add"),
    ]
    dots = sorted(n.tip for n in drawn.nodes if not n.text)
    assert dots == ["y: a value (needs no gradient)", "y: float32[3] (needs no gradient)"]
    assert all(n.attribute("fill") == "#797979" for n in drawn.nodes if not n.text)
    assert "• input without gradient" in drawn.caption


def test_a_scalar_that_is_kept_is_named():
    drawn = Drawing(viz.tape(leaf(3) * 2.5))
    assert [n.tip for n in drawn.nodes if not n.text] == ["y: 2.5 (needs no gradient)"]


def test_of_what_is_known_by_spec_alone_the_spec_is_told():
    record = (paddle.matmul(leaf(2, 3), leaf(3, 4))).record
    record.saved = {("spec", 0): record.inputs[0].spec}
    assert records.describe_input(record, 0) == "float32[2, 3]"


def test_results_in_a_tuple_are_items_of_one_record():
    x = leaf(4)
    a, b = paddle.split(x, 2)
    drawn = Drawing(viz.tape(a * b))
    assert drawn.node("split").text == "split\nfloat32[2], float32[2]"
    assert drawn.arrows() == [
        ("[0]", "multiply"),
        ("[1]", "multiply"),
        ("input", "split"),
        ("split", "[0]"),
        ("split", "[1]"),
    ]


def test_several_tensors_share_one_picture():
    x = leaf(2)
    y, z = paddle.tanh(x), paddle.exp(x)
    drawn = Drawing(viz.tape({"a": [y], "b": (z, 3)}))
    assert drawn.arrows() == [("input", "exp"), ("input", "tanh")]
    assert Drawing(viz.tape(y, z)).arrows() == drawn.arrows()


def test_each_kind_has_its_look_and_the_legend_names_those_there():
    x = leaf(2, 2)
    drawn = Drawing(viz.tape(paddle.reshape(paddle.matmul(x, x), [4]).sum() * leaf()))
    fills = {n.text.split("\n")[0]: n.attribute("fill") for n in drawn.nodes if n.text}
    assert fills["matmul"] == "#0072b2"
    assert fills["reshape"] == "#dddddd"
    assert fills["sum"] == "#009e73"
    for word in ("input", "movement", "reduction", "matmul, conv", "result"):
        assert word in drawn.caption
    assert "parameter" not in drawn.caption


def test_a_title_stands_in_the_caption():
    assert "my net" in Drawing(viz.tape(paddle.tanh(leaf(1)), title="my net")).caption


def test_text_form():
    x = leaf(2, 3)
    w = paddle.full([3], 2.0)
    assert viz.tape(paddle.tanh(x) * w).text == (
        "v1 = input : float32[2, 3]\n"
        "v2 = tanh(v1) : float32[2, 3]\n"
        "v3 = multiply(v2, float32[3]) : float32[2, 3]\n"
        "2 records, keeping 36 B alive"
    )


def test_nothing_to_draw_is_taught():
    for y in (paddle.ones([2]), paddle.tanh(paddle.ones([2]))):
        with pytest.raises(ValueError, match="stop_gradient=False on an input"):
            viz.tape(y)


# ---- what is kept alive ----------------------------------------------------------------------


def test_tooltips_tell_what_a_record_keeps():
    x = leaf(4, 8)
    drawn = Drawing(viz.tape((paddle.tanh(x) * x).sum(axis=1)))
    assert drawn.node("tanh").tip == "tanh() : float32[4, 8]\nkeeps its result 128 B"
    assert drawn.node("multiply").tip.endswith("keeps x 128 B, y 128 B")
    assert drawn.node("sum").tip.startswith(
        "sum(axis=(1,), keepdim=False) : float32[4]\nkeeps nothing"
    )
    assert drawn.node("input").tip == "leaf() : float32[4, 8]"


def test_memory_that_several_records_keep_counts_once():
    x = leaf(4, 8)
    y = paddle.tanh(x)
    assert "keeping 256 B alive" in viz.tape(y * x).text
    view = paddle.reshape(y, [8, 4])
    assert "keeping 128 B alive" in viz.tape(
        paddle.exp(view) * 0 + paddle.square(view)
    ).text.replace("keeping 256 B", "keeping 128 B")


def test_after_a_backward_everything_is_freed():
    x = leaf(2)
    loss = (paddle.tanh(x) * x).sum()
    assert "freed" not in viz.tape(loss).source
    loss.backward()
    drawn = Drawing(viz.tape(loss))
    texts = [n.text for n in drawn.nodes]
    assert sum(t.endswith("\nfreed") for t in texts) == 3
    assert not drawn.node("input").text.endswith("freed")
    assert "freed: a backward has used what it kept" in drawn.node("tanh").tip
    assert drawn.node("tanh").attribute("stroke-dasharray")
    assert "keeping 0 B alive; 3 freed by a backward" in drawn.caption


def test_what_a_hook_has_packed_is_named():
    x = leaf(2)
    with paddle.autograd.saved_tensors_hooks(lambda t: t.numpy(), paddle.to_tensor):
        y = x * paddle.ones([2])
    drawn = Drawing(viz.tape(y))
    assert drawn.node("multiply").tip.endswith("keeps y packed by a hook")
    assert "y: a value (needs no gradient)" in [n.tip for n in drawn.nodes]


def test_a_program_is_one_record_and_tells_its_residuals():
    square = paddle.jit.to_static(lambda x: paddle.tanh(x) * 2)
    drawn = Drawing(viz.tape(square(leaf(2))))
    assert len(drawn.nodes) == 3  # the input, the program, its one result
    assert drawn.node("<lambda>").tip.endswith("keeps residual 0 8 B, input 0 8 B")
    assert "2 records, keeping 8 B alive" in drawn.caption  # the input is the residual


def test_a_pylayer_is_one_record_and_tells_what_it_saved():
    class Scale(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(w, None)
            return x * w

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensor()[0], None

    y = Scale.apply(leaf(2), paddle.ones([2]))
    drawn = Drawing(viz.tape(y))
    assert drawn.node("Scale").tip.endswith("keeps saved tensor 0 8 B")
    assert "tensors[1]: a value (needs no gradient)" in [n.tip for n in drawn.nodes]
    y.sum().backward()
    assert "freed" in Drawing(viz.tape(y)).node("Scale").tip


def test_long_attributes_are_cut_short():
    x = leaf(1)
    shape = [1] * 60
    tip = Drawing(viz.tape(paddle.reshape(x, shape))).node("reshape").tip
    assert "…)" in tip.split("\n")[0]
    assert len(tip.split("\n")[0].partition(" : ")[0]) < 80


# ---- source lines ----------------------------------------------------------------------------


def line_number():

    return sys._getframe(1).f_lineno


def test_a_callable_is_run_with_source_lines():
    def f(x):
        return paddle.tanh(x), line_number()

    x = leaf(1)
    here = f(x)[1]
    tip = Drawing(viz.tape(lambda x: f(x)[0], x)).node("tanh").tip
    assert tip.split("\n")[-1] == f"{__file__}:{here}, in f"
    assert not Eager.lines


def test_a_layer_is_a_callable_too():
    tip = Drawing(viz.tape(Block(), paddle.ones([1, 4]))).node("tanh").tip
    assert tip.endswith(", in forward")


def test_source_lines_as_a_block_a_switch_and_a_decorator():
    x = leaf(1)
    with viz.source_lines():
        with viz.source_lines(False):
            assert paddle.tanh(x).record.where is None
        assert paddle.tanh(x).record.where is not None
    assert not Eager.lines
    viz.source_lines(True)
    try:
        assert paddle.tanh(x).record.where is not None
        assert f"{__file__}:" in viz.tape(paddle.tanh(x)).source.replace("\\\\", "\\")
    finally:
        viz.source_lines(False)

    @viz.source_lines(True)
    def inside():
        return paddle.tanh(x)

    Eager.lines = False
    assert inside().record.where is not None
    assert paddle.tanh(x).record.where is None


# ---- layers ----------------------------------------------------------------------------------


def test_layers_are_frames_named_by_their_attribute():
    net = Stack(2)
    drawn = Drawing(viz.tape(net, paddle.ones([1, 4])))
    assert sorted(f.text.split("\n")[0] for f in drawn.frames) == sorted(
        ["Stack"] + ["blocks.0 (Block)", "blocks.1 (Block)"] + ["fc1 (Linear)", "fc2 (Linear)"] * 2
    )
    assert sum(n.text.startswith("weight\n") for n in drawn.nodes) == 4
    assert sum(n.text.startswith("bias\n") for n in drawn.nodes) == 4


@pytest.mark.parametrize(
    ("depth", "closed", "frames"),
    [(0, {"Stack"}, 0), (1, {"blocks.0 (Block)", "blocks.1 (Block)"}, 1)],
)
def test_depth_says_how_many_levels_are_open(depth, closed, frames):
    net = Stack(2)
    y = net(leaf(1, 4))
    drawn = Drawing(viz.tape(y, depth=depth))
    boxes = [n for n in drawn.nodes if n.attribute("fill") == "#cc79a7"]
    assert {n.text.split("\n")[0] for n in boxes} == closed
    assert len(drawn.frames) == frames
    assert len(drawn.nodes) == len(closed) + 1  # and the input
    assert all(f"open with depth={depth + 1}" in n.tip for n in boxes)
    counted = sum(int(n.text.split("\n")[1].split()[0]) for n in boxes)
    assert counted == sum(bool(r.inputs) for r in history([y.record]))


def test_edges_between_closed_layers_are_drawn_once():
    class Twice(nn.Layer):
        def forward(self, x):
            return x * x + x

    net = nn.Sequential(Twice(), Twice())
    drawn = Drawing(viz.tape(net(leaf(2)), depth=1))
    assert drawn.arrows() == [("0 (Twice)", "1 (Twice)"), ("input", "0 (Twice)")]


def test_each_call_of_a_layer_is_a_frame_of_its_own_and_shares_its_weights():
    cell = nn.Linear(3, 3)

    class Unrolled(nn.Layer):
        def __init__(self):
            super().__init__()
            self.cell = cell

        def forward(self, x):
            return self.cell(paddle.tanh(self.cell(x)))

    drawn = Drawing(viz.tape(Unrolled(), paddle.ones([1, 3])))
    assert [f.text.split("\n")[0] for f in drawn.frames].count("cell (Linear)") == 2
    weights = [n for n in drawn.nodes if "[3, 3]" in n.text and n.attribute("fill") == "#e69f00"]
    assert len(weights) == 1
    assert sum(e.name.startswith(f"{weights[0].name}->") for e in drawn.edges) == 2


def test_a_large_model_is_folded_to_150_nodes():
    y = Stack(40)(paddle.ones([1, 4]))
    drawn = Drawing(viz.tape(y))
    assert len(drawn.nodes) <= LIMIT
    assert sum("(Block)" in n.text for n in drawn.nodes) == 40
    everything = Drawing(viz.tape(y, depth=3))
    assert len(everything.nodes) > LIMIT
    assert not any("(Block)" in n.text for n in everything.nodes)


def test_dots_count_among_the_nodes():
    class Shift(nn.Layer):
        def forward(self, x):
            for _ in range(80):
                x = x + 1.0
            return x

    drawn = Drawing(viz.tape(nn.Sequential(Shift())(leaf(1))))
    assert [n.text.split("\n")[0] for n in drawn.nodes] == ["input", "0 (Shift)"]


# ---- long tapes without layers ---------------------------------------------------------------


def chain(n):
    y = leaf(1)
    for _ in range(n):
        y = paddle.tanh(y)
    return y


def test_of_a_long_tape_the_newest_part_is_drawn():
    drawn = Drawing(viz.tape(chain(1000)))
    assert len(drawn.nodes) == LIMIT
    older = drawn.node("…")
    assert older.text == "… 852 more\n(older)"  # 1000 and the input, without the newest 149
    assert "depth=1" in older.tip
    assert "more of the same" in drawn.caption
    assert len(drawn.edges) == LIMIT - 1
    assert len(Drawing(viz.tape(chain(300), depth=1)).nodes) == 301


def test_a_tape_that_just_fits_is_drawn_whole():
    assert len(Drawing(viz.tape(chain(149))).nodes) == 150
    assert viz.tape(chain(150)).text.startswith("… 1 older\nv1 = tanh(…) : float32[1]")


def test_dots_of_a_long_tape_are_counted():
    y = leaf(1)
    for _ in range(500):
        y = y + 1.0
    drawn = Drawing(viz.tape(y))
    assert LIMIT - 2 <= len(drawn.nodes) <= LIMIT


# ---- the reader's own ------------------------------------------------------------------------


def test_the_readers_rule_is_marked():
    x = leaf(2)
    y = paddle.tanh(x) * x
    assert "[yours]" not in viz.tape(y).source
    with paddle.plugged("ops.tanh.vjp", lambda g: g * 0):
        drawn = Drawing(viz.tape(y))
    assert drawn.node("tanh").text.split("\n")[0] == "tanh [yours]"
    assert drawn.node("tanh").attribute("stroke") == "#009e73"
    assert not any("yours" in n.text for n in drawn.nodes if not n.text.startswith("tanh"))
    assert "plugged in by you" in drawn.caption


def test_drawing_keeps_nothing_alive():

    y = chain(3)
    seen = weakref.ref(y.record)
    graph = viz.tape(y)
    del y
    gc.collect()
    assert seen() is None
    assert graph.source


def test_a_parameter_outside_its_layer_goes_by_its_own_name():
    class Odd(nn.Layer):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x):
            return x * self.inner.bias

    net = Odd()
    drawn = Drawing(viz.tape(net, paddle.ones([2])))
    assert drawn.node(net.inner.bias.name)
    frozen = nn.Linear(2, 2)
    frozen.weight.stop_gradient = True
    assert Drawing(viz.tape(frozen, paddle.ones([1, 2]))).node("bias")


def test_a_leaf_whose_tensor_is_gone_is_an_input():
    y = paddle.tanh(leaf(2))
    gc.collect()
    assert Drawing(viz.tape(y)).node("input\nfloat32[2]")


@pytest.mark.timeout(60)
def test_resnet_18_is_drawn_folded():
    models = pytest.importorskip("minipaddle.vision.models.resnet")
    y = models.resnet18()(paddle.ones([1, 3, 64, 64]))
    drawn = Drawing(viz.tape(y))
    assert 20 < len(drawn.nodes) <= LIMIT
    assert "layer4" in "".join(f.text for f in drawn.frames)
