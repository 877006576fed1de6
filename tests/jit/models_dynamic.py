"""Computations whose course depends on the data."""

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from tests.jit.models import I, N, model


@model((N(6, 4),), (N(3, 4),))
class MixtureOfExperts(nn.Layer):
    """Each row goes to the experts its gate prefers; an expert nobody wants does not run."""

    def __init__(self, dim=4, experts=3, k=2):
        super().__init__()
        self.gate = nn.Linear(dim, experts, bias_attr=False)
        self.experts = nn.LayerList([nn.Linear(dim, dim) for _ in range(experts)])
        self.k = k

    def forward(self, x):
        weights, chosen = paddle.topk(F.softmax(self.gate(x), axis=-1), self.k)
        y = paddle.zeros_like(x)
        used = 0
        for n, expert in enumerate(self.experts):
            share = (weights * (chosen == n).astype("float32")).sum(-1, keepdim=True)
            if share.sum() > 0:
                y = y + share * expert(x)
                used += 1
        return y, used


@model((N(1, 4),), (N(2, 4),))
class EarlyExit(nn.Layer):
    """Returns from the middle of a loop over layers, when sure enough."""

    def __init__(self, dim=4, depth=4, sure=0.55):
        super().__init__()
        self.layers = nn.LayerList([nn.Linear(dim, dim) for _ in range(depth)])
        self.head, self.sure = nn.Linear(dim, 2), sure

    def forward(self, x):
        for layer in self.layers:
            x = F.tanh(layer(x))
            logits = self.head(x)
            if F.softmax(logits, -1).max(-1).min() > self.sure:
                return logits
        return logits * 0.5


@model((N(4, 4), I(5)), (N(2, 4), I(4)))
class DynamicDepth(nn.Layer):
    """One layer applied as often as a tensor says."""

    def __init__(self, dim=4):
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, x, depth):
        for _ in range(int(depth)):
            x = x + paddle.tanh(self.layer(x))
        return x


@model((N(3, 4),), (N(5, 4),))
class AdaptiveTime(nn.Layer):
    """Graves' adaptive computation time: every row thinks until it says halt."""

    def __init__(self, dim=4, most=6):
        super().__init__()
        self.cell, self.halt, self.most = nn.GRUCell(dim, dim), nn.Linear(dim, 1), most

    def forward(self, x):
        h = x
        halted = paddle.zeros([x.shape[0], 1])
        mixed = paddle.zeros_like(x)
        steps = 0
        while steps < self.most and (halted < 0.99).any():
            _, h = self.cell(x, h)
            p = F.sigmoid(self.halt(h))
            p = paddle.minimum(p, 1.0 - halted)
            mixed = mixed + p * h
            halted = halted + p
            steps = steps + 1
        return mixed, steps


def field(t, y, w):
    return paddle.tanh(y @ w) * paddle.cos(t) - 0.1 * y


@model((N(2, 3), N(3, 3)), (N(1, 3), N(3, 3)))
def ode_solver(y, w, end=1.0, tolerance=1e-3):
    """Heun's method; the step grows and shrinks with its error."""
    t, h = paddle.zeros([]), paddle.full([], 0.3)
    taken, refused = 0, 0
    while t < end:
        h = paddle.minimum(h, end - t)
        k1 = field(t, y, w)
        k2 = field(t + h, y + h * k1, w)
        error = (h * (k2 - k1) / 2).abs().max().detach()
        if error < tolerance:
            t = t + h
            y = y + h * (k1 + k2) / 2
            taken += 1
            if error < tolerance / 4:
                h = h * 1.5
        else:
            h = h * 0.5
            refused += 1
    return y, taken, refused


@model((N(3),), (N(5),))
def newton(a, most=12):
    """The cube root of each, by Newton's iteration until it stands still."""
    x = paddle.ones_like(a)
    for k in range(most):  # noqa: B007
        new = x - (x**3 - a.abs() - 1) / (3 * x**2)
        change = (new - x).abs().max()
        x = new
        if change < 1e-6:
            break
    else:
        x = x * 0
    return x, k


@model((N(3, 3), N(3)), (N(4, 4), N(4)))
def conjugate_gradients(a, b):
    """Solves (aᵀa + 1) x = b; the loop ends on the residual."""
    a = a.T @ a + paddle.eye(a.shape[0])
    x = paddle.zeros_like(b)
    r = b - a @ x
    p, rr = r, (r * r).sum()
    k = paddle.zeros([], "int32")
    while paddle.logical_and(rr > 1e-8, k < 20):
        ap = a @ p
        alpha = rr / (p * ap).sum()
        x, r = x + alpha * p, r - alpha * ap
        new = (r * r).sum()
        p, rr = r + new / rr * p, new
        k += 1
    return x, k


