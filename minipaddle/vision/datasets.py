"""Data sets that need no download. Source: Paddle API `paddle.vision.datasets`."""

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy

from ..core.prelude import require_one_of, teach, value_error
from ..io import Dataset

__all__ = ["MNIST", "Digits", "FashionMNIST"]

EVERY = 5
"""One in this number of samples of each class is a test sample."""


class Digits(Dataset):
    """1,797 handwritten digits of 8 x 8 pixels: (float32 image [1, 8, 8] in 0..1, int64 label).

    `mode` is "train" (four samples in five of each class) or "test" (the fifth); which sample is in
    which never changes. `transform`, if any, is applied to the image. Raises ImportError without
    scikit-learn, which brings the data. Source: Alpaydin and Kaynak, "Optical recognition of
    handwritten digits", UCI repository (1998).

    >>> digits = paddle.vision.datasets.Digits(mode="test")
    >>> image, label = digits[0]
    >>> len(digits), image.shape, label.dtype
    (355, (1, 8, 8), dtype('int64'))
    """

    def __init__(self, mode="train", transform=None):
        require_one_of("Digits", ("train", "test"), mode=mode)
        images, labels = load_digits()
        chosen = mask_held_out(labels) == (mode == "test")
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
    spec = find_spec("sklearn")
    if spec is None:
        raise ImportError(
            teach(
                "Digits needs scikit-learn, which brings the images",
                hint='pip install "minipaddle[book]", or pip install scikit-learn',
            )
        )
    table = numpy.loadtxt(Path(spec.origin).parent / "datasets/data/digits.csv.gz", delimiter=",")
    images = table[:, :-1].reshape(-1, 1, 8, 8) / 16
    return images.astype("float32"), table[:, -1].astype("int64")


class MNIST(Dataset):
    """60,000 handwritten digits of 28 x 28 pixels, and 10,000 ("test"), read from your files.

    `image_path` and `label_path` are files in the format that LeCun describes, packed by gzip or
    not; by default those of Paddle's cache, ~/.cache/paddle/dataset/mnist. An item is (picture,
    label [1] of int64): a float32 array [28, 28] of 0 to 255, or with `backend="pil"` an image of
    Pillow, which is the default as in Paddle. Nothing is downloaded: raises FileNotFoundError.
    Source: LeCun, Cortes, Burges, "The MNIST database".
    """

    NAME = "mnist"

    def __init__(
        self, image_path=None, label_path=None, mode="train", transform=None, download=True,
        backend=None,
    ):  # fmt: skip
        name, backend = type(self).__name__, backend or "pil"
        require_one_of(name, ("train", "test"), mode=mode)
        require_one_of(name, ("pil", "cv2"), backend=backend)
        start = Path.home() / ".cache/paddle/dataset" / self.NAME
        part = "train" if mode == "train" else "t10k"
        image_path = image_path or start / f"{part}-images-idx3-ubyte.gz"
        label_path = label_path or start / f"{part}-labels-idx1-ubyte.gz"
        self.mode, self.transform, self.backend = mode, transform, backend
        self.images, self.labels = read_idx(image_path, 3), read_idx(label_path, 1)
        if len(self.images) != len(self.labels):
            raise value_error(
                f"{len(self.labels)} labels in {label_path} for {len(self.images)} images",
                "as many labels as images",
            )

    def __getitem__(self, idx):
        image, label = self.images[idx], self.labels[idx : idx + 1].astype("int64")
        if self.backend == "pil":
            from PIL import Image

            image = Image.fromarray(image, mode="L")
        else:
            image = image.astype("float32")
        return image if self.transform is None else self.transform(image), label

    def __len__(self):
        return len(self.labels)


class FashionMNIST(MNIST):
    """Clothes in the format of `MNIST`; the default files are those of .../fashion-mnist.

    Source: Xiao, Rasul, Vollgraf 2017.
    """

    NAME = "fashion-mnist"


def read_idx(path, ndim: int) -> numpy.ndarray:
    """The bytes of a file of MNIST's format: a magic number, the sizes, then the values."""
    if not Path(path).exists():
        raise FileNotFoundError(
            teach(
                f"there is no {path}: MiniPaddle downloads no data",
                expected="a file of images or labels in the format of MNIST",
                hint="image_path= and label_path= with files of yours",
            )
        )
    data = Path(path).read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if data[:4] != bytes([0, 0, 8, ndim]):
        raise value_error(
            f"{path} is no file of MNIST's: it begins with {data[:4].hex(' ')}",
            f"00 00 08 0{ndim}, bytes in {ndim} dimensions",
        )
    shape = numpy.frombuffer(data, ">i4", ndim, 4)
    return numpy.frombuffer(data, "uint8", offset=4 + 4 * ndim).reshape(shape)


def mask_held_out(labels):
    """True for every `EVERY`-th sample of each class, in the order they stand."""
    out = numpy.zeros(len(labels), bool)
    for label in numpy.unique(labels):
        out[numpy.flatnonzero(labels == label)[EVERY - 1 :: EVERY]] = True
    return out
