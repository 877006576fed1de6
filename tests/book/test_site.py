"""The book as static pages, in a real browser that reaches no other host."""

import html
import re
import tomllib
from importlib.util import find_spec
from itertools import product

import pytest

from minipaddle.engine.core.op import OPS
from minipaddle.learn.chapters import chapters
from minipaddle.learn.exercise import load, names
from minipaddle.learn.stub import task_of
from minipaddle.learn.task import ExerciseTask
from tests.book.chapters import BOOK, CHAPTERS
from tests.book.site import build, go, shoot
from tests.browsing import IN_A_BROWSER
from tests.export.strokes import DIGITS, SAID, draw

pytest.importorskip("myst_nb", reason="the extra `site` is not installed")

GLOSSARY = tomllib.loads((BOOK / "site/glossary.toml").read_text("utf-8"))
NAMES = [path.stem for path in CHAPTERS]
CAN_DRAW = find_spec("ziglang") is not None
OTHERS = ["index", "exercises", "operators/index", "operators/engine-ops-special", "terms", "names",
          *["digits"] * CAN_DRAW]  # fmt: skip
OVERFLOWING = """() => {
  const boxed = e => { while (e = e.parentElement)
    if (getComputedStyle(e).overflowX !== 'visible') return true; };
  return [...document.querySelectorAll('main article *')]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !boxed(e))
    .map(e => e.outerHTML.slice(0, 100));
}"""
FAINT = """() => {
  const channel = c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const luminance = rgb => { const [r, g, b] = rgb.match(/[\\d.]+/g).map(c => channel(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const page = luminance(getComputedStyle(document.body).backgroundColor);
  const contrast = rgb => { const [a, b] = [luminance(rgb), page].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05); };
  return [...document.querySelectorAll('.graph g.edge path')]
    .map(e => getComputedStyle(e).stroke).filter(ink => contrast(ink) < 3);
}"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]


def test_every_page_names_only_what_lies_beside_it(site):
    """No script, style, picture or font of another host, on any page or in any style sheet."""
    loads = re.compile(
        r"""<(?:script|img|iframe|source|video)[^>]+src=["'](?:https?:)?//[^"']+"""
        r"""|<link(?![^>]+rel=["'](?:canonical|author)["'])[^>]+href=["'](?:https?:)?//[^"']+"""
        r"""|(?:@import|url\()\s*["']?(?:https?:)?//[^"')]+"""
    )
    files = [path for kind in ("html", "css") for path in site.rglob(f"*.{kind}")]
    assert len(files) > len(NAMES)
    found = {path.name: loads.findall(path.read_text(encoding="utf-8")) for path in files}
    assert {name: urls for name, urls in found.items() if urls} == {}


