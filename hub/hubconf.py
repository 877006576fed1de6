"""Small models with weights, trained by `python hub/train.py NAME`: see `paddle.hub`."""

import json
from pathlib import Path

import minipaddle as paddle
from minipaddle import hub as _hub

dependencies = ["minipaddle"]
_HERE = Path(__file__).parent
_SCORES = json.loads((_HERE / "scores.json").read_text(encoding="utf-8"))
LETTERS = "\n" + "".join(map(chr, range(32, 127)))
"""What `char_gpt` reads: token k is letter k."""


def _with_weights(net, name: str, pretrained: bool):
    if pretrained:
        _hub.load_weights(net, _HERE / _SCORES[name]["weights"])
    net.eval()
    return net


def _scored(function):
    """The function; its docstring says how its weights were made, and how good they are."""
    known = _SCORES.get(function.__name__)
    function.__doc__ += f"\n\n{known['score']}\n{known['recipe']}" if known else ""
    return function


@_scored
def lenet_digits(pretrained: bool = False):
    """LeNet for images of digits, 8 x 8: float32 [n, 1, 8, 8] from 0 to 1, scores [n, 10]."""
    nn = paddle.nn
    net = nn.Sequential(
        nn.Conv2D(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
        nn.Conv2D(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
        nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    return _with_weights(net, "lenet_digits", pretrained)


@_scored
def char_gpt(pretrained: bool = False):
    """A GPT that writes English letter by letter: int64 [n, length], at most 128 letters, which
    `net.letters` numbers.
    """
    net = paddle.text.GPT(len(LETTERS), width=128, layers=3, heads=4, context=128)
    net.letters = LETTERS
    return _with_weights(net, "char_gpt", pretrained)
