"""Checks of 03_gradients/grad_of_grad."""

import numpy as np
from hypothesis import strategies as st

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="A Hessian times a vector, without the Hessian",
    level="medium",
    minutes=30,
    before=("02_autograd",),
    slots={"autograd.hessian_vector": "hessian_vector"},
    hints=(
        "The gradient of y is a list of tensors. Which single number made of them and of v has Hv "
        "as its gradient?",
        "Chapter 3, “Many variables”, does it for one tensor in two calls of paddle.grad. With "
        "several tensors the number is a sum of several parts.",
        "slopes = gradient of y with respect to xs, with create_graph and allow_unused\n"
        "number = sum of (slope * v).sum() for every slope that is not None\n"
        "products = gradient of number with respect to xs, with create_graph and allow_unused\n"
        "return zeros where a product is None",
    ),
    wrong={
        "the gradient instead of its gradient": (
            "[paddle.zeros_like(x) if p is None else p for x, p in zip(xs, products, "
            "strict=True)] → [paddle.zeros_like(x) if p is None else p for x, p in zip(xs, "
            "slopes, strict=True)]"
        ),
        "forgetting the vector": "slope * v → slope",
        "multiplying after the second gradient": (
            "slope * v → slope",
            (
                "return [paddle.zeros_like(x) if p is None else p for x, p in zip(xs, "
                "products, strict=True)] → products = [p and p * v for p, v in zip(products, "
                "vectors)]; return [paddle.zeros_like(x) if p is None else p for x, p in "
                "zip(xs, products, strict=True)]"
            ),
        ),
        "only the first tensor": "sum(along[1:], along[0]) → along[0]",
        "one tensor at a time: the blocks between two are lost": (
            (
                "number = sum(along[1:], along[0]) → own = [paddle.grad(a, [x], None, True, "
                "True)[0] for a, x in zip(along, xs)]"
            ),
            "paddle.grad(number, xs, create_graph=True, allow_unused=True) → own",
        ),
        "a product that cannot be differentiated again": (
            "paddle.grad(number, xs, create_graph=True, allow_unused=True) → "
            "paddle.grad(number, xs, allow_unused=True)"
        ),
        "a tape that is used up": (
            "paddle.grad(number, xs, create_graph=True, allow_unused=True) → "
            "paddle.grad(number, xs, retain_graph=False, create_graph=True, allow_unused=True)"
        ),
        "an unused tensor is an error": (
            "paddle.grad(y, xs, create_graph=True, allow_unused=True) → paddle.grad(y, xs, "
            "create_graph=True)"
        ),
        "None for what nothing leads to": (
            "[paddle.zeros_like(x) if p is None else p for x, p in zip(xs, products, "
            "strict=True)] → list(products)"
        ),
        "differentiating v too": (
            "[(slope * v).sum() for slope, v in zip(slopes, vectors, strict=True) if slope is "
            "not None] → [(slope * (v + x - x.detach())).sum() for slope, v, x in zip(slopes, "
            "vectors, xs, strict=True) if slope is not None]"
        ),
    },
    unkillable={
        "along = [(slope * v).sum() for slope, v in zip(slopes, vectors, strict=True) "
        "if slope is not None] → along = [(slope * v).sum() for slope, v in zip(slopes, vectors, "
        "strict=False) if slope is not None]": "the lists are as long as each other",
        "return [paddle.zeros_like(x) if p is None else p for x, p in zip(xs, products, "
        "strict=True)] → return [paddle.zeros_like(x) if p is None else p for x, p in zip(xs, "
        "products, strict=False)]": "the lists are as long as each other",
    },
)


def leaf(data):
    return paddle.to_tensor(data, dtype="float64", stop_gradient=False)


def product(yours, y, xs, vectors, given=None):
    """The reader's product as arrays; an error is something to disagree with."""
    try:
        found = yours.hessian_vector(y, xs, [paddle.to_tensor(v) for v in vectors])
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        first = str(error).split("\n")[0]
        expect_that(False, "a product, no error", given=given, got=first)
    expect(len(found), len(xs), given=given, why="how many tensors come back")
    return found


