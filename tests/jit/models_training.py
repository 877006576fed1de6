"""Training steps of many kinds, each captured whole: backward and optimizers in the program."""

import itertools

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from tests.jit.models import I, N, training


def mlp(*sizes, last=None):
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1], *([last] if last else []))


@training(N(8, 4), I(3, 8))
def supervised():
    """The plain step, with a schedule, batch norm, dropout and an accuracy."""
    first = nn.Linear(4, 8, bias_attr=False)  # one before a norm follows nothing but rounding
    net = nn.Sequential(first, nn.BatchNorm1D(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
    rate = paddle.optimizer.lr.StepDecay(0.05, step_size=5, gamma=0.5)
    clip = nn.ClipGradByGlobalNorm(1.0)
    opt = paddle.optimizer.Adam(rate, parameters=net.parameters(), grad_clip=clip)

    def step(x, y):
        out = net(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        rate.step()
        return loss, (out.argmax(-1) == y).astype("float32").mean()

    return step, [net]


@training(N(6, 3))
def gan():
    """Two networks against each other, two optimizers."""
    make, judge = mlp(2, 6, 3), mlp(3, 6, 1)
    opt_g = paddle.optimizer.Adam(0.01, parameters=make.parameters(), beta1=0.5)
    opt_d = paddle.optimizer.Adam(0.01, parameters=judge.parameters(), beta1=0.5)

    def step(real):
        noise = paddle.randn([real.shape[0], 2])
        fake = make(noise)
        d_loss = F.softplus(-judge(real)).mean() + F.softplus(judge(fake.detach())).mean()
        d_loss.backward()
        opt_d.step()
        opt_d.clear_grad()
        g_loss = F.softplus(-judge(fake)).mean()
        g_loss.backward()
        opt_g.step()
        opt_g.clear_grad()
        judge.clear_gradients()
        return d_loss, g_loss

    return step, [make, judge]


@training(N(6, 3))
def gradient_penalty():
    """A Wasserstein critic: the norm of its gradient is part of the loss."""
    critic = mlp(3, 6, 1, last=nn.Tanh())
    opt = paddle.optimizer.RMSProp(0.01, parameters=critic.parameters())

    def step(real):
        fake = paddle.randn(real.shape)
        share = paddle.rand([real.shape[0], 1])
        between = (share * real + (1 - share) * fake).detach()
        between.stop_gradient = False
        (g,) = paddle.grad(critic(between).sum(), between, create_graph=True)
        penalty = ((g.norm(axis=1) - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss, penalty

    return step, [critic]


@training(N(6, 3))
def variational():
    """A VAE's step: samples in the loss."""
    encode, decode = mlp(3, 6, 4), mlp(2, 6, 3)
    opt = paddle.optimizer.AdamW(
        0.01, parameters=[*encode.parameters(), *decode.parameters()], weight_decay=0.1
    )

    def step(x):
        mu, logvar = encode(x).chunk(2, axis=-1)
        z = mu + paddle.randn(mu.shape) * (0.5 * logvar).exp()
        kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(-1).mean()
        loss = F.mse_loss(decode(z), x) + 0.1 * kl
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    return step, [encode, decode]


@training(N(5, 2), N(5, 1), N(5, 2), N(5, 1))
def meta_learning():
    """MAML: a step of learning inside, differentiated through."""
    net = nn.Linear(2, 1)
    opt = paddle.optimizer.SGD(0.05, parameters=net.parameters())

    def step(x, y, x_after, y_after):
        w, b = net.weight, net.bias
        for _ in range(2):
            inner = ((x @ w + b - y) ** 2).mean()
            gw, gb = paddle.grad(inner, [w, b], create_graph=True)
            w, b = w - 0.1 * gw, b - 0.1 * gb
        loss = ((x_after @ w + b - y_after) ** 2).mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    return step, [net]


@training(N(8, 3), N(8, 1))
def micro_batches():
    """Gradients of several pieces add up before one step."""
    net = mlp(3, 5, 1)
    opt = paddle.optimizer.Momentum(0.02, parameters=net.parameters())

    def step(x, y):
        total = 0.0
        for a, b in zip(x.split(4), y.split(4)):
            loss = F.mse_loss(net(a), b) / 4
            loss.backward()
            total += loss.detach()
        opt.step()
        opt.clear_grad()
        return total

    return step, [net]


@training(N(8, 3), N(8, 1))
def cleared_to_zero():
    """`clear_grad(set_to_zero=False)`: nothing is left."""
    net = mlp(3, 5, 1)
    opt = paddle.optimizer.Adam(0.02, parameters=net.parameters())

    def step(x, y):
        opt.clear_grad(set_to_zero=False)
        loss = F.l1_loss(net(x), y)
        loss.backward()
        opt.step()
        return loss

    return step, [net]


@training(N(8, 3), N(8, 1))
def gradients_left():
    """The program leaves its gradients in `.grad`, and adds to what it finds there."""
    net = mlp(3, 5, 1)

    def step(x, y):
        loss = F.mse_loss(net(x), y)
        loss.backward()
        return loss

    return step, [net]


@training(N(8, 3), N(8, 1))
def frozen_and_tied():
    """Some weights rest; one is used twice."""
    first, second = nn.Linear(3, 3), nn.Linear(3, 1)
    for p in first.parameters():
        p.stop_gradient = True
    tied = nn.Linear(3, 3)
    opt = paddle.optimizer.Adagrad(0.05, parameters=[*tied.parameters(), *second.parameters()])

    def step(x, y):
        h = tied(F.relu(tied(first(x))))
        h = h @ tied.weight.T
        loss = F.smooth_l1_loss(second(h), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    return step, [first, second, tied]


@training(N(8, 3), N(8, 1))
def moving_average():
    """An average of the weights follows; a second network is its home."""
    net, average = mlp(3, 5, 1), mlp(3, 5, 1)
    average.set_state_dict(net.state_dict())
    opt = paddle.optimizer.Adamax(0.02, parameters=net.parameters())

    def step(x, y):
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        with paddle.no_grad():
            for slow, fast in zip(average.parameters(), net.parameters()):
                slow.set_value(0.9 * slow + 0.1 * fast)
            apart = F.mse_loss(average(x), net(x))
        return loss, apart

    return step, [net, average]


@training(N(8, 3), I(3, 8), I(2, 8), N(8), N(8, 3))
def q_learning():
    """A target network is fetched whenever a counter in the program says so."""
    net, target = mlp(3, 6, 3), mlp(3, 6, 3)
    target.set_state_dict(net.state_dict())
    opt = paddle.optimizer.Adam(0.02, parameters=net.parameters())
    count = paddle.zeros([], "int64")

    def step(state, action, done, reward, after):
        with paddle.no_grad():
            best = target(after).max(-1)
            wanted = reward + 0.9 * best * (1 - done.astype("float32"))
        got = paddle.take_along_axis(net(state), action.unsqueeze(1), 1).squeeze(1)
        loss = F.smooth_l1_loss(got, wanted)
        loss.backward()
        opt.step()
        opt.clear_grad()
        count.add_(paddle.ones([], "int64"))
        if count % 5 == 0:
            with paddle.no_grad():
                for slow, fast in zip(target.parameters(), net.parameters()):
                    slow.set_value(fast)
        return loss, count

    return step, [net, target]


@training(N(4, 3), I(5))
def reinforce():
    """A policy plays for as many rounds as a tensor says, then learns from its luck."""
    policy = nn.Linear(3, 2)
    opt = paddle.optimizer.SGD(0.05, parameters=policy.parameters())
    pushes = paddle.to_tensor([[0.1, 0.0, -0.1], [-0.1, 0.2, 0.0]])

    def step(state, horizon):
        chance, gain = paddle.zeros([4]), paddle.zeros([4])
        for _ in range(horizon + 2):
            logits = F.log_softmax(policy(state), -1)
            action = (paddle.rand([4]) > logits[:, 0].exp()).astype("int64")
            picked = F.one_hot(action, 2)
            chance = chance + (logits * picked).sum(-1)
            state = (state + picked @ pushes).clip(-1.0, 1.0)
            gain = gain - (state**2).sum(-1).detach()
        loss = -(chance * (gain - gain.mean())).mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss, gain.mean()

    return step, [policy]


@training(N(8, 3), I(2, 8))
def distillation():
    """A teacher in eval mode, a student in training mode."""
    teacher, student = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)), mlp(3, 2)
    teacher.eval()
    opt = paddle.optimizer.Lamb(0.01, parameters=student.parameters())

    def step(x, y):
        with paddle.no_grad():
            soft = F.softmax(teacher(x) / 2.0)
        out = student(x)
        loss = F.kl_div(F.log_softmax(out / 2.0), soft, reduction="batchmean")
        loss = loss + F.cross_entropy(out, y, label_smoothing=0.1)
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    return step, [teacher, student]


@training(N(8, 3), I(2, 8))
def adversarial():
    """The inputs are moved against the network before it learns from them."""
    net = mlp(3, 6, 2)
    opt = paddle.optimizer.NAdam(0.01, parameters=net.parameters())

    def step(x, y):
        x = x.detach()
        x.stop_gradient = False
        (g,) = paddle.grad(F.cross_entropy(net(x), y), x)
        attacked = (x + 0.1 * paddle.sign(g)).detach()
        loss = F.cross_entropy(net(attacked), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    return step, [net]


@training(N(4, 3), N(4, 3))
def contrastive():
    """A queue of old keys in a buffer, written at a place that moves on."""
    net = nn.Linear(3, 2)
    keys = paddle.cos(paddle.arange(16, dtype="float32")).reshape([8, 2])
    net.register_buffer("queue", F.normalize(keys))
    net.register_buffer("place", paddle.zeros([1], "int64"))
    opt = paddle.optimizer.Momentum(0.05, parameters=net.parameters(), weight_decay=1e-3)

    def step(a, b):
        q, k = F.normalize(net(a)), F.normalize(net(b)).detach()
        near = (q * k).sum(-1, keepdim=True)
        logits = paddle.concat([near, q @ net.queue.T], axis=1) / 0.5
        loss = F.cross_entropy(logits, paddle.zeros([4], "int64"))
        loss.backward()
        opt.step()
        opt.clear_grad()
        at = net.place + paddle.arange(4)
        net.queue = paddle.scatter(net.queue, at, k)
        net.place = (net.place + 4) % 8
        return loss

    return step, [net]


@training(N(8, 3), N(8, 1))
def sharpness_aware():
    """SAM: up the hill a little, look at the slope there, go down from where one was."""
    net = mlp(3, 5, 1)
    opt = paddle.optimizer.SGD(0.05, parameters=net.parameters())

    def step(x, y):
        loss = F.mse_loss(net(x), y)
        loss.backward()
        kept = []
        with paddle.no_grad():
            norm = sum((p.grad**2).sum() for p in net.parameters()).sqrt() + 1e-12
            for p in net.parameters():
                kept.append(p.clone())
                p.add_(0.05 * p.grad / norm)
        opt.clear_grad()
        F.mse_loss(net(x), y).backward()
        with paddle.no_grad():
            for p, before in zip(net.parameters(), kept):
                p.set_value(before)
        opt.step()
        opt.clear_grad()
        return loss

    return step, [net]


@training(N(8, 3), N(8, 1))
def skips_bad_batches():
    """The loss is replaced by another when it is too large: a branch before the backward."""
    net = mlp(3, 5, 1)
    opt = paddle.optimizer.RAdam(0.02, parameters=net.parameters())

    def step(x, y):
        error = net(x) - y
        if error.abs().max() > 1.5:
            loss = error.abs().mean()
        else:
            loss = (error**2).mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    return step, [net]


@training(N(8, 3), N(8, 1))
def several_steps_in_one():
    """A loop of steps in Python, in one program; the rate changes by hand."""
    net = mlp(3, 5, 1)
    rate = paddle.optimizer.lr.CosineAnnealingDecay(0.05, 10)
    opt = paddle.optimizer.Adadelta(rate, parameters=net.parameters())

    def step(x, y):
        for _ in range(3):
            loss = F.mse_loss(net(x), y)
            loss.backward()
            opt.step()
            opt.clear_grad()
        rate.step()
        return loss

    return step, [net]


@training(N(8, 3), N(8, 1))
def hooks_and_regularizers():
    """A hook on a weight's gradient; another regularizer for each weight."""
    attr = paddle.ParamAttr(regularizer=paddle.regularizer.L1Decay(0.01), learning_rate=0.5)
    net = nn.Sequential(nn.Linear(3, 4, weight_attr=attr), nn.Tanh(), nn.Linear(4, 1))
    net[2].weight.register_hook(lambda g: g.clip(-0.1, 0.1))
    decay = paddle.regularizer.L2Decay(0.02)
    opt = paddle.optimizer.Momentum(
        0.05, parameters=net.parameters(), use_nesterov=True, weight_decay=decay,
        grad_clip=nn.ClipGradByNorm(0.5),
    )  # fmt: skip

    def step(x, y):
        loss = F.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    return step, [net]


@training(N(2, 5, 3), N(2, 4))
def recurrent():
    """A recurrent network whose state outlives the step, cut off from its past."""
    cell, out = nn.GRUCell(3, 4), nn.Linear(4, 4)
    out.register_buffer("state", paddle.zeros([2, 4]))
    opt = paddle.optimizer.Adam(0.01, parameters=[*cell.parameters(), *out.parameters()])

    def step(x, y):
        h = out.state
        for t in range(x.shape[1]):
            _, h = cell(x[:, t], h)
        out.state = h.detach()
        loss = F.mse_loss(out(h), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    return step, [cell, out]


@training(I(6, 4, 5))
def language():
    """The next word: tied weights, parameters in groups."""
    words, body = nn.Embedding(6, 4), nn.GRU(4, 4)
    opt = paddle.optimizer.AdamW(
        0.01,
        parameters=[
            {"params": words.parameters(), "weight_decay": 0.0},
            {"params": body.parameters(), "learning_rate": 0.5},
        ],
    )

    def step(ids):
        h, _ = body(words(ids[:, :-1]))
        loss = F.cross_entropy((h @ words.weight.T).reshape([-1, 6]), ids[:, 1:].flatten())
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss.exp()

    return step, [words, body]
