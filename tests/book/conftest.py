"""The book's pages, built once, and a browser that reaches no other host."""

import functools
import http.server
import re
import threading

import pytest

from tests.book.site import EXPLORED, build


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the pages, built with warnings as errors."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    done = build("--strict", "--to", str(folder), "--explore", *EXPLORED)
    assert done.returncode == 0, done.stderr
    assert str(folder / "index.html") in done.stdout
    return folder


@pytest.fixture(scope="session")
def address(site):
    """The pages, served on this machine."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Silent, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def reader(browser):
    """`reader(width)` opens a page; whatever it asks of another host, or complains of,
    fails the test."""
    troubles, contexts = [], []

    def guard(route):
        url = route.request.url
        if re.match(r"http://127\.0\.0\.1:|file://|data:|blob:", url):
            return route.continue_()
        troubles.append(f"asked for {url}")
        return route.abort()

    def open_page(width=1400):
        context = browser.new_context(viewport={"width": width, "height": 1000})
        contexts.append(context)
        context.route("**/*", guard)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda m: m.type == "error" and troubles.append(m.text))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []
