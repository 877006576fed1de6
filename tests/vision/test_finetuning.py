"""Readers that learn a font: `hub/finetune.py`, on a small network, and on PP-OCRv4's."""

import string
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import minipaddle as paddle
from minipaddle.engine.executors.compiler import compiler

HUB = str(Path(__file__).parents[2] / "hub")
matplotlib = pytest.importorskip("matplotlib")
needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler")


@pytest.fixture
def finetune(monkeypatch):
    monkeypatch.syspath_prepend(HUB)
    yield __import__("finetune")
    for name in ("finetune", "text_lines", "text_networks"):
        sys.modules.pop(name, None)


def test_edits_are_counted(finetune):
    cases = {("", "abc"): 3, ("abc", "abc"): 0, ("kitten", "sitting"): 3, ("ab", "ba"): 2}
    for (one, other), count in cases.items():
        assert finetune.count_edits(one, other) == count
        assert finetune.count_edits(other, one) == count
    assert finetune.measure_errors(["pubic", "read"], ["public", "road"]) == 0.2


def test_words_to_test_on_are_not_trained_on(finetune):
    seen, unseen = finetune.list_words(), finetune.list_words(unseen=True)
    assert len(unseen) == 128
    assert len(seen) > 500
    assert not {*seen} & {*unseen}


def test_without_the_font_the_error_says_how_to_get_it(finetune, monkeypatch, tmp_path):
    monkeypatch.setattr("text_lines.FOLDERS", [tmp_path])
    with pytest.raises(RuntimeError, match=r"no handwriting[\s\S]*fonts-dkg-handwriting"):
        finetune.main()


@needs_compiler
def test_a_small_reader_learns_and_keeps_its_statistics(finetune):
    from text_networks import Reader

    font = str(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf"))
    paddle.seed(0)
    reader = Reader(len(string.ascii_letters) + 1, width=16)
    before = {name: x.numpy() for name, x in reader.named_buffers()}
    losses = finetune.tune(reader, string.ascii_letters, font, steps=20, rate=1e-3)
    assert sum(losses[-5:]) / 5 < losses[0] * 0.7
    for name, x in reader.named_buffers():
        assert (x.numpy() == before[name]).all()


@pytest.mark.slow
@pytest.mark.timeout(300)
@needs_compiler
@pytest.mark.skipif(find_spec("rapidocr_onnxruntime") is None, reason="no rapidocr-onnxruntime")
def test_pp_ocr_learns_a_handwriting(finetune):
    """Five batches of eight words halve the errors on others."""
    font = finetune.find_font()
    if font is None:
        pytest.skip("the package fonts-dkg-handwriting is not installed")
    parts = paddle.hub.load(HUB, "pp_ocr_v4", source="local")
    words = finetune.list_words(unseen=True)[:32]
    pictures = finetune.draw_words(words, font)

    def errors():
        answers = finetune.read_words(parts.reader, parts.letters, pictures)
        return finetune.measure_errors(answers, words)

    before = errors()
    assert before > 0.2
    losses = finetune.tune(parts.reader, parts.letters, font, steps=5)
    assert losses[-1] < losses[0]
    assert errors() < before / 2
