"""The page of an explorer, in a real browser: offline, by pointer and by keys alone."""

import hashlib
import json
import random
import re
from html.parser import HTMLParser

import pytest

from minipaddle.viz.explore import Explorer, page
from minipaddle.viz.explore.facts import StepFacts
from minipaddle.viz.explore.panes import PaneWriter
from tests.browsing import IN_A_BROWSER
from tests.viz.explore.facts_of_net import NetFacts
from tests.viz.explore.steps import gpt, resnet18

STILL = '<svg width="60pt" height="30pt" xmlns="http://www.w3.org/2000/svg"></svg>'
DAGRE = "54a503e346f93ca0bb10abe7999587e037262935687aca45eb4e4b0f64bbb578"
"""SHA-256 of dist/dagre.min.js in the package @dagrejs/dagre 3.1.3."""


def browsed(test):
    """Mark a test that needs a browser."""
    for mark in IN_A_BROWSER:
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The page of a small network, as a file."""
    folder = tmp_path_factory.mktemp("page")
    return Explorer(NetFacts().json(), lambda: STILL).save_as(folder / "step.html")


@pytest.fixture
def visit(browser, file):
    """Opens the page; after the test it has seen no error and asked for no other file."""
    pages, troubles = [], []

    def note(request):
        if request.url.split("#")[0] != file.as_uri():
            troubles.append(request.url)

    def go(hash="", width=1500, height=900, **options):
        size = {"width": width, "height": height}
        context = browser.new_context(viewport=size, offline=True, **options)
        view = context.new_page()
        view.on("pageerror", lambda error: troubles.append(str(error)))
        view.on("console", lambda message: troubles.append(message.text))
        view.on("request", note)
        view.goto(f"{file.as_uri()}{hash}")
        view.wait_for_function(READY)
        pages.append(context)
        return view

    yield go
    for context in pages:
        context.close()
    assert troubles == []


READY = "() => document.querySelector('#ruler [aria-pressed=true]')"
SAID = "#said"


# ---- the text ------------------------------------------------------------------------------------


def test_same_facts_give_the_same_page():
    text = page.page(NetFacts().json(), STILL)
    assert text == page.page(NetFacts().json(), STILL)
    assert text.count(STILL) == 1
    assert text.count("</script>") == 3
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text.replace(read_dagre(), ""))


def test_a_page_on_a_site_leads_back():
    text = page.page(NetFacts().json(), STILL, back=("4 · A < B", "../04.html?a&b"))
    link = '<a href="../04.html?a&amp;b" target="_top"'
    assert text.count(link) == 1
    assert "← 4 · A &lt; B</a><h1" in text
    assert "target=" not in page.page(NetFacts().json(), STILL)


def read_dagre() -> str:
    return page.read("dagre.min.js").partition("\n//#")[0]


def test_facts_are_packed():
    facts = NetFacts(blocks=80).json()
    text = page.write_facts(facts)
    assert 'id="facts" type="text/plain"' in text
    assert len(text) < 0.3 * len(json.dumps(facts, separators=(",", ":")))


def test_layout_library_is_the_published_one():
    text = (page.HERE / "dagre.min.js").read_bytes()
    assert hashlib.sha256(text).hexdigest() == DAGRE
    assert "Permission is hereby granted" in page.read("dagre.LICENSE.txt")


def test_files_are_small():
    """What a browser reads of ours; the aims are 30 KB and 600 lines."""
    texts = [page.read(name) for name in page.SCRIPTS]
    assert sum(len(text.encode()) for text in texts) <= 39_500
    assert sum(text.count("\n") for text in texts) <= 850
    look = page.read("look.css")
    assert len(look.encode()) <= 6144
    assert all(len(line) <= 100 for text in (*texts, look) for line in text.splitlines())


def test_an_explorer_is_saved_as_a_page(tmp_path):
    explorer = Explorer({"title": "step"}, lambda: STILL)
    with pytest.raises(ValueError, match=r"step\.svg should end in \.html"):
        explorer.save_as(tmp_path / "step.svg")


class TextReader(HTMLParser):
    """The text of each element that has an address."""

    def __init__(self, html: str):
        super().__init__()
        self.inside, self.texts = [], {}
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.inside.append(dict(attrs).get("data-sel"))
        self.texts.setdefault(self.inside[-1], "")

    def handle_endtag(self, tag):
        self.inside.pop()

    def handle_data(self, data):
        for address in {*self.inside} - {None}:
            self.texts[address] += data


def test_elements_hold_their_expressions():
    facts = NetFacts().json()
    texts = TextReader(PaneWriter(facts).write()["py"][0]).texts
    for k, (src, line, start, _, end) in enumerate(facts["spans"]):
        source = facts["src"][src]
        assert texts[f"s{k}"] == source["lines"][line - source["first"]][start:end]
    assert texts["l0.14"].startswith("14        return self.head(x)  # </script><b>")


def test_rows_of_c_are_all_lines():
    facts = NetFacts().json()
    (blocks, words), lines = PaneWriter(facts).write()["c"], facts["c"].split("\n")
    assert words == f"{len({k['name'] for k in facts['kernels'] if k['lines']})} kernels"
    assert [block[0] for block in blocks[1:]] == [block[1] + 1 for block in blocks[:-1]]
    assert blocks[-1][1] == len(lines)
    texts = TextReader("".join(block[3] for block in blocks)).texts
    assert {*texts} - {None} == {f"c{n}" for n in facts["own"]}
    assert all(texts[f"c{n}"] == n + lines[int(n) - 1] for n in facts["own"])


# ---- selections ----------------------------------------------------------------------------------


ROUND_TRIPS = """async tracks => {
  const choose = address => new Promise(done => {
    addEventListener('hashchange', () => setTimeout(done), {once: true});
    location.hash = `#sel=${address}`;
  });
  const marks = pane => [...document.querySelectorAll(`#${pane} [data-sel].hit`)];
  const panes = ['py', 'c', 'time', 'arena', 'ranks'], bad = [];
  let trips = 0;
  for (const track of tracks) {
    await choose(`t${track}`);
    const before = panes.map(marks);
    if (!before[0].length || !before[4].length) bad.push(track);
    for (const [element] of before.filter(list => list.length)) {
      await choose('m');
      element.click();
      trips++;
      panes.forEach((pane, k) => {
        const now = new Set(marks(pane));
        if (!before[k].every(e => now.has(e))) bad.push([track, element.dataset.sel, pane]);
      });
    }
  }
  return [trips, bad];
}"""


@browsed
def test_round_trips_between_panes(visit):
    """From a record to its mark in a pane; a click there marks the same in all panes."""
    view, facts = visit("#stage=fusion"), NetFacts().json()
    tracks = random.Random(0).sample([row[0] for row in facts["stages"][-2]["recs"]], 20)
    trips, bad = view.evaluate(ROUND_TRIPS, tracks)
    assert bad == []
    assert trips >= 80


@browsed
def test_a_click_selects_the_innermost_then_the_next_outside(visit):
    view = visit()
    inner = view.locator("#py b b", has_text="block(x)").last
    names = []
    for _ in range(3):
        inner.click()
        names.append(view.locator(f"{SAID} b").inner_text())
    assert names == ["‘block(x)’", "‘block(x) + x’", "‘F.relu(block(x) + x)’"]


@browsed
def test_shift_adds_gradients(visit):
    view = visit()
    line = view.locator("#py b", has_text="self.stem(x)")
    line.click()
    assert "∂ 2 gradients" in view.inner_text(SAID)
    assert "2 records here" in view.inner_text(SAID)
    line.click(modifiers=["Shift"])
    assert "4 records here" in view.inner_text(SAID)
    assert "&grad" in view.url


@browsed
def test_a_selection_follows_the_passes(visit):
    view = visit("#sel=21:11")
    assert "1 record here → " in view.inner_text(SAID)
    view.locator("#ruler button", has_text="decompose").click()
    view.wait_for_function("() => location.hash.startsWith('#stage=decompose')")
    assert "3 records here" in view.inner_text(SAID)
    assert view.locator("#graph .n.new.hit").count() == 3
    assert view.locator("#graph .n.gone.hit").count() == 1
    view.locator("#rules button").click()
    assert "rule mse_loss -> mean" in view.inner_text(SAID)


@browsed
def test_the_address_holds_stage_and_selection(visit):
    view = visit("#stage=kernels&sel=13:16")
    assert view.locator("#ruler [aria-pressed=true] b").inner_text() == "kernels"
    assert "F.relu" in view.inner_text(SAID)
    view.locator("#py b", has_text="self.head(x)").click()
    assert view.url.endswith("#stage=kernels&sel=14:15")


@browsed
def test_equal_neighbours_are_one_box(visit):
    view = visit()
    heads = [head.rpartition(" ")[0] for head in view.locator("#graph h4").all_text_contents()]
    assert "head.b … stem.b (×6)" in heads  # of the shape of a bias
    assert not {"head.b", "stem.w"} & set(heads)


# ---- the graph -----------------------------------------------------------------------------------

CROSSINGS = """() => {
  const lines = [...document.querySelectorAll('#graph .line > path')].map(path => {
    const n = path.getTotalLength(), k = Math.max(4, Math.min(40, n / 12 | 0));
    const box = path.closest('.inside,#world');
    return {box, points: Array.from({length: k + 1}, (_, j) => path.getPointAtLength(n * j / k))};
  }).filter(line => line.box.checkVisibility());
  const side = (p, q, r) => Math.sign((q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x));
  const cross = (p, q, r, s) =>
    side(p, q, r) * side(p, q, s) < 0 && side(r, s, p) * side(r, s, q) < 0;
  const near = (p, q) => Math.hypot(p.x - q.x, p.y - q.y) < 12;
  let n = 0;
  lines.forEach(({box, points: a}, i) => lines.slice(0, i).forEach(({box: other, points: b}) => {
    if (box !== other || near(a[0], b[0]) || near(a.at(-1), b.at(-1))) return;
    for (let k = 1; k < a.length; k++) for (let j = 1; j < b.length; j++)
      if (cross(a[k - 1], a[k], b[j - 1], b[j])) { n++; return; }
  }));
  return [n, lines.length];
}"""
TEXT = """() => Math.min(...[
  ...document.querySelectorAll('#world :is(b, p, h4, small, text, .chip)')
].filter(text => text.checkVisibility() && text.getBoundingClientRect().width)
  .map(text => parseFloat(getComputedStyle(text).fontSize) * text.currentCSSZoom))"""


@browsed
def test_lines_rarely_cross(visit):
    view = visit()
    assert view.evaluate(CROSSINGS) == [0, 4]
    for stage in ("captured", "decompose", "kernels"):
        view.locator("#ruler button", has_text=stage).click()
        view.keyboard.press("e")
        view.wait_for_timeout(300)
        crossings, lines = view.evaluate(CROSSINGS)
        assert lines > 60
        assert crossings <= 0.05 * lines, stage


@browsed
@pytest.mark.slow
@pytest.mark.parametrize("step", [lambda: gpt(10), resnet18], ids=["gpt", "resnet18"])
def test_lines_of_large_steps_rarely_cross(browser, tmp_path, step):
    """After all passes and as kernels, with all boxes open; no line of the first view crosses."""
    path = Explorer(StepFacts(step(), timed=False).json, lambda: STILL).save_as(
        tmp_path / "step.html"
    )
    for stage in ("captured", "schedule", "kernels"):
        view = browser.new_page(viewport={"width": 1500, "height": 900})
        view.goto(f"{path.as_uri()}#stage={stage}")
        view.wait_for_function(READY)
        view.wait_for_timeout(500)
        assert stage == "schedule" or view.evaluate(CROSSINGS)[0] == 0, stage
        view.keyboard.press("e")
        view.wait_for_function("() => !document.querySelector('#graph .inside:empty')")
        crossings, lines = view.evaluate(CROSSINGS)
        assert lines > 700
        assert crossings <= 0.051 * lines, stage
        view.close()


@browsed
def test_text_stays_large_enough(visit):
    view = visit()
    assert view.evaluate(TEXT) >= 11
    view.keyboard.press("e")
    view.wait_for_timeout(300)
    assert view.evaluate(TEXT) >= 11
    view.keyboard.press("c")
    view.keyboard.press("-")
    view.locator("#graph .n", has_text="forward").dblclick()
    assert view.evaluate(TEXT) >= 11


@browsed
def test_an_opened_box_stays_in_place(visit):
    view = visit()
    view.keyboard.press("c")
    box = view.locator("#graph .n", has_text="backward")
    before = box.bounding_box()
    view.mouse.click(before["x"] + 18, before["y"] + 16)  # its triangle
    assert box.first.get_attribute("aria-expanded") == "true"
    after = box.first.bounding_box()
    assert abs(after["x"] - before["x"]) < 3
    assert abs(after["y"] - before["y"]) < 3


@browsed
def test_the_mouse_drags_the_graph(visit):
    view = visit()
    box = view.locator("#graph .n").first
    before = box.bounding_box()
    view.mouse.move(before["x"] + 40, before["y"] + 16)
    view.mouse.down()
    view.mouse.move(before["x"] + 70, before["y"] + 26, steps=3)
    view.mouse.up()
    after = box.bounding_box()
    assert abs(after["x"] - before["x"] - 30) < 2
    assert abs(after["y"] - before["y"] - 10) < 2
    assert "Select an expression" in view.inner_text(SAID)


@browsed
def test_two_ways_to_show_a_pane(visit):
    view = visit()
    view.get_by_role("button", name="converted").click()
    assert view.locator("#py .row:visible", has_text="convert_for").count() == 1
    view.get_by_role("button", name="lines").click()
    view.locator("#time .bar:visible", has_text="net.py:21").click()
    assert view.locator(f"{SAID} b").inner_text() == "net.py:21"
    assert view.get_by_role("button", name="yours").get_attribute("aria-pressed") == "false"


# ---- keys ----------------------------------------------------------------------------------------


@browsed
def test_keys_alone_reach_everything(visit):
    view = visit()
    press, active = view.keyboard.press, "() => document.activeElement.closest('section')?.id"
    stops = []
    for _ in range(10):
        press("Tab")
        stops.append(view.evaluate(active))
    panes = [stop for stop in stops if stop]
    assert panes == ["py", "graph", "c", "arena", "time", "ranks"]  # one stop each
    press("/")
    view.keyboard.type("mse_loss_grad")
    press("Enter")
    assert "search for" in view.inner_text(SAID)
    assert view.locator("#graph .n.cursor.hit").count() == 1
    press("Escape")
    press("ArrowDown")  # the graph has the focus now
    box = view.locator("#graph .n:focus")
    assert box.get_attribute("aria-expanded") == "false"
    press("Enter")
    assert box.get_attribute("aria-expanded") == "true"
    press("]")
    view.wait_for_function("() => location.hash.startsWith('#stage=decompose')")
    press("3")
    assert view.locator("section:visible").count() == 1
    press("Escape")
    assert view.locator("section:visible").count() == 6
    press("?")
    assert view.locator("#help").is_visible()
    press("Escape")
    assert not view.locator("#help").is_visible()
    view.focus("#py [data-sel=l0\\.11]")
    press("ArrowDown")
    press("ArrowRight")
    press("Enter")
    assert view.locator(f"{SAID} b").inner_text() == "‘F.relu(block(x) + x)’"
    press("Shift+Enter")
    assert "&grad" in view.url


# ---- looks ---------------------------------------------------------------------------------------

CONTRAST = """() => {
  const pen = Object.assign(document.createElement('canvas'), {width: 1, height: 1})
    .getContext('2d', {willReadFrequently: true});
  const blend = colours => {                     // the last one is on top
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = rgb => rgb.map(c => c / 255)
    .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, k) => sum + c * [.2126, .7152, .0722][k], 0);
  const under = element => {
    const list = element.parentElement ? under(element.parentElement) : [];
    const style = getComputedStyle(element);
    return [...list, style.backgroundColor];
  };
  const bad = [];
  for (const element of document.querySelectorAll('body *:not(script,style,noscript)')) {
    const words = [...element.childNodes].filter(n => n.nodeType === 3 && n.data.trim());
    if (!words.length || !element.getClientRects().length || element.disabled) continue;
    const back = under(element), style = getComputedStyle(element);
    const front = element.matches('svg text') ? style.fill : style.color;
    const [a, b] = [light(blend([...back, front])), light(blend(back))].sort((p, q) => q - p);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) bad.push([element.outerHTML.slice(0, 90), ratio, back]);
  }
  return bad;
}"""


@browsed
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_contrasts(visit, scheme):
    view = visit("#stage=decompose&sel=21:11", color_scheme=scheme)
    view.wait_for_function("() => location.hash.includes('sel')")
    for key in ("", "g", "k"):
        if key:
            view.keyboard.press(key)
        assert view.evaluate(CONTRAST) == []


@browsed
def test_a_message_sets_the_theme(visit):
    view = visit(color_scheme="light")
    fill = "() => getComputedStyle(document.body).backgroundColor"
    before = view.evaluate(fill)
    view.evaluate("() => postMessage({theme: 'dark'}, '*')")
    view.wait_for_function(
        "was => getComputedStyle(document.body).backgroundColor !== was", arg=before
    )


@browsed
def test_a_narrow_window_has_tabs(visit):
    view = visit("#sel=13:16", width=420, height=800)
    for name in ("Python", "Graph", "C", "Arena", "Time", "Ranks"):
        view.get_by_role("button", name=name, exact=True).click()
        assert view.locator("section:visible").count() == 1
        assert view.evaluate("() => document.documentElement.scrollWidth") <= 420
    view.locator(f"{SAID} [data-go=graph]").click()
    assert view.locator("#graph .n.hit").count()


@browsed
def test_two_copies_in_one_page(browser, tmp_path):
    """As the outputs of two cells of a notebook; what one selects the other does not show."""
    output = Explorer(NetFacts().json(), lambda: STILL).rich()["text/html"]
    path = tmp_path / "two.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{output}<p>next cell</p>{output}")
    view = browser.new_page(viewport={"width": 1300, "height": 1400})
    view.goto(path.as_uri())
    first, second = view.frames[1:]
    for frame in (first, second):
        frame.wait_for_selector("#graph .n")
    first.locator("#py b", has_text="self.stem(x)").click()
    assert "2 records here" in first.inner_text(SAID)
    assert "Select an expression" in second.inner_text(SAID)
    assert view.locator("img:visible").count() == 0
    view.close()


@browsed
def test_it_is_as_dark_as_the_page_around_it(browser):
    view = browser.new_page(color_scheme="light")
    view.set_content(Explorer(NetFacts().json(), lambda: STILL).rich()["text/html"])
    view.wait_for_function("() => !document.images.length")  # the frame has replaced it
    for ink, scheme in (("white", "dark"), ("#222", "light")):
        view.evaluate("ink => { document.body.style.color = ink }", ink)
        view.frames[1].wait_for_function(
            "scheme => document.documentElement.style.colorScheme === scheme", arg=scheme
        )
    view.close()


@browsed
def test_without_the_frame_the_still_picture_shows(browser):
    """A notebook that is not trusted cuts it."""
    output = Explorer(NetFacts().json(), lambda: STILL).rich()["text/html"]
    cut = re.sub(r"<iframe.*?</iframe>", "", output, flags=re.DOTALL)
    view = browser.new_page()
    view.set_content(cut)
    assert view.locator("img:visible").bounding_box()["width"] == 80
    view.close()
