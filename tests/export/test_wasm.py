"""Models as WebAssembly: run by wasmtime, and by Chromium in the page, compared with Python."""

import json
import os
import re
from importlib.util import find_spec

import numpy as np
import pytest

import minipaddle as paddle
import minipaddle.nn.functional as F
from minipaddle import nn
from minipaddle.export.wasm import write
from tests.browsing import IN_A_BROWSER
from tests.export.built import MODELS, TOLERANCE, random, results, saved
from tests.export.lines import InkReader
from tests.export.strokes import DIGITS, SAID, draw

wasmtime = pytest.importorskip("wasmtime", reason="the extra `test` is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="the extra `zig` is missing"),
]
LETTERS = "abcdefghijklmnopqrstuvwxyz "


class Module:
    """A module in wasmtime."""

    def __init__(self, path):
        engine = wasmtime.Engine()
        module = wasmtime.Module.from_file(engine, str(path))
        self.imports = [*module.imports]
        self.store = wasmtime.Store(engine)
        self.exports = wasmtime.Instance(self.store, module, []).exports(self.store)
        assert self.call("init") == 0

    def call(self, name, *arguments):
        return self.exports[name](self.store, *arguments)

    def array(self, name, like):
        """The memory of an input or output, as an array."""
        memory = self.exports["memory"]
        at = self.call(name)
        raw = memory.get_buffer_ptr(self.store, like.nbytes, at)
        return np.frombuffer(raw, like.dtype).reshape(like.shape)

    def error(self, code):
        """What a code means."""
        at, memory = self.call("error", code), self.exports["memory"]
        return bytes(memory.read(self.store, at, at + 200)).partition(b"\0")[0].decode()


@pytest.mark.parametrize("name", ["lenet", "int8", "gpt"])
def test_a_module_computes_what_python_does(tmp_path, name):
    paddle.seed(1)
    make, x = MODELS[name]
    net = make()
    one = saved(net, x)
    write(one, tmp_path, **({"letters": LETTERS} if name == "gpt" else {}))
    module, want = Module(tmp_path / "model.wasm"), results(net, x)[0]
    assert module.imports == []
    (given,) = one.methods["forward"].inputs
    module.array(f"input_{given}", x)[...] = x
    assert module.call("run") == 0
    np.testing.assert_allclose(module.array("output_0", want), want, **TOLERANCE)
    if name == "gpt":
        module.array(f"input_{given}", x)[...] = 99
        assert "embedding: an index is out of range" in module.error(module.call("run"))


