"""Layers whose operations Paddle fuses by hand: MiniPaddle fuses the plain ones by itself."""

from ..nn import Linear
from ..nn.functional import linear

__all__ = ["FusedLinear"]


class FusedLinear(Linear):
    """`paddle.nn.Linear`; with `transpose_weight` the weight is [out_features, in_features].

    >>> layer = paddle.incubate.nn.FusedLinear(2, 3, transpose_weight=True)
    >>> layer.weight.shape, layer(paddle.ones([4, 2])).shape
    ([3, 2], [4, 3])
    """

    def __init__(
        self, in_features, out_features, weight_attr=None, bias_attr=None, transpose_weight=False,
        name=None,
    ):  # fmt: skip
        super().__init__(in_features, out_features, weight_attr, bias_attr, name)
        self.transpose_weight = transpose_weight
        if transpose_weight:
            self.weight = self.create_parameter([out_features, in_features], weight_attr)

    def forward(self, input):
        return linear(input, self.weight.T if self.transpose_weight else self.weight, self.bias)