def test_a_folder_that_is_something_else_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    done = build("--to", str(tmp_path))
    assert done.returncode == 1
    assert "name another folder by --to" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_the_first_page_lists_the_chapters(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    places = [page.index(f'<td><p><a class="reference internal" href="{name}.') for name in NAMES]
    assert places == sorted(places)
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
    assert "Part I, the engine" in text
    questions = [chapter.question for chapter in chapters().values()]
    assert len({question[:9] for question in questions}) > len(questions) / 2
    for question in questions:
        assert question.replace("`", "") in text
    assert "easy, 5 minutes" in text


def test_the_readme_names_the_parts():
    readme = " ".join((BOOK.parent / "README.md").read_text(encoding="utf-8").split())
    parts = {}
    for chapter in chapters().values():
        parts.setdefault(chapter.part, []).append(chapter.number)
    for part, numbers in parts.items():
        numbers = "–".join(dict.fromkeys((numbers[0], numbers[-1])))
        assert re.search(f"part {part}: (chapters )?{numbers}", readme, re.IGNORECASE), part


def test_a_chapter_names_earlier_ones_to_read_before():
    for name, chapter in chapters().items():
        assert int(chapter.number) == int(name[:2])
        named = [int(n) for n in re.findall(r"\d+", chapter.before)]
        assert all(n < int(chapter.number) for n in named), name
        assert bool(named) == (int(chapter.number) > 0), name


def test_every_operator_is_in_the_reference(site):
    pages = "".join(p.read_text(encoding="utf-8") for p in (site / "operators").glob("*.html"))
    missing = [name for name in OPS if f'id="op-{name.replace("_", "-")}"' not in pages]
    assert missing == []
    tanh = (site / "operators/engine-ops-special.html").read_text(encoding="utf-8")
    words = re.sub(r"<[^>]+>", "", tanh[tanh.index('id="op-tanh"') :])[:900]
    for phrase in ("elementwise", "paddle.tanh", "Hyperbolic tangent", "ops/special.py, line"):
        assert phrase in words
    assert "m.tanh(x)" in words
    assert "tanh.vjp(lambda g, out" in words


@pytest.mark.parametrize("chapter", NAMES)
def test_every_exercise_is_asked_in_its_chapter_and_no_solution_shown(site, chapter):
    page = (site / f"{chapter}.html").read_text(encoding="utf-8")
    page = page[page.index('id="exercise-') :]  # before it a chapter may open the engine's code
    text = html.unescape(re.sub(r"<[^>]+>", "", page))
    listed = (site / "exercises.html").read_text(encoding="utf-8")
    exercises = [load(name) for name in names() if name.startswith(f"{chapter}/")]
    assert page.count("<summary>Hint 3</summary>") == len(exercises)
    for exercise in exercises:
        anchor = f"exercise-{exercise.name}".replace("/", "-").replace("_", "-")
        assert f'id="{anchor}"' in page
        assert f'href="{chapter}.html#{anchor}"' in listed
        assert exercise.stub.removeprefix(task_of(exercise.stub)).strip() in text
        assert letters(ExerciseTask(exercise).asks.partition("\n\n")[2]) in letters(text)
        secret = [line for line in exercise.solution.splitlines() if len(line.strip()) > 30]
        secret = [line for line in secret if line.strip() not in exercise.stub]
        assert [line for line in secret if line in text] == []


def letters(text):
    """Without what Markdown takes away: marks, and the numbers of lists."""
    return re.sub(r"[\W\d_]", "", text)


def test_a_page_to_draw_a_digit_on_is_there(site):
    """Where there is a compiler for it. (`tests/export/test_wasm.py` draws on such a page.)"""
    page = site / "digits.html"
    assert page.exists() == CAN_DRAW
    assert ('href="digits.html"' in (site / "index.html").read_text("utf-8")) == page.exists()
    for back in ("05_convolutions.html", "index.html") if CAN_DRAW else ():
        assert re.search(rf'<p>[^<]*<a [^>]*href="{back}"', page.read_text("utf-8"))


TERMS = {
    "tape": "00", "record": "00", "slot": "00", "spec": "01", "array module": "01",
    "cotangent": "02", "leaf": "02", "PyLayer": "03", "batch norm": "04", "im2col": "05",
    "program": "06", "symbolic array": "06", "tracing": "06", "shape rule": "06", "state": "06",
    "guard": "06", "verifier": "06", "interpreter": "06", "transpiler": "07", "region": "07",
    "converter": "07", "template": "07", "runtime": "07", "live": "07", "loop-carried": "08",
    "flag": "08", "unrolled": "08", "cache": "09", "key": "09", "condition": "09", "hint": "09",
    "cut": "10", "residuals": "10", "update": "10", "statement": "13", "reduction": "13",
    "loop nest": "13", "vector instructions": "13", "warp": "13", "lifetime": "14", "arena": "14",
    "in place": "14", "greedy": "14",
}  # fmt: skip
"""Core terms, and a chapter that explains each."""


def test_terms_lead_to_where_they_are_explained(site):
    """Each line of the index has its chapters and sections, and each link its anchor."""
    page = (site / "terms.html").read_text(encoding="utf-8")
    lines = re.findall(r"<p><strong>([^<]+)</strong>(.*?)</p>", page, re.DOTALL)
    known = {term.lower(): re.findall(r'href="(\w+)\.html#([^"]+)"', rest) for term, rest in lines}
    assert len(known) == len(lines) > 150
    anchors = {name: anchors_of(site / f"{name}.html") for name in NAMES}
    for term, places in known.items():
        assert places, term
        assert [(name, at) for name, at in places if at not in anchors[name]] == [], term
    homes = {term: {name[:2] for name, _ in known.get(term.lower(), ())} for term in TERMS}
    assert {term: home for term, home in TERMS.items() if home not in homes[term]} == {}
    assert "shift" not in known
    assert re.search(r">0 · Five minutes › A derivative, by the machine</a>", page)


def anchors_of(path):
    return set(re.findall(r' id="([^"]+)"', path.read_text(encoding="utf-8")))


def test_the_glossary_names_files_that_are_there(site):
    page = (site / "terms.html").read_text(encoding="utf-8")
    rows = re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL)
    words = [re.sub(r"<[^>]+>|\s+", " ", cell).strip() for cell in rows[::3]]
    assert words == [*GLOSSARY]
    for word, (_, file) in GLOSSARY.items():
        assert (BOOK.parent / "minipaddle" / file).is_file(), word


BUILT = {
    "paddle.to_tensor": "00", "paddle.Tensor.backward": "02", "paddle.Tensor.register_hook": "02",
    "paddle.grad": "03", "paddle.autograd.PyLayer": "03", "paddle.nn.Layer": "04",
    "paddle.nn.Linear": "04", "paddle.nn.functional.cross_entropy": "04",
    "paddle.optimizer.Adam": "04", "paddle.io.DataLoader": "04", "paddle.Model": "04",
    "paddle.nn.Conv2D": "05", "paddle.static.InputSpec": "06", "paddle.static.Program": "06",
    "paddle.static.Executor": "06", "paddle.jit.to_static": "09", "paddle.jit.not_to_static": "09",
    "paddle.jit.save": "10", "paddle.jit.load": "10",
}  # fmt: skip
"""Names of Paddle, and the chapter that builds each."""


