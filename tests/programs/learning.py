"""Learning that is not a loss over a data set: rewards, clusters, graphs, meta-learning."""

import numpy as np

from tests.programs.common import set_weights, wave


def policy_gradient(paddle):
    """REINFORCE on a bandit; the actions are given, so the numbers are exact."""
    F = paddle.nn.functional
    preferences = paddle.create_parameter([3], "float32")
    preferences.set_value(np.zeros(3, "float32"))
    opt = paddle.optimizer.SGD(0.2, parameters=[preferences])
    payoff = [0.1, 1.0, 0.4]
    baseline, history = 0.0, []
    for step in range(12):
        action = (step * 5 + step // 3) % 3
        log_p = F.log_softmax(preferences, axis=0)
        advantage = payoff[action] - baseline
        baseline += 0.1 * advantage
        entropy = -(log_p.exp() * log_p).sum()
        loss = -log_p[action] * advantage - 0.01 * entropy
        loss.backward()
        opt.step()
        opt.clear_grad()
        history.append(F.softmax(preferences)[1].item())
    return history, preferences


def q_learning(paddle):
    """A step of DQN: gather the taken actions, bootstrap from a frozen copy, Huber loss."""
    nn, F = paddle.nn, paddle.nn.functional
    online = set_weights(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)))
    frozen = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    frozen.set_state_dict(online.state_dict())
    state, after = paddle.to_tensor(wave(4, 3)), paddle.to_tensor(wave(4, 3, phase=1.0))
    action = paddle.to_tensor([[0], [1], [1], [0]])
    reward, done = paddle.to_tensor([1.0, 0, 0, 1]), paddle.to_tensor([0.0, 0, 1, 0])
    opt = paddle.optimizer.Adagrad(0.05, parameters=online.parameters())
    losses = []
    for _ in range(3):
        taken = paddle.take_along_axis(online(state), action, axis=1).squeeze(1)
        with paddle.no_grad():
            target = reward + 0.9 * (1 - done) * frozen(after).max(axis=1)
        loss = F.smooth_l1_loss(taken, target)
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss)
    return losses, taken


def proximal_policy(paddle):
    """PPO's clipped objective, and generalized advantages by a backward scan."""
    rewards, values = wave(6), wave(7, phase=1.0)
    advantages, running = [], 0.0
    for t in reversed(range(6)):
        running = rewards[t] + 0.99 * values[t + 1] - values[t] + 0.99 * 0.95 * running
        advantages.insert(0, float(running))
    advantage = paddle.to_tensor(advantages)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    old = paddle.to_tensor(wave(6, phase=2.0, scale=0.3))
    new = paddle.to_tensor(wave(6, phase=2.5, scale=0.4), stop_gradient=False)
    ratio = paddle.exp(new - old)
    objective = paddle.minimum(ratio * advantage, paddle.clip(ratio, 0.8, 1.2) * advantage)
    (-objective.mean()).backward()
    return advantage, objective, new.grad


def k_means(paddle):
    """Lloyd's algorithm with broadcasting."""
    points = paddle.to_tensor(
        np.concatenate([wave(6, 2, scale=0.3) + c for c in ([0, 0], [3, 3], [0, 4])]), "float32"
    )
    centres = points[::6].clone()
    for _ in range(5):
        distance = ((points.unsqueeze(1) - centres.unsqueeze(0)) ** 2).sum(axis=-1)
        owner = paddle.argmin(distance, axis=1)
        chosen = paddle.nn.functional.one_hot(owner, 3)
        moved = paddle.matmul(chosen, points, transpose_x=True) / chosen.sum(axis=0).unsqueeze(1)
        if paddle.allclose(moved, centres):
            break
        centres = moved
    return centres, owner, distance.min(axis=1).sum()


