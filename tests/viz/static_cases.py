"""Functions and layers made static, for the pictures of programs."""

import minipaddle as paddle

nn, F = paddle.nn, paddle.nn.functional


def halves(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = -x
    return y + 1


def same_or_negative(x):
    if x.sum() > 0:
        y = x
    else:
        y = -x
    return y


def steps_to_one(n):
    steps = paddle.zeros([], "int64")
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps = steps + 1
        if steps > 100:
            break
    return steps


def doubled_until(x):
    while x.sum() < 100.0:
        x = x * 2.0
    return x


class MLP(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.fc2(paddle.tanh(self.fc1(x)))


def static(function, *inputs):
    """The function made static and called once."""
    made = paddle.jit.to_static(function)
    made(*inputs)
    return made


def training_step(optimizer):
    """A captured step of an MLP, called once."""
    net = MLP()
    opt = optimizer(parameters=net.parameters())

    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    return static(step, paddle.ones([16, 4]), paddle.zeros([16], "int64"))