@model((N(3, 4), N(3, 4)), (N(2, 5), N(2, 5)))
def line_search(x, target):
    """Halves a step until it goes down far enough."""

    def height(v):
        return ((v - target) ** 2).sum()

    before, slope = height(x), 2 * (x - target)
    step = 4.0
    while height(x - step * slope) > before - 0.1 * step * (slope**2).sum():
        step = step / 2
    return x - step * slope


@model((N(4, 3), I(4, 2, 6)), (N(5, 3), I(5, 2, 8)))
class GraphNetwork(nn.Layer):
    """Messages along edges, summed where they arrive; rounds until nothing much changes."""

    def __init__(self, dim=3):
        super().__init__()
        self.message, self.update = nn.Linear(2 * dim, dim), nn.Linear(2 * dim, dim)

    def forward(self, nodes, edges):
        source, target = edges
        change = paddle.ones([])
        rounds = 0
        while change > 0.05 and rounds < 4:
            pairs = paddle.concat([nodes[source], nodes[target]], axis=-1)
            messages = F.relu(self.message(pairs))
            arrived = paddle.zeros_like(nodes).index_add(target, 0, messages)
            new = paddle.tanh(self.update(paddle.concat([nodes, arrived], -1)))
            change = (new - nodes).abs().mean()
            nodes = new
            rounds += 1
        return nodes.mean(0), rounds


@model((N(4, 4),), (N(3, 3),))
def sinkhorn(costs, sharpness=2.0):
    """Rows and columns divided by their sums till both are one."""
    p = paddle.exp(-sharpness * costs.abs())
    while True:
        p = p / p.sum(1, keepdim=True)
        p = p / p.sum(0, keepdim=True)
        if ((p.sum(1) - 1).abs() < 1e-3).all():
            break
    return p


@model((N(8, 2),), (N(6, 2),))
def k_means(points, k=2):
    """Centers move to the middle of their points until no point changes sides."""
    centers = points[:k]
    sides = paddle.full([points.shape[0]], -1, "int64")
    moved = True
    rounds = 0
    while moved and rounds < 10:
        distances = ((points.unsqueeze(1) - centers.unsqueeze(0)) ** 2).sum(-1)
        new = distances.argmin(1)
        moved = (new != sides).any()
        sides = new
        means = []
        for j in range(k):
            mask = (sides == j).astype("float32").unsqueeze(1)
            means.append((points * mask).sum(0) / paddle.clip(mask.sum(), min=1.0))
        centers = paddle.stack(means)
        rounds += 1
    return centers, sides


@model((N(4, 5),), (N(2, 5),))
class SpectrallyNormed(nn.Layer):
    """Power iteration keeps its vector in a buffer, from call to call."""

    def __init__(self, a=5, b=3):
        super().__init__()
        self.linear = nn.Linear(a, b)
        self.register_buffer("u", paddle.ones([b]) / b**0.5)

    def sigma(self):
        w = self.linear.weight
        with paddle.no_grad():
            u = self.u
            rounds = 3 if self.training else 0
            for _ in range(rounds):
                v = F.normalize(w @ u, axis=0)
                u = F.normalize(w.T @ v, axis=0)
            self.u = u
        v = F.normalize(w @ u.detach(), axis=0).detach()
        return (v * (w @ u)).sum()

    def forward(self, x):
        s = self.sigma()
        w = self.linear.weight
        if s > 1:
            w = w / s
        return x @ w + self.linear.bias


@model((N(3, 4),), (N(2, 4),))
class Equilibrium(nn.Layer):
    """A layer applied until its output stands still, then once more with a gradient."""

    def __init__(self, dim=4):
        super().__init__()
        self.inside, self.outside = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def step(self, z, x):
        return paddle.tanh(0.4 * self.inside(z) + self.outside(x))

    def forward(self, x):
        with paddle.no_grad():
            z, k = paddle.zeros_like(x), 0
            while k < 30:
                new = self.step(z, x)
                done = (new - z).abs().max() < 1e-4
                z = new
                k += 1
                if done:
                    break
        return self.step(z.detach(), x), k


@model((N(2, 3), N(4, 3)), (N(1, 3), N(6, 3)))
class TuringMemory(nn.Layer):
    """Reads and writes a memory in place, sharply when it is sure."""

    def __init__(self, dim=3):
        super().__init__()
        self.key, self.erase = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, memory):
        reads = []
        for row in x:
            w = F.softmax(memory @ self.key(row), axis=0)
            if w.max() > 0.5:
                at = w.argmax()
                memory = memory.clone()
                memory[at] = memory[at].clone() * F.sigmoid(self.erase(row)) + row
                reads.append(memory[at])
            else:
                memory = memory + w.unsqueeze(1) * row
                reads.append((w.unsqueeze(1) * memory).sum(0))
        return paddle.stack(reads), memory


