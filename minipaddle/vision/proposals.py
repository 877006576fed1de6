"""Where a detector looks: boxes at each cell of a map, their coding, the best of them.

Written in tensor functions. Source: Paddle API `paddle.vision.ops`.
"""

import math

from ..core.prelude import Tensor, e, require_one_of, value_error
from ..eager.modes import no_grad
from ..tensor.arranging import triu
from ..tensor.creation import arange, full, to_tensor
from ..tensor.joining import concat, stack
from ..tensor.math import clip as clamp
from ..tensor.math import exp, floor, log, log2, sqrt
from ..tensor.search import argsort, nonzero
from .detection import areas, overlaps, refuse_eta, visible

# ---- anchors ---------------------------------------------------------------------------------


def prior_box(
    input, image, min_sizes, max_sizes=None, aspect_ratios=(1.0,), variance=(0.1, 0.1, 0.2, 0.2),
    flip=False, clip=False, steps=(0.0, 0.0), offset=0.5, min_max_aspect_ratios_order=False,
    name=None,
):  # fmt: skip
    """SSD's boxes at each cell of a map, as shares of the image, and variances: both [H, W, n, 4].

    Of `input` [N, C, H, W] and `image` only height and width count. A cell has a box of each of
    `min_sizes` and ratio, and one of √(min · max) with `max_sizes`; `flip` adds the ratios 1 / r.
    `steps` (width, height) is the distance of cells in pixels; with a 0 in it, what the sizes say.
    Source: Liu et al., "SSD", 2016.

    >>> maps, image = paddle.zeros([1, 8, 1, 2]), paddle.zeros([1, 3, 8, 16])
    >>> boxes, variances = paddle.vision.ops.prior_box(maps, image, [4.0])
    >>> boxes[0, 1, 0].tolist(), variances.shape
    ([0.625, 0.25, 0.875, 0.75], [1, 2, 1, 4])
    """
    least, most, ratios = (numbers(x) for x in (min_sizes, max_sizes, aspect_ratios))
    if most and len(most) != len(least):
        raise value_error(f"prior_box with {len(most)} max_sizes", f"{len(least)}, as min_sizes")
    sides = box_sides(least, most, spread_ratios(ratios, flip), min_max_aspect_ratios_order)
    cells, size = input.shape[2:], image.shape[2:]
    ends = [[], []]
    for axis in (1, 0):
        step = steps[1 - axis] if all(steps) else size[axis] / cells[axis]
        centre = (arange(cells[axis]).astype(input.dtype) + offset) * step
        centre = centre.reshape([1, -1, 1] if axis else [-1, 1, 1])
        half = to_tensor([each[1 - axis] / 2 for each in sides], input.dtype)
        for end, sign in zip(ends, (-1, 1), strict=True):
            place = (centre + sign * half) / size[axis]
            end.append(place.expand([*cells, len(sides)]))
    boxes = stack([*ends[0], *ends[1]], -1)
    spread = to_tensor(numbers(variance), input.dtype).expand(boxes.shape)
    return clamp(boxes, 0.0, 1.0) if clip else boxes, spread


def numbers(value) -> list[float]:
    """A list of numbers; of a number, one; of None, none."""
    return [] if value is None else [*map(float, value if hasattr(value, "__len__") else [value])]


def spread_ratios(ratios: list[float], flip: bool) -> list[float]:
    """1 and the other ratios, each once, with `flip` followed by its inverse."""
    spread = [1.0]
    for ratio in ratios:
        if all(abs(ratio - other) > 1e-6 for other in spread):
            spread += [ratio, 1 / ratio] if flip else [ratio]
    return spread


def box_sides(least, most, ratios, largest_second: bool) -> list[tuple[float, float]]:
    """(width, height) of the boxes of a cell, in Paddle's order, or Caffe's."""
    sides = []
    for k, side in enumerate(least):
        shapes = [(side * math.sqrt(r), side / math.sqrt(r)) for r in ratios]
        square = [(math.sqrt(side * most[k]),) * 2] if most else []
        place = 1 if largest_second else len(shapes)
        sides += [*shapes[:place], *square, *shapes[place:]]
    return sides