@exercise.example
def a_cube(yours):
    """y = x³: y'' = 6x = 18 at 3, times 5."""
    x = leaf(3.0)
    found = product(yours, x**3, [x], [np.array(5.0)])
    expect(found, [90.0], given={"y": "x³", "x": 3.0, "v": 5.0})


@exercise.example
def a_quadratic_form(yours):
    """y = ½ xᵀAx has the Hessian A, so the product is A v."""
    a = np.array([[2.0, -1.0, 0.5], [-1.0, 3.0, 0.0], [0.5, 0.0, 1.0]])
    x, v = leaf([1.0, -2.0, 3.0]), np.array([1.0, 0.0, 2.0])
    found = product(yours, 0.5 * (x * (paddle.to_tensor(a) @ x)).sum(), [x], [v])
    expect(found, [a @ v], given={"y": "½ xᵀAx", "A": a, "v": v})


@exercise.example
def two_tensors(yours):
    """y = Σ a·b²: what one part of v does to the *other* tensor belongs to the product too."""
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    va, vb = np.array([1.0, -1.0]), np.array([0.5, 2.0])
    found = product(yours, (a * b * b).sum(), [a, b], [va, vb])
    right = [2 * b.numpy() * vb, 2 * b.numpy() * va + 2 * a.numpy() * vb]
    expect(found, right, given={"y": "Σ a·b²", "a": a, "b": b, "v": [va, vb]})


@exercise.example
def nothing_leads_there(yours):
    """A tensor that y does not use, and one that y is a plain multiple of: zeros in their shape."""
    x, other = leaf([1.0, 2.0]), leaf([[1.0, 2.0, 3.0]])
    ones = [np.ones(2), np.ones((1, 3))]
    given = {"y": "Σ x²", "xs": "[x, other]"}
    found = product(yours, (x * x).sum(), [x, other], ones, given)
    expect(found, [[2.0, 2.0], [[0.0, 0.0, 0.0]]], given=given)
    found = product(yours, (x * x).sum(), [other, x], ones[::-1], given)
    expect(found, [[[0.0, 0.0, 0.0]], [2.0, 2.0]], given=given)
    given = {"y": "Σ x²", "xs": "[other]"}
    found = product(yours, (x * x).sum(), [other], ones[1:], given)
    expect(found, [[[0.0, 0.0, 0.0]]], given=given)
    given = {"y": "Σ 3x", "xs": "[x]"}
    expect(product(yours, (3 * x).sum(), [x], ones[:1], given), [[0.0, 0.0]], given=given)
    given = {"y": "Σ x² + Σ 3 other", "xs": "[x, other]"}
    y = (x * x).sum() + (3 * other).sum()
    found = product(yours, y, [x, other], ones, given)
    expect(found, [[2.0, 2.0], [[0.0, 0.0, 0.0]]], given=given)
    many = [leaf([float(k)]) for k in range(8)]
    found = product(yours, sum(x**3 for x in many), many, [np.ones(1)] * 8)
    expect(found, [[6.0 * k] for k in range(8)], given={"y": "Σ x³", "xs": "eight tensors"})
    given = {"y": "Σ x other", "xs": "[x]"}
    y = (x * x).sum() * other.sum()
    expect(product(yours, y, [x], ones[:1], given), [[12.0, 12.0]], given=given)


@exercise.example
def again_and_again(yours):
    """The same tape serves for a second product, and the product has a derivative: 8 e^2x."""
    x = leaf([1.0, -0.5])
    y, given = paddle.exp(2 * x).sum(), {"y": "Σ e^2x", "x": [1.0, -0.5]}
    exact = 4 * np.exp(2 * x.numpy())
    for v in ([1.0, 0.0], [0.0, 1.0]):
        found = product(yours, y, [x], [np.array(v)], given)
        expect(found, [exact * v], given=given | {"v": v})
    expect_that(not found[0].stop_gradient, "a product that can be differentiated", given=given)
    (third,) = paddle.grad(found[0].sum(), x)
    expect(third, 2 * exact * [0.0, 1.0], given=given, why="the derivative of the product")


