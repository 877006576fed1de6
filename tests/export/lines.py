"""A reader of lines whose answers are clear."""

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn


class InkReader(nn.Layer):
    """Reads "i" wherever four columns of a line hold ink."""

    def forward(self, x):
        ink = (x.max(1) < 0).astype("float32").max(1)
        ink = F.max_pool1d(ink.unsqueeze(1), 4).squeeze(1)
        return paddle.stack([1 - ink, ink], -1)
