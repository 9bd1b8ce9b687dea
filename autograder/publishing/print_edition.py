"""The print edition: the built pages as one PDF, printed by Chromium.

All articles are joined into one long page, and links between them become links within it. It is
printed twice: the first time to find the page numbers for the table of contents.
"""

import functools
import html
import http.server
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urldefrag, urljoin

import yaml
from bs4 import BeautifulSoup, Tag
from pypdf import PdfReader, PdfWriter

from autograder.student import course

REFERENCES = ("for", "aria-labelledby", "aria-describedby")
# what only works on a screen
DROPPED = (
    ".headerlink, .copybtn, .hints, .progress-slot, .path-slot, .path-more, .fold-line, "
    ".page-foot, .glance ul:nth-of-type(2), script, template, details.hide, .prev-next-footer, "
    "[data-part=controls], td.chapter-done, th.chapter-done"
)


@dataclass(frozen=True)
class Heading:
    """A line of the table of contents."""

    level: int
    text: str
    anchor: str


def print_book(root: Path, pages: Path, target: Path | None = None) -> Path:
    """Print the book whose built pages are in `pages`; return the PDF's path.

    Raises `FileNotFoundError` if there is no Chromium or a page is missing.
    """
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise FileNotFoundError("chromium is missing: it prints the book")
    target = target or root / "build" / f"{course.contents().NAME}.pdf"
    target.parent.mkdir(parents=True, exist_ok=True)
    articles, headings = gather(pages, in_order(root))
    numbers: dict[str, int] = {}
    with _printer(chromium, pages) as printed:
        for _ in range(2):
            printed(document(root, pages, articles, contents(headings, numbers)), target)
            numbers = page_numbers(target)
    _finish(root, target, headings, numbers)
    return target


# --- one long page ------------------------------------------------------------------------------


def in_order(root: Path) -> list[str]:
    """The book's pages in their order."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    names = [toc["root"], *(c["file"] for part in toc["parts"] for c in part["chapters"])]
    return [f"{name}.html" for name in names]


def gather(pages: Path, files: Sequence[str]) -> tuple[list[str], list[Heading]]:
    """The articles of some pages, and their headings of the first two levels."""
    articles: list[str] = []
    headings: list[Heading] = []
    for name in files:
        page = BeautifulSoup((pages / name).read_text(encoding="utf-8"), "html.parser")
        article = page.select("article")[0]
        for tag in article.select(DROPPED):
            tag.decompose()
        article["id"] = "top"
        for fold in article.select("details.answers, details.evidence"):
            fold["open"] = ""
        for tag in article.find_all(True):
            _move(tag, name, files)
        article["id"] = f"{_stem(name)}--top"
        articles.append(str(article))
        for title in article.find_all(["h1", "h2"]):
            text = " ".join(title.get_text().split())
            around = article if title.name == "h1" else title.find_parent("section") or article
            headings.append(Heading(int(title.name[1]), text, str(around["id"])))
    return articles, headings


def _stem(name: str) -> str:
    return Path(name).stem


def _move(tag: Tag, name: str, files: Sequence[str]) -> None:
    """Make a tag's ids unique in the whole book, and point its links into the book."""
    here = _stem(name)
    if "loading" in tag.attrs:
        del tag["loading"]
    if "id" in tag.attrs:
        tag["id"] = f"{here}--{tag['id']}"
    for key in REFERENCES:
        if key in tag.attrs:
            words = " ".join(tag.get_attribute_list(key)).split()
            tag[key] = " ".join(f"{here}--{word}" for word in words)
    for key, value in tag.attrs.items():
        if isinstance(value, str) and "url(#" in value:
            tag[key] = value.replace("url(#", f"url(#{here}--")
    link = str(tag.get("href") or "")
    if tag.name != "a" or not link or re.match(r"[a-z]+:", link):
        return
    path, fragment = urldefrag(link)
    target = urljoin(name, path) if path else name
    if target in files:
        tag["href"] = f"#{_stem(target)}--{fragment or 'top'}"
    else:
        del tag["href"]  # a download, or a page that is not printed


