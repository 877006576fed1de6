"""Boxes in images: suppression, pooling over regions, and deformable convolution.

Written in tensor functions, so that gradients and programs follow. A box is (x1, y1, x2, y2).
Source: Paddle API `paddle.vision.ops`.
"""

import math

from .. import nn
from ..core.prelude import e, value_error
from ..eager.modes import no_grad
from ..engine.eager.control_flow import while_loop
from ..engine.ops.logic import logical_not
from ..nn import functional as F
from ..nn.functional.windows import whole_numbers
from ..nn.layer.conv import ConvND
from ..tensor.arranging import triu
from ..tensor.composed import isin
from ..tensor.creation import arange, full, to_tensor, zeros
from ..tensor.joining import stack
from ..tensor.math import ceil, clip, exp, floor, sigmoid
from ..tensor.search import argsort, nonzero
from .detection import matrix_nms, overlaps, visible
from .proposals import box_coder, distribute_fpn_proposals, generate_proposals, prior_box


def two(value) -> list[int]:
    """A number for each image axis."""
    numbers = whole_numbers(value)
    return numbers * 2 if len(numbers) == 1 else numbers


# ---- which boxes to keep ---------------------------------------------------------------------


def nms(
    boxes, iou_threshold=0.3, scores=None, category_idxs=None, categories=None, top_k=None
):  # fmt: skip
    """The numbers of the boxes [n, 4] that no better box overlaps by more than `iou_threshold`.

    Better is a higher score; without `scores`, an earlier box. With `category_idxs` only boxes of
    one category hide each other, only those of `categories` stay, and `top_k` of them at most.
    Source: Girshick et al. 2014.

    >>> boxes = paddle.to_tensor([[0.0, 0, 4, 4], [0, 0, 4, 3], [5, 5, 9, 9]])
    >>> paddle.vision.ops.nms(boxes, 0.5, paddle.to_tensor([0.2, 0.9, 0.1])).tolist()
    [1, 2]
    """
    if (category_idxs is None) != (categories is None) or (categories and scores is None):
        raise value_error(
            "nms was given a part of scores, category_idxs and categories",
            "all three, or scores, or none of them",
        )
    with no_grad():
        n = boxes.shape[0]
        order = arange(n) if scores is None else argsort(scores, descending=True, stable=True)
        boxes = boxes[order]
        hides = triu(overlaps(boxes), 1) > iou_threshold
        candidates = full([n], True, "bool")
        if categories is not None:
            kinds = category_idxs[order]
            hides = hides & (kinds.unsqueeze(1) == kinds)
            candidates = isin(kinds, to_tensor(categories))
        places = nonzero(visible(candidates, hides))[:, 0]
        return order[places if categories is None or top_k is None else places[:top_k]]


# ---- boxes' contents -------------------------------------------------------------------------


def images_of(boxes_num, count):
    """The number of the image that each of `count` boxes belongs to."""
    return (arange(count).unsqueeze(1) >= boxes_num.cumsum().astype("int64")).astype("int64").sum(1)


def roi_align(
    x, boxes, boxes_num, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=True, name=None,
):  # fmt: skip
    """The inside of each box of x [N, C, H, W] as [C, *output_size]: means of bilinear samples.

    `boxes` [R, 4] are those of image 0, then of image 1, …: `boxes_num` [N] of each. There are
    `sampling_ratio` samples a cell and axis, or where it is not positive as many as a cell has
    pixels. A sample is separable, and so is a mean of them: out = rows @ x @ columnsᵀ. Gradients
    flow to x. Source: He et al., "Mask R-CNN", 2017.

    >>> x = paddle.arange(16.0).reshape([1, 1, 4, 4])
    >>> boxes = paddle.to_tensor([[0.0, 0.0, 2.0, 2.0]])
    >>> paddle.vision.ops.roi_align(x, boxes, paddle.to_tensor([1]), 1, aligned=False).tolist()
    [[[[5.0]]]]
    """
    with no_grad():
        corners = boxes.astype(x.dtype) * spatial_scale - (0.5 if aligned else 0.0)
        weights = []
        for low, high, cells, size in zip((1, 0), (3, 2), two(output_size), x.shape[2:]):
            start, length = corners[:, low], corners[:, high] - corners[:, low]
            length = length if aligned else clip(length, 1.0)
            weights.append(mean_weights(start, length, cells, size, sampling_ratio))
    rows, columns = weights
    inside = x[images_of(boxes_num, boxes.shape[0])]
    return rows.unsqueeze(1) @ inside @ columns.unsqueeze(1).transpose([0, 1, 3, 2])


