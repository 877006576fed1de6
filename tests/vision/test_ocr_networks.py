"""PP-OCRv4's networks out of RapidOCR's wheel, where it is installed, on a page that is drawn."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

import minipaddle as paddle
from minipaddle.vision import ocr

onnx = pytest.importorskip("onnx")
WHEEL = find_spec("rapidocr_onnxruntime")
if WHEEL is None:
    pytest.skip("the wheel rapidocr-onnxruntime is not installed", allow_module_level=True)
FOLDER = Path(WHEEL.origin).parent / "models"
FINDER, READER, TURNER = (
    FOLDER / f"{name}_infer.onnx"
    for name in ("ch_PP-OCRv4_det", "ch_PP-OCRv4_rec", "ch_ppocr_mobile_v2.0_cls")
)


def load(path, sizes, folder):
    """A network whose sizes stand in the file."""
    model = onnx.load(path)
    dimensions = model.graph.input[0].type.tensor_type.shape.dim
    for dimension, size in zip(dimensions, sizes, strict=True):
        if size:
            dimension.Clear()
            dimension.dim_value = size
    onnx.save(model, folder / path.name)
    net = paddle.onnx.load(folder / path.name)
    net.eval()
    return net


LINES = ["Reading a page", "of printed words", "1234567890"]


def draw_page():
    page = Image.new("L", (256, 160), 255)
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(24)
    for k, text in enumerate(LINES):
        pen.text((16, 14 + 48 * k), text, 0, font)
    return page


@pytest.mark.parametrize("turned", [False, True])
def test_printed_lines_are_read(tmp_path, turned):
    """Upside down, the turner brings them back; the last line is the first then."""
    letters = {p.key: p.value for p in onnx.load(READER).metadata_props}["character"].splitlines()
    system = ocr.TextSystem(
        load(FINDER, (1, 3, 160, 256), tmp_path),
        load(READER, (0, 0, 48, 0), tmp_path),
        [*letters, " "],
        load(TURNER, (0, 0, 48, 192), tmp_path),
        side=160,
    )
    page = draw_page()
    lines = system(page.rotate(180) if turned else page)
    texts = [line.text for line in lines]
    assert [t.replace(" ", "") for t in (texts[::-1] if turned else texts)] == [
        t.replace(" ", "") for t in LINES
    ]
    assert min(line.score for line in lines) > 0.9
    ink = np.asarray(page.rotate(180) if turned else page) < 128
    for line in lines:
        (left, top), (right, bottom) = line.box.min(0), line.box.max(0)
        ink[top : bottom + 1, left : right + 1] = False
    assert ink.sum() < 20