def test_names_of_paddle_lead_to_the_chapter_that_builds_them(site):
    page = (site / "names.html").read_text(encoding="utf-8")
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in page.split("<tr")[1:]]
    table = {words(row[0]): row[1:] for row in rows if row}
    assert len(table) > 80
    for name, (home, others, file) in table.items():
        links = re.findall(r'href="(\w+)\.html"', home + others)
        assert links, name
        assert set(links) <= set(NAMES), name
        assert (BOOK.parent / "minipaddle" / words(file)).is_file(), name
    homes = {name: re.search(r'href="(\d+)', table[name][0])[1] for name in BUILT}
    assert homes == BUILT


def words(cell):
    return re.sub(r"<[^>]+>", "", cell).strip()


class TestInABrowser:
    pytestmark = IN_A_BROWSER

    @pytest.mark.skipif(not CAN_DRAW, reason="the extra `zig` is missing")
    def test_drawn_digits_are_read(self, address, reader):
        page = reader()
        page.goto(f"{address}/digits.html")
        page.wait_for_selector("body[data-ready]")
        for digit in (0, 2, 3, 5):
            page.click("#clear")
            draw(page, DIGITS[digit])
            page.wait_for_function(SAID, arg=digit)

    @pytest.mark.sweep(one_in=4)
    @pytest.mark.parametrize("name", [*NAMES, *OTHERS])
    def test_a_page_is_whole_in_light_and_dark_wide_and_narrow(self, address, reader, name):
        page = go(reader(), f"{address}/{name}.html")
        formulas = page.locator("span.math, div.math").count()
        assert page.locator("mjx-container svg").count() >= formulas
        assert page.locator("[data-mjx-error], mjx-merror").count() == 0
        for width, scheme in product((1400, 360), ("light", "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            page.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
            shoot(page, f"{name.replace('/', '-')}-{width}-{scheme}", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(OVERFLOWING) == []
            assert page.evaluate(FAINT) == []

    def test_formulas_and_graphs_are_there(self, address, reader):
        page = go(reader(), f"{address}/00_five_minutes.html")
        assert page.locator("mjx-container svg").count() == page.locator(".math").count() > 3
        assert page.locator(".graph svg .node").count() > 10
        box = page.locator(".graph svg").first.bounding_box()
        assert min(box["width"], box["height"]) > 100

    def test_a_picture_moves(self, address, reader):
        page = go(reader(420), f"{address}/26_pipelines.html")
        page.locator("iframe").scroll_into_view_if_needed()
        frame = page.frames[1]
        frame.get_by_text("4 stages, 27 s").wait_for()
        frame.get_by_role("slider", name="stages", exact=True).focus()
        page.keyboard.press("ArrowRight")
        frame.get_by_text("8 stages, 31 s").wait_for()
        assert frame.evaluate("document.documentElement.scrollWidth <= innerWidth")

    def test_a_wide_graph_scrolls_in_its_box(self, address, reader):
        page = go(reader(360), f"{address}/00_five_minutes.html")
        wide = page.evaluate(
            "[...document.querySelectorAll('.graph')].filter(e => e.scrollWidth > e.clientWidth)"
            ".map(e => { e.scrollLeft = 10; return e.scrollLeft; })"
        )
        assert wide
        assert set(wide) == {10}

    @pytest.mark.parametrize(
        ("word", "chapter"), [("accumulate", ""), ("tape", "00"), ("vjp", "02"), ("arena", "14")]
    )
    def test_search_finds(self, address, site, reader, word, chapter):
        page = reader()
        for start in (address, site.as_uri()):
            go(page, f"{start}/index.html")
            page.locator(".search-button-field").first.click()
            page.keyboard.type(word)
            page.keyboard.press("Enter")
            page.wait_for_url("**/search.html*")
            page.locator("#search-results li a").first.wait_for()
            page.wait_for_function("/finished/.test(document.body.innerText)")
            links = page.locator("#search-results li a")
            assert links.first.get_attribute("href").startswith(chapter)
            shoot(page, f"search-{word}-{'file' if start.startswith('file') else 'http'}")
            page.locator("#search-results li a").first.click()
            page.wait_for_load_state()
            assert word[:7] in page.locator("main").inner_text().lower()

    def test_the_page_turns_dark_and_light(self, address, reader):
        page = go(reader(), f"{address}/00_five_minutes.html")
        seen = []
        for mode in ("dark", "light"):
            page.locator(".theme-switch-button").first.click()
            page.locator(f".theme-change-button[data-mode={mode}]").first.click()
            page.wait_for_function(f"document.documentElement.dataset.theme === '{mode}'")
            seen.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.reload()
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        assert len(set(seen)) == 2