def box_coder(
    prior_box, prior_box_var, target_box, code_type="encode_center_size", box_normalized=True,
    axis=0, name=None,
):  # fmt: skip
    """Boxes as offsets from prior boxes, and back.

    "encode_center_size": each of target_box [N, 4] from each of prior_box [M, 4], as [N, M, 4]:
    centre and logarithm of the sides, in units of the prior box. "decode_center_size": boxes from
    the offsets [N, M, 4], whose priors run along `axis` 1 of them (axis=0) or 0 (axis=1).
    `prior_box_var` multiplies offsets: None, four numbers, or a tensor as prior_box. Pixels
    (box_normalized=False) reach to their far end. Source: Girshick et al. 2014.

    >>> prior, box = paddle.to_tensor([[0.0, 0, 4, 4]]), paddle.to_tensor([[2.0, 0, 6, 8]])
    >>> code = paddle.vision.ops.box_coder(prior, None, box)
    >>> [round(v, 4) for v in code.tolist()[0][0]]
    [0.5, 0.5, 0.0, 0.6931]
    >>> paddle.vision.ops.box_coder(prior, None, code, "decode_center_size").tolist()
    [[[2.0, 0.0, 6.0, 8.0]]]
    """
    require_one_of("box_coder", ("encode_center_size", "decode_center_size"), code_type=code_type)
    more = 0.0 if box_normalized else 1.0
    encode = code_type == "encode_center_size"
    lead = 0 if encode or axis == 0 else 1
    centre, sides = (each.unsqueeze(lead) for each in centre_and_sides(prior_box, more))
    scale = 1.0
    if prior_box_var is not None:
        is_tensor = isinstance(prior_box_var, Tensor)
        scale = prior_box_var if is_tensor else to_tensor(list(prior_box_var), target_box.dtype)
        scale = scale.unsqueeze(lead) if scale.ndim == 2 else scale
    if encode:
        own, long = (each.unsqueeze(1) for each in centre_and_sides(target_box, more, halves=True))
        return concat([(own - centre) / sides, log(e.abs(long / sides))], -1) / scale
    offsets = target_box * scale
    centre, half = offsets[..., :2] * sides + centre, exp(offsets[..., 2:]) * sides / 2
    return concat([centre - half, centre + half - more], -1)


def centre_and_sides(boxes, more: float, halves: bool = False) -> tuple:
    """The centres and the sides of boxes [n, 4]; `halves`: the centre is between the corners."""
    low, high = boxes[:, :2], boxes[:, 2:]
    sides = high - low + more
    return (low + high) / 2 if halves else low + sides / 2, sides


# ---- proposals -------------------------------------------------------------------------------


def distribute_fpn_proposals(
    fpn_rois, min_level, max_level, refer_level, refer_scale, pixel_offset=False, rois_num=None,
    name=None,
):  # fmt: skip
    """Boxes [n, 4] by the level of a pyramid that suits their size.

    A box of side `refer_scale` belongs to `refer_level`, one of twice the side to the next. Returns
    the boxes of each level, the places [n, 1] that bring all of them back into their order, and,
    with `rois_num` [N] boxes of each image, how many of each level each image has, else None.
    Source: Lin et al., "Feature pyramid networks", 2017.

    >>> boxes = paddle.to_tensor([[0.0, 0, 300, 300], [0, 0, 20, 20], [0, 0, 120, 120]])
    >>> levels, restore, _ = paddle.vision.ops.distribute_fpn_proposals(boxes, 2, 4, 4, 224)
    >>> [len(level) for level in levels], restore.tolist()
    ([1, 1, 1], [[2], [0], [1]])
    """
    with no_grad():
        side = sqrt(areas(fpn_rois, 1.0 if pixel_offset else 0.0))
        level = floor(log2(side / refer_scale + 1e-6) + refer_level)
        level = clamp(level, min_level, max_level)
        images = arange(fpn_rois.shape[0])
        if rois_num is not None:
            ends = rois_num.cumsum().astype("int64")
            images = (images.unsqueeze(1) >= ends).astype("int64").sum(1)
        places = [nonzero(level == k)[:, 0] for k in range(min_level, max_level + 1)]
        restore = argsort(concat(places)).astype("int32").unsqueeze(1)
        counts = None
        if rois_num is not None:
            numbered = arange(rois_num.shape[0])
            counts = [
                (images[at].unsqueeze(1) == numbered).astype("int32").sum(0).astype("int32")
                for at in places
            ]
        return [fpn_rois[at] for at in places], restore, counts


