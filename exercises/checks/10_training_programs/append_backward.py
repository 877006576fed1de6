"""Checks of 10_training_programs/append_backward."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.engine.core.dispatch import current
from minipaddle.engine.core.record import FREED, Spec
from minipaddle.engine.eager.tracer import trace
from minipaddle.engine.ir.interpreter import Run
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="Append the backward: the walk back, over a tape or into a program",
    level="hard",
    minutes=60,
    before=("02_autograd/walk", "06_programs"),
    slots={"autograd.pull_back": "append_backward"},
    hints=(
        "Which records must you have passed before you may hand on a cotangent? And which records "
        "need not be passed at all, though something has arrived there?",
        "`history` puts inputs before uses: from its end you meet every use first. From its "
        "beginning you can tell which records lead on, because then the inputs are decided first.",
        "arrived = the seeds, added up; order = history(arrived); leaves if nothing is wanted\n"
        "leading = wanted; from the oldest on: add what takes a leading one; take away the "
        "blocked\n"
        "from the newest on, if it is leading and something has arrived:\n"
        "    passing = record; g = arrived, through the hooks; found[record] = g if it is wanted\n"
        "    accumulate each of its input_cotangents; let go, if asked\n"
        "finally: passing is what it was",
    ),
    wrong={
        "forgetting to add up": "grad.accumulate(arrived, edge, gx) → arrived[edge] = gx",
        "a seed that comes twice counted once": (
            "grad.accumulate(arrived, record, g) → arrived[record] = g"
        ),
        "oldest first": "reversed(order) → order",
        "records for what nobody wants": "leading -= blocked → leading = set(order) - blocked",
        "only direct users of a wanted record lead on": (
            "leading.isdisjoint(record.inputs) → wanted & set(record.inputs)"
        ),
        "stopping at what is wanted": (
            "if record.inputs: → if record.inputs and record not in wanted:"
        ),
        "passing what is blocked": "leading -= blocked → pass",
        "blocked before it is known what leads on": (
            "set(wanted) → set(wanted) - blocked",
            "leading -= blocked → pass",
        ),
        "hooks forgotten": (
            "grad.apply_hooks(record.hooks or (), arrived.pop(record)) → arrived.pop(record)"
        ),
        "hooks after the result is noted": (
            (
                "g = grad.apply_hooks(record.hooks or (), arrived.pop(record)) → first = "
                "arrived[record]; g = grad.apply_hooks(record.hooks or (), "
                "arrived.pop(record))"
            ),
            "found[record] = g → found[record] = first",
        ),
        "letting go of everything, asked or not": "release → True",
        "never letting go": "if release: → pass",
        "the layer of the record forgotten": "top.passing = record → pass",
        "leaves only": "wanted is None → True",
        "not putting back what was passed": "top.passing = before → before = top.passing",
    },
)

F32 = np.dtype("float32")


def written(yours, function, *shapes):
    """The program of a function of tensors that want a gradient, which gives a list."""

    def taped(*xs):
        for x in xs:
            x.stop_gradient = False
        return function(*xs)

    with exercise.plugged(yours):
        return trace(taped, [Spec(shape, F32) for shape in shapes], names=("x", "y", "z")).program


def ops(program):
    return [r.op.name for r in program.records]


def run(program, *numbers):
    return [a.tolist() for a in Run(np)(program, [np.array(x, F32) for x in numbers])]


@exercise.example
def appended_to_a_program(yours):
    """y = tanh(x) * x in a program, and dy/dx after it."""

    def function(x):
        y = x.tanh() * x
        return [y, *paddle.grad(y, x)]

    program = written(yours, function, ())
    x, t = 0.5, np.tanh(0.5)
    expect(run(program, x), [t * x, t + x * (1 - t * t)], rtol=1e-5, given=str(program))
    expect(ops(program)[:2], ["tanh", "multiply"], given=str(program), why="the forward is first")
    outputs = [program.records.index(r) for r in program.outputs]
    expect_that(outputs[1] > outputs[0], "the gradient stands after y", given=str(program))


@exercise.example
def a_value_used_twice(yours):
    """u = exp(x); y = u * u + u: the record of u is passed once, when all has arrived."""

    def function(x):
        u = x.exp()
        return paddle.grad(u * u + u, x)

    program = written(yours, function, ())
    u = np.exp(0.3)
    expect(run(program, 0.3), [2 * u * u + u], rtol=1e-5, given=str(program))


@exercise.example
def for_those_who_want_it(yours):
    """y = exp(x) * tanh(z): with z wanted, no record is written for the path to x."""

    def function(x, z):
        return paddle.grad(x.exp() * z.tanh(), z)

    program = written(yours, function, (), ())
    e, t = np.exp(0.5), np.tanh(0.3)
    expect(run(program, 0.5, 0.3), [e * (1 - t * t)], rtol=1e-5, given=str(program))
    expect_that(len(program.records) <= 8, "no record that leads to x alone", given=str(program))


@exercise.example
def within_a_chain(yours):
    """Both ends and the middle of x → u = exp(x) → v = sin(u) → y = v * v are wanted."""

    def function(x):
        u = x.exp()
        v = u.sin()
        return paddle.grad(v * v, [v, u, x])

    program = written(yours, function, ())
    u = np.exp(0.3)
    expected = [2 * np.sin(u), 2 * np.sin(u) * np.cos(u), 2 * np.sin(u) * np.cos(u) * u]
    expect(run(program, 0.3), expected, rtol=1e-5, given=str(program))


@exercise.example
def blocked_ways(yours):
    """y = u * x with u = exp(x): with u blocked, x gets what comes on the other path alone."""

    def function(x):
        u = x.exp()
        return paddle.grad(u * x, x, no_grad_vars=[u])

    expect(run(written(yours, function, ()), 0.5), [np.exp(0.5)], rtol=1e-5, given="x = 0.5")

    def both(x):
        u = x.exp()
        return paddle.grad(u * x, [x, u], no_grad_vars=[u], allow_unused=True)[:1]

    expect(run(written(yours, both, ()), 0.5), [np.exp(0.5)], rtol=1e-5, given="u wanted, blocked")


@exercise.example
def nothing_to_find(yours):
    """A wanted record that the results do not depend on is not in the dict."""
    with exercise.plugged(yours):
        x, z = (paddle.to_tensor(v, stop_gradient=False) for v in (1.0, 2.0))
        expect(paddle.grad(x * x, [x, z * 1], allow_unused=True), [np.float32(2), None],
               given="x * x, by x and by another")  # fmt: skip
        u = x.exp()
        found = paddle.grad(u * 2, [x], no_grad_vars=[u], allow_unused=True)
        expect(found, [None], given="2u by x, u = exp(x) blocked: no way to x")


@exercise.example
def hooks_see_it_first(yours):
    """A hook doubles the cotangent of u: what is found and what goes on is doubled."""
    with exercise.plugged(yours):
        x = paddle.to_tensor(0.5, stop_gradient=False)
        u = x.exp()
        u.register_hook(lambda g: g * 2)
        x.register_hook(lambda g: g + 1)
        e = np.exp(0.5)
        expect(paddle.grad(u * u, [u, x]), [4 * e, 4 * e * e + 1], rtol=1e-5, given="x = 0.5")


@exercise.example
def several_results(yours):
    """backward([y, y, u]): a seed may come twice; leaves get their `.grad`, others do not."""
    with exercise.plugged(yours):
        x = paddle.to_tensor(0.5, stop_gradient=False)
        u = x * 3
        y = u * u
        paddle.autograd.backward([y, y, u])
        expect(x.grad, np.float32(2 * 18 * 0.5 + 3), given="y = (3x)², y, and 3x, at x = 0.5")


@exercise.example
def cotangents_of_all_kinds(yours):
    """y = 3x: a large cotangent, an empty one, an infinite one; and y as a seed eight times."""
    for g in (np.linspace(-1, 1, 200), np.zeros((0, 2)), np.array([np.inf, 1.0])):
        with exercise.plugged(yours):
            x = paddle.to_tensor(np.ones(g.shape), stop_gradient=False)
            found = paddle.grad(x * 3, x, grad_outputs=paddle.to_tensor(g))
        expect(found, [3 * g], given={"the cotangent of 3x": g})
    with exercise.plugged(yours):
        x = paddle.to_tensor(0.5, stop_gradient=False)
        paddle.autograd.backward([x * 3] * 8)
    expect(x.grad, np.float32(24), given="backward([3x] * 8)")


@exercise.example
def letting_go(yours):
    """backward() lets go of what was kept; with retain_graph it does not."""
    with exercise.plugged(yours):
        x = paddle.to_tensor(0.5, stop_gradient=False)
        u = x.exp()
        y = u * u
        records = u.record, y.record
        y.backward(retain_graph=True)
        kept = [r.saved is FREED for r in records]
        expect(kept, [False, False], given="retain_graph=True")
        y.backward()
        expect([r.saved is FREED for r in records], [True, True], given="backward()")
        expect(x.grad, np.float32(2 * 2 * np.exp(1.0)), rtol=1e-5, given="two walks")
        expect_that(x.record.saved is not FREED, "a leaf keeps nothing, and lets go of nothing")


@exercise.example
def the_layer_that_is_passed(yours):
    """Records of the backward bear the layer whose record is passed."""
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))

    def function(x):
        return paddle.grad(net(x).sum(), [net[0].weight, net[2].weight])

    program = written(yours, function, (4, 2))
    cut = max(k for k, r in enumerate(program.records) if r.op.name == "affine")
    names = {r.scope[1] for r in program.records[cut + 1 :] if r.scope is not None}
    expect_that({net[0], net[1], net[2]} & names == {net[0], net[1], net[2]},
                "records of the backward for each of the three layers", given=str(program),
                got=[type(x).__name__ for x in names])  # fmt: skip


@exercise.example
def what_was_passed_before(yours):
    """A walk within a walk, a walk that fails: `passing` is what it was before."""
    seen = []

    def hook(g):
        inner = paddle.to_tensor(1.0, stop_gradient=False)
        before = current.top.passing
        with paddle.enable_grad():
            paddle.grad(inner * 2, inner)
        seen.append((current.top.passing is before, before is u.record))

    with exercise.plugged(yours):
        x = paddle.to_tensor(1.0, stop_gradient=False)
        u = x.exp()
        u.register_hook(hook)
        u.sin().backward()
        expect(seen, [(True, True)], given="a hook of u walks back itself")
        expect_that(current.top.passing is None, "None after the walk", got=current.top.passing)
        u = x.exp()
        u.register_hook(lambda g: 1 / 0)
        try:
            u.backward()
        except ZeroDivisionError:
            seen.append("raised")
        expect(seen[-1], "raised", given="a hook that raises")
        expect_that(current.top.passing is None, "None after an error", got=current.top.passing)


@exercise.property(
    rows=st.lists(
        st.tuples(st.sampled_from("+*se"), st.integers(0, 9), st.integers(0, 9)),
        min_size=1,
        max_size=5,
    ),
    examples=12,
)
def as_central_differences_say(yours, rows):
    """Chains of sums, products, sines and exponentials of two inputs."""

    def formula(x, y):
        values = [x, y]
        for sign, a, b in rows:
            a, b = values[a % len(values)], values[b % len(values)]
            if sign in "+*":
                values.append(a + b if sign == "+" else a * b * 0.5)
            else:
                values.append(a.sin() if sign == "s" else (a * 0.1).exp())
        return (values[-1] + values[0] * values[1]).sum()

    with exercise.plugged(yours):
        expect_gradients(formula, [np.array([0.5, -1.0]), np.array([1.5, 0.3])], order=2,
                         given={"rows": rows})  # fmt: skip


@exercise.example
def a_network_learns_with_it(yours):
    """Eagerly; with a backward program; and as one captured step."""
    for way in ("eager", "forward and backward", "one step"):
        with exercise.plugged(yours):
            paddle.seed(0)
            net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
            adam = paddle.optimizer.Adam(learning_rate=0.05, parameters=net.parameters())
            x = paddle.randn([64, 2])
            y = x[:, :1] * x[:, 1:]
            forward = paddle.jit.to_static(net.forward) if way[0] == "f" else net

            def step(x, y, forward=forward, adam=adam):
                loss = F.mse_loss(forward(x), y)
                loss.backward()
                adam.step()
                adam.clear_grad()
                return loss

            step = paddle.jit.to_static(step) if way[0] == "o" else step
            losses = [step(x, y).item() for _ in range(30)]
        expect_that(losses[-1] < 0.4 * losses[0], "a smaller loss after 30 steps", given=way,
                    got=losses[::10])  # fmt: skip
