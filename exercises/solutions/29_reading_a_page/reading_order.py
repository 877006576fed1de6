"""Reading order: which line comes first.

A finder gives boxes in no order. One reads from top to bottom, and what stands in one line from
left to right. But lines are seldom quite level: of two boxes of a line the right one may begin a
few pixels higher. Write `sort_boxes(boxes, tolerance=10.0)`:

- `boxes` is an array [n, 4, 2], or a list of n boxes: four corners (x, y) each, y downwards. The
  first corner is the top left one, and it alone counts here;
- first sort them from top to bottom, by y; those of one height from left to right, by x;
- then go through them from the first to the last. As long as there is one before it in the same
  line, to whose left it is, a box goes one place forward. Two are *in the same line* if their y
  differ by less than `tolerance`. It is to the left if its x is *less*;
- what is equal stays in the order in which it was given;
- return an array [n, 4, 2] of the dtype of the boxes. If there are none its shape is [0, 4, 2].

    top left corners (40, 3), (0, 30), (2, 0)  ->  (2, 0), (40, 3), (0, 30)
                     (40, 0), (2, 3), (20, 6)  ->  (2, 3), (20, 6), (40, 0)

Source: PaddleOCR, `sorted_boxes`.
"""

import numpy as np


def sort_boxes(boxes, tolerance=10.0):
    """The boxes as one reads them."""
    ordered = []
    for box in sorted(boxes, key=lambda box: (box[0][1], box[0][0])):
        x, y = box[0]
        place = len(ordered)
        while place and y - ordered[place - 1][0][1] < tolerance and x < ordered[place - 1][0][0]:
            place -= 1
        ordered.insert(place, box)
    return np.array(ordered).reshape(-1, 4, 2)
