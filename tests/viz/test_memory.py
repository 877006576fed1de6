"""The picture of a memory plan: a rectangle for every piece, no two of them over each other."""

import itertools

from matplotlib.patches import Rectangle

import minipaddle as paddle
from minipaddle import viz
from minipaddle.engine.passes.memory import plan
from minipaddle.ir.parser import parse


def network():
    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.up, self.down = paddle.nn.Linear(8, 32), paddle.nn.Linear(32, 8)

        def forward(self, x):
            return self.down(paddle.tanh(self.up(x))).sum()

    net = Net()

    @paddle.jit.to_static
    def step(x):
        net(x).backward()
        grads = [w.grad for w in net.parameters()]
        net.clear_gradients()
        return grads

    step(paddle.ones([4, 8]))
    return step


def rectangles(picture):
    arena = picture.figure.axes[1]
    found = [p for p in arena.patches if isinstance(p, Rectangle)]
    return [(p.get_x(), p.get_y(), p.get_width(), p.get_height(), p.get_facecolor()) for p in found]


def test_every_piece_is_a_rectangle_and_none_is_over_another():
    step = network()
    found = plan(step.concrete_program.program)
    picture = viz.memory(found)
    boxes = rectangles(picture)
    assert len(boxes) == len(found.allocations) > 2
    for a, b in itertools.combinations(boxes, 2):
        apart = (
            a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0] or a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1]
        )
        assert apart
    assert str(picture) == str(found)
    assert picture.png().startswith(b"\x89PNG")


def test_layers_have_colours_and_the_legend_says_which():
    picture = viz.memory(network())
    labels = [t.get_text() for t in picture.figure.legends[0].get_texts()]
    assert labels[-2:] == ["no layer", "workspace"]
    assert {"up", "down"} & set(labels)
    assert len({box[4] for box in rectangles(picture)}) > 1


def test_the_bound_and_the_arena_are_in_the_title():
    found = plan(network().concrete_program.program)
    title = viz.memory(found).figure.axes[1].get_title(loc="left")
    assert title.startswith("arena ")
    assert "bound" in title


def test_a_program_without_an_arena_has_a_picture():
    program = parse("program p(x: float32[4]) {\n v1 = tanh(x) : float32[4]\n return v1\n}")
    assert viz.memory(program).png()
    assert rectangles(viz.memory(program)) == []


def test_workspaces_are_drawn():
    program = parse("program p(x: float32[400]) {\n v1 = tanh(x) : float32[400]\n return v1\n}")
    (box,) = rectangles(viz.memory(plan(program, workspace=lambda record: 128)))
    assert box[2:4] == (1, 128 / 1024)
