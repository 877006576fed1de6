"""Chapters in a real browser: opened in JupyterLab, all cells run, the graphs visible."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

from minipaddle import viz
from minipaddle.distributed.simulator import ring
from minipaddle.learn.exercise import load, names
from minipaddle.viz.explore import Explorer
from tests.book.chapters import BOOK, FEW, WORKSPACE
from tests.browsing import IN_A_BROWSER
from tests.viz.explore.facts_of_net import NetFacts

SETTINGS = {
    "notebook-extension/tracker": '{"windowingMode": "none"}',
    "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false}',
}
READY = """() => {
  const session = window.jupyterapp?.shell.currentWidget?.sessionContext;
  return session?.isReady && session.session?.kernel?.status === 'idle';
}"""
DONE = """() => {
  const page = jupyterapp.shell.currentWidget;
  const cells = [...page.content.model.cells].filter(c => c.type === 'code');
  return cells.length && cells.every(c => c.executionCount !== null)
    && page.sessionContext.session.kernel.status === 'idle';
}"""
CLEAR = """() => {
  for (const cell of jupyterapp.shell.currentWidget.content.model.cells)
    if (cell.type === 'code') { cell.executionCount = null; cell.outputs.clear(); }
}"""

CHANGE_THEME = "theme => jupyterapp.commands.execute('apputils:change-theme', {theme})"
SCHEME = "scheme => document.documentElement.style.colorScheme === scheme"
SOURCES = """() => [...jupyterapp.shell.currentWidget.content.model.cells]
  .map(c => c.sharedModel.getSource())"""
TASKS = ".jp-OutputArea-output[data-mime-type='text/markdown'] h3"
GRAPHS = ".jp-OutputArea-output object[type='image/svg+xml']"
TIPS = "() => document.querySelectorAll('svg a').length"  # Graphviz writes a tooltip as a link's

pytestmark = [
    *IN_A_BROWSER,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """JupyterLab with settings of its own, on a copy of the book: (address, folder, variables)."""
    work = tmp_path_factory.mktemp("lab")
    shutil.copytree(BOOK, work / "book")
    for name, text in SETTINGS.items():
        path = work / "settings/@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folders = {"CONFIG_DIR": "config", "DATA_DIR": "data", "RUNTIME_DIR": "runtime"}
    places = {f"JUPYTER_{k}": str(work / v) for k, v in folders.items()}
    path = os.pathsep.join(filter(None, [str(BOOK.parent), os.environ.get("PYTHONPATH")]))
    places |= {"IPYTHONDIR": str(work / "ipython"), WORKSPACE: str(work / "exercises")}
    environment = os.environ | places | {"PYTHONPATH": path}
    command = f"""-m jupyterlab --no-browser --allow-root --ip=127.0.0.1 --port={port}
        --IdentityProvider.token= --ServerApp.password= --ServerApp.disable_check_xsrf=True
        --LabApp.extension_manager=readonly --LabApp.expose_app_in_browser=True"""
    where = [f"--LabApp.user_settings_dir={work}/settings", f"--ServerApp.root_dir={work}"]
    with (work / "lab.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, *command.split(), *where], env=environment, stdout=log, stderr=log
        )
        address = f"http://127.0.0.1:{port}"
        wait_for(address, server, work / "lab.log")
        yield address, work, environment
        server.send_signal(signal.SIGTERM)
        server.wait(15)


def wait_for(address: str, server, log: Path) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{address}/api/status", timeout=2).close()
            return
        except OSError:
            assert server.poll() is None, log.read_text()
            time.sleep(0.1)
    raise AssertionError(f"JupyterLab did not answer in 30 s\n{log.read_text()}")


@pytest.mark.parametrize("name", [path.name for path in FEW])
def test_reader_runs_the_chapter(lab, browser, name):
    address, *_ = lab
    page = browser.new_page(viewport={"width": 1400, "height": int(os.environ.get("TALL", 1600))})
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(f"{address}/lab/tree/book/{name}?reset")
    page.wait_for_function(READY, timeout=60_000)
    page.evaluate(CLEAR)
    assert page.locator(GRAPHS).count() == 0
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.wait_for_function(DONE, timeout=200_000)
    for kind in ("stderr", "error"):
        red = f".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.{kind}']"
        assert page.locator(red).all_inner_texts() == []
    sources = page.evaluate(SOURCES)
    for exercise in (load(one) for one in names() if name.startswith(one.split("/")[0])):
        assert page.locator(TASKS, has_text=exercise.title).count() == 1
        (editor,) = [text for text in sources if exercise.name in text.split("\n")[0]]
        assert editor.startswith(f"%%exercise {exercise.name}\n")
        assert "raise NotImplementedError" in editor
    graphs = page.locator(GRAPHS)
    assert graphs.count() >= 1
    for k in range(graphs.count()):
        box = graphs.nth(k).bounding_box()
        assert 40 < box["width"] <= graphs.nth(k).locator("xpath=..").bounding_box()["width"]
        assert box["height"] > 20
    assert any(frame.evaluate(TIPS) for frame in page.frames[1:])
    if where := os.environ.get("SCREENSHOTS"):
        Path(where).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{where}/{name}.png", full_page=True)
    assert troubles == []
    page.close()


def open_notebook(lab, browser, name: str, picture, trusted: bool):
    """A notebook whose output is a picture: (page, output)."""
    address, work, environment = lab
    path = work / f"{name}_{trusted}.ipynb"
    bundle = picture._repr_mimebundle_()
    bundle.pop("image/png", None)  # bytes, which a kernel would encode
    output = nbformat.v4.new_output("display_data", data=bundle)
    cell = nbformat.v4.new_code_cell("g", outputs=[output], execution_count=1)
    kernel = {"name": "python3", "display_name": "Python 3"}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel})
    nbformat.write(notebook, path)
    if trusted:
        command = [sys.executable, "-m", "jupyter", "trust", str(path)]
        subprocess.run(command, env=environment, check=True, capture_output=True)
    page = browser.new_page(viewport={"width": 1400, "height": 1600})
    page.goto(f"{address}/lab/tree/{path.name}?reset")
    page.wait_for_function(READY, timeout=60_000)
    return page, page.locator(".jp-OutputArea-output").first


TRUST = pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "not trusted"])


@TRUST
def test_a_wide_graph_fits_the_page(lab, browser, trusted):
    """Trusted, it has tooltips and opens large; else it is the picture, which has neither."""
    g = viz.Graph()
    g.attr(rankdir="LR", nodesep="2")
    for k in range(20):
        g.node(f"n{k}", f"wide {trusted}: a long name {k}", tooltip="a tip")
        g.edge(f"n{k}", f"n{k + 1}")
    page, output = open_notebook(lab, browser, "wide", g, trusted)
    picture = output.locator("object" if trusted else "img").first
    room = output.bounding_box()["width"]
    assert 0.9 * room < picture.bounding_box()["width"] <= room
    assert output.locator("object").count() == trusted
    if trusted:
        assert any(frame.evaluate(TIPS) for frame in page.frames[1:])
        output.get_by_role("button").click()
        assert picture.bounding_box()["width"] > 2 * room
    page.close()


@TRUST
def test_a_picture_moves_where_it_is_trusted(lab, browser, trusted):
    """Not trusted, it is the first one."""
    shown = viz.movable(lambda ranks: viz.collective(ring(ranks)), ranks=[2, 3, 4])
    page, output = open_notebook(lab, browser, "moves", shown, trusted)
    output.locator("iframe" if trusted else "img").wait_for()
    if trusted:
        frame = page.frames[1]
        frame.get_by_role("slider").focus()
        page.keyboard.press("ArrowRight")
        assert "round 4  | 333 | 333 | 333" in frame.locator("figcaption").inner_text()
        box, high = output.locator("iframe").bounding_box(), "document.body.offsetHeight"
        assert box["height"] == frame.evaluate(high)
    assert output.locator("iframe").count() == trusted
    assert output.locator("img").count() == (not trusted)
    if where := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{where}/moves-{trusted}.png")
    page.close()


STILL = '<svg width="90pt" height="30pt" xmlns="http://www.w3.org/2000/svg"></svg>'


@pytest.mark.parametrize("name", ["explorer", "movable"])
def test_a_frame_is_as_dark_as_the_lab(lab, browser, name):
    if name == "explorer":
        shown = Explorer(NetFacts().json(), lambda: STILL)
    else:
        shown = viz.movable(lambda ranks: viz.collective(ring(ranks)), ranks=[2, 3, 4])
    page, output = open_notebook(lab, browser, f"dark-{name}", shown, trusted=True)
    output.locator("iframe").wait_for()
    for theme, scheme in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        page.evaluate(CHANGE_THEME, theme)
        page.frames[1].wait_for_function(SCHEME, arg=scheme)
        if where := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=f"{where}/{name}-{scheme}.png")
    page.close()


@TRUST
def test_an_explorer_is_alive_or_a_picture(lab, browser, trusted):
    """Trusted, it is the page in a frame; else the still picture alone."""
    facts = NetFacts().json() | {"title": f"explorer {trusted}"}
    page, output = open_notebook(lab, browser, "explorer", Explorer(facts, lambda: STILL), trusted)
    output.locator("iframe" if trusted else "img").wait_for()
    if trusted:
        frame = output.frame_locator("iframe")
        frame.locator("#py b", has_text="self.stem(x)").click()
        assert "2 records here" in frame.locator("#said").inner_text()
    else:
        assert output.locator("img").bounding_box()["width"] == 120
    assert output.locator("iframe").count() == trusted
    assert output.locator("img").count() == (not trusted)
    if where := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{where}/explorer-{trusted}.png")
    page.close()
