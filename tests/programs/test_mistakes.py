"""Typical mistakes: the right kind of error, naming the operator, what was given, what to try."""

import os
import pickle
import re

import numpy as np
import pytest

import minipaddle as paddle
from minipaddle import nn
from minipaddle.nn import functional as F


def leaf():
    return paddle.to_tensor([1.0, 2.0], stop_gradient=False)


class NoForward(nn.Layer):
    """Written in a hurry."""


class NoSuper(nn.Layer):
    def __init__(self):
        self.fc = nn.Linear(1, 1)


class Ragged(paddle.io.Dataset):
    def __getitem__(self, k):
        return np.zeros(k + 1, "float32")

    def __len__(self):
        return 4


def backward_twice():
    loss = (leaf() ** 2).sum()
    loss.backward()
    loss.backward()


def overwritten():
    y = leaf() * 2
    z = y**2
    y.add_(paddle.ones([2]))
    z.sum().backward()


def write_into_a_leaf():
    leaf()[0] = 5.0


def wrong_assignment():
    x = paddle.zeros([3])
    x[0:2] = paddle.ones([3])


def ones(*shape, dtype="float32"):
    return paddle.ones(list(shape), dtype)


SHAPES = {
    "broadcast": (lambda: ones(2, 3) + ones(4), ValueError, "add", "[2, 3]", "[4]", "equal or 1"),
    "matmul": (lambda: paddle.matmul(ones(2, 3), ones(2, 3)), ValueError, "matmul", "(3)", "(2)"),
    "linear": (
        lambda: nn.Linear(3, 2)(ones(4, 5)),
        ValueError,
        "Linear",
        "[4, 5]",
        "in_features=3",
    ),
    "channels": (
        lambda: nn.Conv2D(3, 4, 3)(ones(1, 1, 8, 8)),
        ValueError,
        "conv",
        "[1, 1, 8, 8]",
        "1 channels",
    ),
    "rank": (lambda: nn.Conv2D(3, 4, 3)(ones(8, 8)), ValueError, "conv2d", "[8, 8]", "4 dim"),
    "reshape": (lambda: ones(2, 3).reshape([4, 2]), ValueError, "reshape", "6 elem", "[4, 2]"),
    "concat": (
        lambda: paddle.concat([ones(2, 3), ones(3, 4)]),
        ValueError,
        "concat",
        "[2, 3]",
        "[3, 4]",
    ),
    "stack": (lambda: paddle.stack([ones(2), ones(3)]), ValueError, "stack", "[2]", "[3]"),
    "split": (lambda: paddle.split(ones(7), 3), ValueError, "split", "[7]", "3", "tensor_split"),
    "axis": (lambda: paddle.sum(ones(2, 3), axis=2), ValueError, "sum", "axis 2", "[-2, 1]"),
    "softmax": (lambda: F.softmax(ones(2, 3), axis=5), ValueError, "softmax", "axis 5"),
    "norm": (lambda: nn.LayerNorm(4)(ones(2, 3)), ValueError, "layer_norm", "[2, 3]", "[*, 4]"),
    "labels": (
        lambda: F.cross_entropy(ones(2, 3), paddle.to_tensor([0, 1, 2])),
        ValueError,
        "cross_entropy",
        "int64[3]",
        "float32[2, 3]",
    ),
    "set_value": (
        lambda: nn.Linear(2, 2).weight.set_value(np.ones([3, 3])),
        ValueError,
        "set_value",
        "[3, 3]",
        "[2, 2]",
    ),
    "assignment": (wrong_assignment, ValueError, "assignment", "float32[3]", "(2,)"),
    "ragged batch": (
        lambda: list(paddle.io.DataLoader(Ragged(), batch_size=2)),
        ValueError,
        "(1,), (2,)",
        "collate_fn",
    ),
    "seed": (lambda: (leaf() * 2).backward(ones(3)), ValueError, "float32[2]", "float32[3]"),
}

DTYPES = {
    "int and float": (
        lambda: paddle.to_tensor([1, 2]) + paddle.to_tensor([1.5, 2.0]),
        TypeError,
        "add",
        "int64[2]",
        "float32[2]",
        'x.astype("float32")',
    ),
    "float labels": (
        lambda: F.nll_loss(ones(2, 3), paddle.to_tensor([0.0, 1.0])),
        TypeError,
        "float32[2]",
        "whole numbers",
    ),
    "float ids": (
        lambda: nn.Embedding(3, 2)(paddle.to_tensor([0.0, 1.0])),
        TypeError,
        "embedding",
        "float32[2]",
        "whole numbers",
    ),
    "condition": (
        lambda: paddle.where(ones(2), ones(2), ones(2)),
        ValueError,
        "where",
        "float32[2]",
        "booleans",
    ),
    "None": (lambda: ones(2) + None, TypeError, "add", "NoneType"),
    "text": (lambda: paddle.to_tensor("abc"), TypeError, "'abc'", "numbers"),
    "no such dtype": (lambda: ones(2, dtype="float31"), TypeError, "float31", "float32"),
    "complex": (lambda: ones(2, dtype="complex64"), TypeError, "complex64", "not supported"),
    "complex number": (lambda: paddle.to_tensor(1 + 2j), TypeError, "complex", "not supported"),
    "learning rate": (
        lambda: paddle.optimizer.SGD("fast", parameters=[leaf()]),
        TypeError,
        "'fast'",
        "a float or a schedule",
    ),
}

