"""Training loops as tutorials write them."""

import numpy as np

from tests.programs.common import blobs, set_weights, wave


def linear_regression(paddle):
    """The first program of every tutorial."""
    x = paddle.to_tensor(wave(10, 1))
    y = 3 * x + 0.5
    linear = paddle.nn.Linear(1, 1)
    linear.weight.set_value(np.zeros((1, 1), "float32"))
    linear.bias.set_value(np.zeros(1, "float32"))
    loss_fn = paddle.nn.MSELoss()
    sgd = paddle.optimizer.SGD(learning_rate=0.5, parameters=linear.parameters())
    losses = []
    for _ in range(30):
        loss = loss_fn(linear(x), y)
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        losses.append(loss.item())
    return losses[:5], linear.weight, linear.bias


def classifier(paddle):
    """An MLP on three blobs of points, in mini-batches, with accuracy."""
    nn, F = paddle.nn, paddle.nn.functional
    inputs, labels = blobs(30)
    net = set_weights(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
    opt = paddle.optimizer.Adam(learning_rate=0.02, parameters=net.parameters())
    history = []
    for _ in range(3):
        for k in range(0, 30, 10):
            x, y = paddle.to_tensor(inputs[k : k + 10]), paddle.to_tensor(labels[k : k + 10])
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            opt.clear_grad()
        history.append(loss.item())
    net.eval()
    logits = net(paddle.to_tensor(inputs))
    hits = (paddle.argmax(logits, axis=1) == paddle.to_tensor(labels)).astype("float32").mean()
    return history, hits, F.softmax(logits)[:2]


def exclusive_or(paddle):
    """What one layer cannot learn."""
    nn, F = paddle.nn, paddle.nn.functional

    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.hidden = nn.Linear(2, 4)
            self.out = nn.Linear(4, 1)

        def forward(self, x):
            return F.sigmoid(self.out(paddle.tanh(self.hidden(x)))).squeeze(-1)

    net = set_weights(Net(), scale=1.0)
    opt = paddle.optimizer.Momentum(0.5, 0.9, parameters=net.parameters(), use_nesterov=True)
    x = paddle.to_tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    y = paddle.to_tensor([0.0, 1, 1, 0])
    for step in range(60):
        loss = F.binary_cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        if step == 4:
            early = loss.item()
    return early, loss.item() < 0.1, net(x) > 0.5


def logistic_regression_by_hand(paddle):
    """No layer, no optimizer: tensors and `backward`."""
    inputs, labels = blobs(20, classes=2, features=3)
    x, y = paddle.to_tensor(inputs), paddle.to_tensor(labels).astype("float32")
    w, b = paddle.zeros([3, 1]), paddle.zeros([1])
    w.stop_gradient = b.stop_gradient = False
    for _ in range(10):
        p = 1 / (1 + paddle.exp(-(x @ w + b)))
        p = p.squeeze(1)
        loss = -(y * paddle.log(p) + (1 - y) * paddle.log(1 - p)).mean()
        loss.backward()
        w = (w - 0.5 * w.grad).detach()
        b = (b - 0.5 * b.grad).detach()
        w.stop_gradient = b.stop_gradient = False
    return loss, w, b


def gradient_accumulation(paddle):
    """Four small batches give the step of one large one."""
    nn, F = paddle.nn, paddle.nn.functional
    x, y = paddle.to_tensor(wave(8, 3)), paddle.to_tensor(wave(8, 2, phase=1.0))
    large, small = set_weights(nn.Linear(3, 2)), set_weights(nn.Linear(3, 2))
    one = paddle.optimizer.SGD(0.1, parameters=large.parameters())
    F.mse_loss(large(x), y).backward()
    one.step()
    other = paddle.optimizer.SGD(0.1, parameters=small.parameters())
    for k in range(0, 8, 2):
        (F.mse_loss(small(x[k : k + 2]), y[k : k + 2]) / 4).backward()
    other.step()
    other.clear_grad()
    return large.weight, paddle.allclose(large.weight, small.weight), other.get_lr()


def clipping(paddle):
    """Gradients kept small: by value, by norm, by the norm of all."""
    nn = paddle.nn
    found = {}
    for clip in (
        nn.ClipGradByValue(0.5),
        nn.ClipGradByNorm(1.0),
        nn.ClipGradByGlobalNorm(1.0),
    ):
        net = set_weights(nn.Linear(3, 2))
        opt = paddle.optimizer.SGD(1.0, parameters=net.parameters(), grad_clip=clip)
        (net(paddle.to_tensor(wave(4, 3))) * 10).square().sum().backward()
        opt.step()
        found[type(clip).__name__] = [net.weight, net.bias]
    net = set_weights(nn.Linear(3, 2))
    (net(paddle.to_tensor(wave(4, 3))) * 10).sum().backward()
    total = paddle.sqrt(paddle.add_n([(p.grad**2).sum() for p in net.parameters()]))
    with paddle.no_grad():
        for p in net.parameters():
            p.grad = p.grad * paddle.clip(1.0 / total, max=1.0)
    after = paddle.sqrt(paddle.add_n([(p.grad**2).sum() for p in net.parameters()]))
    return found, total, after


def early_stopping(paddle):
    """Validation, the best weights kept, patience."""
    nn, F = paddle.nn, paddle.nn.functional
    inputs, labels = blobs(24)
    x, y = paddle.to_tensor(inputs), paddle.to_tensor(labels)
    net = set_weights(nn.Linear(4, 3), scale=0.1)
    opt = paddle.optimizer.RMSProp(0.05, parameters=net.parameters())
    best, kept, patience, scores = float("inf"), None, 2, []
    for _ in range(20):
        net.train()
        F.cross_entropy(net(x[:16]), y[:16]).backward()
        opt.step()
        opt.clear_grad()
        net.eval()
        with paddle.no_grad():
            score = F.cross_entropy(net(x[16:]), y[16:]).item()
        scores.append(score)
        if score < best - 0.05:
            best, patience = score, 2
            kept = {name: value.clone() for name, value in net.state_dict().items()}
        else:
            patience -= 1
            if patience == 0:
                break
    net.set_state_dict(kept)
    return scores, net.weight


def average_of_weights(paddle):
    """Two networks where one follows the other slowly, as in EMA teachers and target networks."""
    nn = paddle.nn
    student, teacher = set_weights(nn.Linear(2, 2)), nn.Linear(2, 2)
    teacher.set_state_dict(student.state_dict())
    opt = paddle.optimizer.SGD(0.1, parameters=student.parameters())
    x = paddle.to_tensor(wave(5, 2))
    gaps = []
    for _ in range(4):
        loss = (student(x) - 1).square().mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        with paddle.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
                slow.set_value(0.9 * slow + 0.1 * fast)
        gaps.append((teacher.weight - student.weight).abs().max().item())
    return gaps, teacher.weight


def adversarial_examples(paddle):
    """The gradient with respect to the input, and its sign."""
    nn, F = paddle.nn, paddle.nn.functional
    net = set_weights(nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)))
    inputs, labels = blobs(6)
    x, y = paddle.to_tensor(inputs, stop_gradient=False), paddle.to_tensor(labels)
    loss = F.cross_entropy(net(x), y)
    (g,) = paddle.grad(loss, x)
    fooled = (x + 0.2 * paddle.sign(g)).detach()
    return loss, F.cross_entropy(net(fooled), y), fooled[0], net[0].weight.grad is None


def multi_task(paddle):
    """One body, two heads, learned weights of the losses."""
    nn, F = paddle.nn, paddle.nn.functional

    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 6)
            self.classify, self.measure = nn.Linear(6, 3), nn.Linear(6, 1)
            self.log_variances = self.create_parameter([2], is_bias=True)

        def forward(self, x):
            h = F.leaky_relu(self.body(x), 0.1)
            return self.classify(h), self.measure(h)

    net = set_weights(Net())
    inputs, labels = blobs(12)
    x, y = paddle.to_tensor(inputs), paddle.to_tensor(labels)
    z = paddle.to_tensor(wave(12, 1))
    opt = paddle.optimizer.Adamax(0.02, parameters=net.parameters())
    totals = []
    for _ in range(4):
        logits, value = net(x)
        losses = paddle.stack([F.cross_entropy(logits, y), F.l1_loss(value, z)])
        total = (paddle.exp(-net.log_variances) * losses + net.log_variances).sum()
        total.backward()
        opt.step()
        opt.clear_grad()
        totals.append(total)
    return totals, net.log_variances