@model((N(4, 3), I(6)), (N(5, 3), I(6)))
class Rollout(nn.Layer):
    """A policy in a little world, to a horizon that is a tensor; rewards discounted backwards."""

    def __init__(self, dim=3, actions=2, gamma=0.9):
        super().__init__()
        self.policy, self.gamma = nn.Linear(dim, actions), gamma
        self.register_buffer("pushes", paddle.to_tensor([[0.1, 0.0, -0.1], [-0.1, 0.2, 0.0]]))

    def world(self, state, action):
        state = paddle.clip(state + self.pushes[action], -1.0, 1.0)
        return state, -(state**2).sum(-1)

    def forward(self, state, horizon):
        rewards, chances = [], paddle.zeros([state.shape[0]])
        for _ in range(horizon + 1):
            logits = F.log_softmax(self.policy(state), -1)
            action = logits.argmax(-1)
            state, reward = self.world(state, action)
            rewards.append(reward)
            chances = chances + logits.max(-1)
        total = 0.0
        for reward in reversed(paddle.stack(rewards)):
            total = reward + self.gamma * total
        return (chances * total.detach()).mean(), total


@model((N(4, 2),), (N(3, 2),))
def value_iteration(rewards, gamma=0.8):
    """States in a ring, two ways to go; until the values settle."""
    values = paddle.zeros([rewards.shape[0]])
    change = None
    while change is None or change > 1e-3:
        left, right = paddle.roll(values, 1), paddle.roll(values, -1)
        q = rewards + gamma * paddle.stack([left, right], axis=1)
        new = q.max(axis=1)
        change = (new - values).abs().max()
        values = new
    return values


@model((N(6),), (N(9),))
def patience(losses, wait=2):
    """Early stopping over a row of losses: mixed Python and tensor flags."""
    best, since, stopped = paddle.full([], 1e9), 0, False
    at = -1
    for k, loss in enumerate(losses):
        if loss < best - 0.01:
            best, since = loss, 0
        else:
            since += 1
        if since >= wait and k > 1:
            stopped, at = True, k
            break
    return best, stopped, at


@model((N(5, 3),), (N(4, 3),))
class Highway(nn.Layer):
    """`and`, `or`, `not`, chains of comparisons, conditional expressions on tensors."""

    def __init__(self, dim=3):
        super().__init__()
        self.gate, self.body = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        g = F.sigmoid(self.gate(x))
        m = g.mean()
        open_ = 0.2 < m < 0.8
        y = self.body(x) if open_ and not (x.sum() > 5) else x * 2
        if m < 0.1 or (m > 0.9 and x.max() > 0):
            return y
        assert x.shape[1] == 3 and m <= 1.0, "gates are at most one"  # noqa: PT018
        return g * y + (1 - g) * x


@model((N(3, 6),), (N(3, 8),))
def tokens_until_silence(x):
    """Segments of a signal: a `while` within a `while`, both on data."""
    x = x.flatten()
    n = x.shape[0]
    i, count, energy = paddle.zeros([], "int64"), 0, paddle.zeros([])
    while i < n:
        if x[i] > 0:
            part = paddle.zeros([])
            while i < n and x[i] > 0:
                part = part + x[i]
                i += 1
            count += 1
            energy = paddle.maximum(energy, part)
        i += 1
    return count, energy


@model((N(4, 3),), (N(6, 3),))
class VAE(nn.Layer):
    """Draws its code; the loss has a part for the distribution."""

    def __init__(self, dim=3, code=2):
        super().__init__()
        self.encode, self.decode = nn.Linear(dim, 2 * code), nn.Linear(code, dim)

    def reparameterize(self, mu, logvar):
        if self.training:
            return mu + paddle.randn(mu.shape) * paddle.exp(0.5 * logvar)
        return mu

    def forward(self, x):
        mu, logvar = self.encode(x).chunk(2, axis=-1)
        z = self.reparameterize(mu, logvar)
        kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(-1).mean()
        return self.decode(z), kl


@model((N(1, 2),), (N(2, 2),))
class Diffusion(nn.Layer):
    """Denoises from noise in a loop over times that go down."""

    def __init__(self, dim=2, steps=4):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, 6), nn.Silu(), nn.Linear(6, dim))
        self.register_buffer("beta", paddle.linspace(0.1, 0.4, steps))
        self.steps = steps

    def forward(self, x):
        alpha = paddle.cumprod(1 - self.beta, 0)
        for t in reversed(range(self.steps)):
            time = paddle.full([x.shape[0], 1], t / self.steps)
            noise = self.net(paddle.concat([x, time], -1))
            x = (x - self.beta[t] * noise / (1 - alpha[t]).sqrt()) / (1 - self.beta[t]).sqrt()
            if t > 0:
                x = x + 0.1 * paddle.randn(x.shape)
        return x
