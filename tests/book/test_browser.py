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
from minipaddle.learn.exercise import load, names
from tests.book.chapters import BOOK, FEW, WORKSPACE

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
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

SOURCES = """() => [...jupyterapp.shell.currentWidget.content.model.cells]
  .map(c => c.sharedModel.getSource())"""
TASKS = ".jp-OutputArea-output[data-mime-type='text/markdown'] h3"
GRAPHS = ".jp-OutputArea-output object[type='image/svg+xml']"
TIPS = "() => document.querySelectorAll('svg a').length"  # Graphviz writes a tooltip as a link's

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        CHROMIUM is None and not os.environ.get("CI"),
        reason="no Chromium on this machine: install the package chromium to run this",
    ),
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


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


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


def write_notebook(path, trusted: bool, environment) -> None:
    """A notebook whose output is a graph wider than the page."""
    g = viz.Graph()
    g.attr(rankdir="LR", nodesep="2")
    for k in range(20):
        g.node(f"n{k}", f"{path.stem}: a long name {k}", tooltip="a tip")
        g.edge(f"n{k}", f"n{k + 1}")
    bundle = g._repr_mimebundle_()
    bundle.pop("image/png")  # bytes, which a kernel would encode
    output = nbformat.v4.new_output("display_data", data=bundle)
    cell = nbformat.v4.new_code_cell("g", outputs=[output], execution_count=1)
    kernel = {"name": "python3", "display_name": "Python 3"}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel})
    nbformat.write(notebook, path)
    if trusted:
        command = [sys.executable, "-m", "jupyter", "trust", str(path)]
        subprocess.run(command, env=environment, check=True, capture_output=True)


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "not trusted"])
def test_a_wide_graph_fits_the_page(lab, browser, trusted):
    """Trusted, it has tooltips and opens large; else it is the picture, which has neither."""
    address, work, environment = lab
    path = work / f"wide_{trusted}.ipynb"
    write_notebook(path, trusted, environment)
    page = browser.new_page(viewport={"width": 1400, "height": 1600})
    page.goto(f"{address}/lab/tree/{path.name}?reset")
    page.wait_for_function(READY, timeout=60_000)
    output = page.locator(".jp-OutputArea-output").first
    picture = output.locator("object" if trusted else "img").first
    room = output.bounding_box()["width"]
    assert 0.9 * room < picture.bounding_box()["width"] <= room
    assert output.locator("object").count() == trusted
    if trusted:
        assert any(frame.evaluate(TIPS) for frame in page.frames[1:])
        output.get_by_role("button").click()
        assert picture.bounding_box()["width"] > 2 * room
    page.close()
