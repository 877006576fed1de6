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
    return found


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
