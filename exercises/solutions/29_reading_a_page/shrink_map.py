"""The shrink map: what a finder should say of a picture.

A finder gives each pixel the probability that there is text. If it learned the boxes as they are,
two lines that touch would become one. So it learns boxes whose edges have moved inwards, by

    distance = area · (1 - ratio²) / perimeter

Write `shrink_map(boxes, height, width, ratio=0.4, least=8)`. It returns two arrays of float32
[height, width]: the map, and a mask that says where to learn.

- `boxes` is an array or a list of boxes, each of them an array or a list of corners [k, 2], (x, y)
  in their order around it, either way. A box is convex; most have four corners, some have more;
- the map is 1 in each box that has become smaller, and 0 elsewhere;
- the mask is 1, and 0 in boxes that are too small to be read: those whose x, or whose y, differ by
  *less than* `least` from the least to the largest, and those without area. There the whole box
  counts, as it is given, and the map has nothing of it.

Two functions are there. `ocr.offset_polygon(corners, distance)` moves the edges of a polygon
outwards, or inwards if the distance is negative. `ocr.fill_polygon(corners, height, width)` is an
array of bools: the pixels that a polygon covers. What lies beyond the picture is cut off.

The area of a polygon with the corners (x₀, y₀), (x₁, y₁), … is half the magnitude of the sum of
xᵢ·yᵢ₊₁ - xᵢ₊₁·yᵢ, where the first corner comes after the last.

    box [[1, 1], [12, 1], [12, 9], [1, 9]]: 88 · (1 - 0.16) / 38 = 1.95 pixels
    it becomes x from 2.95 to 10.05 and y from 2.95 to 7.05; of the map 9 · 6 pixels are 1

Source: Liao et al., "Real-time scene text detection with differentiable binarization" (2020),
section 3.4; Vatti, "A generic solution to polygon clipping" (1992).
"""

import numpy as np

from minipaddle.vision import ocr


def shrink_map(boxes, height, width, ratio=0.4, least=8):
    """The map that a finder should give, and the mask of where it learns."""
    learn = np.zeros((height, width), "float32")
    mask = np.ones((height, width), "float32")
    for box in boxes:
        box = np.asarray(box, "float64")
        after = np.roll(box, -1, axis=0)
        area = abs((box[:, 0] * after[:, 1] - after[:, 0] * box[:, 1]).sum()) / 2
        perimeter = np.hypot(*(after - box).T).sum()
        if area == 0 or np.ptp(box, axis=0).min() < least:
            mask[ocr.fill_polygon(box, height, width)] = 0
        else:
            inner = ocr.offset_polygon(box, -area * (1 - ratio**2) / perimeter)
            learn[ocr.fill_polygon(inner, height, width)] = 1
    return learn, mask
