"""Checks of 23_smaller_networks/distillation."""

import numpy as np

import minipaddle as paddle
from minipaddle import nn, slim
from minipaddle.learn import Exercise, expect, expect_that

exercise = Exercise(
    title="Distillation: what a teacher says, and where it looks",
    level="medium",
    minutes=20,
    slots={
        "slim.soft_label": "soft_label",
        "slim.attention_transfer": "attention_transfer",
    },
    hints=(
        "The teacher is sure: its scores are [1000, 0]. What is the logarithm of a softmax of the "
        "student's scores [0, 1000], computed in two steps?",
        "`detach()` makes a constant of the teacher. `F.log_softmax(x, axis=-1)` is the "
        "logarithm in "
        "one step. `mean(1)` over channels of the squares, `flatten(1)`, `F.normalize(x, axis=1)`.",
        "soft_label: p = softmax(t / T), log q = log_softmax(s / T'); minus the mean of Σ p log q\n"
        "attention_transfer: both maps; the mean of the squares of their difference",
    ),
    wrong={
        "the teacher learns": "soft_label(): teacher.detach() → teacher",
        "the teacher's features learn": "attention_transfer(): teacher.detach() → teacher",
        "the sign forgotten": "-(p * log_q).sum(-1).mean() → (p * log_q).sum(-1).mean()",
        "the sum over the batch": "-(p * log_q).sum(-1).mean() → -(p * log_q).sum()",
        "the mean over the classes too": "(p * log_q).sum(-1).mean() → (p * log_q).mean()",
        "one temperature for both": "student / student_temperature → student / teacher_temperature",
        "the teacher's temperature forgotten": (
            "teacher.detach() / teacher_temperature → teacher.detach()"
        ),
        "multiplied by the temperature": (
            "student / student_temperature → student * student_temperature"
        ),
        "times the squared temperature": (
            "-(p * log_q).sum(-1).mean() → "
            "-(p * log_q).sum(-1).mean() * student_temperature * teacher_temperature"
        ),
        "a logarithm of zero": (
            "F.log_softmax(student / student_temperature, axis=-1) → "
            "F.softmax(student / student_temperature, axis=-1).log()"
        ),
        "over the batch": (
            "F.log_softmax(student / student_temperature, axis=-1) → "
            "F.log_softmax(student / student_temperature, axis=0)"
        ),
        "the divergence, without the teacher's entropy": (
            "-(p * log_q).sum(-1).mean() → (p * (p.log() - log_q)).sum(-1).mean()"
        ),
        "teacher and student exchanged": (
            "p = F.softmax(teacher.detach() / teacher_temperature, axis=-1) → "
            "p = F.softmax(student / student_temperature, axis=-1)",
            "log_q = F.log_softmax(student / student_temperature, axis=-1) → "
            "log_q = F.log_softmax(teacher.detach() / teacher_temperature, axis=-1)",
        ),
        "how much, not only where": (
            "F.normalize(x.square().mean(1).flatten(1), axis=1) → x.square().mean(1).flatten(1)"
        ),
        "features without squares": "x.square().mean(1) → x.mean(1)",
        "normalized over the batch": (
            "F.normalize(x.square().mean(1).flatten(1), axis=1) → "
            "F.normalize(x.square().mean(1).flatten(1), axis=0)"
        ),
        "the distance, not squared": (
            "(_map_of(student) - _map_of(teacher.detach())).square().mean() → "
            "(_map_of(student) - _map_of(teacher.detach())).abs().mean()"
        ),
    },
    unkillable={
        "return -(p * log_q).sum(-1).mean() → return -(p * log_q).sum(+1).mean()": (
            "scores have two axes"
        ),
        "log_q = F.log_softmax(student / student_temperature, axis=-1) → "
        "log_q = F.log_softmax(student / student_temperature, axis=+1)": "scores have two axes",
        "p = F.softmax(teacher.detach() / teacher_temperature, axis=-1) → "
        "p = F.softmax(teacher.detach() / teacher_temperature, axis=+1)": "scores have two axes",
        "soft_label: right only for arrays that are not empty": "an empty batch has no mean",
        "attention_transfer: right only for arrays that are not empty": "no batch has no mean",
        "attention_transfer: right only for finite numbers": "a map of infinities has no length",
    },
)


def cross(t, s, tt, st):
    """The oracle, in NumPy."""
    lp, lq = (
        x / h - np.logaddexp.reduce(x / h, axis=-1, keepdims=True) for x, h in ((t, tt), (s, st))
    )
    return np.array(-(np.exp(lp) * lq).sum(-1).mean())


