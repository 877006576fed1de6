"""A picture in, its lines of text out: a finder, a reader, and the steps between them.

Source: Du et al., "PP-OCR: a practical ultra lightweight OCR system" (2020).
"""

from math import ceil
from typing import NamedTuple

from ...core.prelude import NUMPY as np
from ...core.prelude import Tensor, value_error
from ...eager.modes import no_grad
from ..transforms.pictures import is_pil, open_picture
from .finding import find_boxes, sort_boxes
from .letters import decode_greedily
from .pixels import resize_to, straighten

__all__ = ["LineOfText", "TextSystem", "choose_size", "draw_lines"]


class LineOfText(NamedTuple):
    """A line of text in a picture: corners [4, 2] from the top left, what it says, how surely."""

    box: object
    text: str
    score: float


class TextSystem:
    """Reads pictures: `system(image)` is a list of `LineOfText`s, in the order of `sort_boxes`.

    `finder`: pictures [1, 3, h, w] to the probability of text [1, 1, h, w]; h and w are those of
    `choose_size`. `reader`: lines [n, 3, 48, w] to probabilities [n, T, classes], where class 0 is
    CTC's blank and class k is `letters[k - 1]`. `turner`, if any: lines [n, 3, 48, 192] to the
    probabilities [n, 2] that they stand upright or upside down. They are layers, or what
    `to_static` made of them: `input_spec=[InputSpec([1, 3, None, None])]` gives one program for
    pictures of all sizes. They see -1 to 1 in the order blue, green, red, as PP-OCR's networks do.

    `threshold`, `least_box_score` and `ratio` are those of `find_boxes`. Lines whose score is below
    `least_score` are left out. `side` is the shorter side that the finder sees at least. Lines are
    read `batch` at a time, from the narrowest to the widest, in pictures at least `width` wide.

    `pp_ocr_v4` in MiniPaddle's folder `hub` gives PP-OCR's networks and letters (`paddle.hub`).

    Raises ValueError for a picture of another form, and where `letters` are not one fewer than the
    classes. Source: Du et al. 2020; RapidOCR, whose defaults these are.

    >>> finder = lambda x: (x[:, :1] > 0).astype("float32")  # white is text
    >>> reader = lambda x: paddle.nn.functional.one_hot(paddle.to_tensor([[0, 1, 2, 2, 0]]), 3)
    >>> page = paddle.zeros([64, 96]).numpy().astype("uint8")
    >>> page[20:40, 10:80] = 255
    >>> (line,) = paddle.vision.ocr.TextSystem(finder, reader, "ab", side=64)(page)
    >>> line.text, line.score, line.box.tolist()
    ('ab', 1.0, [[0, 8], [92, 8], [92, 52], [0, 52]])
    """

    def __init__(
        self, finder, reader, letters, turner=None, *, threshold=0.3, least_box_score=0.5,
        ratio=1.6, least_score=0.5, side=736, batch=6, width=320,
    ):  # fmt: skip
        self.finder, self.reader, self.turner = finder, reader, turner
        self.letters, self.least_score = list(letters), least_score
        self.choices = {"threshold": threshold, "least_score": least_box_score, "ratio": ratio}
        self.side, self.batch, self.width = side, batch, width

    def __call__(self, image) -> list[LineOfText]:
        return self.read_pictures([image])[0]

    def read_pictures(self, images: list) -> list[list[LineOfText]]:
        """The lines of each picture; those of all are read in batches together."""
        pictures = [open_pixels(image) for image in images]
        boxes = [self.find(picture) for picture in pictures]
        pairs = zip(pictures, boxes, strict=True)
        lines = [lay_down(straighten(picture, box)) for picture, each in pairs for box in each]
        texts = iter(self.read(self.turn_upright(lines)))
        everything = ([LineOfText(box, *next(texts)) for box in each] for each in boxes)
        return [[line for line in each if line.score >= self.least_score] for each in everything]

    def find(self, picture):
        """The boxes of text in a picture [h, w, channels], sorted, int64 [n, 4, 2]."""
        size = choose_size(*picture.shape[:2], self.side)
        x = scale_values(resize_to(picture, *size))[None]
        probability = run(self.finder, x)
        if probability.shape != (1, 1, *size):
            shape, expected = list(probability.shape), [1, 1, *size]
            raise value_error(f"TextSystem: the finder's map has the shape {shape}", f"{expected}")
        boxes, _ = find_boxes(probability[0, 0], **self.choices)
        height, width = picture.shape[:2]
        places = np.rint(boxes * [width / size[1], height / size[0]]).astype(int)
        places = places.clip(0, [width - 1, height - 1])
        edges = np.hypot(*np.moveaxis(places[:, [1, 3]] - places[:, :1], -1, 0)).astype(int)
        return sort_boxes(places[(edges > 3).all(1)])

    def turn_upright(self, lines: list) -> list:
        """The lines, turned by half a turn where the turner is sure they stand on their head."""
        if self.turner is None:
            return lines
        turned = list(lines)
        for places in batches_of(lines, self.batch):
            x = np.stack([fit_line(lines[k], 192) for k in places])
            for k, (_, upside_down) in zip(places, run(self.turner, x), strict=True):
                turned[k] = lines[k][::-1, ::-1] if upside_down > SURE else lines[k]
        return turned

    def read(self, lines: list) -> list[tuple[str, float]]:
        """(text, score) of each line [h, w, channels]."""
        texts = [("", 0.0)] * len(lines)
        for places in batches_of(lines, self.batch):
            widest = max(self.width / 48, *(aspect(lines[k]) for k in places))
            x = np.stack([fit_line(lines[k], int(48 * widest)) for k in places])
            for k, probabilities in zip(places, run(self.reader, x), strict=True):
                if probabilities.shape[-1] != len(self.letters) + 1:
                    raise value_error(
                        f"TextSystem: {len(self.letters)} letters for {probabilities.shape[-1]} "
                        "classes of the reader",
                        "one class more than letters: class 0 is the blank",
                    )
                labels, score = decode_greedily(probabilities)
                texts[k] = "".join(self.letters[label - 1] for label in labels), score
        return texts


