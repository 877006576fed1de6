"""PP-OCRv4's networks out of RapidOCR's wheel, where it is installed, on a page that is drawn."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

import minipaddle as paddle
from minipaddle.vision import ocr

pytest.importorskip("onnx")
if find_spec("rapidocr_onnxruntime") is None:
    pytest.skip("the wheel rapidocr-onnxruntime is not installed", allow_module_level=True)

HUB = str(Path(__file__).parents[2] / "hub")
LINES = ["Reading a page", "of printed words", "1234567890"]
SIDE = 160
"""The finder sees the page as it is."""


def draw_page(angle=0):
    page = Image.new("L", (256, 160), 255)
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(24)
    for k, text in enumerate(LINES):
        pen.text((16, 14 + 48 * k), text, 0, font)
    return page.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=255)


@pytest.fixture(scope="module")
def system():
    finder, reader, turner, letters = paddle.hub.load(HUB, "pp_ocr_v4", source="local")
    return ocr.TextSystem(finder, reader, letters, turner, side=SIDE)


@pytest.mark.parametrize("angle", [0, 180])
def test_printed_lines_are_read(system, angle):
    """Upside down, the turner brings them back; the last line is the first then."""
    page = draw_page(angle)
    lines = system(page)
    texts = [line.text.replace(" ", "") for line in lines]
    assert texts[:: -1 if angle else 1] == [text.replace(" ", "") for text in LINES]
    assert min(line.score for line in lines) > 0.9
    ink = np.asarray(page) < 128
    for line in lines:
        (left, top), (right, bottom) = line.box.min(0), line.box.max(0)
        ink[top : bottom + 1, left : right + 1] = False
    assert ink.sum() < 20


@pytest.mark.parametrize("angle", [0, 8, -15, 180])
def test_rapidocr_reads_the_same(system, angle):
    """With ONNX Runtime and OpenCV: the same boxes and letters."""
    peer = pytest.importorskip("rapidocr_onnxruntime").RapidOCR(det_limit_side_len=SIDE)
    page = draw_page(angle).convert("RGB")
    expected, lines = peer(page)[0], system(page)
    assert len(lines) == len(LINES)
    assert [line.text for line in lines] == [text for _, text, _ in expected]
    for line, (box, _, score) in zip(lines, expected, strict=True):
        assert abs(line.box - np.array(box)).max() <= 1
        assert line.score == pytest.approx(score, abs=2e-3)
