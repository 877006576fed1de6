"""Update rules, schedules, groups."""

from tests.programs.common import set_weights, wave


def every_rule(paddle):
    """Each optimizer for five steps on the same valley."""
    o = paddle.optimizer
    rules = {
        "sgd": lambda p: o.SGD(0.1, parameters=p),
        "momentum": lambda p: o.Momentum(0.1, momentum=0.9, parameters=p),
        "nesterov": lambda p: o.Momentum(0.1, parameters=p, use_nesterov=True),
        "adam": lambda p: o.Adam(0.1, beta1=0.8, beta2=0.99, epsilon=1e-6, parameters=p),
        "adamw": lambda p: o.AdamW(0.1, parameters=p, weight_decay=0.1),
        "adamax": lambda p: o.Adamax(0.1, parameters=p),
        "adagrad": lambda p: o.Adagrad(0.1, parameters=p, initial_accumulator_value=0.1),
        "adadelta": lambda p: o.Adadelta(1.0, rho=0.9, parameters=p),
        "rmsprop": lambda p: o.RMSProp(0.01, rho=0.9, momentum=0.5, parameters=p),
        "centered": lambda p: o.RMSProp(0.01, centered=True, parameters=p),
        "decayed": lambda p: o.SGD(0.1, parameters=p, weight_decay=0.5),
        "l2": lambda p: o.Adam(0.1, parameters=p, weight_decay=paddle.regularizer.L2Decay(0.1)),
    }
    found = {}
    for name, rule in rules.items():
        w = paddle.create_parameter([3], "float32")
        w.set_value(wave(3))
        opt = rule([w])
        for _ in range(5):
            loss = (w * w * paddle.to_tensor([1.0, 4.0, 0.5]) - w).sum()
            loss.backward()
            opt.step()
            opt.clear_grad()
        found[name] = w
    return found


def parameter_groups(paddle):
    """No decay for biases, a smaller step for the body."""
    nn = paddle.nn
    net = set_weights(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)))
    groups = [
        {"params": [net[0].weight], "learning_rate": 0.1, "weight_decay": 0.5},
        {"params": [net[0].bias, net[1].bias], "weight_decay": 0.0},
        {"params": [net[1].weight]},
    ]
    opt = paddle.optimizer.SGD(learning_rate=0.1, parameters=groups, weight_decay=0.1)
    for _ in range(2):
        net(paddle.to_tensor(wave(4, 2))).square().mean().backward()
        opt.step()
        opt.clear_grad()
    other = set_weights(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)))
    decayed = paddle.optimizer.AdamW(
        0.1,
        parameters=other.parameters(),
        weight_decay=0.5,
        apply_decay_param_fun=lambda name: name == other[1].weight.name,
    )
    other(paddle.to_tensor(wave(4, 2))).square().mean().backward()
    decayed.step()
    return net.parameters(), other.parameters()


def schedules(paddle):
    """The learning rates of ten epochs."""
    lr = paddle.optimizer.lr
    rules = {
        "step": lr.StepDecay(0.5, step_size=3, gamma=0.5),
        "multistep": lr.MultiStepDecay(0.5, milestones=[2, 5], gamma=0.1),
        "noam": lr.NoamDecay(d_model=64, warmup_steps=4),
        "multiplicative": lr.MultiplicativeDecay(0.5, lambda epoch: 0.9),
        "exponential": lr.ExponentialDecay(0.5, gamma=0.8),
        "cosine": lr.CosineAnnealingDecay(0.5, T_max=6),
        "piecewise": lr.PiecewiseDecay([3, 6], [0.1, 0.2, 0.3]),
        "polynomial": lr.PolynomialDecay(0.5, decay_steps=5, end_lr=0.1, power=2.0),
        "lambda": lr.LambdaDecay(0.5, lambda epoch: 0.95**epoch),
        "natural": lr.NaturalExpDecay(0.5, gamma=0.1),
        "inverse": lr.InverseTimeDecay(0.5, gamma=0.1),
        "warmup": lr.LinearWarmup(lr.StepDecay(0.4, 4), 3, start_lr=0.0, end_lr=0.4),
        "one_cycle": lr.OneCycleLR(max_learning_rate=1.0, total_steps=10),
        "cyclic": lr.CyclicLR(0.1, 0.5, step_size_up=3),
    }
    found = {}
    for name, rule in rules.items():
        rates = []
        for _ in range(10):
            rates.append(rule.get_lr())
            rule.step()
        found[name] = rates
    return found