def principal_components(paddle):
    """Directions of most variance, found by gradient ascent on the sphere."""
    x = paddle.to_tensor(wave(20, 3) * np.array([3.0, 1.0, 0.3], "float32"))
    x = x - x.mean(axis=0)
    covariance = paddle.matmul(x, x, transpose_x=True) / (x.shape[0] - 1)
    w = paddle.to_tensor([1.0, 1.0, 1.0], stop_gradient=False)
    for _ in range(50):
        u = w / w.norm()
        (g,) = paddle.grad(paddle.dot(u, paddle.mv(covariance, u)), w)
        w = (u + 0.5 * g).detach()
        w.stop_gradient = False
    u = (w / w.norm()).detach()
    return covariance, u.abs(), paddle.var(x @ u)


def graph_convolution(paddle):
    """Kipf and Welling on six nodes; messages by scatter give the same sums."""
    nn, F = paddle.nn, paddle.nn.functional
    edges = paddle.to_tensor([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [2, 3]])
    adjacency = paddle.zeros([6, 6])
    adjacency[edges[:, 0], edges[:, 1]] = 1.0
    adjacency = paddle.maximum(adjacency, adjacency.T) + paddle.eye(6)
    scale = adjacency.sum(axis=1) ** -0.5
    smooth = scale.unsqueeze(1) * adjacency * scale.unsqueeze(0)
    first, second = set_weights(nn.Linear(4, 5)), set_weights(nn.Linear(5, 2))
    x = paddle.to_tensor(wave(6, 4))
    logits = second(smooth @ F.relu(first(smooth @ x)))
    loss = F.cross_entropy(logits[:4], paddle.to_tensor([0, 0, 1, 1]))
    loss.backward()
    summed = paddle.zeros([6, 4]).index_add(edges[:, 1], 0, paddle.gather(x, edges[:, 0]))
    return loss, logits, first.weight.grad, summed


def meta_learning(paddle):
    """MAML: the gradient of a loss after an inner step, through that step."""

    def model(x, w, b):
        return paddle.tanh(x * w) + b

    w = paddle.to_tensor(0.5, stop_gradient=False)
    b = paddle.to_tensor(0.1, stop_gradient=False)
    x = paddle.to_tensor(wave(6))
    total = 0.0
    for slope in (1.0, 2.0):
        inner = ((model(x, w, b) - slope * x) ** 2).mean()
        gw, gb = paddle.grad(inner, [w, b], create_graph=True)
        fast_w, fast_b = w - 0.1 * gw, b - 0.1 * gb
        total = total + ((model(x * 0.5, fast_w, fast_b) - slope * x * 0.5) ** 2).mean()
    total.backward()
    return total, w.grad, b.grad


def matrix_factorization(paddle):
    """Recommendations: embeddings of users and items, only known entries count."""
    nn = paddle.nn
    users, items = set_weights(nn.Embedding(4, 3)), set_weights(nn.Embedding(5, 3))
    table = paddle.to_tensor(np.round(wave(4, 5, scale=2) + 3))
    known = paddle.to_tensor(wave(4, 5, phase=1.0) > -0.3)
    rows, columns = paddle.nonzero(known, as_tuple=True)
    stars = paddle.masked_select(table, known)
    parameters = [*users.parameters(), *items.parameters()]
    opt = paddle.optimizer.Adam(0.1, parameters=parameters)
    errors = []
    for _ in range(5):
        guess = (users(rows.flatten()) * items(columns.flatten())).sum(axis=-1) + 3
        loss = (guess - stars).square().mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        errors.append(loss.sqrt())
    return errors, users.weight[0]


def physics_informed(paddle):
    """A network that learns y' = -y from its own derivative."""
    nn = paddle.nn
    net = set_weights(nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)))
    opt = paddle.optimizer.Adam(0.02, parameters=net.parameters())
    losses = []
    for _ in range(5):
        t = paddle.linspace(0, 1, 6).unsqueeze(1)
        t.stop_gradient = False
        y = net(t)
        (slope,) = paddle.grad(y.sum(), t, create_graph=True)
        start = net(paddle.zeros([1, 1])) - 1.0
        loss = (slope + y).square().mean() + start.square().sum()
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss)
    return losses
