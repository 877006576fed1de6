"""What each layer keeps as state: keys, names, shapes, dtypes and what is trained, as Paddle's."""

import json
import re
from pathlib import Path

import pytest

import minipaddle as paddle
from minipaddle.nn.layer.functional import Functional
from minipaddle.nn.layer.vision import Pad
from minipaddle.nn.names import guard
from tests.data.make_paddle_layer_states import calls, state_of

DATA = Path(__file__).parents[1] / "data" / "paddle_layer_states.json"
PADDLE = json.loads(DATA.read_text())["states"]
STATELESS = (Functional, Pad, paddle.nn.Softmax2D, paddle.nn.Unflatten)
"""What these compute takes nothing but inputs."""
OURS = ("Layer", "RMSNorm", "RNNCellBase")
"""Bases, and a layer that Paddle does not have."""


@pytest.mark.parametrize("call", calls())
def test_a_layer_keeps_what_paddle_keeps(call):
    with guard():
        found = state_of(call, paddle)
    wanted = PADDLE[call]
    assert list(found) == list(wanted)
    for key, (name, *rest) in wanted.items():
        if name.startswith("eager_tmp"):  # Paddle counts tensors without a name
            found[key][0] = name
        assert found[key] == [name, *rest], key


def test_every_layer_with_a_state_is_asked():
    asked = set(re.findall(r"\w+", " ".join(calls())))
    layers = [getattr(paddle.nn, name) for name in paddle.nn.layer.__all__ if name not in OURS]
    assert not [x for x in layers if x.__name__ not in asked and not issubclass(x, STATELESS)]