VALUES = {
    "class": (
        lambda: F.cross_entropy(ones(2, 3), paddle.to_tensor([0, 5])),
        IndexError,
        "cross_entropy",
        "5",
        "0 to 2",
    ),
    "row": (lambda: nn.Embedding(3, 2)(paddle.to_tensor([7])), IndexError, "7", "0 to 2"),
    "index": (lambda: ones(3)[5], IndexError, "index 5", "size 3", "float32[3]"),
    "fraction": (lambda: ones(3)[1.5], TypeError, "1.5", "a whole number, slice"),
    "gather": (lambda: paddle.gather(ones(3), paddle.to_tensor([5])), IndexError, "5", "size 3"),
    "truth": (lambda: bool(ones(2)), ValueError, "float32[2]", "x.all(), x.any()"),
    "item": (lambda: ones(3).item(), ValueError, "float32[3]", "tolist()"),
    "nested": (lambda: paddle.to_tensor([[1], [2, 3]]), ValueError, "no tensor can be made"),
    "singular": (lambda: paddle.inverse(paddle.zeros([2, 2])), ValueError, "inverse", "[2, 2]"),
    "device": (lambda: paddle.set_device("tpu"), ValueError, "'tpu'", '"cpu", "gpu"'),
}

AUTOGRAD = {
    "twice": (backward_twice, RuntimeError, "sum", "retain_graph=True"),
    "in place": (lambda: leaf().add_(ones(2)), ValueError, "leaf", "paddle.no_grad()"),
    "assigned": (write_into_a_leaf, ValueError, "leaf", "paddle.no_grad()"),
    "overwritten": (overwritten, RuntimeError, "pow", "overwritten", "clone()"),
    "unused": (
        lambda: paddle.grad(leaf().sum(), leaf()),
        RuntimeError,
        "float32[2]",
        "allow_unused=True",
    ),
    "hook": (lambda: ones(2).register_hook(print), RuntimeError, "register_hook", "stop_gradient"),
}

NAMES = {
    "forward": (lambda: NoForward()(ones(1)), NotImplementedError, "NoForward", "def forward"),
    "super": (NoSuper, ValueError, "NoSuper", "super().__init__() the first line"),
    "argument": (lambda: paddle.exp(ones(2), fast=True), TypeError, "exp()", "'fast'"),
    "attributes": (lambda: paddle.clip(ones(2), low=0.0), TypeError, "clip()", "'low'"),
    "layer argument": (lambda: nn.Linear(2, 3, activation="relu"), TypeError, "'activation'"),
    "parameters": (lambda: paddle.optimizer.SGD(0.1), ValueError, "model.parameters()"),
    "function": (lambda: paddle.zeross([2]), AttributeError, "paddle.zeross", "paddle.zeros"),
    "layer": (lambda: nn.Linaer(2, 2), AttributeError, "paddle.nn.Linaer", "paddle.nn.Linear"),
    "optimizer": (lambda: paddle.optimizer.Adm, AttributeError, "paddle.optimizer.Adam"),
    "initializer": (lambda: nn.initializer.Normel, AttributeError, "initializer.Normal"),
    "method": (lambda: ones(2).reshpe([2]), AttributeError, "Tensor.reshape"),
    "later": (lambda: paddle.distributed.rpc, AttributeError, "distributed.rpc", "later part"),
    "static mode": (lambda: paddle.static.data("x", [1]), RuntimeError, "data", "enable_static"),
    "fft": (lambda: paddle.fft, AttributeError, "paddle.fft"),
}

MISTAKES = SHAPES | DTYPES | VALUES | AUTOGRAD | NAMES


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_mistake(mistake):
    program, kind, *parts = mistake
    with pytest.raises(kind, match=f"(?s){'.*'.join(map(re.escape, parts))}"):
        program()


def test_no_mistake_is_listed_twice():
    assert len(MISTAKES) == sum(map(len, (SHAPES, DTYPES, VALUES, AUTOGRAD, NAMES)))


def test_a_pickle_is_refused_and_not_run(tmp_path):
    path = tmp_path / "model.pdparams"
    path.write_bytes(pickle.dumps({"a": Bomb(tmp_path)}))
    with pytest.raises(ValueError, match=r"(?s)model\.pdparams is a pickle.*safetensors"):
        paddle.load(str(path))
    assert not (tmp_path / "exploded").exists()


class Bomb:
    """Unpickling it makes a directory."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder / "exploded"),)


def test_a_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match="no/such/file"):
        paddle.load("no/such/file")


def test_a_tensor_can_not_be_pickled():
    with pytest.raises(TypeError, match=r"(?s)unpickling runs code.*paddle\.save"):
        pickle.dumps(ones(2))
