"""Pictures that a reader moves, in a real browser: by keyboard, two in a page, no network."""

import re

import pytest

from minipaddle import viz
from minipaddle.viz.chart import Bar, Panel, chart
from tests.browsing import IN_A_BROWSER

pytestmark = [
    *IN_A_BROWSER,
    pytest.mark.slow,
    pytest.mark.timeout(120),
]
PAGE = "<!doctype html><meta name=viewport content=width=device-width><body>{}<p>below</p>{}"
FITS = """() => document.documentElement.scrollWidth <= innerWidth
  && document.body.offsetHeight <= innerHeight"""
SCHEME = "scheme => document.documentElement.style.colorScheme === scheme"


def bar(high, look="plain"):
    colour = {"plain": "#0072b2", "loud": "#d55e00"}[look]
    bars = [Bar(k, 0, 1, 1, colour) for k in range(high)]
    return chart((10, 2), [Panel(bars)], f"{high} bars, {look}")


def tower(high, wide):
    """A bar with a strip at each height that it may have, and beside it one for each width."""
    bars = [Bar(0, 0, wide, high, "#0072b2", "a word", sets={"wide": "wide"})]
    bars += [Bar(3, k - 1, 1, 1, "none", sets={"high": str(k)}) for k in range(1, 5)]
    bars += [Bar(4, 0, 1, 4, "none", sets={"wide": "thin", "high": "4"})]
    axes = {"xlim": (0, 5), "ylim": (0, 4)}
    return chart((4, 4), [Panel(bars, axes=axes)], f"{high} high, {wide} wide")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page with two pictures."""
    first = viz.movable(bar, high=[1, 2, 4, 8], look=["plain", "loud"])
    second = viz.movable(bar, start={"high": 4}, title="the other", high=[2, 4, 6])
    path = tmp_path_factory.mktemp("page") / "two.html"
    path.write_text(PAGE.format(first.html(), second.html()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def reader(browser, address):
    """`reader(width)` opens the page: (page, frames); a complaint or a request fails the test."""
    troubles, contexts = [], []

    def open_page(width=900, address=address):
        context = browser.new_context(viewport={"width": width, "height": 1400})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda r: r.url.startswith(("file:", "data:")) or troubles.append(r.url))
        page.goto(address)
        frames = page.frames[1:]
        page.wait_for_function("() => !document.images.length")  # frames have replaced them
        for frame in frames:
            frame.wait_for_selector("svg")
            frame.wait_for_function("() => document.body.offsetHeight === innerHeight")
        return page, frames

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def said(frame) -> str:
    return frame.locator("figcaption").inner_text()


def bars(frame) -> int:
    path = frame.locator("g[clip-path] path").first.get_attribute("d")
    return len(re.findall("M", path))


def test_keys_move_the_picture_and_only_this_one(reader):
    page, (first, second) = reader()
    assert (said(first), bars(first)) == ("1 bars, plain", 1)
    slider = first.get_by_role("slider", name="high", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert (said(first), bars(first)) == ("2 bars, plain", 2)
    page.keyboard.press("End")
    assert (said(first), bars(first)) == ("8 bars, plain", 8)
    assert slider.get_attribute("aria-valuetext") == "8"
    page.keyboard.press("Tab")  # to the button after it, then to the list
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert said(first) == "8 bars, loud"
    assert first.locator("path[fill='#d55e00']").count() == 1
    assert (said(second), bars(second)) == ("4 bars, plain", 4)


def test_buttons_step(reader):
    _, (first, second) = reader()
    second.get_by_role("button", name="more high").press("Enter")
    assert (said(second), bars(second)) == ("6 bars, plain", 6)
    second.get_by_role("button", name="more high").press("Enter")  # there is no more
    second.get_by_role("button", name="less high").press("Enter")
    assert second.locator("output").inner_text() == "4"
    assert said(first) == "1 bars, plain"


def test_a_press_and_a_drag_choose(reader, tmp_path):
    shown = viz.movable(tower, high=[1, 2, 3, 4], wide={"thin": 1, "wide": 2})
    path = tmp_path / "tower.html"
    path.write_text(PAGE.format(shown.html(), ""), encoding="utf-8")
    page, (frame,) = reader(address=path.as_uri())
    strip = lambda sets: frame.locator(f"[data-set*='{sets}']").bounding_box()
    middle = lambda box: (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle(strip('"high": "2"')))
    assert said(frame) == "1 high, 1 wide"
    page.mouse.down()
    assert said(frame) == "2 high, 1 wide"
    page.mouse.move(*middle(strip('"high": "3"')), steps=5)
    assert said(frame) == "3 high, 1 wide"
    page.mouse.up()
    page.mouse.move(*middle(strip('{"high": "1"')))
    assert said(frame) == "3 high, 1 wide"
    page.mouse.move(*middle(strip('{"wide": "wide"')))  # on a word in the bar
    page.mouse.down()
    assert said(frame) == "3 high, 2 wide"
    page.mouse.up()
    assert frame.get_by_role("combobox", name="wide").input_value() == "wide"
    page.mouse.click(*middle(strip('"thin"')))
    assert said(frame) == "4 high, 1 wide"
    assert frame.locator("output").inner_text() == "4"


@pytest.mark.parametrize("width", [1200, 420])
def test_it_fits_the_page(reader, width):
    page, frames = reader(width)
    for frame in frames:
        frame.wait_for_function(FITS)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_turns_dark_with_the_page(reader):
    page, frames = reader()
    for ink, scheme in (("white", "dark"), ("#222", "light")):
        page.evaluate("ink => { document.body.style.color = ink }", ink)
        for frame in frames:
            frame.wait_for_function(SCHEME, arg=scheme)


def test_the_frame_reaches_no_host(reader):
    _, (frame, _) = reader()
    blocked = "fetch('http://127.0.0.1:9/').then(() => 'reached', error => error.name)"
    assert frame.evaluate(blocked) == "TypeError"
    assert frame.evaluate("() => origin") == "null"  # of nobody, so it sees no other page
