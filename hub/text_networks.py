"""A reader of lines and a finder of text, small enough to be trained in minutes: what `text_reader`
and `text_finder` of `hubconf.py` are. They take pictures as PP-OCR's networks do.
"""

from minipaddle import nn
from minipaddle.nn import functional as F

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz.,-/:%$' "
"""What the reader tells apart: class k + 1 is letter k, class 0 is the blank of CTC. It reads large
letters as small ones."""

OPTIONS = {"threshold": 0.4, "ratio": 0.8, "side": 32}
"""Of a `TextSystem` with these networks."""


def convolve(inputs: int, outputs: int, padding=1) -> nn.Sequential:
    """A convolution of 3 x 3, its norm, ReLU."""
    conv = nn.Conv2D(inputs, outputs, 3, padding=padding, bias_attr=False)
    return nn.Sequential(conv, nn.BatchNorm2D(outputs), nn.ReLU())


class Reader(nn.Layer):
    """Lines [n, 3, 48, w] from -1 to 1 to probabilities [n, w // 4, classes], CTC's blank first.

    Five convolutions bring a line 24 pixels high down to one row of columns; three along the row,
    each reaching twice as far, see a letter's neighbours.
    """

    def __init__(self, classes: int, width: int = 88):
        super().__init__()
        self.picture = nn.Sequential(
            convolve(1, 16), nn.MaxPool2D(2),
            convolve(16, 32), nn.MaxPool2D((2, 1)),
            convolve(32, 64), nn.MaxPool2D((2, 1)),
            convolve(64, 64), convolve(64, width, padding=(0, 1)),
        )  # fmt: skip
        self.along = nn.LayerList([self.look_around(width, reach) for reach in (1, 2, 4)])
        self.head = nn.Linear(width, classes)

    @staticmethod
    def look_around(width: int, reach: int) -> nn.Sequential:
        at = {"padding": (0, 2 * reach), "dilation": (1, reach)}
        conv = nn.Conv2D(width, width, (1, 5), bias_attr=False, **at)
        return nn.Sequential(conv, nn.BatchNorm2D(width), nn.ReLU())

    def score(self, lines):
        """Lines [n, 1, 24, w] to scores [n, w // 2, classes], before the softmax."""
        row = self.picture(lines)
        for layer in self.along:
            row = row + layer(row)
        return self.head(row.squeeze(2).transpose([0, 2, 1]))

    def forward(self, lines):
        grey = F.avg_pool2d(lines.mean(1, keepdim=True), 2)
        return F.softmax(self.score(grey))


class Finder(nn.Layer):
    """Pictures [n, 3, h, w] from -1 to 1, h and w multiples of 32, to the probability of text
    [n, 1, h, w].

    Pictures of a half, a fourth, an eighth and a sixteenth of the size; the smaller ones are added
    to the larger, up to a fourth. While it trains it gives the probability and the threshold of
    `paddle.vision.ocr.binarize`, at a fourth of the size.
    """

    def __init__(self, widths=(12, 24, 32, 48)):
        super().__init__()
        pairs = zip((3, *widths), widths, strict=False)
        self.down = nn.LayerList([convolve(*pair) for pair in pairs])
        self.across = nn.LayerList([nn.Conv2D(width, 24, 1) for width in widths[1:]])
        self.smooth = convolve(24, 24)
        self.maps = nn.Conv2D(24, 2, 3, padding=1)

    def forward(self, pictures):
        x, levels = pictures, []
        for layer in self.down:
            x = layer(F.avg_pool2d(x, 2))
            levels.append(x)
        total = None
        for level, layer in reversed([*zip(levels[1:], self.across, strict=True)]):
            row = layer(level)
            total = row if total is None else row + F.interpolate(total, scale_factor=2)
        maps = F.sigmoid(self.maps(self.smooth(total)))
        if self.training:
            return maps[:, :1], maps[:, 1:]
        return F.interpolate(maps[:, :1], scale_factor=4, mode="bilinear")
