"""Checks of 03_gradients/pylayer."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.autograd import PyLayer
from minipaddle.learn import Exercise, expect, expect_gradients, expect_that

exercise = Exercise(
    title="A rule of the user's own gets on the tape",
    level="hard",
    minutes=50,
    before=("02_autograd/operator",),
    slots={"pylayer.apply": "apply", "pylayer.gradients": "gradients"},
    hints=(
        "What would the tape hold if forward ran like any other code, and which rule would "
        "backward use then?",
        "Chapter 3, “How it gets on the tape”, shows both functions of the engine; the task lists "
        "the four things apply does in their order.",
        "context, then the tensors among the arguments\n"
        "inside no_grad: results = layer.forward(context, the arguments)\n"
        "nobody wants a gradient, or no tape: return results; else return put_on_tape(...)\n"
        "gradients: call backward; one gradient becomes a tuple of one; wrong number: ValueError",
    ),
    wrong={
        "leaving forward on the tape": (
            "with paddle.no_grad(): → if True: results = layer.forward(ctx, *args, **kwargs)",
            "put_on_tape(layer, ctx, inputs, results) → results",
        ),
        "forward on the tape, and a record besides": (
            "with paddle.no_grad(): → if True: results = layer.forward(ctx, *args, **kwargs)"
        ),
        "one context for all applications": (
            "ctx = PyLayerContext() → ctx = layer.ctx = getattr(layer, 'ctx', None) or "
            "PyLayerContext()"
        ),
        "counting every argument as an input": "tensors_in(args, kwargs) → list(args)",
        "forgetting keyword arguments": "tensors_in(args, kwargs) → tensors_in(args, {})",
        "a record though nobody wants a gradient": (
            "any((not x.stop_gradient for x in inputs)) → True or any((not x.stop_gradient for "
            "x in inputs))"
        ),
        "a record inside no_grad": "wanted and paddle.is_grad_enabled() → wanted",
        "every input must want a gradient": "any → all",
        "returning the results off the tape": (
            "return put_on_tape(layer, ctx, inputs, results) → "
            "put_on_tape(layer, ctx, inputs, results)"
        ),
        "one gradient not made a tuple": "found = [found] → return found",
        "not counting the gradients": "len(found) != count or not usable → not usable",
        "letting numbers pass as gradients": (
            "len(found) != count or not usable → len(found) != count"
        ),
        "refusing None": "g is None or isinstance(g, paddle.Tensor) → isinstance(g, paddle.Tensor)",
        "gradients in one list": "layer.backward(ctx, *grads) → layer.backward(ctx, grads)",
    },
)


def leaf(data):
    return paddle.to_tensor(data, dtype="float64", stop_gradient=False)


def shown(got) -> str:
    return f"a {type(got).__name__} of {len(got)}" if isinstance(got, tuple) else repr(got)


class Tenfold(PyLayer):
    """The identity with ten times the gradient: a rule that nobody could derive."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        Tenfold.calls += 1
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g * 10


class Power(PyLayer):
    """x to the power n, with a number among the arguments and a tensor as a keyword."""

    @staticmethod
    def forward(ctx, x, n, *, scale):
        ctx.save_for_backward(x, scale)
        ctx.n = n
        return x**n * scale

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensor()
        return g * ctx.n * x ** (ctx.n - 1) * scale, g * x**ctx.n


class Turn(PyLayer):
    """Two numbers turned by an angle: two results."""

    @staticmethod
    def forward(ctx, x, y):
        return x - 2 * y, 2 * x + y

    @staticmethod
    def backward(ctx, ga, gb):
        return ga + 2 * gb, gb - 2 * ga


def result_of(yours, run):
    """What `run` gives while the engine runs on the reader's functions, or the error as text."""
    with exercise.plugged(yours):
        try:
            return run()
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
            return f"{type(error).__name__}: {error}".split("\n")[0]


def answered(yours, layer, grads, count):
    """What `gradients` returns, or what it raises as text."""
    try:
        return yours.gradients(layer, None, grads, count)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


