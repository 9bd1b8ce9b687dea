"""The built book behind a web server, and Chromium to look at it."""

import functools
import http.server
import io
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
import yaml
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[3]


def documents() -> list[str]:
    """The pages that `_toc.yml` names, by their paths; the search page too."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [c["file"] for part in toc["parts"] for c in part["chapters"]]
    return [*(f"{name}.html" for name in [toc["root"], *files]), "search.html"]


def chapter_pages() -> list[str]:
    return [name for name in documents() if re.match(r"book/\d\d_", name)]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and styles that wait for their fonts.

    `font-display: optional` gives a font a tenth of a second: on a busy machine a page would be
    measured now in that font, now in the machine's own.
    """

    def log_message(self, *args: object) -> None:
        pass

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        path = Path(self.translate_path(self.path))
        if path.suffix != ".css" or not path.is_file():
            return super().send_head()
        style = path.read_text(encoding="utf-8")
        sent = re.sub(r"font-display:\s*optional", "font-display: block", style).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/css; charset=utf-8")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        return io.BytesIO(sent)


@pytest.fixture(scope="session")
def server(html: Path) -> Iterator[str]:
    """The address at which the pages are served."""
    handler = functools.partial(Quiet, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


class Tab:
    """A page in the browser, and all that went wrong on it."""

    def __init__(self, page: Page, server: str):
        self.page, self.server = page, server
        self.wrong: list[str] = []
        page.set_default_timeout(120_000)  # a busy machine is no fault of the page
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", lambda m: m.type == "error" and self.wrong.append(m.text))
        page.on("response", lambda r: r.status < 400 or self.wrong.append(f"{r.status} {r.url}"))
        page.on(
            "request", lambda r: r.url.startswith((server, "data:")) or self.wrong.append(r.url)
        )

    def open(self, name: str) -> Page:
        self.page.goto(f"{self.server}/{name}", wait_until="load")
        self.page.evaluate("document.fonts.ready")
        return self.page


@pytest.fixture
def open_tab(chromium: Browser, server: str) -> Iterator[Callable[..., Tab]]:
    """Opens a fresh browser profile of a given width and colour scheme."""
    contexts = []

    def open_one(width: int = 1280, scheme: str = "light", **options: object) -> Tab:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, **options
        )
        contexts.append(context)
        return Tab(context.new_page(), server)

    yield open_one
    for context in contexts:
        context.close()
