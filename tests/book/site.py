"""Building the book's pages, and reading them in a browser: what the tests of the site share."""

import os
import subprocess
import sys
from pathlib import Path

from tests.book.chapters import BOOK

BUILDER = BOOK / "site/build.py"
EXPLORED = ["10_training_programs", "12_fusion"]
"""Chapters whose explorers' pages are built: the first page shows that of one."""
RENDERED = "() => !window.MathJax || MathJax.startup.promise.then(() => true)"


def build(*args):
    return run_python(str(BUILDER), "--no-open", *args)


def run_python(*args):
    """Run this Python, which finds this package."""
    path = os.pathsep.join(filter(None, [str(BOOK.parent), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
    options = {"env": environment, "capture_output": True, "encoding": "utf-8", "timeout": 400}
    return subprocess.run([sys.executable, *args], **options)


def go(page, url):
    page.goto(url)
    page.wait_for_function(RENDERED)
    return page


def shoot(page, name, **options):
    """A screenshot, where SCREENSHOTS says."""
    if where := os.environ.get("SCREENSHOTS"):
        Path(where).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{where}/{name}.png", **options)