LARGEST = math.log(1000 / 16)
"""The most that a side may grow, as a logarithm."""


def generate_proposals(
    scores, bbox_deltas, img_size, anchors, variances, pre_nms_top_n=6000, post_nms_top_n=1000,
    nms_thresh=0.5, min_size=0.1, eta=1.0, pixel_offset=False, return_rois_num=False, name=None,
):  # fmt: skip
    """Boxes that probably hold something, from the outputs of a region proposal network.

    scores [N, A, H, W] and bbox_deltas [N, 4A, H, W], for anchors and variances [H, W, A, 4];
    `img_size` [N, 2] is (height, width). Of each image the `pre_nms_top_n` best are moved, cut at
    the edges, thinned out and at most `post_nms_top_n` returned: boxes [n, 4], scores [n, 1], and
    how many each image has (None without `return_rois_num`). Source: Ren et al., "Faster R-CNN",
    2015.

    >>> anchors = paddle.to_tensor([[[[0.0, 0.0, 8.0, 8.0]]]])
    >>> given = paddle.ones([1, 1, 1, 1]), paddle.zeros([1, 4, 1, 1])
    >>> boxes, _, _ = paddle.vision.ops.generate_proposals(
    ...     *given, paddle.to_tensor([[6.0, 9.0]]), anchors, paddle.ones_like(anchors))
    >>> boxes.tolist()
    [[0.0, 0.0, 8.0, 6.0]]
    """
    refuse_eta("generate_proposals", "eta", eta)
    more = 1.0 if pixel_offset else 0.0
    with no_grad():
        n, count = scores.shape[:2]
        anchors, variances = anchors.reshape([-1, 4]), variances.reshape([-1, 4])
        all_scores = scores.transpose([0, 2, 3, 1]).reshape([n, -1])
        deltas = bbox_deltas.reshape([n, count, 4, *scores.shape[2:]])
        deltas = deltas.transpose([0, 3, 4, 1, 2]).reshape([n, -1, 4])
        proposals = []
        for k in range(n):
            order = argsort(all_scores[k], descending=True, stable=True)[:pre_nms_top_n]
            boxes = move_boxes(anchors[order], deltas[k][order] * variances[order], more)
            size = img_size[k].flip(0).astype(boxes.dtype)
            ends = (
                clamp(e.minimum(each, size - more), 0.0) for each in (boxes[:, :2], boxes[:, 2:])
            )
            boxes = concat([*ends], 1)
            large = large_enough(boxes, size, max(min_size, 1.0), pixel_offset)
            hides = triu(overlaps(boxes, more), 1) > nms_thresh
            kept = nonzero(visible(large, hides & large.unsqueeze(1)))[:post_nms_top_n, 0]
            proposals.append((boxes[kept], all_scores[k][order][kept].unsqueeze(1)))
        rois, probabilities = (concat(parts) for parts in zip(*proposals, strict=True))
        counts = stack([ones_of(boxes).sum().astype("int32") for boxes, _ in proposals])
        return rois, probabilities, counts if return_rois_num else None


def ones_of(boxes):
    """A one for each box."""
    return full([boxes.shape[0]], 1, "int32")


def move_boxes(anchors, offsets, more: float):
    """Anchors [n, 4] after their offsets: of the centre in sides, of the sides as logarithms."""
    centre, sides = centre_and_sides(anchors, more)
    centre = offsets[:, :2] * sides + centre
    half = exp(clamp(offsets[:, 2:], max=LARGEST)) * sides / 2
    return concat([centre - half, centre + half - more], 1)


def large_enough(boxes, size, least: float, pixel_offset: bool):
    """Which boxes have sides of at least `least`; in pixels, their centres are in the image too."""
    sides = boxes[:, 2:] - boxes[:, :2] + (1.0 if pixel_offset else 0.0)
    fits = (sides >= least).all(-1)
    return fits & (boxes[:, :2] + sides / 2 <= size).all(-1) if pixel_offset else fits


__all__ = ["box_coder", "distribute_fpn_proposals", "generate_proposals", "prior_box"]