def contents(headings: list[Heading], numbers: dict[str, int]) -> str:
    """The table of contents; the first time without page numbers."""
    lines = [
        f'<li class="level-{h.level}"><a href="#{h.anchor}"><span>{html.escape(h.text)}</span>'
        f"<span>{numbers.get(h.anchor, '000')}</span></a></li>"
        for h in headings
    ]
    return f'<nav class="print-contents"><h1>Contents</h1><ol>{"".join(lines)}</ol></nav>'


def document(root: Path, pages: Path, articles: list[str], table: str) -> str:
    """The whole book as one page."""
    cff = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    first = (pages / "book" / "intro.html").read_text(encoding="utf-8")
    sheet = re.findall(r'<link rel="stylesheet" href="([^"]+)"', first)[0]
    title, _, subtitle = cff["title"].partition(": ")
    authors = ", ".join(author.get("name", "") for author in cff["authors"])
    cover = (
        f'<header class="print-cover"><p class="title">{html.escape(title)}</p>'
        f"<p>{html.escape(subtitle)}</p><p>{html.escape(authors)}</p>"
        f"<p>Version {cff['version']}</p></header>"
    )
    body = "\n".join(articles)
    return (
        '<!DOCTYPE html><html lang="en" data-theme="light" data-mode="light"><head>'
        f'<meta charset="utf-8"><title>{html.escape(cff["title"])}</title>'
        f'<link rel="stylesheet" href="{sheet}">'
        '<link rel="stylesheet" href="../_static/print.css"></head>'
        f'<body class="print-edition">{cover}{table}'
        f'<main class="bd-main">{body}</main></body></html>'
    )


# --- paper --------------------------------------------------------------------------------------


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def _printer(chromium: str, pages: Path) -> Iterator:
    """A function that prints a page given as text, served from beside the book's pages."""
    from playwright.sync_api import sync_playwright

    handler = functools.partial(_Quiet, directory=str(pages))
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        sync_playwright() as playwright,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        # without scripts, an explorable is a still picture, as on paper
        context = browser.new_context(java_script_enabled=False, color_scheme="light")
        address = f"http://127.0.0.1:{server.server_port}/book/print.html"

        def printed(text: str, target: Path) -> None:
            tab = context.new_page()
            tab.set_default_timeout(300_000)
            tab.route(address, lambda r: r.fulfill(body=text, content_type="text/html"))
            tab.goto(address, wait_until="load")
            tab.pdf(
                path=target,
                format="A4",
                scale=0.82,
                margin={"top": "18mm", "bottom": "20mm", "left": "20mm", "right": "20mm"},
                print_background=True,
                tagged=True,
                display_header_footer=True,
                header_template="<span></span>",
                footer_template='<p style="width:100%;text-align:center;font:9px sans-serif">'
                '<span class="pageNumber"></span></p>',
            )
            tab.close()

        yield printed
        browser.close()
        server.shutdown()


def page_numbers(path: Path | BinaryIO) -> dict[str, int]:
    """The page of each link target in a PDF, counted from 1."""
    reader = PdfReader(path)
    found = {}
    for name, place in reader.named_destinations.items():
        number = reader.get_destination_page_number(place)
        if number is not None:
            found[name.lstrip("/")] = number + 1
    return found


def _finish(root: Path, path: Path, headings: list[Heading], numbers: dict[str, int]) -> None:
    """Give the PDF its title, authors and bookmarks (Chromium's own list some headings twice)."""
    cff = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    writer = PdfWriter(clone_from=path)
    authors = ", ".join(author.get("name", "") for author in cff["authors"])
    writer.add_metadata({"/Title": cff["title"], "/Author": authors})
    chapter = None
    for heading in headings:
        parent = chapter if heading.level > 1 else None
        number = numbers[heading.anchor] - 1
        item = writer.add_outline_item(title=heading.text, page_number=number, parent=parent)
        chapter = item if heading.level == 1 else chapter
    writer.page_mode = "/UseOutlines"
    writer.write(path)
