"""Reading text in pictures: `TextSystem`, and each of its steps as a function.

Source: Du et al., "PP-OCR: a practical ultra lightweight OCR system" (2020).
"""

from .finding import binarize, find_boxes, score_box, shrink_map, sort_boxes, unclip
from .letters import collapse, decode_beams, decode_greedily
from .pixels import resize_to, straighten
from .polygons import fill_polygon, find_hull, fit_rectangle, offset_polygon, order_corners
from .system import LineOfText, TextSystem, choose_size, draw_lines

__all__ = [
    "LineOfText", "TextSystem", "binarize", "choose_size", "collapse", "decode_beams",
    "decode_greedily", "draw_lines", "fill_polygon", "find_boxes", "find_hull", "fit_rectangle",
    "offset_polygon", "order_corners", "resize_to", "score_box", "shrink_map", "sort_boxes",
    "straighten", "unclip",
]  # fmt: skip
