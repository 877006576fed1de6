"""Unclip: a box grows back to its size.

A finder learns boxes that have become smaller, so that lines that touch stay apart. What it finds
is then smaller than the text, too, and has to grow again. Write `unclip(box, ratio=1.6)`: the box
with its edges moved outwards by

    distance = area · ratio / perimeter

- `box` [4, 2] is an array, or a list, of four corners (x, y) in their order around it; it may be
  turned, and run either way;
- `ocr.offset_polygon(corners, distance)` moves the edges of a polygon [k, 2] outwards. What comes
  back has more corners than four: those of the box become arcs;
- area and perimeter are those of the box as it is given. But it is the box with its corners
  *rounded down* to whole pixels that grows: Clipper, the library that PaddleOCR calls, has
  integers;
- the corners of the result are rounded to the nearest whole pixel, halves up: -0.5 becomes 0. They
  stay floats.

The area of a polygon with the corners (x₀, y₀), (x₁, y₁), … is half the magnitude of the sum of
xᵢ·yᵢ₊₁ - xᵢ₊₁·yᵢ, where the first corner comes after the last.

    box 6 wide and 2 high, ratio = 8 / 3: distance = 12 · 8/3 / 16 = 2
    x from 0 to 6 becomes x from -2 to 8

Source: Liao et al., "Real-time scene text detection with differentiable binarization" (2020),
section 3.5; PaddleOCR, `DBPostProcess`.
"""

import numpy as np

from minipaddle.vision import ocr


def unclip(box, ratio=1.6):
    """The box grown outwards, a polygon [k, 2] of whole pixels."""
    box = np.asarray(box, "float64")
    after = np.roll(box, -1, axis=0)
    area = abs((box[:, 0] * after[:, 1] - after[:, 0] * box[:, 1]).sum()) / 2
    perimeter = np.hypot(*(after - box).T).sum()
    grown = ocr.offset_polygon(np.floor(box), area * ratio / perimeter)
    return np.floor(grown + 0.5)