def mean_weights(start, length, cells: int, size: int, ratio: int):
    """[R, cells, size]: the mean of the linear samples of each cell, as weights of pixels.

    Beyond a pixel from the edge a sample is 0, nearer it is the pixel at the edge.
    """
    cell = length / cells
    counts = full(start.shape, ratio, start.dtype) if ratio > 0 else ceil(cell)
    first = start.unsqueeze(1) + cell.unsqueeze(1) * arange(cells).astype(start.dtype)
    pixels = arange(size).astype(start.dtype)

    def add_sample(k, total):
        place = first + ((k.astype(start.dtype) + 0.5) * cell / clip(counts, 1.0)).unsqueeze(1)
        inside = (place >= -1) & (place <= size) & (k < counts).unsqueeze(1)
        hat = clip(1 - e.abs(clip(place, 0.0, size - 1.0).unsqueeze(2) - pixels), 0.0)
        return [k + 1, total + e.where(inside.unsqueeze(2), hat, 0.0)]

    begin = [to_tensor(0, "int64"), zeros([start.shape[0], cells, size], start.dtype)]
    _, total = while_loop(lambda k, total: (k < counts).any(), add_sample, begin)
    return total / clip(counts, 1.0).reshape([-1, 1, 1])


def roi_pool(x, boxes, boxes_num, output_size, spatial_scale=1.0, name=None):
    """The inside of each box of x [N, C, H, W] as [C, *output_size]: the largest of each cell.

    Boxes are rounded to pixels, and cells overlap by at most one; an empty cell is 0. `boxes` and
    `boxes_num` are as for `roi_align`. Source: Girshick, "Fast R-CNN", 2015.

    >>> x = paddle.arange(16.0).reshape([1, 1, 4, 4])
    >>> boxes = paddle.to_tensor([[0.0, 0.0, 3.0, 3.0]])
    >>> paddle.vision.ops.roi_pool(x, boxes, paddle.to_tensor([1]), 2).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    y = x[images_of(boxes_num, boxes.shape[0])]
    corners = floor(boxes.astype(x.dtype) * spatial_scale + 0.5)
    empty = full([1], False, "bool")
    for axis, low, cells, size in zip((2, 3), (1, 0), two(output_size), x.shape[2:]):
        start, end = corners[:, low], corners[:, low + 2]
        cell = (clip(end - start + 1, 1.0) / cells).unsqueeze(1)
        number, pixels = arange(cells).astype(x.dtype), arange(size).astype(x.dtype)
        begin = (floor(number * cell) + start.unsqueeze(1)).unsqueeze(2)
        stop = (ceil((number + 1) * cell) + start.unsqueeze(1)).unsqueeze(2)
        inside = (pixels >= begin) & (pixels < stop)  # [R, cells, size]
        shape = [-1, 1, cells, size, 1] if axis == 2 else [-1, 1, 1, cells, size]
        parts = y.unsqueeze(axis)
        y = e.where(inside.reshape(shape), parts, -math.inf).max(axis + 1)
        none = logical_not(inside.any(-1))
        empty = empty | none.reshape([-1, 1, cells, 1] if axis == 2 else [-1, 1, 1, cells])
    return e.where(empty, 0.0, y)


def yolo_box(
    x, img_size, anchors, class_num, conf_thresh, downsample_ratio, clip_bbox=True, name=None,
    scale_x_y=1.0, iou_aware=False, iou_aware_factor=0.5,
):  # fmt: skip
    """Boxes [N, A·H·W, 4] and scores [N, A·H·W, class_num] decoded from YOLO's last layer.

    x is [N, A·(5 + class_num), H, W]: for each of the A anchors (width, height) the logits of the
    centre, the logarithms of width and height, the logits of "an object" and of each class; with
    `iou_aware` A channels more stand before them. `img_size` [N, 2] is (height, width). Where the
    confidence is less than `conf_thresh`, boxes and scores are 0. Source: Redmon and Farhadi,
    "YOLOv3", 2018.

    >>> size = paddle.to_tensor([[32, 32]])
    >>> boxes, scores = paddle.vision.ops.yolo_box(
    ...     paddle.zeros([1, 7, 1, 1]), size, [16, 16], 2, 0.1, 32)
    >>> boxes.tolist(), scores.tolist()
    ([[[8.0, 8.0, 24.0, 24.0]]], [[[0.25, 0.25]]])
    """
    n, channels, h, w = x.shape
    count = len(anchors) // 2
    wanted = count * (5 + class_num + bool(iou_aware))
    if channels != wanted:
        raise value_error(f"yolo_box was given {x.spec}", f"{wanted} channels")
    extra, x = (x[:, :count], x[:, count:]) if iou_aware else (None, x)
    parts = x.reshape([n, count, 5 + class_num, h, w])
    confidence = sigmoid(parts[:, :, 4])
    if iou_aware:
        confidence = confidence ** (1 - iou_aware_factor) * sigmoid(extra) ** iou_aware_factor
    img_size = img_size.astype(x.dtype)
    ends = [[], []]
    for k, cells in enumerate((w, h)):
        image = img_size[:, 1 - k].reshape([n, 1, 1, 1])
        cell = arange(cells).astype(x.dtype).reshape([1, cells] if k == 0 else [cells, 1])
        centre = cell + scale_x_y * sigmoid(parts[:, :, k]) - 0.5 * (scale_x_y - 1)
        anchor = to_tensor(list(anchors[k::2]), x.dtype).reshape([count, 1, 1])
        side = exp(parts[:, :, 2 + k]) * anchor / (downsample_ratio * cells)
        low, high = (centre / cells - side / 2) * image, (centre / cells + side / 2) * image
        if clip_bbox:
            low, high = clip(low, 0.0), e.minimum(high, image - 1)
        ends[0].append(low)
        ends[1].append(high)
    sure = (confidence >= conf_thresh).astype(x.dtype)
    boxes = stack([*ends[0], *ends[1]], -1) * sure.unsqueeze(-1)
    scores = sigmoid(parts[:, :, 5:]).transpose([0, 1, 3, 4, 2]) * (confidence * sure).unsqueeze(-1)
    return boxes.reshape([n, -1, 4]), scores.reshape([n, -1, class_num])


# ---- convolutions that look where they want --------------------------------------------------


def deform_conv2d(
    x, offset, weight, bias=None, stride=1, padding=0, dilation=1, deformable_groups=1, groups=1,
    mask=None, name=None,
):  # fmt: skip
    """A convolution whose every tap reads x [N, C, H, W] at its place moved by `offset`.

    `offset` [N, 2·deformable_groups·kh·kw, Ho, Wo] holds (down, right) of each tap; `mask` [N,
    deformable_groups·kh·kw, Ho, Wo], if any, multiplies it. Between pixels x is linear, around it
    zero. Gradients flow to all of them. Source: Dai et al., "Deformable convolutional networks",
    2017, and Zhu et al., "V2", 2019, for the mask.

    >>> x, offset = paddle.ones([1, 1, 4, 4]), paddle.zeros([1, 18, 2, 2])
    >>> paddle.vision.ops.deform_conv2d(x, offset, paddle.ones([1, 1, 3, 3])).tolist()
    [[[[9.0, 9.0], [9.0, 9.0]]]]
    """
    n, c, h, w = x.shape
    outputs, _, kh, kw = weight.shape
    taps, sets = kh * kw, deformable_groups
    ho, wo = offset.shape[2:]
    moved = offset.reshape([n * sets, taps, 2, ho, wo])
    places = []
    for k, (size, kernel, out) in enumerate(((h, kh, ho), (w, kw, wo))):
        s, p, d = two(stride)[k], two(padding)[k], two(dilation)[k]
        tap = arange(kernel).astype(x.dtype).reshape([kernel, 1] if k == 0 else [1, kernel]) * d
        tap = (tap + zeros([kh, kw], x.dtype)).reshape([taps, 1, 1])
        window = arange(out).astype(x.dtype).reshape([out, 1] if k == 0 else [1, out]) * s - p
        place = moved[:, :, k] + tap + window
        places.append((2 * place + 1) / size - 1)  # as grid_sample counts without aligned corners
    grid = stack(places[::-1], -1).reshape([n * sets, taps * ho, wo, 2])
    read = F.grid_sample(x.reshape([n * sets, c // sets, h, w]), grid, align_corners=False)
    read = read.reshape([n * sets, c // sets, taps, ho * wo])
    if mask is not None:
        read = read * mask.reshape([n * sets, 1, taps, ho * wo])
    columns = read.reshape([n, groups, c // groups * taps, ho * wo])
    y = weight.reshape([1, groups, outputs // groups, -1]) @ columns
    y = y.reshape([n, outputs, ho, wo])
    return y if bias is None else y + bias.reshape([1, -1, 1, 1])


# ---- layers ----------------------------------------------------------------------------------


class DeformConv2D(ConvND):
    """`deform_conv2d` with a weight and a bias; it is called with x, the offset and the mask.

    `weight` is drawn from a normal distribution of variance 2 / (in_channels · taps).

    >>> layer = paddle.vision.ops.DeformConv2D(2, 4, 3, padding=1)
    >>> layer(paddle.ones([1, 2, 5, 5]), paddle.zeros([1, 18, 5, 5])).shape
    [1, 4, 5, 5]
    """

    n = 2

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1,
        deformable_groups=1, groups=1, weight_attr=None, bias_attr=None,
    ):  # fmt: skip
        options = kernel_size, stride, padding, dilation, groups, weight_attr, bias_attr, "NCHW"
        super().__init__(in_channels, out_channels, *options)
        self._deformable_groups = deformable_groups

    def forward(self, x, offset, mask=None):
        return deform_conv2d(
            x, offset, self.weight, self.bias, self._stride, self._padding, self._dilation,
            self._deformable_groups, self._groups, mask,
        )  # fmt: skip


class ConvNormActivation(nn.Sequential):
    """A convolution, a norm, an activation: [n, in_channels, h, w] to [n, out_channels, h, w].

    A `stride` divides h and w. Without `padding` nothing else changes them; a norm or an activation
    of None is left out; `bias` is there where no norm is, unless it says otherwise.

    >>> block = paddle.vision.ops.ConvNormActivation(3, 8, stride=2)
    >>> block(paddle.ones([1, 3, 4, 4])).shape
    [1, 8, 2, 2]
    """

    def __init__(
        self, in_channels, out_channels, kernel_size=3, stride=1, padding=None, groups=1,
        norm_layer=nn.BatchNorm2D, activation_layer=nn.ReLU, dilation=1, bias=None,
    ):  # fmt: skip
        if padding is None:
            padding = (kernel_size - 1) // 2 * dilation
        options = in_channels, out_channels, kernel_size, stride, padding, dilation, groups
        convolution = nn.Conv2D(*options, bias_attr=norm_layer is None if bias is None else bias)
        norm = [] if norm_layer is None else [norm_layer(out_channels)]
        activation = [] if activation_layer is None else [activation_layer()]
        super().__init__(convolution, *norm, *activation)


class RoIAlign(nn.Layer):
    """`roi_align` with a fixed size.

    >>> boxes = paddle.to_tensor([[0.0, 0.0, 3.0, 3.0]])
    >>> paddle.vision.ops.RoIAlign(2)(paddle.ones([1, 3, 4, 4]), boxes, paddle.to_tensor([1])).shape
    [1, 3, 2, 2]
    """

    def __init__(self, output_size, spatial_scale=1.0):
        super().__init__()
        self._output_size, self._spatial_scale = output_size, spatial_scale

    def forward(self, x, boxes, boxes_num, aligned=True):
        options = self._output_size, self._spatial_scale
        return roi_align(x, boxes, boxes_num, *options, aligned=aligned)


class RoIPool(RoIAlign):
    """`roi_pool` with a fixed size.

    >>> boxes = paddle.to_tensor([[0.0, 0.0, 3.0, 3.0]])
    >>> paddle.vision.ops.RoIPool(2)(paddle.ones([1, 3, 4, 4]), boxes, paddle.to_tensor([1])).shape
    [1, 3, 2, 2]
    """

    def forward(self, x, boxes, boxes_num):
        return roi_pool(x, boxes, boxes_num, self._output_size, self._spatial_scale)


__all__ = ["box_coder", "distribute_fpn_proposals", "generate_proposals", "matrix_nms", "prior_box"]
__all__ += [
    "ConvNormActivation",
    "DeformConv2D",
    "RoIAlign",
    "RoIPool",
    "deform_conv2d",
    "nms",
    "roi_align",
    "roi_pool",
    "yolo_box",
]  # fmt: skip
