"""Drawing without a library of the system: the same bytes, silently, from any thread."""

import base64
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from minipaddle.viz import graph_engine
from minipaddle.viz.graph_engine import Graph, NoEngineError

ROOT = Path(__file__).parents[2]
HEADS = {"svg": b"<?xml", "png": b"\x89PNG"}


def small(label="x"):
    g = Graph()
    g.node("x", label, fontname="DejaVu Sans")
    g.edge("x", "y")
    return g


@pytest.mark.parametrize("kind", HEADS)
def test_two_renders_are_equal_byte_for_byte(kind):
    first, second = (small().pipe(format=kind) for _ in range(2))
    assert first == second
    assert first.startswith(HEADS[kind])


@pytest.mark.parametrize("kind", ["svg", "png", "dot", "SVG"])
def test_a_graph_is_saved_by_suffix(tmp_path, kind):
    path = small().save_as(tmp_path / f"g.{kind}")
    data = path.read_bytes()
    wanted = {"dot": b"digraph", "svg": b"<svg"}.get(kind.lower(), HEADS.get(kind.lower()))
    assert data.startswith(wanted)


def test_an_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no picture format '.bmp'.*\.svg, \.png, \.dot"):
        small().save_as(tmp_path / "g.bmp")


def test_a_notebook_gets_svg_png_and_text():
    bundle = small()._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["image/png"].startswith(HEADS["png"])
    assert bundle["text/plain"] == small().source
    g = small()
    g.text = "x leads to y"
    assert g._repr_mimebundle_()["text/plain"] == "x leads to y"


def test_what_is_wider_than_the_page_fits_it_and_opens_large():
    """An SVG without a size is as wide as there is room."""
    g = Graph(graph_attr={"rankdir": "LR"})
    assert "<button" not in g._repr_mimebundle_()["text/html"]
    for k in range(20):
        g.edge(f"{k}", f"{k + 1}")
    bundle = g._repr_mimebundle_()
    assert re.match(r'<svg width="\d{4}pt"', g.svg())
    assert re.match(r'<svg\s+viewBox="', bundle["image/svg+xml"])
    page = bundle["text/html"]
    assert "<button" in page
    data = re.findall(r'data="data:image/svg\+xml;base64,(.*?)"', page)
    assert base64.b64decode(*data).decode() == bundle["image/svg+xml"]


def test_svg_names_a_font_of_the_same_widths_where_dejavu_is_missing():
    assert 'font-family="DejaVu Sans,Verdana,sans-serif"' in small().svg()


def test_another_layout_engine_can_be_named():
    assert small().pipe(engine="neato") != small().pipe()
    assert small().pipe(encoding="utf-8").startswith("<?xml")


def test_render_writes_as_graphviz_does(tmp_path, monkeypatch):
    g, shown = small(), []
    monkeypatch.setattr(g, "_view", lambda path, **_: shown.append(path))
    path = g.render("g", tmp_path, format="png")
    assert Path(path) == tmp_path / "g.png"
    assert Path(path).read_bytes() == g.pipe(format="png")
    assert (tmp_path / "g").read_text() == g.source
    path = g.render(
        tmp_path / "h", cleanup=True, view=True, outfile=tmp_path / "i.svg", format="svg"
    )
    assert shown == [path] == [str(tmp_path / "i.svg")]
    assert not (tmp_path / "h").exists()


def test_threads_draw_at_once():
    graphs = [small(f"node {k}") for k in range(16)]
    alone = [g.svg() for g in graphs]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda g: g.svg(), graphs)) == alone


