"""Convolutions and pooling with the channels last: transposes cancel between them."""

import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle.engine.passes.manager import optimized
from minipaddle.ops.channels_last import IMAGE
from minipaddle.passes.layout import SIBLINGS, layout
from tests.passes.programs import body, cases, program_of, same_results


def gradients(f):
    def whole(*xs):
        for x in xs:
            x.stop_gradient = False
        y = f(*xs)
        return y, *paddle.grad([(y * y).sum()], list(xs))

    return whole


OPERATORS = {
    "conv": (lambda x, w: F.conv2d(x, w, padding=1, stride=2), (2, 4, 7, 6), (6, 4, 3, 3)),
    "groups": (lambda x, w: F.conv2d(x, w, groups=2, dilation=2), (2, 4, 7, 6), (6, 2, 3, 3)),
    "one axis": (lambda x, w: F.conv1d(x, w), (2, 4, 7), (6, 4, 3)),
    "three axes": (lambda x, w: F.conv3d(x, w), (2, 2, 4, 4, 4), (3, 2, 2, 2, 2)),
    "transposed": (lambda x, w: F.conv2d_transpose(x, w, stride=2), (2, 4, 3, 3), (4, 5, 3, 3)),
    "max_pool": (lambda x: F.max_pool2d(x, 3, 2, 1), (2, 4, 7, 6)),
    "avg_pool": (lambda x: F.avg_pool2d(x, 2), (2, 4, 7, 6)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_same(name):
    f, *shapes = OPERATORS[name]
    program = program_of(gradients(f), *shapes)
    after = layout(program)
    assert {r.op for r in program.records} & set(SIBLINGS)
    assert not {r.op for r in after.records} & set(SIBLINGS)
    same_results(program, after)
    same_results(program, optimized(program).program, rtol=1e-4, atol=1e-4)


def test_golden():
    program = program_of(lambda x, w: F.conv2d(x, w), (2, 4, 5, 6), (3, 4, 1, 1))
    assert body(layout(program)) == (
        "v1 = transpose(x, perm=(0, 2, 3, 1,)) : float32[2, 5, 6, 4]\n"
        "v2 = transpose(y, perm=(2, 3, 1, 0,)) : float32[1, 1, 4, 3]\n"
        "v3 = conv_last(v1, v2, stride=(1, 1,), padding=((0, 0,), (0, 0,),), dilation=(1, 1,), "
        "groups=1) : float32[2, 5, 6, 3]\n"
        "v4 = transpose(v3, perm=(0, 3, 1, 2,)) : float32[2, 3, 5, 6]\n"
        "return v4"
    )


def images_moved(program):
    """Transposes of images, which are large, not of weights."""
    orders = IMAGE.first(4), IMAGE.last(4)
    moved = [r for r in program.records if r.op.name == "transpose" and r.attrs["perm"] in orders]
    return [r for r in moved if r.spec.size > 2]


@pytest.mark.parametrize("model", ["ResNet", "MobileNet"])
def test_only_the_image_is_transposed(model):
    """The input image, and its gradient where the step leaves one."""
    for case in cases(f"models_vision.{model}, step"):
        assert len(images_moved(layout(case.program))) > 20
        assert len(images_moved(optimized(case.program, until="sinking").program)) <= 2


def test_a_dense_block_joins_channels_in_the_new_order():
    for case in cases("models_vision.DenseNet, step"):
        program = optimized(case.program, until="sinking").program
        joined = [r for r in program.records if r.op.name == "concat" and len(r.inputs) > 1]
        assert {r.attrs["axis"] for r in joined} == {3}


def test_weights_are_transposed_once_and_states_never():
    """The gradient comes back to [O, C, *kernel]; weights and moments are written as they are."""
    for case in cases("models_vision.LeNet, step"):
        program = optimized(case.program, until="sinking").program
        turned = [r.inputs[0] for r in program.records if r.op.name == "transpose"]
        assert len(turned) == len(set(turned))
        states = {s.record for s in program.states}
        assert len(states.intersection(turned)) == 2
