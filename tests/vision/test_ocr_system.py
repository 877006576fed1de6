"""`TextSystem` with a finder and a reader of a few lines, whose results are known."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

import minipaddle as paddle
from minipaddle.static import InputSpec
from minipaddle.vision import ocr
from minipaddle.vision.ocr.system import fit_line, open_pixels

LETTERS = "abcdefgh"
STEP = 24
"""How much brighter each letter is than the one before it."""


def find_dark(x):
    """What is not white is text."""
    return (x.mean(1, keepdim=True) < 0.9).astype("float32")


def read_greys(x):
    """Each 8 columns of one grey are a letter, bright ones are late; borders, zeros are blank."""
    x = x[:, :, 12:36].mean([1, 2]).reshape([x.shape[0], -1, 8])
    flat, x = x.max(-1) - x.min(-1) < 0.05, x.mean(-1)
    label = ((x + 1) * (255 / 2 / STEP)).round().astype("int64")
    inside = flat & (label >= 1) & (label <= len(LETTERS)) & (x.abs() > 1e-6)
    return paddle.nn.functional.one_hot(label * inside.astype("int64"), len(LETTERS) + 1)


def write(page, text, x, y, height=48, letter=48):
    """A page with a grey block for each letter; neighbours differ."""
    for k, c in enumerate(text):
        left = x + k * letter
        page[y : y + height, left : left + letter] = (LETTERS.index(c) + 1) * STEP
    return page


def white(height=352, width=704):
    return np.full((height, width), 255, "uint8")


def make_system(finder=find_dark, reader=read_greys, **options):
    return ocr.TextSystem(finder, reader, LETTERS, side=64, ratio=0.01, **options)


def test_lines_are_found_sorted_and_read():
    page = white()
    lines = {"abcabc": (30, 40), "hg": (500, 44), "de": (60, 160), "gfedcbabcdef": (20, 260)}
    for text, (x, y) in lines.items():
        write(page, text, x, y)
    found = make_system()(page)
    assert [line.text for line in found] == [*lines]
    for line, (x, y) in zip(found, lines.values(), strict=True):
        assert line.score == 1.0
        assert line.box.shape == (4, 2)
        wide = 48 * len(line.text)
        expected = np.array([[x, y], [x + wide, y], [x + wide, y + 48], [x, y + 48]])
        assert abs(line.box - expected).max() <= 2


def test_one_program_finds_in_pictures_of_all_sizes():
    finder = paddle.jit.to_static(find_dark, input_spec=[InputSpec([1, 3, None, None])])
    system = make_system(finder)
    for height, width in ((352, 704), (200, 420), (97, 333)):
        page = write(white(height, width), "ace", 20, 30)
        assert [line.text for line in system(page)] == ["ace"]
    assert len(finder.program_cache.concrete_programs()) == 1


def test_an_empty_page_has_no_lines():
    assert make_system()(white(70, 90)) == []
    assert make_system()(white(1, 1)) == []
    assert make_system(turner=read_greys)(white(40, 90)) == []


def test_batches_change_nothing():
    page = white(600, 704)
    for k in range(8):
        write(page, ("abcdefgh" * 2)[k : k + 2 + k % 5], 20, 10 + 72 * k)
    texts = [line.text for line in make_system()(page)]
    assert len(texts) == 8
    shapes = []

    def note(x):
        shapes.append(x.shape)
        return read_greys(x)

    assert [line.text for line in make_system(reader=note, batch=3)(page)] == texts
    assert [shape[0] for shape in shapes] == [3, 3, 2]
    assert [shape[3] for shape in shapes] == sorted(shape[3] for shape in shapes)
    assert {tuple(shape[1:3]) for shape in shapes} == {(3, 48)}


def test_upside_down_lines_are_turned():
    page = write(write(white(), "abc", 30, 40), "defg", 30, 160)

    def turner(x):
        """Sure of the lines that begin with c, and not sure enough of those that begin with d."""
        first = ((x[:, 0, 24, 8] + 1) * (255 / 2 / STEP)).round()
        sure = (first == 1.0).astype("float32") * 0.95 + (first == 4.0).astype("float32") * 0.85
        return paddle.stack([1 - sure, sure], 1)

    assert [line.text for line in make_system(turner=turner)(page)] == ["cba", "defg"]


def test_unsure_lines_are_left_out():
    page = write(write(white(), "abc", 30, 40), "ef", 30, 160)

    def unsure(x):
        return read_greys(x) * (0.4 + 0.5 * (x[:, 0, 24, 8] < -0.5).astype("float32")).reshape(
            [-1, 1, 1]
        )

    (line,) = make_system(reader=unsure)(page)
    assert (line.text, round(line.score, 6)) == ("abc", 0.9)
    assert len(make_system(reader=unsure, least_score=0.3)(page)) == 2


def test_a_line_that_stands_is_laid_down():
    page = np.rot90(write(white(), "abcd", 200, 100), -1)
    (line,) = make_system()(page)
    assert line.text == "abcd"


FORMS = {
    "grey": lambda p: p,
    "one channel": lambda p: p[..., None],
    "colours": lambda p: np.stack([p] * 3, -1),
    "floats": lambda p: (p / 255).astype("float32"),
    "tensor": lambda p: paddle.to_tensor(np.stack([p] * 3)),
    "L": Image.fromarray,
    "RGB": lambda p: Image.fromarray(p).convert("RGB"),
    "P": lambda p: Image.fromarray(p).convert("P"),
    "LA": lambda p: Image.fromarray(p).convert("LA"),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_pictures(form):
    page = write(white(), "hgab", 40, 50)
    assert [line.text for line in make_system()(FORMS[form](page))] == ["hgab"]


def test_networks_see_blue_first_and_clear_pixels_as_white():
    assert open_pixels(np.array([[[1, 2, 3]]], "uint8")).tolist() == [[[3, 2, 1]]]
    clear = Image.new("RGBA", (2, 1), (0, 0, 0, 0))
    assert open_pixels(clear).tolist() == [[[255] * 3] * 2]


@pytest.mark.parametrize(
    "wrong", [np.zeros((4, 4, 4), "uint8"), np.zeros((4, 4), "int64"), np.full((4, 4), 2.0),
              np.full((4, 4), np.nan)],
)  # fmt: skip
def test_other_pictures_are_refused(wrong):
    with pytest.raises(ValueError, match="TextSystem of"):
        make_system()(wrong)


def test_networks_that_do_not_fit_are_refused():
    page = write(white(), "abc", 30, 40)
    with pytest.raises(ValueError, match="7 letters for 9 classes"):
        ocr.TextSystem(find_dark, read_greys, LETTERS[:-1], side=64)(page)
    with pytest.raises(ValueError, match="finder's map has the shape"):
        make_system(lambda x: x)(page)


def test_sizes_a_finder_sees():
    assert ocr.choose_size(191, 384) == (736, 1472)  # of page.png, as RapidOCR
    assert ocr.choose_size(223, 324) == (736, 1056)
    assert ocr.choose_size(563, 558) == (736, 736)
    assert ocr.choose_size(1500, 3000) == (992, 1984)
    assert ocr.choose_size(40, 500) == (480, 5888)
    for height in (1, 31, 200, 736, 1999, 5000):
        for width in (1, 40, 900, 2000, 9000):
            size = ocr.choose_size(height, width)
            assert all(n % 32 == 0 and 32 <= n <= 8 * 736 for n in size)
    with pytest.raises(ValueError, match="0 x 5"):
        ocr.choose_size(0, 5)


def test_a_line_is_48_high_with_zeros_to_its_right():
    line = np.full((24, 60, 1), 255, "uint8")
    x = fit_line(line, 200)
    assert x.shape == (3, 48, 200)
    assert (x[..., :120] == 1).all()
    assert (x[..., 120:] == 0).all()
    assert (fit_line(line, 64) == 1).all()


def test_boxes_and_texts_are_drawn():
    page = white(100, 200)
    line = ocr.LineOfText([[20, 30], [180, 30], [180, 60], [20, 60]], "Words", 0.9)
    drawing = np.asarray(ocr.draw_lines(page, [line])).astype(int)
    assert drawing.shape == (100, 400, 3)
    red = (drawing == [255, 0, 0]).all(-1)
    expected = Image.new("L", (400, 100))
    ImageDraw.Draw(expected).rectangle((20, 30, 180, 60), outline=1)
    np.testing.assert_array_equal(red, np.asarray(expected) > 0)
    rows, columns = np.nonzero(drawing[:, 200:].sum(-1) < 300)
    assert (rows.min() >= 30, rows.max() <= 66, columns.min() >= 20) == (True,) * 3
    assert 20 + 160 >= columns.max() > 60
    long = line._replace(text="Words " * 20)
    columns = np.nonzero(np.asarray(ocr.draw_lines(page, [long]))[:, 200:].sum(-1) < 700)[1]
    assert columns.max() <= 182
    assert np.asarray(ocr.draw_lines(page, [])).min() == 255