@exercise.example
def a_gradient_becomes_a_tuple(yours):
    """A backward for one tensor may return the gradient itself."""
    g = paddle.to_tensor([1.0, 2.0])
    found = answered(yours, Tenfold, [g], 1)
    expect_that(type(found) is tuple, "a tuple", given={"grads": [g], "count": 1}, got=found)
    expect(found, ([10.0, 20.0],), given={"layer": "Tenfold", "grads": [g], "count": 1})
    nine = type("Nine", (PyLayer,), {"backward": staticmethod(lambda ctx, *gs: gs[::-1])})
    found = answered(yours, nine, [paddle.to_tensor(float(k)) for k in range(9)], 9)
    expect(found, tuple(map(float, range(8, -1, -1))), given={"layer": "turns nine round"})
    found = answered(yours, Turn, [g, g], 2)
    expect(found, ([3.0, 6.0], [-1.0, -2.0]), given={"layer": "Turn", "grads": [g, g], "count": 2})


@exercise.example
def the_rule_is_used(yours):
    """Tenfold is the identity; only its own backward says 10."""
    x = leaf([1.0, 2.0])

    def run():
        y = Tenfold.apply(x)
        y.sum().backward()
        return {"value": y.numpy(), "gradient": x.grad.numpy()}

    Tenfold.calls = 0
    found = result_of(yours, run)
    expect(found, {"value": [1.0, 2.0], "gradient": [10.0, 10.0]}, given={"x": [1.0, 2.0]})
    expect(Tenfold.calls, 1, why="how often forward ran")


@exercise.example
def forward_leaves_nothing_on_the_tape(yours):
    """The record of y comes straight from x: nothing of what forward did lies between."""
    x, seen = leaf([1.0]), []

    class Looks(Tenfold):
        @staticmethod
        def forward(ctx, x):
            y = x * 1
            seen.append(y.stop_gradient and not paddle.is_grad_enabled())
            return y

    y = result_of(yours, lambda: Looks.apply(x))
    past = getattr(y, "record", None)
    expect_that(past is not None, "a result that a record made", given={"x": x}, got=y)
    expect(seen, [True], given={"x": x}, why="forward ran off the tape")
    whole = past.inputs[0]
    expect(whole.op.name, "Looks", given={"x": x}, why="which record made the result")
    expect_that(whole.inputs[0] is x.record, "the record's input is x itself", given={"x": x})


@exercise.example
def each_application_has_its_own_context(yours):
    """Power is applied twice before any backward: each must find what *it* saved."""
    x, s = leaf(3.0), leaf(1.0)

    def run():
        y = Power.apply(x, 2, scale=s) + Power.apply(x, 3, scale=s)
        return [g.item() for g in paddle.grad(y, [x, s])]

    expect(result_of(yours, run), [6.0 + 27.0, 9.0 + 27.0], given={"y": "x² + x³", "x": 3.0})


@exercise.example
def only_tensors_count(yours):
    """n is a number and gets no gradient; a tensor given by name does; a constant gets None."""

    def run():
        x, constant = leaf(2.0), paddle.to_tensor(5.0, dtype="float64")
        (dx,) = paddle.grad(Power.apply(x, 3, scale=constant), x)
        s = leaf(5.0)
        (ds,) = paddle.grad(Power.apply(constant, 3, scale=s), s)
        return [dx.item(), ds.item()]

    expect(result_of(yours, run), [60.0, 125.0], given={"f": "scale · x³"})


class Half(PyLayer):
    """x + c, with no gradient for c."""

    @staticmethod
    def forward(ctx, x, c):
        return x + c

    @staticmethod
    def backward(ctx, g):
        return g, None


class Weighed(PyLayer):
    """x₀ + 2 x₁ + 3 x₂ + …, of as many tensors as there are."""

    @staticmethod
    def forward(ctx, *xs):
        ctx.count = len(xs)
        return sum(k * x for k, x in enumerate(xs, 1))

    @staticmethod
    def backward(ctx, g):
        return [k * g for k in range(1, ctx.count + 1)]


@exercise.example
def any_number_of_tensors(yours):
    """Ten tensors go in, and ten gradients come out."""
    xs = [leaf([float(k)]) for k in range(10)]

    def run():
        y = Weighed.apply(*xs)
        return [y.item(), *(g.item() for g in paddle.grad(y, xs))]

    expect(result_of(yours, run), [330.0, *range(1, 11)], given={"y": "x₀ + 2 x₁ + … + 10 x₉"})


@exercise.example
def none_is_no_gradient(yours):
    """None among the gradients: that input gets none."""
    x, c = leaf([1.0]), leaf([2.0])

    def run():
        Half.apply(x, c).sum().backward()
        return {"x": x.grad.tolist(), "c": c.grad}

    expect(result_of(yours, run), {"x": [1.0], "c": None}, given={"backward returns": "(g, None)"})


