"""Writes paddle_vision_ops.json: what Paddle's operators on boxes give.

Needs real Paddle (tests/requirements-peers.txt): `python tests/data/make_paddle_vision_ops.py`.
Inputs are drawn from a seed by both sides; only results are written.
"""

import json
from pathlib import Path

import numpy as np

N, C, H, W = 2, 4, 9, 7


def boxes_in(rng, count: int, size: float):
    low = rng.uniform(-1, 0.6 * size, (count, 2))
    return np.concatenate([low, low + rng.uniform(0.5, 0.7 * size, (count, 2))], 1)


def calls(paddle) -> dict:
    """name -> the call, on inputs that are the same each time."""
    ops, rng = paddle.vision.ops, np.random.default_rng(0)

    def tensor(value, dtype="float32"):
        return paddle.to_tensor(np.asarray(value, dtype))

    boxes, scores = tensor(boxes_in(rng, 40, 20.0)), tensor(rng.uniform(size=40))
    kinds = tensor(rng.integers(0, 4, 40), "int64")
    x, inside = tensor(rng.normal(size=(N, C, H, W))), tensor(boxes_in(rng, 6, 14.0))
    each = tensor([4, 2], "int32")
    found = {
        "nms": lambda: ops.nms(boxes, 0.2),
        "nms, scores": lambda: ops.nms(boxes, 0.4, scores),
        "nms, categories": lambda: ops.nms(boxes, 0.1, scores, kinds, [0, 1, 3]),
        "nms, top 5": lambda: ops.nms(boxes, 0.1, scores, kinds, [0, 1, 3], 5),
        "roi_pool": lambda: ops.roi_pool(x, inside, each, (3, 2), 0.5),
        "roi_pool, one cell": lambda: ops.RoIPool(1)(x, inside, each),
    }
    for ratio in (-1, 2):
        for aligned in (True, False):
            found[f"roi_align {ratio} {aligned}"] = lambda ratio=ratio, aligned=aligned: (
                ops.roi_align(x, inside, each, (3, 2), 0.5, ratio, aligned)
            )
    anchors, size = [10, 13, 16, 30], tensor([[200, 320], [96, 64]], "int32")
    head = tensor(rng.normal(size=(N, 2 * 8, 5, 4)))
    aware = tensor(rng.normal(size=(N, 2 * 9, 5, 4)))
    found["yolo_box"] = lambda: ops.yolo_box(head, size, anchors, 3, 0.3, 32)
    found["yolo_box, not clipped"] = lambda: ops.yolo_box(
        head, size, anchors, 3, 0.01, 16, False, scale_x_y=1.2
    )
    found["yolo_box, iou aware"] = lambda: ops.yolo_box(
        aware, size, anchors, 3, 0.2, 32, iou_aware=True, iou_aware_factor=0.4
    )
    for name, (stride, padding, dilation, sets, groups, masked) in {
        "plain": (1, 0, 1, 1, 1, False),
        "strided": (2, (1, 2), 1, 2, 1, True),
        "dilated": ((2, 1), 2, (1, 2), 1, 2, True),
        "far": (1, 1, 1, 2, 2, False),
    }.items():
        out = [
            (n + 2 * np.broadcast_to(padding, 2)[k] - np.broadcast_to(dilation, 2)[k] * (m - 1) - 1)
            // np.broadcast_to(stride, 2)[k]
            + 1
            for k, (n, m) in enumerate(((H, 3), (W, 2)))
        ]
        scale = 6 if name == "far" else 1
        offset = tensor(rng.normal(scale=scale, size=(N, 2 * sets * 6, *out)))
        mask = tensor(rng.uniform(size=(N, sets * 6, *out))) if masked else None
        weight, bias = tensor(rng.normal(size=(6, C // groups, 3, 2))), tensor(rng.normal(size=6))
        given = x, offset, weight, bias, stride, padding, dilation, sets, groups, mask
        found[f"deform_conv2d, {name}"] = lambda given=given: ops.deform_conv2d(*given)
    return found | detectors(paddle, rng, tensor)


def detectors(paddle, rng, tensor) -> dict:
    """The calls that detectors make between network and boxes, some by the names of C++."""
    ops, inner, older = paddle.vision.ops, paddle._C_ops, paddle._legacy_C_ops

    def boxes(*shape, size=20.0):
        return tensor(boxes_in(rng, int(np.prod(shape)), size).reshape(*shape, 4))

    maps, image = tensor(np.zeros((1, 4, 3, 2))), tensor(np.zeros((1, 3, 30, 24)))
    most, ratios = [8.0, 14.0], [1.0, 2.0, 0.5]
    caffe = {"flip": True, "clip": True, "steps": [6.0, 5.0], "offset": 0.4}
    found = {
        "prior_box": lambda: ops.prior_box(maps, image, [4.0, 9.0], most, ratios, flip=True),
        "prior_box, one": lambda: ops.prior_box(maps, image, 4.0, aspect_ratios=2.0),
        "prior_box, Caffe's order": lambda: ops.prior_box(
            maps, image, [4.0, 9.0], most, [2.0], min_max_aspect_ratios_order=True, **caffe
        ),
        "prior_box, half a step": lambda: ops.prior_box(maps, image, [4.0], steps=[6.0, 0.0]),
    }
    prior, target, spread = boxes(5), boxes(3), tensor(rng.uniform(0.1, 0.3, (5, 4)))
    codes = tensor(rng.normal(size=(3, 5, 4))), tensor(rng.normal(size=(5, 3, 4)))
    decode = "decode_center_size"
    for kind, scale in (("numbers", [0.1, 0.1, 0.2, 0.2]), ("tensor", spread)):
        for whole in (True, False):
            given = {"prior_box": prior, "prior_box_var": scale, "box_normalized": whole}
            found[f"box_coder, encode {kind} {whole}"] = lambda given=given: ops.box_coder(
                target_box=target, **given
            )
            for axis in (0, 1):
                found[f"box_coder, decode {kind} {whole} {axis}"] = lambda given=given, axis=axis: (
                    ops.box_coder(target_box=codes[axis], code_type=decode, axis=axis, **given)
                )
    many, scores = boxes(2, 40), tensor(rng.uniform(size=(2, 4, 40)))
    for k, given in enumerate(
        [(0.1, -1, -1, 0.3, True, 1.0, -1), (0.3, 10, -1, 0.5, True, 1.0, 0),
         (0.3, 10, 12, 0.3, False, 1.0, 2), (1.0, 5, 5, 0.3, True, 1.0, -1)]
    ):  # fmt: skip
        found[f"multiclass_nms3 {k}"] = lambda given=given: inner.multiclass_nms3(
            many, scores, None, *given
        )
    rois, shares, two = boxes(30, 4), tensor(rng.uniform(size=(30, 4))), tensor([12, 18], "int32")
    found["multiclass_nms3, boxes of classes"] = lambda: inner.multiclass_nms3(
        rois, shares, two, 0.2, -1, 15, 0.4, True, 1.0, 0
    )
    pairs = "keep_top_k", 20, "nms_top_k", 30, "normalized", True, "score_threshold", 0.4
    found["multiclass_nms3, pairs"] = lambda: older.multiclass_nms3(
        many, scores, None, "nms_threshold", 0.5, "nms_eta", 1.0, "background_label", -1, *pairs
    )
    found["matrix_nms, pairs"] = lambda: older.matrix_nms(
        many, scores, "post_threshold", 0.1, "background_label", 1, *pairs
    )
    for k, given in enumerate(
        [(0.1, 0.05, -1, -1), (0.3, 0.1, 10, -1, True, 1.5, -1),
         (0.3, 0.2, 10, 12, False, 2.0, 3, False)]
    ):  # fmt: skip
        found[f"matrix_nms {k}"] = lambda given=given: ops.matrix_nms(
            many, scores, *given, return_index=True
        )
    large, eight = boxes(20, size=500.0), tensor([8, 12], "int32")
    for pixels in (False, True):
        found[f"distribute_fpn_proposals {pixels}"] = lambda pixels=pixels: flat(
            ops.distribute_fpn_proposals(large, 2, 5, 4, 224, pixels, rois_num=eight)
        )
    levels = "min_level", 3, "max_level", 5, "refer_level", 4, "refer_scale", 200
    found["distribute_fpn_proposals, pairs"] = lambda: flat(
        older.distribute_fpn_proposals(large, eight, 3, 3, *levels, "pixel_offset", False)
    )
    size, anchors = tensor([[24, 30], [20, 18]]), boxes(4, 5, 3, size=30.0)
    rpn = tensor(rng.uniform(size=(2, 3, 4, 5))), tensor(0.5 * rng.normal(size=(2, 12, 4, 5)))
    rest = size, anchors, tensor(rng.uniform(0.5, 1.0, (4, 5, 3, 4)))
    for k, given in enumerate([(6000, 1000, 0.5, 0.1, 1.0, False), (30, 10, 0.7, 3.0, 1.0, True)]):
        found[f"generate_proposals {k}"] = lambda given=given: ops.generate_proposals(
            *rpn, *rest, *given, return_rois_num=True
        )
    tops = "pre_nms_topN", 30, "post_nms_topN", 10, "nms_thresh", 0.7, "min_size", 1.0
    found["generate_proposals, pairs"] = lambda: older.generate_proposals_v2(
        *rpn, *rest, *tops, "eta", 1.0, "pixel_offset", False
    )
    return found


def flat(parts) -> tuple:
    """Tensors, and those of the lists among them."""
    return tuple(x for each in parts for x in (each if isinstance(each, list) else [each]))


def main():
    import paddle

    results = {}
    for name, call in calls(paddle).items():
        result = call()
        parts = result if isinstance(result, tuple) else (result,)
        results[name] = [
            [part.shape, [float(f"{v:.6g}") for v in part.numpy().ravel().tolist()]]
            for part in parts
        ]
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(results[name])}" for name in results)
    text = f'{{"paddle_version": "{paddle.__version__}", "results": {{\n{lines}\n}}}}\n'
    Path(__file__).with_name("paddle_vision_ops.json").write_text(text)


if __name__ == "__main__":
    main()
