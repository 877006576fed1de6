"""Scientific computing: tensors without networks."""

import numpy as np

from tests.programs.common import wave


def differential_equation(paddle):
    """Runge and Kutta for a pendulum, and its sensitivity to the start by `backward`."""
    angle = paddle.to_tensor(0.5, dtype="float64", stop_gradient=False)

    def slope(state):
        return paddle.stack([state[1], -paddle.sin(state[0])])

    state, h = paddle.stack([angle, paddle.to_tensor(0.0, dtype="float64")]), 0.1
    for _ in range(20):
        k1 = slope(state)
        k2 = slope(state + h / 2 * k1)
        k3 = slope(state + h / 2 * k2)
        k4 = slope(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    state[0].backward()
    energy = state[1] ** 2 / 2 - paddle.cos(state[0])
    return state, angle.grad, (energy + paddle.cos(angle)).abs().item() < 1e-6


def heat_equation(paddle):
    """Diffusion on a plate with slices, and with a convolution."""
    plate = paddle.zeros([8, 8], dtype="float64")
    plate[0, :] = 1.0
    kernel = paddle.to_tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]], dtype="float64")
    other = plate.clone()
    for _ in range(20):
        inside = plate[1:-1, 1:-1]
        around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        update = inside + 0.2 * (around - 4 * inside)
        plate = plate.clone()
        plate[1:-1, 1:-1] = update
        flow = paddle.nn.functional.conv2d(
            other.reshape([1, 1, 8, 8]), kernel.reshape([1, 1, 3, 3])
        )
        other = other.clone()
        other[1:-1, 1:-1] += 0.2 * flow.reshape([6, 6])
    return plate, paddle.allclose(plate, other)


def signal_filter(paddle):
    """A windowed-sinc filter takes the fast wave out of a slow one."""
    F = paddle.nn.functional
    t = paddle.arange(64, dtype="float32")
    slow, fast = paddle.sin(t * 0.15), 0.5 * paddle.sin(t * 2.5)
    k = paddle.arange(-7, 8, dtype="float32")
    sinc = paddle.where(
        k == 0, paddle.full_like(k, 0.2), paddle.sin(0.2 * np.pi * k) / (np.pi * k + 1e-12)
    )
    taps = sinc * (0.54 + 0.46 * paddle.cos(np.pi * k / 7))
    taps = taps / taps.sum()
    signal = (slow + fast).reshape([1, 1, -1])
    clean = F.conv1d(signal, taps.reshape([1, 1, -1]), padding=7).flatten()
    error = (clean - slow)[8:-8].abs()
    return taps, clean[::8], error.max().item() < 0.1, fast.abs().max()


