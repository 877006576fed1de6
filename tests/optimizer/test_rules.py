"""Each optimizer against what Paddle 3.3 did with the same gradients (measured, in data/)."""

import json
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle

MEASURED = json.loads((Path(__file__).parent / "data/paddle_optimizers.json").read_text("utf-8"))
SHAPES = ([2, 3], [3])


def parameters(dtype="float32"):
    start = [np.array(v, dtype).reshape(s) for v, s in zip(MEASURED["w0"], SHAPES)]
    return [paddle.Parameter(v, name=f"p{k}") for k, v in enumerate(start)]


def arguments(given):
    """The arguments of a measured case, with its tags turned into objects."""
    given = dict(given)
    if given.get("weight_decay") == "L1:0.1":
        given["weight_decay"] = paddle.regularizer.L1Decay(0.1)
    if given.get("grad_clip") == "global:0.5":
        given["grad_clip"] = paddle.nn.ClipGradByGlobalNorm(0.5)
    return given


def trained(case, dtype="float32", **more):
    """The parameters after each measured step."""
    ps = parameters(dtype)
    kind = getattr(paddle.optimizer, case["class"])
    optimizer = kind(parameters=ps, **arguments(case["args"]), **more)
    seen = []
    for grads in MEASURED["grads"]:
        loss = sum(
            (p * paddle.to_tensor(np.array(g, dtype).reshape(p.shape))).sum()
            for p, g in zip(ps, grads)
        )
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        seen.append([p.numpy().astype("float64").ravel() for p in ps])
    return seen, optimizer


@pytest.mark.parametrize("name", MEASURED["cases"])
def test_ten_steps_are_paddles(name):
    case = MEASURED["cases"][name]
    seen, _ = trained(case)
    for k, expected in zip((0, 1, 4, 9), case["values"]):
        for ours, theirs in zip(seen[k], expected):
            np.testing.assert_allclose(
                ours, theirs, rtol=2e-5, atol=case.get("atol", 2e-6), err_msg=f"step {k}"
            )


@pytest.mark.parametrize("name", MEASURED["cases"])
def test_state_keys_are_paddles(name):
    _, optimizer = trained(MEASURED["cases"][name])
    assert sorted(optimizer.state_dict()) == MEASURED["cases"][name]["keys"]
