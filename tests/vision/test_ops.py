"""Operators on boxes against Paddle 3.3.1's results, finite differences and eager mode."""

import json
from pathlib import Path

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.testing import check_grad
from minipaddle.vision import ops
from tests.data.make_paddle_vision_ops import boxes_in, calls
from tests.near import assert_same

DATA = Path(__file__).parents[1] / "data" / "paddle_vision_ops.json"
PADDLE = json.loads(DATA.read_text())["results"]
CALLS = calls(paddle)


@pytest.mark.parametrize("name", PADDLE)
def test_results_are_paddles(name):
    found = CALLS[name]()
    parts = found if isinstance(found, tuple) else (found,)
    for part, (shape, values) in zip(parts, PADDLE[name], strict=True):
        assert part.shape == shape
        np.testing.assert_allclose(part.numpy().ravel(), values, 2e-4, 2e-5)


RNG = np.random.default_rng(4)
X, INSIDE, EACH = RNG.normal(size=(2, 2, 6, 5)), boxes_in(RNG, 3, 5.0), np.array([1, 2])
OFFSET, MASK = RNG.normal(size=(2, 16, 5, 4)), RNG.uniform(size=(2, 8, 5, 4))
WEIGHT, BIAS = RNG.normal(size=(4, 1, 2, 2)), RNG.normal(size=4)


def align(x):
    return ops.roi_align(x, paddle.to_tensor(INSIDE), paddle.to_tensor(EACH), 2)


def pool(x):
    return ops.roi_pool(x, paddle.to_tensor(INSIDE), paddle.to_tensor(EACH), 2)


def deform(x, offset, weight, bias, mask):
    return ops.deform_conv2d(x, offset, weight, bias, 1, 0, 1, 2, 2, mask)


@pytest.mark.sweep(one_in=3)
@pytest.mark.parametrize(
    ("function", "inputs"),
    [(align, [X]), (pool, [X]), (deform, [X, OFFSET, WEIGHT, BIAS, MASK])],
)
def test_gradients(function, inputs):
    check_grad(function, *inputs)


def test_gradients_of_boxes():
    def boxes(x):
        size = paddle.to_tensor([[40, 60]])
        found, scores = ops.yolo_box(x, size, [10, 13], 2, 0.0, 32, False)
        return found.sum() * 0.01 + (scores * scores).sum()

    check_grad(boxes, RNG.normal(size=(1, 7, 2, 3)))


TRACED = [
    "nms, top 5", "roi_align -1 True", "yolo_box, iou aware", "prior_box", "multiclass_nms3 2",
    "matrix_nms 2", "distribute_fpn_proposals True", "generate_proposals 1",
]  # fmt: skip


@pytest.mark.parametrize("name", TRACED)
def test_a_program_gives_the_same(name):
    eager, traced = CALLS[name](), paddle.jit.to_static(CALLS[name])()
    eager, traced = ((r if isinstance(r, tuple) else (r,)) for r in (eager, traced))
    for a, b in zip(eager, traced, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-6)


def test_a_program_keeps_as_many_boxes_as_there_are():
    keep = paddle.jit.to_static(lambda boxes: ops.nms(boxes, 0.3))
    for seed in (0, 1, 2):
        boxes = paddle.to_tensor(boxes_in(np.random.default_rng(seed), 15, 9.0))
        assert keep(boxes).tolist() == greedy(boxes.numpy(), 0.3)


def greedy(boxes, threshold: float) -> list[int]:
    """The boxes that stay, one after the other."""
    kept = []
    for k, (x1, y1, x2, y2) in enumerate(boxes):
        for a1, b1, a2, b2 in boxes[kept]:
            width, height = min(x2, a2) - max(x1, a1), min(y2, b2) - max(y1, b1)
            shared = max(width, 0) * max(height, 0)
            if shared / ((x2 - x1) * (y2 - y1) + (a2 - a1) * (b2 - b1) - shared) > threshold:
                break
        else:
            kept.append(k)
    return kept


@pytest.mark.parametrize("seed", range(5))
def test_suppression_is_greedy(seed):
    boxes = boxes_in(np.random.default_rng(seed), 60, 12.0)
    for threshold in (0.0, 0.3, 0.7):
        assert ops.nms(paddle.to_tensor(boxes), threshold).tolist() == greedy(boxes, threshold)


def test_layers():
    layer = ops.DeformConv2D(2, 4, 3, padding=1, groups=2, bias_attr=False)
    assert layer.weight.shape == [4, 1, 3, 3]
    assert layer.bias is None
    x = paddle.to_tensor(X.astype("float32"))
    plain = paddle.nn.functional.conv2d(x, layer.weight, padding=1, groups=2)
    np.testing.assert_allclose(
        layer(x, paddle.zeros([2, 18, 6, 5])).numpy(), plain.numpy(), 1e-5, 1e-6
    )
    given = x, paddle.to_tensor(INSIDE), paddle.to_tensor(EACH)
    assert (ops.RoIAlign(2)(*given) == ops.roi_align(*given, 2)).all()
    assert (ops.RoIPool([2, 3])(*given) == ops.roi_pool(*given, [2, 3])).all()


