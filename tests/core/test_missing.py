"""Names that do not exist: the engine itself asks for none while it computes."""

import importlib
import sys
from collections import Counter

import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.core import elsewhere, missing
from minipaddle.nn.layer import layers

HELP = {missing.missing.__code__, layers.public_name.__code__}
"""What runs when a tensor, a namespace or a layer lacks a name."""


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embed, self.cell = nn.Embedding(11, 8), nn.LSTM(8, 8)
        self.attention, self.norm = nn.TransformerEncoderLayer(8, 2, 16), nn.LayerNorm(8)
        self.conv, self.bn = nn.Conv2D(1, 2, 3), nn.BatchNorm2D(2)
        self.drop, self.last = nn.Dropout(0.5), nn.Linear(8, 4)

    def forward(self, ids, image):
        h = self.drop(self.norm(self.attention(self.cell(self.embed(ids))[0]))).mean(1)
        return self.last(h) + F.relu(self.bn(self.conv(image))).mean([1, 2, 3]).unsqueeze(1)


def test_no_step_asks_for_a_name_that_does_not_exist():
    """Such a question costs thousands of times what finding an attribute does."""
    net = Net()
    schedule, clip = paddle.optimizer.lr.StepDecay(0.1, 2), nn.ClipGradByGlobalNorm(1.0)
    opt = paddle.optimizer.AdamW(schedule, parameters=net.parameters(), grad_clip=clip)
    ids, image, labels = paddle.ones([3, 5], "int64"), paddle.randn([3, 1, 6, 6]), paddle.arange(3)
    static = paddle.jit.to_static(lambda a, b: net(a, b).sum())
    loader = paddle.io.DataLoader(paddle.io.TensorDataset([ids, image, labels]), batch_size=2)

    def step():
        for ids, image, labels in loader:
            for _ in range(2):  # the second backward adds to the gradients of the first
                loss = F.cross_entropy(net(ids, image), labels)
                loss.backward()
            opt.step()
            schedule.step()
        opt.clear_grad()
        x = image.detach()
        x.stop_gradient = False
        (g,) = paddle.grad((x * x).sum(), [x], create_graph=True)
        g.sum().backward()
        static(ids, image).backward()
        with paddle.no_grad():
            x[0] = net(ids, image)[0, 0]
        return loss.item(), str(g[0, 0])

    asked = Counter()

    def count(frame, event, _):
        if event == "call" and frame.f_code in HELP:
            where = frame.f_back.f_back
            asked[f"{where.f_code.co_filename}:{where.f_lineno}", frame.f_locals["name"]] += 1

    step()
    step()
    sys.setprofile(count)
    try:
        step()
        assert not hasattr(paddle, "zero")  # this one is counted
    finally:
        sys.setprofile(None)
    assert [name for _, name in asked] == ["zero"], asked


@pytest.mark.parametrize("name", elsewhere.FACES)
def test_a_module_of_paddle_says_which_name_it_lacks(name):
    """Rows of a table give modules their `__getattr__`: none says so itself."""
    module = importlib.import_module(f"minipaddle.{name}")
    with pytest.raises(AttributeError, match=rf"paddle\.{name}\.nothing_like_it"):
        module.nothing_like_it  # noqa: B018
