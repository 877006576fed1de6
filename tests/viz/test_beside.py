"""Two graphs side by side are one picture."""

import io
import re
from xml.etree import ElementTree

import pytest
from matplotlib import image

import minipaddle as paddle
from minipaddle import viz
from minipaddle.viz import graph_engine
from minipaddle.viz.chart import Bar, Panel, chart
from tests.viz import static_cases as cases


def pair():
    x = paddle.ones([2])
    x.stop_gradient = False
    return viz.tape(cases.halves, x), viz.program(cases.static(cases.halves, x))


def small(*names, **attrs):
    g = viz.Graph(graph_attr=attrs)
    for name in names:
        g.node(name)
    return g


def test_both_pictures_are_in_the_svg():
    left, right = small("a", "b"), small("c")
    both = viz.beside(left, right).svg()
    root = ElementTree.fromstring(both)
    assert len(root) == 2
    assert both.count('class="node"') == 3
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    wide = [float(part.get("width")) for part in root]
    assert float(root[1].get("x")) > wide[0]
    assert float(root.get("width").removesuffix("pt")) == pytest.approx(sum(wide) + 24, abs=0.1)


def test_what_a_chart_refers_to_is_its_own():
    bars = [Bar(0, 0, 1, 1, "#0072b2", look={"hatch": "///"})]
    both = viz.beside(small("a"), chart((2, 1), [Panel(bars)], "a bar")).svg()
    ids = re.findall(r' id="([^"]+)"', both)
    assert {"part1_area0", "part1_hatch"} == set(re.findall(r"url\(#(.+?)\)", both)) <= set(ids)


def test_what_the_page_is_too_narrow_for_stands_one_below_the_other():
    root = ElementTree.fromstring(viz.beside(*[small(*"abcdef", nodesep="0.5")] * 2).svg())
    high = [float(part.get("height")) for part in root]
    assert float(root[1].get("y")) > high[0]
    assert root[1].get("x") is None
    assert float(root.get("height").removesuffix("pt")) == pytest.approx(sum(high) + 24, abs=0.1)
    assert float(root.get("width").removesuffix("pt")) * 4 / 3 < 784


def test_the_png_is_as_wide_as_both():
    left, right = small("a", "b"), small("c")
    sizes = [image.imread(io.BytesIO(g.png())).shape for g in (left, right)]
    both = image.imread(io.BytesIO(viz.beside(left, right).png()))
    wanted = max(sizes[0][0], sizes[1][0]), sizes[0][1] + sizes[1][1] + 32
    assert both.shape[:2] == pytest.approx(wanted, abs=2)


def test_it_shows_itself_and_saves_itself(tmp_path):
    both = viz.beside(*pair())
    bundle = both._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "image/png", "text/plain"}
    assert bundle["text/plain"] == repr(both) == both.text
    assert "program halves" in both.text
    assert both.save_as(tmp_path / "a.svg").read_text() == both.svg()
    assert both.save_as(tmp_path / "a.png").read_bytes() == both.png()
    with pytest.raises(ValueError, match="of two pictures"):
        both.save_as(tmp_path / "a.pdf")


def raise_missing():
    raise graph_engine.NoEngineError(graph_engine.HELP)


def test_without_an_engine_a_box_says_what_to_do(monkeypatch):
    both = viz.beside(*pair())
    monkeypatch.setattr(graph_engine, "find_program", raise_missing)
    assert "pip install graphviz-pure" in both._repr_mimebundle_()["text/html"]


def test_only_graphs_stand_beside_each_other():
    with pytest.raises(TypeError, match="beside was given str"):
        viz.beside(viz.Graph(), "text")
    bare = viz.Graph()
    assert viz.beside(bare, bare).text.count("digraph") == 2
