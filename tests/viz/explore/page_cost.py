"""What a page costs a browser, in milliseconds of processor time.

python -m tests.viz.explore.page_cost FILE.html …
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browsing import CHROMIUM, QUIET

from .test_page import CROSSINGS

PAN = """() => new Promise(done => {
  const field = document.querySelector('#graph .body');
  let n = 0;
  requestAnimationFrame(function step() {
    field.scrollBy(25, 30);
    ++n < 60 ? requestAnimationFrame(step) : done();
  });
})"""


class PageMeter:
    """A page whose tasks are timed by the browser."""

    def __init__(self, browser, path: Path):
        self.view = browser.new_page(viewport={"width": 1500, "height": 900})
        self.view.goto("about:blank")
        self.session = self.view.context.new_cdp_session(self.view)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.address = path.resolve().as_uri()

    def read(self) -> float:
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    def show(self, what: str, do, count: int = 1) -> None:
        """Print what `do` costs each of `count` times, with all that follows in a second."""
        before = self.read()
        do()
        self.view.wait_for_timeout(1000)
        print(f"  {what:34} {1000 * (self.read() - before) / count:7.1f} ms")

    def run(self) -> None:
        press, view = self.view.keyboard.press, self.view
        self.show("first view", lambda: view.goto(self.address))
        for stage in (0, -2, -1):
            buttons = view.locator("#ruler button")
            button = buttons.nth(stage % buttons.count())
            button.evaluate("button => button.click()")
            view.wait_for_timeout(1000)
            print(f" {button.inner_text()!r}")
            self.show("all boxes open", lambda: press("e"))
            self.show("a frame of 60, panned", lambda: view.evaluate(PAN), 60)
            self.show("select a large call", lambda: view.evaluate(CLICK, "#py b"))
            self.show("select a record's line", lambda: view.evaluate(CLICK, "#py b b"))
            self.show("close one box", lambda: view.evaluate(CLICK, TURN))
            self.show("open one box", lambda: view.evaluate(CLICK, TURN))
            press("e")
            for _ in range(16):
                press("-")
            view.wait_for_timeout(1500)
            print("  crossings, lines:", view.evaluate(CROSSINGS))
            press("c")


TURN = "#graph .n[aria-level='1'][aria-expanded] .turn"
CLICK = "query => document.querySelector(query)?.click()"


def main(paths: list[str]) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        for path in map(Path, paths):
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} KB")
            PageMeter(browser, path).run()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
