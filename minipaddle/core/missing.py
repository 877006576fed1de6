"""What to say of a name that is not here: when it comes, or which name is nearest."""

from __future__ import annotations

import difflib

LATER = {
    "amp": "mixed precision",
    "auto_cast": "mixed precision",
    "inference": "inference",
    "onnx": "inference",
    "quantization": "quantization",
}
"""Names of Paddle that later parts of MiniPaddle bring, and the subject of that part."""

DOWNLOADED = (
    "Cifar10", "Cifar100", "Conll05st", "FashionMNIST", "Flowers", "Imdb", "Imikolov", "MNIST",
    "Movielens", "UCIHousing", "VOC2012", "WMT14", "WMT16",
)  # fmt: skip
"""Paddle's data sets that come over the network."""


class LazyMessage:
    """The text of an error about a missing name, formatted when somebody reads it."""

    def __init__(self, *args):
        self.args = args

    def __str__(self) -> str:
        return format_missing(*self.args)

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self):
        return str, (str(self),)


def missing(name: str, space: str, existing) -> AttributeError:
    """The error for `space.name`; `existing()` gives the names that exist.

    `hasattr`, and `getattr` with a default, raise this error only to drop it. The search for the
    nearest name reads every name there is, so it waits until somebody reads the message.

    >>> from minipaddle.core.missing import missing
    >>> print(missing("zero", "paddle", lambda: ["ones", "zeros"]))
    MiniPaddle has no paddle.zero; the nearest name is paddle.zeros
    """
    return AttributeError(LazyMessage(name, space, existing))


def format_missing(name: str, space: str, existing) -> str:
    """The message for `space.name`: when the name comes, or which name is nearest."""
    if name.startswith("_"):
        return f"{space} has no attribute {name!r}"
    if name in LATER:
        return f"{space}.{name} comes with a later part of MiniPaddle: {LATER[name]}"
    if name in DOWNLOADED:
        return (
            f"{space}.{name}: MiniPaddle downloads no data; paddle.vision.datasets.Digits comes "
            "with scikit-learn, and a paddle.io.Dataset of yours can read files"
        )
    if "complex" in name:
        return f"{space}.{name}: complex numbers are not supported by MiniPaddle"
    known = {other.lower(): other for other in existing() if not other.startswith("_")}
    near = difflib.get_close_matches(name.lower(), known, 1)
    hint = f"; the nearest name is {space}.{known[near[0]]}" if near else ""
    return f"MiniPaddle has no {space}.{name}{hint}"


def namespace(space: str, names: dict):
    """A module's `__getattr__`: `__getattr__ = namespace("paddle.nn", globals())`."""

    def __getattr__(name: str):
        raise missing(name, space, names.keys)

    return __getattr__