@exercise.example
def wrong_gradients_are_refused_by_name(yours):
    """As many gradients as tensors went in, each a tensor or None; else a ValueError."""
    g = paddle.to_tensor([1.0])

    class Wrong(PyLayer):
        @staticmethod
        def backward(ctx, g):
            return answer

    cases = [((g, g), 1), (g, 2), ((g,), 2), ([None], 0), ((), 1), (1.0, 1), ((g, "text"), 2)]
    for answer, count in cases:
        given = {"backward returned": answer, "count": count}
        try:
            got = yours.gradients(Wrong, None, [g], count)
        except ValueError as error:
            expect_that(
                "Wrong" in str(error), "the layer's name in the text", given=given, got=error
            )
        else:
            expect_that(False, f"a ValueError, not {shown(got)}", given=given, got=got)
    for answer, count in [((g, None), 2), ([None, g, g], 3), (None, 1), ([], 0), ([g] * 9, 9)]:
        got = yours.gradients(Wrong, None, [g], count)
        expect(len(got), count, given={"backward returned": answer, "count": count})
        expect_that(type(got) is tuple, "a tuple", given={"backward returned": answer}, got=got)


@exercise.example
def nothing_on_the_tape_when_nobody_asks(yours):
    """No input wants a gradient, or no tape is kept: the results as forward made them."""
    made = []

    class Keeps(Tenfold):
        @staticmethod
        def forward(ctx, x):
            made.append(x * 1)
            return made[-1]

    def off_the_tape():
        with paddle.no_grad():
            return Keeps.apply(leaf([1.0]))

    for what, run in [
        ("a constant", lambda: Keeps.apply(paddle.ones([1]))),
        ("inside no_grad", off_the_tape),
    ]:
        y = result_of(yours, run)
        expect_that(y is made[-1], f"{what}: the tensor that forward returned", got=y)
        expect_that(y.stop_gradient, f"{what}: a result that wants no gradient", got=y)


@exercise.property(x=st.lists(st.integers(-8, 8), min_size=1, max_size=4), n=st.integers(2, 4))
def as_finite_differences_say(yours, x, n):
    """Two layers, two results, a number among the arguments: first and second derivatives."""

    def program(x, y):
        a, b = Turn.apply(x, y)
        return a * Power.apply(b, n, scale=x)

    data = [np.array(x) / 4, np.cos(x)]
    with exercise.plugged(yours):
        expect_gradients(program, data, order=2, given={"x": data[0], "y": data[1], "n": n})


class Sign(PyLayer):
    """A hidden unit of one bit, with the straight-through gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return paddle.sign(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return paddle.where(x.abs() <= 1, g, g * 0)


@exercise.example
def a_network_of_bits_learns(yours):
    """32 units that say only -1 or 1 learn where a ring is, through your apply."""
    random = np.random.default_rng(0)
    points = random.uniform(-1, 1, size=(200, 2)).astype("float32")
    inside = ((points**2).sum(1) < 0.5).astype("int64")
    x, labels = paddle.to_tensor(points), paddle.to_tensor(inside)
    paddle.seed(0)
    into, out = paddle.nn.Linear(2, 32), paddle.nn.Linear(32, 2)
    adam = paddle.optimizer.Adam(0.05, parameters=[*into.parameters(), *out.parameters()])
    before = into.weight.numpy()
    with exercise.plugged(yours):
        for _ in range(150):
            loss = F.cross_entropy(out(Sign.apply(into(x))), labels)
            loss.backward()
            adam.step()
            adam.clear_grad()
    moved = float(np.abs(into.weight.numpy() - before).max())
    expect_that(
        moved > 0.1, "the layer before the bits has learned", got=f"it moved by {moved:.3f}"
    )
    expect_that(loss.item() < 0.5, "a loss under 0.5", got=loss.item())


OPTIONS = {"large": [(40, 30)], "empty": [(0, 3)], "infinite": [np.inf], "tensors": True}
exercise.holds(
    lambda yours, x: yours.apply(Power, (x, 3), {"scale": x}), lambda x: x**4, [(3, 4)], **OPTIONS
)
exercise.holds(
    lambda yours, g: yours.gradients(Tenfold, None, [g], 1), lambda g: [10 * g], [(3, 4)], **OPTIONS
)
