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

import pytest

from tests.book.chapters import BOOK, FEW
from tests.exercises.batch import unmeasured

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
    """JupyterLab with settings of its own, on a copy of the book: (address, folder)."""
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
    environment = unmeasured() | places | {"IPYTHONDIR": str(work / "ipython"), "PYTHONPATH": path}
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
        yield address, work
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
    address, _work = lab
    page = browser.new_page(viewport={"width": 1400, "height": int(os.environ.get("TALL", 1600))})
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(f"{address}/lab/tree/book/{name}?reset")
    page.wait_for_function(READY, timeout=60_000)
    page.evaluate(CLEAR)
    assert page.locator(".jp-RenderedSVG").count() == 0
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.wait_for_function(DONE, timeout=200_000)
    for kind in ("stderr", "error"):
        red = f".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.{kind}']"
        assert page.locator(red).all_inner_texts() == []
    graphs = page.locator(".jp-RenderedSVG")
    assert graphs.count() >= 1
    for k in range(graphs.count()):
        box = graphs.nth(k).bounding_box()
        assert box["width"] > 40
        assert box["height"] > 20
    if where := os.environ.get("SCREENSHOTS"):
        Path(where).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{where}/{name}.png", full_page=True)
    assert troubles == []
    page.close()