def test_other_models_have_a_module_and_no_page(tmp_path):
    files = write(saved(nn.Linear(3, 2), random(2, 3)), tmp_path)
    assert {"model.wasm", "model.c", "README.md"} <= {path.name for path in files}
    assert "index.html" not in os.listdir(tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "new Float32Array(memory.buffer, input_input(), 6)" in text


def test_a_model_of_texts_needs_its_letters(tmp_path):
    one = saved(MODELS["gpt"][0](), MODELS["gpt"][1])
    with pytest.raises(ValueError, match="has 27 tokens, and letters='abc'") as error:
        write(one, tmp_path / "new", letters="abc")
    assert "--letters" in str(error.value)
    (tmp_path / "letters.txt").write_text(LETTERS)
    write(one, tmp_path / "new", letters=str(tmp_path / "letters.txt"))
    assert json.dumps(LETTERS) in (tmp_path / "new/index.html").read_text("utf-8")
    assert "index.html" not in {path.name for path in write(one, tmp_path / "plain", letters="")}


def test_without_zig_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr("minipaddle.export.wasm.find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"expected: zig[\s\S]*pip install ziglang"):
        write(saved(nn.Linear(3, 2), random(2, 3)), tmp_path)


# ---- the page -----------------------------------------------------------------------------------

LOOKED_AT = [*IN_A_BROWSER, pytest.mark.timeout(300)]


@pytest.fixture
def opened(browser):
    """`opened(folder)`: the page, ready; a request or an error fails the test."""
    troubles, contexts = [], []

    def open_page(folder, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda r: r.url.startswith(("file:", "data:")) or troubles.append(r.url))
        page.goto((folder / "index.html").as_uri())
        page.wait_for_selector("body[data-ready]", timeout=30_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def convnet():
    return nn.Sequential(
        nn.Conv2D(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
        nn.Conv2D(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2),
        nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The convnet of chapter 5, trained, and the folder of its module."""
    data = pytest.importorskip("minipaddle.vision.datasets").Digits()
    paddle.seed(0)
    net = convnet()
    adam = paddle.optimizer.Adam(0.005, parameters=net.parameters())
    step = paddle.jit.to_static(lambda x, y: F.cross_entropy(net(x), y), full_graph=True)
    for _ in range(8):
        for x, y in paddle.io.DataLoader(data, batch_size=32, shuffle=True):
            step(x, y).backward()
            adam.step()
            adam.clear_grad()
    folder = tmp_path_factory.mktemp("digits")
    write(saved(net, random(1, 1, 8, 8)), folder)
    return net, folder


def in_a_browser(test):
    for mark in LOOKED_AT:
        test = mark(test)
    return test


COLOURS = (
    """() => ['color', 'backgroundColor'].map(what => getComputedStyle(document.body)[what])"""
)
BARS = "() => [...document.querySelectorAll('#bars span')].map(e => parseFloat(e.textContent))"


@in_a_browser
def test_drawn_digits_are_recognized(opened, digits):
    page = opened(digits[1])
    assert page.evaluate(BARS) == [0.0] * 10
    for digit, strokes in DIGITS.items():
        page.click("#clear")
        draw(page, strokes)
        page.wait_for_function(SAID, arg=digit, timeout=10_000)
    assert "µs" in page.text_content("#time")
    page.click("#clear")
    page.wait_for_function("() => !document.getElementById('said').textContent")


@in_a_browser
def test_the_page_computes_what_python_does(opened, digits):
    net, folder = digits
    page, x = opened(folder), random(1, 1, 8, 8)
    got = page.evaluate("x => [...scores(Float32Array.from(x))]", x.ravel().tolist())
    np.testing.assert_allclose(got, results(net, x)[0].ravel(), **TOLERANCE)
    draw(page, DIGITS[3])
    page.wait_for_function(SAID, arg=3)
    image = np.float32(page.evaluate("() => [...image()]")).reshape(1, 1, 8, 8)
    shares = F.softmax(net(paddle.to_tensor(image))).numpy().ravel()
    np.testing.assert_allclose(page.evaluate(BARS), 100 * shares, atol=0.051)


@in_a_browser
def test_pixels_are_like_those_of_the_data_set(opened, digits):
    page = opened(digits[1])
    for strokes in DIGITS.values():
        image = np.array(page.evaluate("s => { strokes = s; return [...image()]; }", strokes))
        assert set(image * 16 % 1) == {0}  # sixteenths, as there
        assert image.sum() == pytest.approx(20, abs=1.5)
        rows = image.reshape(8, 8).any(1)
        assert rows.all()
    grey = page.evaluate("s => { strokes = s; return [...image()]; }", DIGITS[2])
    large = page.evaluate("g => [...enlarged(g, 28)]", grey)
    image = paddle.to_tensor(np.float32(grey).reshape(1, 1, 8, 8))
    want = F.interpolate(image, size=[28, 28], mode="bilinear").numpy()
    np.testing.assert_allclose(np.reshape(large, (28, 28)), want[0, 0], atol=1e-6)


@in_a_browser
def test_the_keyboard_and_a_finger_draw_too(opened, digits):
    page = opened(
        digits[1], has_touch=True, color_scheme="dark", viewport={"width": 360, "height": 700}
    )
    page.focus("#pad")
    page.keyboard.press("Space")
    for _ in range(8):
        page.keyboard.press("ArrowDown")
    page.wait_for_function(SAID, arg=1)
    page.click("#clear")
    box = page.locator("#pad").bounding_box()
    assert box["x"] + box["width"] <= 360
    page.touchscreen.tap(box["x"] + 50, box["y"] + 50)
    page.wait_for_function("() => document.getElementById('said').textContent")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    colours = page.evaluate(COLOURS)
    light, dark = (sum(map(int, re.findall(r"\d+", c))) for c in colours)
    assert light > 600 > 200 > dark
    for element in ("#pad", "#bars"):
        assert page.get_attribute(element, "aria-label")
    assert page.get_attribute("#said", "aria-live") == "polite"


@in_a_browser
def test_a_prompt_is_continued_as_in_python(opened, tmp_path):
    paddle.seed(3)
    net = MODELS["gpt"][0]()
    for parameter in net.parameters():  # so that it has opinions
        parameter.set_value(parameter * 8.0)
    write(saved(net, MODELS["gpt"][1]), tmp_path, letters=LETTERS, title="<b>Letters</b>")
    page = opened(tmp_path)
    assert page.title() == "<b>Letters</b>"
    page.fill("#prompt", "the cat")
    page.fill("#heat", "0")
    page.fill("#count", "20")
    page.click("#go")
    page.wait_for_function("() => document.getElementById('prompt').value.length === 27")
    tokens = paddle.to_tensor([[LETTERS.index(c) for c in "the cat"]])
    want = "".join(LETTERS[k] for k in net.generate(tokens, 20, temperature=0)[0].tolist())
    assert page.input_value("#prompt") == want
    assert len(set(want[7:])) > 2
    page.fill("#prompt", "Über")
    assert "does not know Ü" in page.text_content("#said")
    assert sum(page.evaluate(BARS)) > 10
    assert json.loads(page.text_content("#facts"))["letters"] == LETTERS


# ---- a reader of lines --------------------------------------------------------------------------


def save_line(net, folder, letters, width=160):
    one = saved(net, np.zeros((1, 3, 48, width), "float32"))
    write(one, folder, letters=letters)


@pytest.mark.parametrize("letters", [None, "ab"])
def test_a_reader_needs_its_letters(tmp_path, letters):
    with pytest.raises(ValueError, match="the model has 1 letters"):
        save_line(InkReader(), tmp_path, letters)


class TestLines:
    """The page of a reader in Chromium."""

    pytestmark = IN_A_BROWSER

    def test_a_line_is_spelled(self, opened, tmp_path):
        save_line(InkReader(), tmp_path, "i")
        page = opened(tmp_path)
        draw(page, [[(x, 0.2), (x, 0.8)] for x in (0.2, 0.4, 0.7)])
        page.wait_for_function("() => document.getElementById('said').textContent.includes('iii')")
        numbers = np.float32(page.evaluate("() => [...lineImage()]")).reshape(1, 3, 48, 160)
        columns = InkReader()(paddle.to_tensor(numbers)).numpy()[0, :, 1]
        assert ((columns[1:] > columns[:-1]).sum(), columns[0]) == (3, 0)
        assert (numbers[0, 0] < 0).any(1).sum() == pytest.approx(36 + 5, abs=3)  # HIGH of 48
        page.click("#clear")
        page.wait_for_function("() => !document.getElementById('said').textContent")

    def test_equal_neighbours_count_once(self, opened, tmp_path):
        save_line(InkReader(), tmp_path, "i")
        page = opened(tmp_path)
        columns = [[1, 0], [0, 1], [0, 1], [1, 0], [0, 1]]
        spelled = page.evaluate("p => spell(Float32Array.from(p.flat()))", columns)
        assert spelled == [["i", 1], ["i", 1]]

    def test_the_hub_reads_a_number(self, opened, tmp_path):
        """A number written with the mouse, by the reader that was trained on printed lines."""
        reader = paddle.hub.load("hub", "text_reader", source="local", pretrained=True)
        save_line(reader, tmp_path, reader.letters, width=192)
        page = opened(tmp_path)
        places = enumerate((1, 7, 0, 4))
        strokes = [[((k + 0.7 * x) / 5 + 0.05, y) for x, y in stroke]
                   for k, digit in places for stroke in DIGITS[digit]]  # fmt: skip
        draw(page, strokes)
        page.wait_for_function("() => document.getElementById('said').textContent.includes('1704')")