def test_mistakes_are_explained():
    with pytest.raises(ValueError, match="all three, or scores"):
        ops.nms(paddle.ones([2, 4]), categories=[0])
    with pytest.raises(ValueError, match="expected: 16 channels"):
        ops.yolo_box(paddle.ones([1, 15, 2, 2]), paddle.ones([1, 2]), [1, 1, 2, 2], 3, 0.1, 32)


# ---- detectors -------------------------------------------------------------------------------


def test_gradients_of_the_box_coder():
    prior, codes, boxes = boxes_in(RNG, 3, 9.0), RNG.normal(size=(2, 3, 4)), boxes_in(RNG, 2, 9.0)
    decode = "decode_center_size"
    check_grad(lambda prior, codes: ops.box_coder(prior, None, codes, decode), prior, codes)
    check_grad(lambda prior, boxes: ops.box_coder(prior, None, boxes), prior, boxes)


def greedy_classes(boxes, scores, least, most, kept, threshold):
    """(image, class, box) of what stays, by loops."""
    found = []
    for n, image in enumerate(scores):
        own = []
        for c, row in enumerate(image):
            order = [k for k in np.argsort(-row, kind="stable") if row[k] > least][:most]
            own += [(c, order[k]) for k in greedy(boxes[n][order], threshold)] if order else []
        own.sort(key=lambda each: -image[each])
        found += [(n, *each) for each in sorted(own[:kept], key=lambda e: (e[0], -image[e]))]
    return found


@pytest.mark.parametrize("backend", ["eager", "native"])
def test_a_detectors_head_as_it_is_deployed(backend):
    """YOLO's boxes, then suppression: how many are left differs from call to call."""

    def infer(head, size):
        boxes, scores = ops.yolo_box(head, size, [10, 13, 16, 30], 3, 0.01, 8)
        scores = scores.transpose([0, 2, 1])
        return (
            boxes,
            scores,
            *paddle._C_ops.multiclass_nms3(boxes, scores, None, 0.5, 20, 15, 0.45, True, 1.0, -1),
        )

    call = infer if backend == "eager" else paddle.jit.to_static(infer, backend=backend)
    size = paddle.to_tensor([[64, 64], [64, 64]])
    counts = set()
    for seed in range(3):
        head = np.random.default_rng(seed).normal(size=(2, 16, 4, 4)) + 0.3 * seed
        boxes, scores, rows, index, count = call(paddle.to_tensor(head.astype("float32")), size)
        wanted = greedy_classes(boxes.numpy(), scores.numpy(), 0.5, 20, 15, 0.45)
        assert index[:, 0].tolist() == [n * boxes.shape[1] + k for n, _, k in wanted]
        assert count.tolist() == [sum(n == each for n, *_ in wanted) for each in (0, 1)]
        for row, (n, c, k) in zip(rows.numpy(), wanted, strict=True):
            np.testing.assert_allclose(row, [c, scores[n, c, k], *boxes[n, k].tolist()], 1e-5)
        counts.add(len(wanted))
    assert len(counts) > 1


def test_what_detectors_may_not_ask_for():
    boxes, scores = paddle.ones([1, 2, 4]), paddle.ones([1, 1, 2])
    with pytest.raises(ValueError, match=r"nms_eta=0.9\): .*\n  expected: nms_eta=1.0"):
        paddle._C_ops.multiclass_nms3(boxes, scores, None, 0.1, 5, 5, 0.3, True, 0.9, -1)
    with pytest.raises(ValueError, match="boxes of four numbers"):
        paddle._C_ops.multiclass_nms3(paddle.ones([1, 2, 8]), scores)
    with pytest.raises(ValueError, match="2 max_sizes\n  expected: 1, as min_sizes"):
        ops.prior_box(paddle.ones([1, 1, 2, 2]), paddle.ones([1, 3, 8, 8]), [2.0], [3.0, 4.0])
    with pytest.raises(AttributeError, match=r"_C_ops\.relu: it belongs to Paddle's C"):
        paddle._C_ops.relu  # noqa: B018


def test_a_block_of_convolution_norm_and_activation():
    block = paddle.vision.ops.ConvNormActivation
    whole = block(4, 6, 5, 2, groups=2, dilation=2, activation_layer=nn.Hardswish)
    x = paddle.to_tensor(np.random.default_rng(0).standard_normal((2, 4, 9, 8)), "float32")
    conv, norm, activation = whole
    assert conv.bias is None
    assert_same(whole(x), activation(norm(F.conv2d(x, conv.weight, None, 2, 4, 2, 2))))
    bare = block(4, 6, norm_layer=None, activation_layer=None)
    assert [*bare.state_dict()] == ["0.weight", "0.bias"]
    assert bare(x).shape == [2, 6, 9, 8]
    assert block(4, 6, bias=True)[0].bias is not None