def run(network, x):
    """The result of a network for an array, as an array."""
    with no_grad():
        y = network(Tensor(x))
    return (y[0] if isinstance(y, list | tuple) else y).numpy()


def open_pixels(image):
    """A picture of any form as uint8 [h, w, 1 or 3], blue first; what is clear lies on white."""
    if is_pil(image) and image.mode not in ("L", "RGB"):
        from PIL import Image  # the caller has it

        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    picture, _ = open_picture(image)
    whole = picture.dtype == "uint8"
    if picture.shape[2] not in (1, 3) or not (whole or picture.dtype.kind == "f"):
        raise value_error(
            f"TextSystem of a picture {list(picture.shape)} of {picture.dtype}",
            "1 or 3 channels, of uint8 or of floats from 0 to 1",
        )
    if not whole:
        if not (picture.min(initial=0) >= 0 and picture.max(initial=0) <= 1):
            raise value_error("TextSystem of floats beyond 0 to 1, or nan", "a picture of 0 to 1")
        picture = np.rint(picture * 255).astype("uint8")
    return picture[..., ::-1]


def choose_size(height: int, width: int, side=736, longest=2000) -> tuple[int, int]:
    """(height, width) at which a finder sees a picture: multiples of 32.

    Larger pictures shrink until their longer side is `longest`; smaller ones grow until their
    shorter side is `side`, but their longer one no more than 8 times that. Source: PaddleOCR,
    `DetResizeForTest`; RapidOCR.

    >>> paddle.vision.ocr.choose_size(191, 384)
    (736, 1472)
    """
    if min(height, width) < 1:
        raise value_error(f"a picture of {height} x {width} pixels", "at least one pixel")
    scale = min(1.0, longest / max(height, width))
    scale = max(scale, min(side / min(height, width), 8 * side / max(height, width)))
    high, wide = (max(32, round(int(n * scale) / 32) * 32) for n in (height, width))
    return high, wide


def scale_values(picture):
    """Bytes [h, w, 1 or 3] as floats from -1 to 1, [3, h, w]."""
    x = np.multiply(picture.transpose(2, 0, 1), 2 / 255, dtype="float32") - np.float32(1)
    return np.broadcast_to(x, (3, *x.shape[1:]))


def lay_down(line):
    """A line of text; one that is half as high again as wide is turned by a quarter."""
    return np.rot90(line) if line.shape[0] >= 1.5 * line.shape[1] else line


def aspect(line) -> float:
    """How often its height a line is wide."""
    return line.shape[1] / line.shape[0]


SURE = 0.9
"""How probable it must be that a line stands on its head."""


def batches_of(lines: list, size: int) -> list:
    """The places of lines from the narrowest to the widest, `size` at a time."""
    order = np.argsort([aspect(line) for line in lines], kind="stable")
    return [order[k : k + size].tolist() for k in range(0, len(lines), size)]


def fit_line(line, width: int):
    """A line as floats [3, 48, width]: 48 high, narrower if it must be, with zeros to its right."""
    x = np.zeros((3, 48, width), "float32")
    wide = min(width, ceil(48 * aspect(line)))
    x[..., :wide] = scale_values(resize_to(line, 48, wide))
    return x


def draw_lines(image, lines, font=None):
    """A PIL image: the picture with the boxes, and beside it their texts on white.

    `lines` are `LineOfText`s; `font` is the path of a TrueType file with their letters, by default
    Pillow's own, which has Latin ones. Source: PaddleOCR, `draw_ocr`.

    >>> page = paddle.zeros([40, 60]).numpy().astype("uint8")
    >>> line = paddle.vision.ocr.LineOfText([[5, 5], [50, 5], [50, 25], [5, 25]], "word", 1.0)
    >>> paddle.vision.ocr.draw_lines(page, [line]).size
    (120, 40)
    """
    from PIL import Image, ImageDraw, ImageFont

    picture = open_pixels(image)[..., ::-1]
    height, width = picture.shape[:2]
    beside = np.broadcast_to(picture, (height, width, 3))
    page = Image.fromarray(np.concatenate([beside, np.full_like(beside, 255)], 1))
    pen = ImageDraw.Draw(page)
    for box, text, _ in lines:
        corners = np.asarray(box, "float64")
        pen.polygon([*map(tuple, corners.tolist())], outline="red")
        right, down = (float(np.hypot(*(corners[k] - corners[0]))) for k in (1, 3))
        size = max(1.0, 0.8 * min(right, down))
        letters = ImageFont.truetype(font, size) if font else ImageFont.load_default(size)
        long = letters.getlength(text)
        if long > max(right, down):
            letters = letters.font_variant(size=size * max(right, down) / long)
        x, y = corners.min(0)
        pen.text((width + x, y), text, "black", letters)
    return page