def maps(x):
    flat = (x**2).mean(1).reshape(len(x), -1)
    return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-12)


def transfer(t, s):
    return np.array(((maps(t) - maps(s)) ** 2).mean())


exercise.holds(
    lambda yours, t, s: yours.soft_label(t, s, 2.0, 3.0),
    lambda t, s: cross(t, s, 2.0, 3.0),
    [(4, 5), (4, 5)],
    large=[(30, 20), (30, 20)],
    tensors=True,
)


@exercise.example
def the_example(yours):
    """Equal scores; temperatures of 1 if none are given; scores whose softmax is 0."""
    t = paddle.to_tensor([[2.0, 0.0]])
    expect(yours.soft_label(t, t, 2.0, 2.0).item(), 0.5822, given="[[2, 0]], twice", atol=1e-4)
    expect(yours.soft_label(t, t).item(), 0.3653, given="temperatures of 1", atol=1e-4)
    sure, wrong = paddle.to_tensor([[1000.0, 0.0]]), paddle.to_tensor([[0.0, 1000.0]])
    expect(yours.soft_label(sure, wrong).item(), 1000.0, given="[[1000, 0]] and [[0, 1000]]")
    expect(yours.soft_label(sure, sure).item(), 0.0, given="[[1000, 0]], twice", atol=1e-6)
    never = paddle.to_tensor([[-np.inf, 0.0]])
    got = yours.soft_label(never, paddle.zeros([1, 2])).item()
    expect(got, 0.6931, given="[[-inf, 0]] and [[0, 0]]", atol=1e-4)


exercise.holds(
    lambda yours, t, s: yours.attention_transfer(t + 0.5, s),
    lambda t, s: transfer(t + 0.5, s),
    [(2, 3, 2, 4), (2, 5, 2, 4)],
    large=[(6, 3, 4, 5), (6, 2, 4, 5)],
    tensors=True,
)


@exercise.example
def only_where(yours):
    """Features three times as large are the same map; features of zeros are a map of zeros."""
    x = paddle.arange(8.0).reshape([1, 2, 2, 2])
    expect(yours.attention_transfer(x, 3 * x).item(), 0.0, given="x and 3 x", atol=1e-10)
    zero = paddle.zeros([1, 1, 2, 2])
    expect(yours.attention_transfer(x, zero).item(), 0.25, given="x and zeros")


@exercise.example
def who_learns(yours):
    """Gradients reach the student alone, and may be differentiated again."""
    rng = np.random.default_rng(0)
    for name, shape, oracle in (
        ("soft_label", (3, 4), lambda t, s: cross(t, s, 1.0, 1.0)),
        ("attention_transfer", (2, 2, 2, 2), transfer),
    ):
        t, s = (paddle.to_tensor(rng.normal(size=shape), stop_gradient=False) for _ in "ts")
        loss = getattr(yours, name)(t, s)
        expect(loss.shape, [], given=name, why="the shape of a loss")
        (g,) = paddle.grad(loss, [s], create_graph=True)
        step = 1e-5 * rng.normal(size=shape)
        wanted = oracle(t.numpy(), s.numpy() + step) - oracle(t.numpy(), s.numpy() - step)
        got = 2 * (g.numpy() * step).sum()
        expect(got, float(wanted), given={"gradient of": name}, rtol=1e-4, atol=0)
        (gg,) = paddle.grad(g.square().sum(), [s])
        expect_that(float(gg.abs().sum()) > 1e-6, "no second derivative", given=name, got=gg)
        getattr(yours, name)(t, s).backward()
        taught = t.grad is None or not t.grad.numpy().any()
        expect_that(taught, "a gradient reached the teacher", given=name, got=t.grad)


@exercise.example
def a_student_learns(yours):
    """In the engine: a captured step teaches a layer the scores of another one."""
    paddle.seed(0)
    teacher, student = nn.Linear(4, 3), nn.Linear(4, 3)
    sgd = paddle.optimizer.SGD(2.0, parameters=student.parameters())

    @paddle.jit.to_static
    def step(x):
        slim.dist.soft_label(teacher(x), student(x), 2.0, 2.0).backward()
        sgd.step()
        sgd.clear_grad()

    before = teacher.weight.numpy()
    with exercise.plugged(yours):
        for _ in range(150):
            step(paddle.randn([32, 4]))
    x = paddle.randn([50, 4])
    agree = (teacher(x).argmax(1) == student(x).argmax(1)).numpy().mean()
    expect_that(agree > 0.9, "the student says what the teacher says", given="150 steps", got=agree)
    expect(teacher.weight.numpy(), before, given="the teacher's weight afterwards")