def schedule_in_a_loop(paddle):
    """The optimizer asks the schedule; a schedule is saved and restored."""
    net = set_weights(paddle.nn.Linear(2, 1))
    schedule = paddle.optimizer.lr.StepDecay(0.1, step_size=2, gamma=0.1)
    opt = paddle.optimizer.Adam(schedule, parameters=net.parameters())
    rates = []
    for _ in range(5):
        net(paddle.to_tensor(wave(4, 2))).square().mean().backward()
        opt.step()
        opt.clear_grad()
        schedule.step()
        rates.append(opt.get_lr())
    other = paddle.optimizer.lr.StepDecay(0.1, step_size=2, gamma=0.1)
    other.set_state_dict(schedule.state_dict())
    other.step()
    return rates, net.weight, other.get_lr(), schedule.last_epoch


def plateau(paddle):
    """A rate that falls when the loss no longer does."""
    schedule = paddle.optimizer.lr.ReduceOnPlateau(1.0, factor=0.5, patience=1)
    opt = paddle.optimizer.SGD(schedule, parameters=[paddle.create_parameter([1], "float32")])
    rates = []
    for loss in (1.0, 0.8, 0.8, 0.8, 0.8, 0.1, 0.5, 0.5, 0.5):
        schedule.step(paddle.to_tensor(loss))
        rates.append(opt.get_lr())
    opt2 = paddle.optimizer.SGD(0.5, parameters=[paddle.create_parameter([1], "float32")])
    opt2.set_lr(0.25)
    return rates, opt2.get_lr()


def rule_by_hand(paddle):
    """Adam written with tensors equals the built-in."""
    start = wave(4)
    mine = paddle.to_tensor(start, stop_gradient=False)
    theirs = paddle.create_parameter([4], "float32")
    theirs.set_value(start)
    opt = paddle.optimizer.Adam(0.05, parameters=[theirs])
    m, v = paddle.zeros([4]), paddle.zeros([4])
    for t in range(1, 6):
        (mine**4).sum().backward()
        (theirs**4).sum().backward()
        opt.step()
        opt.clear_grad()
        with paddle.no_grad():
            g = mine.grad
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * g * g
            step = 0.05 * (m / (1 - 0.9**t)) / (paddle.sqrt(v / (1 - 0.999**t)) + 1e-8)
            mine.subtract_(step)
        mine.clear_grad()
    return mine, paddle.allclose(mine, theirs, atol=1e-5)


def custom_optimizer(paddle):
    """Sign descent with momentum (Lion) as a class over parameters."""

    class Lion:
        def __init__(self, parameters, lr=0.1, beta1=0.9, beta2=0.99):
            self.parameters, self.lr = parameters, lr
            self.betas = beta1, beta2
            self.moments = [paddle.zeros_like(p) for p in parameters]

        @paddle.no_grad()
        def step(self):
            a, b = self.betas
            for p, m in zip(self.parameters, self.moments, strict=True):
                p.set_value(p - self.lr * paddle.sign(a * m + (1 - a) * p.grad))
                m.set_value(b * m + (1 - b) * p.grad)

        def clear_grad(self):
            for p in self.parameters:
                p.clear_grad()

    net = set_weights(paddle.nn.Linear(3, 1))
    opt, losses = Lion(net.parameters()), []
    for _ in range(4):
        loss = (net(paddle.to_tensor(wave(5, 3))) - 1).square().mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss)
    return losses, net.weight