def test_text_fits_the_width_that_graphviz_reserved():
    """Graphviz has tables of widths, not fonts: they must be DejaVu's for what a graph says."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure = TextToPath().get_text_width_height_descent
    for face, family in (("DejaVu Sans", graph_engine.SANS), ("Courier", graph_engine.MONO)):
        for text in ("conv1.weight: float32[64, 3, 7, 7]", "WWWW", "iiii", "for k in range(10):"):
            reserved = reserve(text, face)
            width, *_ = measure(text, FontProperties(family=family, size=10), ismath=False)
            assert reserved == pytest.approx(width, rel=0.03), (text, face)


def reserve(text, face):
    """Points between the edges of a box around a text, without margin."""
    g = Graph()
    g.node("x", text, fontname=face, fontsize="10", shape="box", margin="0", width="0")
    (corners,) = re.findall(r'<polygon fill="none".*points="(.*?)"', g.svg())
    x = [float(corner.split(",")[0]) for corner in corners.split()]
    return max(x) - min(x)


def test_fixed_width_text_is_dejavus_in_the_picture():
    g = Graph()
    g.node("x", "text", fontname="Courier")
    assert 'font-family="DejaVu Sans Mono,Menlo,Consolas,monospace"' in g.svg()


def test_a_graph_that_is_wrong_is_refused_with_graphvizs_message():
    with pytest.raises(ValueError, match="syntax error in line 1"):
        graph_engine.layout("digraph { a -> ")


# ---- nothing to draw with --------------------------------------------------------------------


@pytest.fixture
def no_wheel(monkeypatch):
    """Neither the wheel nor the packages of the system are there."""

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(graph_engine.importlib.metadata, "files", missing)
    monkeypatch.setenv("PATH", "")
    graph_engine.find_program.cache_clear()
    yield
    graph_engine.find_program.cache_clear()


def test_without_an_engine_a_box_says_what_to_install(no_wheel):
    bundle = small("<&>")._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert "pip install graphviz-pure resvg-py" in bundle["text/html"]
    assert "x -&gt; y" in bundle["text/html"]
    assert bundle["text/plain"] == small("<&>").source
    with pytest.raises(NoEngineError, match="graph engine is missing"):
        small().svg()


def test_without_resvg_the_svg_is_drawn_and_png_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert small().svg().startswith("<svg")
    with pytest.raises(NoEngineError, match="pip install"):
        small().pipe(format="png")


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for dot is a shell script")
def test_without_the_wheel_the_systems_dot_draws(no_wheel, monkeypatch, tmp_path):
    dot = tmp_path / "dot"
    dot.write_text('#!/bin/sh\ncat > /dev/null\nprintf "<svg>%s</svg>" "$*"\n')
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert small().svg() == "<svg>-Kdot -Tsvg</svg>"


# ---- a fresh process, as on another machine --------------------------------------------------

DRAW = """
import sys
from minipaddle.viz.graph_engine import Graph
g = Graph()
for k in range({nodes}):
    g.edge(f"n{{k}}", f"n{{k + 1}}")
g.node("x", "some text", fontname="DejaVu Sans")
sys.stdout.write(g.svg())
"""


def fresh(nodes=3, **environment):
    """What a new process writes: (stdout, stderr)."""
    done = subprocess.run(
        [sys.executable, "-c", DRAW.format(nodes=nodes)],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        check=True,
    )
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def usual():
    return fresh()


def test_a_fresh_process_draws_the_same_and_prints_nothing(tmp_path, usual):
    """No variable of the user's and no folder matters: PATH neither, nor a home."""
    assert usual[1] == b""
    assert fresh(HOME=str(tmp_path), PATH="", FONTCONFIG_FILE="none") == usual


def test_large_graphs_print_no_warning():
    out, err = fresh(nodes=1100)
    assert err == b""
    assert out.count(b'class="node"') == 1102


def test_fonts_that_a_distribution_has_moved_are_found(monkeypatch, tmp_path):
    import matplotlib

    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(graph_engine.importlib.util, "find_spec", lambda name: spec)
    assert graph_engine.find_fonts() == Path(matplotlib.get_data_path(), "fonts", "ttf")
    assert (graph_engine.find_fonts() / "DejaVuSans.ttf").exists()


def test_pictures_are_imported_when_first_asked_for():
    """Graphviz, matplotlib and rich take a while: `import minipaddle` does without them."""
    code = (
        "import sys, minipaddle as paddle\n"
        "slow = {'graphviz', 'matplotlib', 'rich', 'IPython', 'minipaddle.viz'}\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)\n"
        "assert paddle.viz.tape and not {'matplotlib', 'rich'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
