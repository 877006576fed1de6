"""The book as static pages: formulas, graphs and search work without a network.

    python book/site/build.py [--no-open] [--to FOLDER] [--strict] [--explore CHAPTER…]

The chapters are taken with the outputs they are committed with. Run again are the training of
chapter 5's network, on which a page lets one draw, and the cells that make the networks of the
explorers' pages. What the other pages say is collected from where it is defined: operators,
exercises, first cells.
"""

import argparse
import shutil
import sys
import tempfile
import webbrowser
from pathlib import Path

from drawing import can_draw, write_drawing
from explorers import can_explore, write_explorers
from pages import ROOT, write_pages
from sphinx.cmd.build import main as sphinx

HERE = Path(__file__).resolve().parent
SITE = ROOT / "book/_site"


def main(args) -> int:
    """Build, say where it lies, open it. A folder that is something else stays as it is."""
    if args.to.is_dir() and any(args.to.iterdir()) and not (args.to / ".buildinfo").exists():
        sys.exit(f"{args.to} holds something else than a site; name another folder by --to.")
    with tempfile.TemporaryDirectory() as work:
        source, built = Path(work, "source"), Path(work, "built")
        links = {}
        if can_explore():
            links = write_explorers(Path(work, "explorers"), args.explore)
        else:
            print("No C compiler was found: the site is built without explorers' pages.")
        write_pages(source, links, write_drawing() if can_draw() else "")
        strict = ["--fail-on-warning", "--keep-going"] * args.strict
        folders = ["--conf-dir", str(HERE), "--doctree-dir", f"{work}/doctrees"]
        if sphinx(["--quiet", *strict, *folders, str(source), str(built)]):
            return 1
        shutil.rmtree(args.to, ignore_errors=True)
        shutil.copytree(built, args.to)
        if links:
            shutil.copytree(Path(work, "explorers"), args.to, dirs_exist_ok=True)
    start = args.to.resolve() / "index.html"
    print(f"The book as pages: {start}")
    if args.open and not webbrowser.open(start.as_uri()):
        print("No browser was found here; open that file in one.")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="./run site", description=__doc__.split("\n")[0])
    parser.add_argument("--no-open", dest="open", action="store_false", help="only build")
    parser.add_argument("--to", type=Path, default=SITE, metavar="FOLDER", help="where to put it")
    only = {"nargs": "*", "metavar": "CHAPTER", "help": "explorers' pages of these chapters alone"}
    parser.add_argument("--explore", **only)
    parser.add_argument("--strict", action="store_true", help="a warning is an error")
    sys.exit(main(parser.parse_args()))
