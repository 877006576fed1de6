"""Static programs as Paddle 2.x code writes them. Each takes the module `paddle`, gives numbers.

`python -m tests.static.classical` runs them on real Paddle and keeps what it gives.
"""

import json
import sys
from pathlib import Path

import numpy as np

KEPT = Path(__file__).parents[1] / "data" / "static_programs.json"


def drawn(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def digits():
    """64 images of 8 × 8 pixels, and their classes: blobs at places that tell the class."""
    rng = np.random.default_rng(7)
    label = rng.integers(0, 4, 64)
    image = rng.standard_normal((64, 1, 8, 8)).astype("float32") * 0.3
    for k, c in enumerate(label):
        image[k, 0, 4 * (c // 2) : 4 * (c // 2) + 4, 4 * (c % 2) : 4 * (c % 2) + 4] += 1
    return image, label.reshape(-1, 1)


def weight(paddle, seed, *shape):
    values = drawn(seed, *shape) * 0.3
    return paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(values))


def linear_regression(paddle):
    static = paddle.static
    x = static.data("x", [None, 3], "float32")
    y = static.data("y", [None, 1], "float32")
    predicted = static.nn.fc(x, 1, weight_attr=weight(paddle, 0, 3, 1))
    loss = paddle.mean(paddle.nn.functional.square_error_cost(predicted, y))
    paddle.optimizer.SGD(learning_rate=0.1).minimize(loss)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    data = drawn(1, 20, 3)
    feed = {"x": data, "y": data.sum(1, keepdims=True)}
    return [exe.run(feed=feed, fetch_list=[loss])[0] for _ in range(10)]


def trained(paddle, net, optimizer, steps=8):
    """Losses while training."""
    static = paddle.static
    image = static.data("image", [None, 1, 8, 8], "float32")
    label = static.data("label", [None, 1], "int64")
    logits = net(image)
    loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, label))
    optimizer.minimize(loss)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    images, labels = digits()
    found = []
    for k in range(steps):
        batch = slice(16 * (k % 3), 16 * (k % 3) + 16)
        feed = {"image": images[batch], "label": labels[batch]}
        found += exe.run(static.default_main_program(), feed=feed, fetch_list=[loss])
    return found


def mlp(paddle):
    def net(x):
        h = paddle.static.nn.fc(
            paddle.flatten(x, 1), 16, weight_attr=weight(paddle, 2, 64, 16), activation="relu"
        )
        return paddle.static.nn.fc(h, 4, weight_attr=weight(paddle, 3, 16, 4))

    return trained(paddle, net, paddle.optimizer.Adam(learning_rate=0.01))


def conv_net(paddle):
    nn = paddle.nn
    layer = nn.Conv2D(1, 4, 3, padding=1, weight_attr=weight(paddle, 4, 4, 1, 3, 3))
    norm = nn.BatchNorm2D(4)

    def net(x):
        h = nn.functional.relu(norm(layer(x)))
        h = nn.functional.max_pool2d(h, 2, 2)
        return paddle.static.nn.fc(h, 4, weight_attr=weight(paddle, 5, 64, 4))

    return trained(paddle, net, paddle.optimizer.Adam(learning_rate=0.01))


def momentum_with_decay(paddle):
    def net(x):
        return paddle.static.nn.fc(paddle.flatten(x, 1), 4, weight_attr=weight(paddle, 6, 64, 4))

    return trained(paddle, net, paddle.optimizer.Momentum(0.05, 0.9, weight_decay=0.01))


def scheduled(paddle):
    static = paddle.static
    x = static.data("x", [4, 3], "float32")
    loss = paddle.mean(static.nn.fc(x, 2, weight_attr=weight(paddle, 7, 3, 2)) ** 2)
    rate = paddle.optimizer.lr.StepDecay(0.5, step_size=2)
    paddle.optimizer.SGD(rate).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    found = []
    for _ in range(6):
        found += exe.run(feed={"x": drawn(8, 4, 3)}, fetch_list=[loss])
        rate.step()
    return found


def branches(paddle):
    static = paddle.static
    x = static.data("x", [None], "float32")
    x.stop_gradient = False
    y = static.nn.cond(paddle.sum(x) > 0, lambda: x * 2, lambda: x - 1)
    (gx,) = static.gradients([paddle.sum(y * y)], [x])
    exe = static.Executor()
    feeds = [np.array([1.0, 2.0], "float32"), np.array([-1.0, -2.0, -3.0], "float32")]
    return [a for f in feeds for a in exe.run(feed={"x": f}, fetch_list=[y, gx])]


def loops(paddle):
    static = paddle.static
    x = static.data("x", [3], "float32")
    i = paddle.full([1], 0, "int64")
    _, total = static.nn.while_loop(
        lambda i, s: i < 4, lambda i, s: [i + 1, s * x + 1], [i, paddle.zeros([3])]
    )
    exe = static.Executor()
    return exe.run(feed={"x": np.array([1.0, 2.0, -1.0], "float32")}, fetch_list=[total])


def chosen(paddle):
    static = paddle.static
    k = static.data("k", [1], "int32")
    one, two = (lambda: paddle.full([1], 1.0)), (lambda: paddle.full([1], 2.0))
    three = lambda: paddle.full([1], 3.0)
    a = static.nn.case([(k < 1, one), (k < 2, two)], three)
    b = static.nn.switch_case(k, {1: one, 2: two}, three)
    exe = static.Executor()
    return [
        r for n in range(4)
        for r in exe.run(feed={"k": np.array([n], "int32")}, fetch_list=[a, b])
    ]  # fmt: skip


def walked_back(paddle):
    static = paddle.static
    x = static.data("x", [None, 3], "float32")
    loss = paddle.mean(static.nn.fc(x, 2, weight_attr=weight(paddle, 9, 3, 2)).tanh())
    pairs = static.append_backward(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    grads = sorted((g for _, g in pairs), key=lambda g: len(g.shape))  # the bias, the weight
    return exe.run(feed={"x": drawn(10, 5, 3)}, fetch_list=[loss, *grads])


def embedded(paddle):
    static = paddle.static
    ids = static.data("ids", [None, 4], "int64")
    rows = paddle.nn.Embedding(10, 3, weight_attr=weight(paddle, 11, 10, 3))(ids)
    loss = paddle.mean(rows**2)
    paddle.optimizer.Adagrad(0.5).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"ids": np.array([[1, 2, 3, 1], [0, 9, 9, 4]])}
    return [exe.run(feed=feed, fetch_list=[loss])[0] for _ in range(4)]


PROGRAMS = [
    linear_regression, mlp, conv_net, momentum_with_decay, scheduled, branches, loops, chosen,
    walked_back, embedded,
]  # fmt: skip


def outcome(paddle, program) -> list:
    """What a program gives, written into programs of its own."""
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            return [np.asarray(a) for a in program(paddle)]
    finally:
        paddle.disable_static()


if __name__ == "__main__":
    import paddle

    found = {p.__name__: [a.tolist() for a in outcome(paddle, p)] for p in PROGRAMS}
    KEPT.write_text(json.dumps(found, indent=1) + "\n")
    sys.stdout.write(f"{len(found)} programs on Paddle {paddle.__version__}\n")
