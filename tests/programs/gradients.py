"""Automatic differentiation: first and higher derivatives, hooks, functions of one's own."""

import numpy as np

from tests.programs.common import wave


def backward(paddle):
    """Gradients add up until they are cleared."""
    x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    y = (x**2).sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    both = x.grad.clone()
    x.clear_grad()
    (x * x.detach()).backward(paddle.to_tensor([1.0, 10.0, 100.0]))
    weighted = x.grad.clone()
    x.clear_gradient(False)
    return first, both, weighted, x.grad is None


def shared_paths(paddle):
    """One value used many times, along paths of different length."""
    x = paddle.to_tensor(wave(3), stop_gradient=False)
    a = x.exp()
    b = a * x
    c = b + a
    d = (c * b).tanh() + a
    d.sum().backward()
    return d, x.grad


def grad_function(paddle):
    """`paddle.grad`, which leaves `.grad` alone."""
    x = paddle.to_tensor(wave(3), stop_gradient=False)
    w = paddle.to_tensor(wave(3, phase=1.0), stop_gradient=False)
    unused = paddle.to_tensor([1.0], stop_gradient=False)
    y = (x * w).sin()
    gx, gw = paddle.grad(y.sum(), [x, w], retain_graph=True)
    (seeded,) = paddle.grad(y, x, grad_outputs=paddle.to_tensor([1.0, 0.0, 2.0]))
    z = (x**2).sum()
    found = paddle.grad(z, [x, unused], allow_unused=True)
    return gx, gw, seeded, found[0], found[1] is None, x.grad is None


def higher_order(paddle):
    """Sine differentiated three times; a power, until nothing is left."""
    x = paddle.to_tensor(wave(4, dtype="float64"), stop_gradient=False)
    y = paddle.sin(x)
    found = []
    for order in range(3):
        (y,) = paddle.grad(y.sum(), x, create_graph=order < 2)
        found.append(y.clone())
    power = x * x * x
    for _ in range(3):
        (power,) = paddle.grad(power.sum(), x, create_graph=True)
    return found, paddle.allclose(found[-1], -paddle.cos(x)), power


def gradient_penalty(paddle):
    """A loss made of a gradient, as in WGAN-GP: backward through the backward."""
    nn = paddle.nn
    critic = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
    for k, p in enumerate(critic.parameters()):
        p.set_value(wave(*p.shape, phase=k))
    x = paddle.to_tensor(wave(4, 3), stop_gradient=False)
    (g,) = paddle.grad(critic(x).sum(), x, create_graph=True)
    penalty = ((g.norm(p=2, axis=1) - 1.0) ** 2).mean()
    penalty.backward()
    return penalty, [p.grad for p in critic.parameters()[:3]]


def hessian_of_rosenbrock(paddle):
    """Row by row, and the product of the Hessian with a vector."""
    x = paddle.to_tensor([-1.2, 1.0], dtype="float64", stop_gradient=False)
    f = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    (g,) = paddle.grad(f, x, create_graph=True)
    rows = [paddle.grad(g[k], x, retain_graph=True)[0] for k in range(2)]
    v = paddle.to_tensor([1.0, -1.0], dtype="float64")
    (product,) = paddle.grad((g * v).sum(), x)
    return g, paddle.stack(rows), product


def newtons_method(paddle):
    """Root and minimum by derivatives of derivatives."""
    x = paddle.to_tensor(2.0, dtype="float64", stop_gradient=False)
    for _ in range(6):
        f = x**3 - 2 * x - 5
        (slope,) = paddle.grad(f, x)
        x = (x - f / slope).detach()
        x.stop_gradient = False
    t = paddle.to_tensor(0.5, dtype="float64", stop_gradient=False)
    for _ in range(6):
        f = paddle.exp(1 - t) + t**2
        (d1,) = paddle.grad(f, t, create_graph=True)
        (d2,) = paddle.grad(d1, t)
        t = paddle.to_tensor(t.item() - d1.item() / d2.item(), "float64", stop_gradient=False)
    return x, t


def custom_function(paddle):
    """A PyLayer with two inputs, a saved tensor and an attribute."""

    class ScaledTanh(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x, w, power=2):
            y = paddle.tanh(x) * w**power
            ctx.save_for_backward(x, w)
            ctx.power = power
            return y

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensor()
            t = paddle.tanh(x)
            gx = g * (1 - t * t) * w**ctx.power
            gw = g * t * ctx.power * w ** (ctx.power - 1)
            return gx, gw

    x = paddle.to_tensor(wave(3), stop_gradient=False)
    w = paddle.to_tensor(wave(3, phase=1.0), stop_gradient=False)
    y = ScaledTanh.apply(x, w, power=3)
    y.sum().backward()
    z = (paddle.tanh(x) * w**3).sum()
    gx, gw = paddle.grad(z, [x, w])
    return y, x.grad, w.grad, paddle.allclose(x.grad, gx), paddle.allclose(w.grad, gw)


