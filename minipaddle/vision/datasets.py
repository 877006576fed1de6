"""Data sets that need no download. Source: Paddle API `paddle.vision.datasets`."""

from importlib.util import find_spec
from pathlib import Path

import numpy

from ..core.missing import namespace
from ..core.prelude import require_one_of, teach
from ..io import Dataset

__all__ = ["Digits"]

EVERY = 5
"""One in this number of samples of each class is a test sample."""


class Digits(Dataset):
    """1,797 handwritten digits of 8 x 8 pixels: (float32 image [1, 8, 8] in 0..1, int64 label).

    `mode` is "train" (four samples in five of each class) or "test" (the fifth); which sample is in
    which never changes. `transform`, if any, is applied to the image. Raises ImportError without
    scikit-learn, which brings the data. Source: Alpaydin and Kaynak, "Optical recognition of
    handwritten digits", UCI repository (1998).

    >>> import minipaddle as paddle
    >>> digits = paddle.vision.datasets.Digits(mode="test")
    >>> image, label = digits[0]
    >>> len(digits), image.shape, label.dtype
    (355, (1, 8, 8), dtype('int64'))
    """

    def __init__(self, mode="train", transform=None):
        require_one_of("Digits", ("train", "test"), mode=mode)
        images, labels = load_digits()
        chosen = held_out_mask(labels) == (mode == "test")
        self.mode, self.transform = mode, transform
        self.images, self.labels = images[chosen], labels[chosen]

    def __getitem__(self, idx):
        image = self.images[idx]
        return image if self.transform is None else self.transform(image), self.labels[idx]

    def __len__(self):
        return len(self.labels)


def load_digits():
    """All images [n, 1, 8, 8] in 0..1 and labels [n]: the file that scikit-learn's `load_digits`
    reads, without two seconds for the import of all the rest."""
    found = find_spec("sklearn")
    if found is None:
        raise ImportError(
            teach(
                "Digits needs scikit-learn, which brings the images",
                hint='pip install "minipaddle[book]", or pip install scikit-learn',
            )
        )
    table = numpy.loadtxt(Path(found.origin).parent / "datasets/data/digits.csv.gz", delimiter=",")
    images = table[:, :-1].reshape(-1, 1, 8, 8) / 16
    return images.astype("float32"), table[:, -1].astype("int64")


def held_out_mask(labels):
    """True for every `EVERY`-th sample of each class, in the order they stand."""
    out = numpy.zeros(len(labels), bool)
    for label in numpy.unique(labels):
        out[numpy.flatnonzero(labels == label)[EVERY - 1 :: EVERY]] = True
    return out


__getattr__ = namespace("paddle.vision.datasets", globals())
