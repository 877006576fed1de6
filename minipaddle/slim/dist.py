"""Distillation: a small network learns what a large one, its teacher, computes.

The losses are functions of tensors; what the teacher gives is a constant. Sources: Hinton, Vinyals,
Dean, "Distilling the knowledge in a neural network" (2015); Romero et al., "FitNets" (2015);
Zagoruyko, Komodakis, "Paying more attention to attention" (2017). PaddleSlim `paddleslim.dist` has
`l2` and `soft_label` between variables of a merged program.
"""

from .. import nn
from ..core.prelude import require_one_of, slot, value_error
from ..nn import functional as F

__all__ = ["Features", "ShapeAlign", "attention_transfer", "l2", "soft_label"]


@slot("slim.soft_label")
def soft_label(teacher, student, teacher_temperature=1.0, student_temperature=1.0):
    """The mean cross entropy of softened scores [batch, classes], -Σ softmax(t/T) log softmax(s/T).

    Its gradient falls as 1 / T²: multiply by T² beside a loss on labels (Hinton et al., section 2).
    Source: PaddleSlim `paddleslim.dist.soft_label`.

    >>> t = paddle.to_tensor([[2.0, 0.0]])
    >>> round(paddle.slim.dist.soft_label(t, t, 2.0, 2.0).item(), 4)
    0.5822
    """
    wanted = F.softmax(teacher.detach() / teacher_temperature)
    return -(wanted * F.log_softmax(student / student_temperature)).sum(-1).mean()


def l2(teacher, student):
    """The mean square of the difference of two features of one shape.

    Raises ValueError for other shapes: a `ShapeAlign` of the student goes first. Source: PaddleSlim
    `paddleslim.dist.l2`; for features FitNets.

    >>> paddle.slim.dist.l2(paddle.ones([2, 3]), paddle.zeros([2, 3])).item()
    1.0
    """
    if teacher.shape != student.shape:
        raise value_error(
            f"features {student.shape} of a student beside the teacher's {teacher.shape}",
            "one shape",
            hint="ShapeAlign(...)(student) gives the student's the teacher's channels",
        )
    return (student - teacher.detach()).square().mean()


@slot("slim.attention_transfer")
def attention_transfer(teacher, student):
    """The mean square of the difference of maps: where, over height and width, features [batch,
    channels, height, width] are large. Channels may differ in number.

    >>> x = paddle.arange(8.0).reshape([1, 2, 2, 2])
    >>> paddle.slim.dist.attention_transfer(x, 3 * x).item() < 1e-12
    True
    """
    return (attention_map(student) - attention_map(teacher.detach())).square().mean()


def attention_map(x):
    """Mean squares over channels, [batch, positions], each row of length 1."""
    return F.normalize(x.square().mean(1).flatten(1))


class ShapeAlign(nn.Layer):
    """A layer between a student's features and the teacher's: learned with the student, then left.

    `align_type` is "linear", "1x1conv" or "3x3conv", with "+bn" a batch norm follows. Source:
    PaddleSlim `ShapeAlign`; Romero et al. (2015) call it a regressor.

    >>> paddle.slim.dist.ShapeAlign("1x1conv", 8, 32)(paddle.ones([2, 8, 4, 4])).shape
    [2, 32, 4, 4]
    """

    def __init__(self, align_type: str, in_channel: int, out_channel: int):
        super().__init__()
        kind, _, norm = align_type.partition("+")
        require_one_of("ShapeAlign", ("linear", "1x1conv", "3x3conv"), align_type=kind)
        require_one_of("ShapeAlign", ("", "bn"), align_type=norm)
        size = 3 if kind == "3x3conv" else 1
        parts = [
            nn.Linear(in_channel, out_channel)
            if kind == "linear"
            else nn.Conv2D(in_channel, out_channel, size, padding=size // 2)
        ]
        if norm:
            parts.append(
                nn.BatchNorm1D(out_channel) if kind == "linear" else nn.BatchNorm2D(out_channel)
            )
        self.align = nn.Sequential(*parts)

    def forward(self, x):
        return self.align(x)


class Features:
    """The outputs of some layers of a network in its last call, by name; `remove()` ends it.

    Raises ValueError for a name that no layer has.

    >>> net = paddle.vision.models.LeNet()
    >>> features = paddle.slim.dist.Features(net, ["features.3"])
    >>> scores = net(paddle.ones([2, 1, 28, 28]))
    >>> features["features.3"].shape
    [2, 16, 10, 10]
    """

    def __init__(self, model: nn.Layer, names):
        layers, self.values = dict(model.named_sublayers()), {}
        if wrong := [name for name in names if name not in layers]:
            raise value_error(
                f"no layer {wrong[0]!r} in the network", f"one of {', '.join(layers)}"
            )
        self.hooks = [layers[name].register_forward_post_hook(self.keep(name)) for name in names]

    def keep(self, name: str):
        def hook(layer, inputs, output):
            self.values[name] = output

        return hook

    def __getitem__(self, name: str):
        return self.values[name]

    def remove(self) -> None:
        """Keep nothing any more."""
        for hook in self.hooks:
            hook.remove()
