"""The chapters' explorers: asked for by chapters, selected by links, shown by the first page."""

import re
import sys

import pytest

from minipaddle.engine.executors.compiler import compiler
from minipaddle.learn.chapters import chapters
from tests.book.chapters import BOOK, read
from tests.book.site import EXPLORED, go, run_python, shoot
from tests.browsing import IN_A_BROWSER
from tests.viz.explore.steps import read_facts

pytest.importorskip("myst_nb", reason="the extra `site` is not installed")

ASKING = [name for name, chapter in chapters().items() if re.match(r"(II|III|IV),", chapter.part)]
WRITE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from explorers import write_explorers
if __name__ == "__main__":
    print(*write_explorers(Path(sys.argv[2]), sys.argv[3:]).values())
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(500),
    pytest.mark.skipif(compiler() is None, reason="no C compiler: no explorers"),
]


@pytest.fixture(scope="module")
def explorers():
    """The module that writes the pages."""
    sys.path.insert(0, str(BOOK / "site"))
    import explorers

    yield explorers
    sys.path.remove(str(BOOK / "site"))


def select(facts: dict, address: str) -> tuple[str, list]:
    """The text of the expression that an address selects, and its tracks, as the page finds it."""
    first, start, last, end = map(
        int, re.search(r"#sel=(\d+):(\d+)-(\d+):(\d+)$", address).groups()
    )
    number = next(
        k for k, span in enumerate(facts["spans"]) if span[1:] == [first, start, last, end]
    )
    source = facts["src"][facts["spans"][number][0]]
    lines = source["lines"][first - source["first"] : last - source["first"] + 1]
    text = "\n".join(lines)[start : len("\n".join([*lines[:-1], lines[-1][:end]]))]
    tracks = [k for k, row in enumerate(facts["tracks"]) if row[2] == number]
    return " ".join(text.split()), tracks + facts["calls"].get(str(number), [])


def test_each_chapter_on_programs_asks_for_its_page(explorers):
    asked = {name: explorers.find_asked(read(BOOK / f"{name}.ipynb")) for name in chapters()}
    assert [name for name, one in asked.items() if one] == ASKING


@pytest.mark.sweep(one_in=7)
@pytest.mark.parametrize("name", ASKING)
def test_the_page_of_a_chapter_has_what_its_link_selects(explorers, tmp_path, name):
    """It runs the chapter's cells, so it fails when the expression is not there any more."""
    words = ["-c", WRITE, str(BOOK / "site"), str(tmp_path), name]
    done = run_python(*words)
    assert done.returncode == 0, done.stderr
    form = rf"explorer of {name}: \d+ s\n(explore/{name}\.html)(#sel=\S+)\n"
    said = re.fullmatch(form, done.stdout)
    page = (tmp_path / said[1]).read_text(encoding="utf-8")
    facts = read_facts(page)
    text, tracks = select(facts, said[2])
    assert text == explorers.find_asked(read(BOOK / f"{name}.ipynb")).expression
    assert tracks
    assert facts["kernels"] or "open sizes" in facts["why"]["c"]
    assert f'href="../{name}.html"' in page


def test_links_of_the_site_select_what_their_chapters_name(explorers, site):
    for name in ASKING:
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        links = re.findall(r'<a href="(explore/[^"]+)"><code[^>]*>viz\.explore', text)
        assert len(links) == (name in EXPLORED), name
        for link in links:
            page, address = link.split("#")
            facts = read_facts((site / page).read_text(encoding="utf-8"))
            assert select(facts, f"#{address}")[0] in text
    assert sorted(page.stem for page in (site / "explore").iterdir()) == EXPLORED


def test_where_nothing_compiles_the_call_is_no_link(explorers):
    from pages import staged

    texts = [
        "".join(cell.source for cell in staged(read(BOOK / "12_fusion.ipynb"), address).cells)
        for address in (None, "explore/x.html#sel=1")
    ]
    assert ["`viz.explore(feed)`" in text for text in texts] == [True, False]
    assert ['<a href="explore/x.html#sel=1"><code' in text for text in texts] == [False, True]


def test_only_the_cells_that_a_page_needs_are_run(explorers):
    cells = {
        0: "import math",
        2: "x = slow()",
        3: "def area(r):\n    x = r * r\n    return pi * x",
        4: "pi = math.pi\nrest = 3",
        5: "n = 1",
        6: "n += rest",
        8: "n = 7",
    }
    asked = explorers.Asked("", "area(n)", 7, cells)
    assert explorers.find_needed_cells(asked) == [0, 3, 4, 5, 6]


def test_an_expression_that_is_gone_is_an_error(explorers):
    facts = {"tracks": [["tanh", "", 0, 0, [], [], -1]], "calls": {}, "spans": [[0, 4, 2, 4, 9]],
             "src": [{"first": 4, "lines": ["x = f(y)"]}]}  # fmt: skip
    with pytest.raises(ValueError, match=r"07_rewriting: no records come from `g\(y\)`"):
        explorers.find(facts, "g(y)", "07_rewriting")
    facts["spans"][0] = [0, 4, 4, 4, 8]
    assert explorers.find(facts, "f(y)", "07_rewriting") == "4:4-4:8"


class TestInABrowser:
    pytestmark = IN_A_BROWSER

    @pytest.mark.parametrize("name", EXPLORED)
    def test_a_chapter_leads_to_its_page_and_back(self, explorers, address, reader, name):
        page = go(reader(), f"{address}/{name}.html")
        page.locator("a[href^='explore/']").click()
        asked = explorers.find_asked(read(BOOK / f"{name}.ipynb"))
        page.locator("#said", has_text=f"‘{asked.expression}’").wait_for()
        assert re.search(r"\d+ records? here", page.inner_text("#said"))
        assert page.locator("#py .hit").count() > 0
        shoot(page, f"explore-{name}")
        page.locator("header a").click()
        page.wait_for_url(f"**/{name}.html")

    @pytest.mark.parametrize("width", [1400, 420])
    def test_the_first_page_shows_an_explorer_alive(self, address, site, reader, width):
        for start in (address, site.as_uri()):
            page = go(reader(width), f"{start}/index.html")
            page.locator(".explorer").scroll_into_view_if_needed()
            frame = page.frame_locator(".explorer iframe")
            frame.locator("#said", has_text="‘self.second(x)’").wait_for()
            frame.locator("#py", has_text="F.cross_entropy").locator("b").first.click()
            frame.locator("#said", has_text="self.second(x)").wait_for(state="hidden")
            for theme in ("dark", "light"):
                page.emulate_media(color_scheme=theme)
                frame.locator(f"html[style*='{theme}']").wait_for()
            box = page.locator(".explorer").bounding_box()
            assert box["x"] + box["width"] <= width
            assert frame.locator("section:visible").count() == (5 if width > 900 else 1)
            frame.locator("header a").click()
            page.wait_for_url("**/10_training_programs.html")
