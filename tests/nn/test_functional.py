"""Layers that are made from functions, and docstrings that are made from others."""

import inspect

import pytest

import minipaddle as paddle
from minipaddle.nn import functional as F
from minipaddle.nn.functional.windows import for_axes
from minipaddle.nn.layer.functional import Functional, describe


def blend(x, y, weight, share=0.5, training=True, name=None):
    """Some of x and some of y. See `paddle.nn.functional.blend`.

    >>> paddle.nn.functional.blend(one, two, 3, training=False)  # (sic)
    """
    return x * weight + y * share if training else x


class Blend(Functional, function=blend, inputs=2): ...


class Shared(Functional, function=blend, inputs=2, fixed=("weight",)):
    """Its own words."""


def test_signature_and_docstring_come_from_the_function():
    assert str(inspect.signature(Blend)) == "(weight, share=0.5, name=None)"
    assert str(inspect.signature(Shared)) == "(weight)"
    assert Shared.__doc__ == "Its own words."
    assert inspect.getdoc(Blend) == (
        "Some of x and some of y. See `paddle.nn.Blend`.\n\n"
        ">>> paddle.nn.Blend(3).eval()(one, two)  # (sic)"
    )


def test_examples_call_the_layer():
    assert ">>> paddle.nn.ReLU()(paddle" in describe("ReLU", F.relu, 1)
    assert ">>> paddle.nn.Tanh()(paddle" in describe("Tanh", F.tanh, 1)


def test_arguments_are_attributes_and_the_mode_is_asked_for():
    layer = Blend(2.0, share=1.0)
    assert layer(1.0, 3.0) == 5.0
    layer.share = 0.0
    assert layer(1.0, 3.0) == 2.0
    assert layer.eval()(1.0, 3.0) == 1.0
    assert repr(layer) == "Blend(weight=2.0, share=0.0)"
    assert repr(Blend(2.0, name="b")) == "Blend(weight=2.0, share=0.5, name=b)"
    assert repr(Shared(weight=2.0)) == "Shared(weight=2.0)"


def test_a_missing_argument_shows_the_signature():
    with pytest.raises(TypeError, match=r"Blend\(weight, share=0.5, name=None\): missing"):
        Blend()


def test_an_argument_may_be_a_layer_or_a_parameter():
    x, far = paddle.to_tensor([[0.0]]), paddle.to_tensor([[0.25]])
    loss = paddle.nn.TripletMarginWithDistanceLoss(paddle.nn.PairwiseDistance(epsilon=0.0))
    assert loss(x, x, far).item() == 0.75
    weight = paddle.create_parameter([2], "float32", is_bias=True)
    loss = paddle.nn.CrossEntropyLoss(weight)
    assert loss(paddle.zeros([1, 2]), paddle.to_tensor([1])).item() == 0.0
    assert loss.parameters()[0] is weight


def test_a_docstring_for_other_numbers_of_axes():
    text = "images [N, C, H, W], f2d([1, 2, 8, 8]), weight [O, C, KH, KW], NHWC, [3, 4]"
    assert for_axes(text, 2) == text
    assert for_axes(text, 1) == "sequences [N, C, L], f1d([1, 2, 8]), weight [O, C, K], NLC, [3, 4]"
    assert for_axes(text, 3) == (
        "volumes [N, C, D, H, W], f3d([1, 2, 8, 8, 8]), weight [O, C, KD, KH, KW], NDHWC, [3, 4]"
    )


class Narrow(paddle.nn.Conv2D):
    def __init__(self, channels):
        super().__init__(channels, 1, 1)


class Long(paddle.nn.LSTM):
    pass


def test_layers_that_are_written_once_can_be_derived_from():
    assert Narrow(3)(paddle.ones([2, 3, 4, 4])).shape == [2, 1, 4, 4]
    assert repr(Narrow(3)) == "Narrow(3, 1, kernel_size=[1, 1], data_format=NCHW)"
    assert Long(2, 3)(paddle.ones([1, 4, 2]))[0].shape == [1, 4, 3]
    assert inspect.signature(Long).parameters.keys() >= {"num_layers", "proj_size"}


def test_layers_of_a_family_tell_of_their_own_axes():
    for n, layout in ((1, "NCL"), (2, "NCHW"), (3, "NCDHW")):
        for family in ("Conv{}D", "Conv{}DTranspose", "BatchNorm{}D", "InstanceNorm{}D", "Pad{}D"):
            layer = getattr(paddle.nn, family.format(n))
            assert inspect.signature(layer).parameters["data_format"].default == layout
            assert f"paddle.nn.{layer.__name__}(" in layer.__doc__
