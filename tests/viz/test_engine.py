"""Drawing without a system `dot`: the same bytes everywhere, silently, from any thread."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from minipaddle.viz import engine
from minipaddle.viz.engine import Graph, NoEngineError

ROOT = Path(__file__).parents[2]
HEADS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


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


def test_a_pdf_carries_no_date_of_drawing():
    raw = engine.by_wheel(small().source, "dot", "pdf")
    assert len(small().pipe(format="pdf")) == len(raw)
    assert b"/CreationDate (D:20000101000000" in small().pipe(format="pdf")


@pytest.mark.parametrize("kind", ["svg", "png", "pdf", "dot", "SVG"])
def test_a_graph_is_saved_by_suffix(tmp_path, kind):
    path = small().save_as(tmp_path / f"g.{kind}")
    data = path.read_bytes()
    wanted = {"dot": b"digraph", "svg": b"<svg"}.get(kind.lower(), HEADS.get(kind.lower()))
    assert data.startswith(wanted)


def test_an_unknown_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no picture format '.bmp'.*\.svg, \.png, \.pdf, \.dot"):
        small().save_as(tmp_path / "g.bmp")


def test_a_notebook_gets_svg_png_and_text():
    bundle = small()._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle["image/png"].startswith(HEADS["png"])
    assert bundle["text/plain"] == small().source
    g = small()
    g.text = "x leads to y"
    assert g._repr_mimebundle_()["text/plain"] == "x leads to y"


def test_svg_names_a_font_of_the_same_widths_where_dejavu_is_missing():
    assert 'font-family="DejaVu Sans,Verdana,sans-serif"' in small().svg()


def test_another_layout_engine_can_be_named():
    assert small().pipe(engine="neato") != small().pipe()
    assert small().pipe(format="svg", encoding="utf-8").startswith("<?xml")


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


# ---- nothing to draw with --------------------------------------------------------------------


def missing(*_):
    raise ImportError("No module named 'pygraphviz'")


def test_without_an_engine_a_box_says_what_to_install(monkeypatch):
    monkeypatch.setitem(engine.ENGINES, "pygraphviz", missing)
    monkeypatch.setenv("PATH", "")
    bundle = small('<"&>')._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    box = bundle["text/html"]
    for part in ("pip install pygraphviz", "apt install graphviz", "No module named", "no dot on"):
        assert part in box.replace("&#x27;", "'")
    assert "x -&gt; y" in box
    assert bundle["text/plain"] == small('<"&>').source
    with pytest.raises(NoEngineError, match="brew install graphviz"):
        small().svg()


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for dot is a shell script")
def test_without_the_wheel_the_systems_dot_draws(monkeypatch, tmp_path):
    dot = tmp_path / "dot"
    dot.write_text(
        '#!/bin/sh\ncat > /dev/null\nprintf "<svg>%s %s</svg>" "$FONTCONFIG_FILE" "$*"\n'
    )
    dot.chmod(0o755)
    monkeypatch.setitem(engine.ENGINES, "pygraphviz", missing)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert small().svg() == f"<svg>{engine.font_config()} -Kdot -Tsvg</svg>"


# ---- a fresh process, as on another machine --------------------------------------------------

DRAW = """
import sys
from minipaddle.viz.engine import Graph
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
    assert usual[1] == b""
    assert fresh(XDG_CACHE_HOME=str(tmp_path / "elsewhere"), HOME=str(tmp_path)) == usual


def test_a_cache_that_can_not_be_written_is_done_without(tmp_path, usual):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert fresh(XDG_CACHE_HOME=str(blocked), HOME=str(blocked), TMPDIR=str(tmp_path)) == usual
    assert list(tmp_path.glob("minipaddle-fonts-*/fonts.conf"))


def test_large_graphs_print_no_warning():
    out, err = fresh(nodes=1100)
    assert err == b""
    assert out.count(b'class="node"') == 1102


def test_the_users_own_font_setting_comes_back(monkeypatch):
    monkeypatch.setenv("FONTCONFIG_FILE", "mine.conf")
    with engine.only_dejavu():
        assert os.environ["FONTCONFIG_FILE"] == str(engine.font_config())
    assert os.environ["FONTCONFIG_FILE"] == "mine.conf"
    monkeypatch.delenv("FONTCONFIG_FILE")
    with engine.only_dejavu():
        pass
    assert "FONTCONFIG_FILE" not in os.environ


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {"XDG_CACHE_HOME": "/c"}, "/c/minipaddle"),
        ("linux", {"HOME": "/h"}, "/h/.cache/minipaddle"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Caches/minipaddle"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/minipaddle"),
    ],
)
def test_the_cache_lies_where_the_platform_wants_it(monkeypatch, platform, variables, folder):
    monkeypatch.setattr(sys, "platform", platform)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert engine.cache_folder().as_posix() == folder


def test_fonts_that_a_distribution_has_moved_are_found(monkeypatch, tmp_path):
    import matplotlib

    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: spec)
    assert engine.dejavu() == Path(matplotlib.get_data_path(), "fonts", "ttf")
    assert (engine.dejavu() / "DejaVuSans.ttf").exists()


def test_a_disk_that_fills_up_is_done_without(monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "cache_folder", lambda: tmp_path / "cache")
    real, calls = engine.written, []

    def full(folder, fonts):
        calls.append(folder)
        if len(calls) == 1:
            raise OSError("no space left")
        return real(folder, fonts)

    monkeypatch.setattr(engine, "written", full)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    path = engine.font_config.__wrapped__()
    assert path.read_text().count("<dir>") == 1
    assert path.parent != tmp_path / "cache" / "fontconfig"


def test_pictures_are_imported_when_first_asked_for():
    """Graphviz, matplotlib and rich take a while: `import minipaddle` does without them."""
    code = (
        "import sys, minipaddle as paddle\n"
        "slow = {'graphviz', 'matplotlib', 'rich', 'IPython', 'minipaddle.viz'}\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)\n"
        "assert paddle.viz.tape and not {'matplotlib', 'rich'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
