"""LeNet: two convolutions, three linear layers, and the idea of all that came after.

Source: LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition"
(1998), in the form Paddle gives it.
"""

from ... import nn

__all__ = ["LeNet"]


class LeNet(nn.Layer):
    """Classes of grey images: [batch, 1, 28, 28] to [batch, num_classes].

    With `num_classes` 0 the features [batch, 16, 5, 5] come out instead. As in Paddle there is no
    activation between the linear layers.

    >>> net = paddle.vision.models.LeNet()
    >>> net(paddle.ones([2, 1, 28, 28])).shape
    [2, 10]
    """

    def __init__(self, num_classes=10):
        super().__init__()
        self.num_classes = num_classes
        self.features = nn.Sequential(
            nn.Conv2D(1, 6, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2D(2, 2),
            nn.Conv2D(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2D(2, 2),
        )
        if num_classes > 0:
            self.fc = nn.Sequential(
                nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, num_classes)
            )

    def forward(self, inputs):
        x = self.features(inputs)
        return self.fc(x.flatten(1)) if self.num_classes > 0 else x