@exercise.example
def leaves_no_gradient_behind(yours):
    """`.grad` belongs to the user: asking for a product must not touch it."""
    x = leaf([1.0, 2.0])
    product(yours, (x**3).sum(), [x], [np.ones(2)])
    expect(x.grad, None, given={"y": "Σ x³"}, why="x.grad after the product")


@exercise.property(n=st.integers(1, 4), m=st.integers(1, 3), seed=st.integers(0, 99))
def as_differences_of_gradients_say(yours, n, m, seed):
    """H v is how the gradient changes along v: (∇y(x + εv) - ∇y(x - εv)) / 2ε."""
    random = np.random.default_rng(seed)
    x, w = random.normal(size=n), random.normal(size=(m, n)) / 2
    vx, vw = random.normal(size=n), random.normal(size=(m, n))

    def program(x, w):
        return (paddle.tanh(w @ x) ** 2).sum() * paddle.exp(x).sum()

    def gradients(shift):
        xs = [leaf(x + shift * vx), leaf(w + shift * vw)]
        return [g.numpy() for g in paddle.grad(program(*xs), xs)]

    quotient = [(p - m) / 2e-5 for p, m in zip(gradients(1e-5), gradients(-1e-5), strict=True)]
    given = {"x": x, "w": w, "v": [vx, vw]}
    xs = [leaf(x), leaf(w)]
    found = product(yours, program(*xs), xs, [vx, vw], given)
    for got, right in zip(found, quotient, strict=True):
        expect(got, right, given=given, rtol=1e-5, atol=1e-7)


@exercise.example
def a_newton_step_through_the_engine(yours):
    """Logistic regression: paddle.autograd.hessian from your products, eight Newton steps."""
    random = np.random.default_rng(0)
    sign = np.repeat([1.0, -1.0], 30)
    inputs = np.c_[random.normal(size=(60, 3)) + sign[:, None], np.ones(60)]
    w = leaf(np.zeros(4))
    with exercise.plugged(yours):
        for _ in range(8):
            margin = paddle.to_tensor(sign) * (paddle.to_tensor(inputs) @ w)
            loss = F.softplus(-margin).mean() + 0.005 * (w * w).sum()
            (g,) = paddle.grad(loss, w, create_graph=True)
            hessian = paddle.autograd.hessian(loss, w)
            w = leaf((w - paddle.linalg.solve(hessian, g)).numpy())
    chance = 1 / (1 + np.exp(sign * (inputs @ w.numpy())))
    gradient = -(inputs * (sign * chance)[:, None]).mean(0) + 0.01 * w.numpy()
    size = float(np.abs(gradient).max())
    expect_that(size < 1e-10, "at the minimum after eight Newton steps: gradient 0", got=size)


@exercise.example
def two_gradients_will_do(yours):
    """The walk passes about as many records for 200 numbers as for 2: no loop over elements."""
    counts = {2: 0, 200: 0}

    def counting(g, out):
        counts[out.size] += 1
        return g * (1 - out * out)

    for n in counts:
        x = leaf(np.ones(n))
        with paddle.plugged("ops.tanh.vjp", counting):
            product(yours, paddle.tanh(x).sum(), [x], [np.ones(n)])
    given = {"numbers": list(counts)}
    expect(counts[200], counts[2], given=given, why="how often the rule of tanh is asked")


def of_cubes(yours, x, v):
    x = x.clone()
    x.stop_gradient = False
    return yours.hessian_vector((x**3).sum(), [x], [v])


exercise.holds(
    of_cubes,
    lambda x, v: [6 * x * v],
    [(3, 4), (3, 4)],
    large=[(40, 30), (40, 30)],
    empty=[(0, 3), (0, 3)],
    infinite=[np.inf],
    tensors=True,
)
