"""What each layer keeps as state: keys, names, shapes, dtypes and what is trained, as Paddle's."""

import json
from pathlib import Path

import pytest

import minipaddle as paddle
from minipaddle.nn.names import guard
from tests.data.make_paddle_layer_states import calls, state_of

DATA = Path(__file__).parents[1] / "data" / "paddle_layer_states.json"
PADDLE = json.loads(DATA.read_text())["states"]


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
