"""Pictures that a reader moves: what they hold, and what they refuse."""

import base64
import json
import re
import zlib
from html import unescape
from importlib import import_module

import pytest

from minipaddle import viz
from minipaddle.viz.chart import Bar, Panel, chart

module = import_module("minipaddle.viz.movable")  # in `viz` the function has its name


def bar(high, wide=1):
    """A chart of one bar, which says its height."""
    return chart((3, 2), [Panel([Bar(0, 0, 1, high, "#0072b2")])], f"{high} high")


def store_of(picture) -> dict:
    """What the page's script reads."""
    packed = re.search(r'type="text/plain">(.*?)</script>', picture.page)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed), wbits=-15))


def svg_at(store, at) -> str:
    drawn, _ = store["positions"][at]
    return "\n".join(store["parts"][k] for k in store["pictures"][drawn])


def test_every_position_has_its_picture_and_caption():
    shown = viz.movable(bar, high=[1, 2, 4], wide=[1, 2])
    store = store_of(shown)
    assert len(store["positions"]) == 6
    assert store["labels"] == [["1", "2", "4"], ["1", "2"]]
    assert [store["captions"][said] for _, said in store["positions"]] == [
        "1 high", "1 high", "2 high", "2 high", "4 high", "4 high"
    ]  # fmt: skip
    for at, high in enumerate((1, 1, 2, 2, 4, 4)):
        assert svg_at(store, at) == module.draw_at(bar, {"high": high})[0]
    assert len(store["pictures"]) == 3  # equal ones stand once
    assert len(store["parts"]) == len(set(store["parts"]))
    assert str(shown).splitlines() == [
        "3 pictures: high 1 | 2 | 4; wide 1 | 2",
        "high 1, wide 1:",
        "1 high",
    ]


def test_labels_hide_values_and_say_where_to_start():
    high = {"low": 1, "tall": 9}
    shown = viz.movable(bar, start={"high": "tall"}, high=high)
    assert str(shown).endswith("high tall:\n9 high")
    assert shown.svg() == viz.movable(bar, start={"high": 9}, high=high).svg()
    assert "<option selected>tall</option>" in shown.page
    assert 'type="range"' not in shown.page


def test_numbers_are_sliders_and_all_else_is_chosen():
    page = viz.movable(bar, high=[1, 2, 3], wide=[1, 2]).page
    assert page.count('type="range"') == page.count("<select") == 1
    assert '<label for="c0">high</label>' in page
    assert 'aria-label="more high"' in page


def test_the_same_input_is_the_same_bytes():
    first, again = (viz.movable(bar, high=range(1, 9)).html() for _ in range(2))
    assert first == again
    assert len(first) < 15_000


def test_a_graph_moves_too():
    def graph(edges):
        g = viz.Graph()
        for k in range(edges):
            g.edge(f"a{k}", f"b{k}")
        return g, f"{edges} edges"

    store = store_of(viz.movable(graph, edges=[1, 2]))
    assert [svg_at(store, at).count('class="edge"') for at in (0, 1)] == [1, 2]


def test_an_untrusted_notebook_has_the_first_picture():
    shown = viz.movable(bar, start={"high": 2}, high=[1, 2, 4])
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "image/png", "text/plain"}
    without = re.sub(r"<iframe.*?</iframe>", "", bundle["text/html"], flags=re.DOTALL)
    image = base64.b64decode(re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', without)[1])
    assert image.decode() == bundle["image/svg+xml"] == shown.svg()
    assert bundle["image/png"].startswith(b"\x89PNG")


def test_the_frame_is_closed_to_the_world():
    html = viz.movable(bar, high=[1, 2, 4]).html()
    assert 'sandbox="allow-scripts"' in html
    page = unescape(re.search(r'srcdoc="([^"]+)"', html)[1])
    assert "default-src 'none'" in page
    assert re.search(r"(src|href)=", page) is None


@pytest.mark.parametrize(
    ("positions", "words"),
    [
        ({}, "without positions"),
        ({"high": []}, "high has no positions"),
        ({"high": [1, 1.0]}, "positions of high that look alike: 1, 1"),
        ({"high": [1], "start": {"hihg": 1}}, "start at hihg"),
        ({"high": [1], "start": {"high": 3}}, "start at high 3"),
    ],
)
def test_positions_that_are_none(positions, words):
    with pytest.raises(ValueError, match=words):
        viz.movable(bar, **positions)


@pytest.mark.parametrize("values", [3, "abc"])
def test_a_value_is_not_a_sequence_of_positions(values):
    with pytest.raises(TypeError, match="positions of high"):
        viz.movable(bar, high=values)


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ({"high": "3"}, r"a press that sets high to '3'(?s:.*)expected: 1, 2"),
        ({"hihg": "1"}, r"a press that sets hihg to '1'(?s:.*)expected: high"),
    ],
)
def test_a_press_chooses_what_there_is(sets, words):
    def picture(high):
        return chart((3, 2), [Panel([Bar(0, 0, 1, high, "#0072b2", sets=sets)])], "")

    with pytest.raises(ValueError, match=words):
        viz.movable(picture, high=[1, 2])


def test_what_is_no_picture_is_named():
    with pytest.raises(TypeError, match="the picture returned int"):
        viz.movable(lambda high: high, high=[1])


def test_an_error_says_where_it_was():
    def fails(high):
        return bar(1 / high)

    with pytest.raises(ZeroDivisionError) as caught:
        viz.movable(fails, high=[1, 0])
    assert caught.value.__notes__ == ["while viz.movable drew {'high': 0}"]


def test_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(module, "LIMIT", 3000)
    with pytest.raises(ValueError, match=r"a movable picture of .* KB(?s:.*)all 8 positions"):
        viz.movable(bar, high=range(1, 9))
