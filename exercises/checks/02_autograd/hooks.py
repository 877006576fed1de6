"""Checks of 02_autograd/hooks."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Hooks: your own functions, called as the gradient passes",
    level="easy",
    minutes=10,
    slots={"autograd.apply_hooks": "apply_hooks"},
    hints=(
        "Does the second hook see the gradient that arrived, or what the first made of it? "
        "And what if the first only printed something?",
        "It is called in `pull_back` (minipaddle/engine/core/grad.py), with `record.hooks`. A hook "
        "that returns nothing returns None.",
        "for each hook, in order:\n"
        "    answer = hook(g)\n"
        "    if it is not None, it is the g from now on\n"
        "return g",
    ),
    wrong={
        "taking None for an answer": "answer is not None → True",
        "ignoring what hooks return": "g = answer → pass",
        "newest hook first": "hooks → list(hooks)[::-1]",
        "stopping at the first hook that answers": "g = answer → g = answer; break",
        "taking a gradient of zeros for no answer": (
            "answer is not None → answer is not None and bool((answer != 0).any())"
        ),
        "adding the answer instead of replacing": "g = answer → g = g + answer",
        "calling the first hook only": "hooks → hooks[:1]",
    },
)


@exercise.mistake("showing every hook the gradient that arrived")
def apply_hooks(hooks, g):
    answers = [hook(g) for hook in hooks]
    return ([g] + [answer for answer in answers if answer is not None])[-1]


@exercise.example
def a_hook_that_looks(yours):
    """A hook that returns None was only looking."""
    seen, g = [], paddle.to_tensor([2.0, 3.0])
    got = yours.apply_hooks([lambda g: seen.append(g.tolist())], g)
    expect(got, [2.0, 3.0], given={"g": [2.0, 3.0], "hooks": "one that looks"})
    expect(seen, [[2.0, 3.0]], given={"g": [2.0, 3.0]}, why="what the hook saw")


@exercise.example
def a_hook_that_replaces(yours):
    """What a hook returns goes on, zeros too."""
    for g, factor in ((2.0, 10.0), (3.0, 0.0)):
        got = yours.apply_hooks([lambda g, k=factor: g * k], paddle.to_tensor([g]))
        expect(got, [g * factor], given={"g": [g], "hook": f"g times {factor}"})


@exercise.example
def several_in_their_order(yours):
    """A look, times ten, a look, plus one: 2 becomes 21, and the looks see 2 and 20."""
    seen = []

    def look(g):
        seen.append(g.item())

    hooks = [look, lambda g: g * 10, look, lambda g: g + 1]
    got = yours.apply_hooks(hooks, paddle.to_tensor(2.0))
    given = {"g": 2.0, "hooks": "a look, times ten, a look, plus one"}
    expect({"result": got, "seen": seen}, {"result": 21.0, "seen": [2.0, 20.0]}, given=given)


STEPS = {
    "look": (lambda g: None, lambda g: g),
    "double": (lambda g: g * 2, lambda g: g * 2),
    "minus 3": (lambda g: g - 3, lambda g: g - 3),
    "zero": (lambda g: g * 0, lambda g: g * 0),
}


@exercise.property(
    names=st.lists(st.sampled_from(sorted(STEPS)), max_size=5), start=st.integers(-3, 3)
)
def any_row_of_hooks(yours, names, start):
    """The engine calls them for a tensor in the middle of the tape; the result goes on."""
    expected = float(2 * start)
    seen, saw = [], []

    def listening(hook):
        def heard(g):
            seen.append(g.item())
            return hook(g)

        return heard

    with exercise.plugged(yours):
        x = paddle.to_tensor(1.0, stop_gradient=False)
        h = x * start
        for name in names:
            h.register_hook(listening(STEPS[name][0]))
        (h * h).backward()
    for name in names:
        saw.append(expected)
        expected = STEPS[name][1](expected)
    given = {"h": float(start), "y": "h · h", "hooks on h": names}
    expect(seen, saw, given=given, why="what the hooks saw, one after the other")
    expect(x.grad, expected * start, given=given, why="the gradient beyond the hooks")


@exercise.example
def once_and_with_the_whole_sum(yours):
    """A leaf used three times: its hook is called once, with the sum."""
    seen = []
    with exercise.plugged(yours):
        x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        handle = x.register_hook(lambda g: seen.append(g.tolist()))
        (x * 2 + x * x + x).sum().backward()
        handle.remove()
        x.clear_gradient(set_to_zero=False)
        (x * 5).sum().backward()
    expect(seen, [[5.0, 7.0]], given={"y": "2x + x² + x", "x": [1.0, 2.0]}, why="what the hook saw")
    expect(x.grad, [5.0, 5.0], given={"y": "5x, after the hook was removed"})


@exercise.example
def clipping_keeps_a_deep_network_in_hand(yours):
    """Weights of 3 make a gradient explode; a hook on every layer that clips it holds it."""
    with exercise.plugged(yours):
        x = paddle.to_tensor(np.ones((1, 4)), dtype="float64", stop_gradient=False)
        h = x
        for _ in range(12):
            h = h * 3.0
            h.register_hook(lambda g: g.clip(-1.0, 1.0))
        h.sum().backward()
    expect(x.grad, np.full((1, 4), 3.0), given={"y": "x times 3, twelve times, clipped at each"})


@exercise.example
def a_frozen_half_learns_nothing(yours):
    """A hook that returns zeros for some rows of a weight keeps these rows as they were."""
    with exercise.plugged(yours):
        paddle.seed(0)
        layer, mask = nn.Linear(4, 1), paddle.to_tensor([[1.0], [1.0], [0.0], [0.0]])
        before = layer.weight.numpy()
        layer.weight.register_hook(lambda g: g * mask)
        sgd = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
        x = paddle.randn([16, 4])
        for _ in range(40):
            F.mse_loss(layer(x), x.sum(-1, keepdim=True)).backward()
            sgd.step()
            sgd.clear_grad()
    now = layer.weight.numpy()
    expect(now[2:], before[2:], given="a hook that sets the last two rows to zero")
    expect_that(abs(now[:2] - 1).max() < 0.5, "the other rows near 1, their best", got=now[:2])


@exercise.example
def ten_hooks(yours):
    """All of them, however many: 1, 3, 7, 15 and so on."""
    got = yours.apply_hooks([lambda g: g * 2 + 1] * 10, paddle.to_tensor(0.0))
    expect(got, 1023.0, given={"g": 0.0, "hooks": "2 g + 1, ten times"})


exercise.holds(
    lambda yours, g: yours.apply_hooks([lambda g: None, lambda g: g * 2], g),
    lambda g: g * 2,
    [(3, 4)],
    large=[(40, 30)],
    empty=[(0, 3)],
    infinite=[np.inf],
    tensors=True,
)