def straight_through(paddle):
    """Quantization that pretends to be the identity when differentiated; gradient reversal."""

    class Round(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return paddle.round(x)

        @staticmethod
        def backward(ctx, g):
            return g

    class Reverse(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x, strength):
            ctx.strength = strength
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return -ctx.strength * g

    x = paddle.to_tensor(wave(4, scale=4.0), stop_gradient=False)
    (Round.apply(x) * paddle.arange(4, dtype="float32")).sum().backward()
    rounded = x.grad.clone()
    x.clear_grad()
    Reverse.apply(x, 0.5).square().sum().backward()
    surrogate = x + (paddle.round(x) - x).detach()
    return rounded, x.grad, surrogate


def hooks(paddle):
    """Gradients seen and changed on their way."""
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    seen = []
    y = x * 3
    doubled = y.register_hook(lambda g: g * 2)
    watch = x.register_hook(lambda g: seen.append(g.tolist()))
    (y * y).sum().backward()
    first = x.grad.clone()
    doubled.remove()
    watch.remove()
    x.clear_grad()
    y = x * 3
    y.retain_grads()
    (y * y).sum().backward()
    return seen, first, x.grad, y.grad


def stopping(paddle):
    """Ways to keep a gradient from flowing."""
    x = paddle.to_tensor([2.0, 3.0], stop_gradient=False)
    y = x * x
    target = y.detach()
    ((y - 0.5 * target) ** 2).sum().backward()
    first = x.grad.clone()

    @paddle.no_grad()
    def evaluate(v):
        return v * 5

    with paddle.no_grad():
        silent = x * 2
    frozen = paddle.to_tensor([1.0, 1.0])
    frozen.stop_gradient = True
    loud = x * frozen
    return first, silent.stop_gradient, evaluate(x).stop_gradient, loud.stop_gradient, frozen.grad


def kinks(paddle):
    """Derivatives where there is a choice."""
    functional = paddle.nn.functional

    def slope(function, *points):
        x = paddle.to_tensor(points, stop_gradient=False)
        function(x).sum().backward()
        return x.grad

    return {
        "abs": slope(paddle.abs, 0.0, -1.0, 1.0),
        "relu": slope(functional.relu, 0.0, -1.0, 1.0),
        "relu6": slope(functional.relu6, 0.0, 3.0, 6.0),
        "clip": slope(lambda x: paddle.clip(x, 0.0, 1.0), -0.5, 0.0, 0.5, 1.0, 1.5),
        "max": slope(paddle.max, 2.0, 2.0, 1.0),
        "maximum": slope(lambda x: paddle.maximum(x, paddle.ones([2])), 1.0, 2.0),
        "norm": slope(paddle.norm, 0.0, 0.0),
        "sqrt": slope(paddle.sqrt, 0.0, 4.0),
        "topk": slope(lambda x: paddle.topk(x, 2)[0], 1.0, 3.0, 2.0),
        "sort": slope(lambda x: paddle.sort(x) * paddle.to_tensor([1.0, 2, 3]), 3.0, 1.0, 2.0),
        "leaky": slope(functional.leaky_relu, 0.0, -1.0, 1.0),
        "hardswish": slope(functional.hardswish, -3.5, 0.0, 4.0),
        "median": slope(paddle.median, 1.0, 2.0, 3.0, 4.0),
    }


def finite_differences(paddle):
    """The gradient of a program against small steps, in double precision."""

    def energy(x):
        return (paddle.exp(-x * x) * paddle.cos(3 * x) + paddle.log1p(x * x)).sum()

    start = wave(4, dtype="float64")
    x = paddle.to_tensor(start, stop_gradient=False)
    energy(x).backward()
    steps = []
    for k in range(4):
        shift = np.zeros(4)
        shift[k] = 1e-5
        ahead, behind = paddle.to_tensor(start + shift), paddle.to_tensor(start - shift)
        steps.append(((energy(ahead) - energy(behind)) / 2e-5).item())
    return x.grad, paddle.allclose(x.grad, paddle.to_tensor(steps, "float64"), atol=1e-8)


def several_losses(paddle):
    """`autograd.backward` from two results at once."""
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    a, b = (x**2).sum(), (3 * x).sum()
    paddle.autograd.backward([a, b], [paddle.to_tensor(0.5), None])
    return x.grad