def fourier_by_matrix(paddle):
    """The discrete Fourier transform as two real matrices."""
    n = 16
    k = paddle.arange(n, dtype="float64")
    angle = 2 * np.pi * paddle.outer(k, k) / n
    x = paddle.cos(2 * np.pi * 3 * k / n) + 0.5 * paddle.sin(2 * np.pi * 5 * k / n)
    re, im = paddle.mv(paddle.cos(angle), x), -paddle.mv(paddle.sin(angle), x)
    power = re**2 + im**2
    back = (paddle.mv(paddle.cos(angle), re) - paddle.mv(paddle.sin(angle), im)) / n
    return paddle.topk(power[: n // 2], 2)[1], power[3], paddle.allclose(back, x)


def conjugate_gradient(paddle):
    """Solving a system with products only."""
    base = paddle.to_tensor(wave(5, 5, dtype="float64"))
    a = base @ base.T + paddle.eye(5, dtype="float64")
    b = paddle.to_tensor(wave(5, phase=1.0, dtype="float64"))
    x = paddle.zeros_like(b)
    r = b - a @ x
    p, rho, norms = r, paddle.dot(r, r), []
    for _ in range(5):
        ap = a @ p
        alpha = rho / paddle.dot(p, ap)
        x, r = x + alpha * p, r - alpha * ap
        new = paddle.dot(r, r)
        p, rho = r + new / rho * p, new
        norms.append(rho.sqrt().item())
    return x, norms[-1] < 1e-8, paddle.linalg.solve(a, b.unsqueeze(1)).squeeze(1)


def gauss_newton(paddle):
    """Curve fitting with a Jacobian made of rows of `paddle.grad`."""
    t = paddle.linspace(0, 1, 6, dtype="float64")
    y = 2.0 * paddle.exp(-1.5 * t)
    theta = paddle.to_tensor([1.0, -1.0], dtype="float64", stop_gradient=False)
    for _ in range(6):
        residual = theta[0] * paddle.exp(theta[1] * t) - y
        rows = [paddle.grad(residual[k], theta, retain_graph=True)[0] for k in range(6)]
        jacobian = paddle.stack(rows)
        step = paddle.linalg.solve(jacobian.T @ jacobian, (jacobian.T @ residual).unsqueeze(1))
        theta = (theta - step.squeeze(1)).detach()
        theta.stop_gradient = False
    return theta, (residual**2).sum() < 1e-12


def mandelbrot(paddle):
    """Complex arithmetic as pairs of reals, and how long each point stays."""
    x = paddle.linspace(-2, 1, 12).unsqueeze(0)
    y = paddle.linspace(-1, 1, 7).unsqueeze(1)
    cr, ci = x + paddle.zeros_like(y), y + paddle.zeros_like(x)
    zr, zi = paddle.zeros_like(cr), paddle.zeros_like(cr)
    steps = paddle.zeros(cr.shape, dtype="int32")
    for _ in range(12):
        zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
        inside = zr * zr + zi * zi <= 4
        zr, zi = paddle.where(inside, zr, paddle.full_like(zr, 3.0)), paddle.clip(zi, -3.0, 3.0)
        steps += inside.astype("int32")
    return steps


def sinkhorn(paddle):
    """Optimal transport between two histograms, in logarithms."""
    cost = (paddle.arange(4, dtype="float32").unsqueeze(1) - paddle.arange(4.0)) ** 2
    a, b = paddle.to_tensor([0.4, 0.3, 0.2, 0.1]), paddle.to_tensor([0.1, 0.2, 0.3, 0.4])
    f, g = paddle.zeros([4]), paddle.zeros([4])
    for _ in range(50):
        f = paddle.log(a) - paddle.logsumexp(g - cost, axis=1)
        g = paddle.log(b) - paddle.logsumexp(f.unsqueeze(1) - cost, axis=0)
    plan = paddle.exp(f.unsqueeze(1) + g - cost)
    return plan, plan.sum(axis=1), (plan * cost).sum()


def hidden_markov_model(paddle):
    """Forward probabilities, their gradient, and Viterbi's path."""
    F = paddle.nn.functional
    move = F.log_softmax(paddle.to_tensor(wave(3, 3)), axis=1)
    emit = paddle.to_tensor(wave(3, 4, phase=1.0), stop_gradient=False)
    log_emit, seen = F.log_softmax(emit, axis=1), [0, 3, 1, 2, 2]
    alpha = log_emit[:, seen[0]] - np.log(3.0)
    best, came = alpha, []
    for symbol in seen[1:]:
        alpha = paddle.logsumexp(alpha.unsqueeze(1) + move, axis=0) + log_emit[:, symbol]
        options = best.unsqueeze(1) + move
        came.append(options.argmax(axis=0))
        best = options.max(axis=0) + log_emit[:, symbol]
    likelihood = paddle.logsumexp(alpha, axis=0)
    likelihood.backward()
    path = [best.argmax().item()]
    for back in reversed(came):
        path.insert(0, back[path[0]].item())
    return likelihood, emit.grad, path


def rotations(paddle):
    """Points turned in space; angles found back from the matrix by descent."""

    def rotation(angle):
        c, s = paddle.cos(angle), paddle.sin(angle)
        zero, one = paddle.zeros([]), paddle.ones([])
        return paddle.stack(
            [
                paddle.stack([c, -s, zero]),
                paddle.stack([s, c, zero]),
                paddle.stack([zero, zero, one]),
            ]
        )

    points = paddle.to_tensor(wave(5, 3))
    turned = points @ rotation(paddle.to_tensor(0.7)).T
    guess = paddle.to_tensor(0.0, stop_gradient=False)
    for _ in range(40):
        loss = ((points @ rotation(guess).T - turned) ** 2).mean()
        (g,) = paddle.grad(loss, guess)
        guess = (guess - 0.8 * g).detach()
        guess.stop_gradient = False
    spin = paddle.cross(points[0:1], points[1:2], axis=1)
    return (
        turned,
        guess,
        spin,
        paddle.acos(paddle.clip(paddle.trace(rotation(guess)) / 2 - 0.5, -1, 1)),
    )


def polynomial_roots(paddle):
    """Newton from many starts at once; Horner's scheme."""
    coefficients = [1.0, -6.0, 11.0, -6.0]
    x = paddle.linspace(-1, 5, 13, dtype="float64")
    for _ in range(30):
        value, slope = paddle.zeros_like(x), paddle.zeros_like(x)
        for c in coefficients:
            slope = slope * x + value
            value = value * x + c
        x = x - value / (slope + 1e-14)
    return paddle.unique(paddle.round(x * 1000)) / 1000, paddle.histogram(
        x.astype("float32"), 3, 0, 4
    )


def sieve(paddle):
    """Primes by striking out, and the greatest common divisors of a table."""
    alive = paddle.ones([50], dtype="bool")
    alive[:2] = False
    for k in range(2, 8):
        if alive[k]:
            alive[k * k :: k] = False
    numbers = paddle.arange(1, 7)
    table = paddle.gcd(numbers.unsqueeze(0), numbers.unsqueeze(1))
    return paddle.nonzero(alive).flatten(), table
