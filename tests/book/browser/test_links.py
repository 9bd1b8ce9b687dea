"""Links inside the book arrive, also at the fragment that they name; the pages are valid HTML."""

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import html5lib
import pytest

from .conftest import documents

ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
MADE_BY_SCRIPT = {"#", "#top", ""}


def test_internal_links_and_fragments_resolve(html: Path, pages):
    anchors = {
        name: {tag["id"] for tag in page.find_all(id=True)}
        | {tag["name"] for tag in page.find_all("a", attrs={"name": True})}
        for name, page in pages.items()
    }
    lost, found = [], 0
    for name, page in pages.items():
        for tag in page.find_all(True):
            for attribute in ("href", "src"):
                address = tag.get(attribute)
                if not isinstance(address, str) or ELSEWHERE.match(address):
                    continue
                if address in MADE_BY_SCRIPT:
                    continue
                target, fragment = urldefrag(unquote(address).partition("?")[0])
                if "#" in address and not fragment:
                    fragment = unquote(address.partition("#")[2])
                path = urljoin(name, target).removeprefix("/") if target else name
                found += 1
                if (
                    not (html / path).is_file()
                    or fragment
                    and path in anchors
                    and fragment not in anchors[path]
                ):
                    lost.append(f"{name}: {address}")
    assert found > 500
    assert lost == []


def test_every_page_names_its_icon(html: Path, pages):
    """Where a page names none, a browser asks for /favicon.ico, which is not there."""
    for name, page in pages.items():
        icon = page.select_one("head > link[rel~=icon]")
        assert icon is not None, name
        if not icon["href"].startswith("data:"):
            assert (html / name).parent.joinpath(icon["href"]).is_file(), name


# --- valid HTML ---


SPACE = "{http://www.w3.org/1999/xhtml}"
PRESSED = {"a", "button", "select", "textarea"}


def objections(text: str) -> list[str]:
    """What a strict HTML parser objects to, ids that stand twice, buttons inside buttons."""
    parser = html5lib.HTMLParser(tree=html5lib.getTreeBuilder("etree"))
    tree = parser.parse(text)
    lines = text.split("\n")
    found = [f"{code} {what}: {lines[line - 1][:120]}" for (line, _), code, what in parser.errors]
    elements = [e for e in tree.iter() if isinstance(e.tag, str)]
    ids = Counter(e.get("id") for e in elements if e.get("id") is not None)
    found += [f"id {i!r}" for i, count in ids.items() if count > 1 or not i or re.search(r"\s", i)]
    for outer in elements:
        if outer.tag.removeprefix(SPACE) in {"a", "button", "label", "summary"}:
            inner = {e.tag.removeprefix(SPACE) for e in outer.iter() if e is not outer}
            found += [f"{name} inside {outer.tag}" for name in inner & PRESSED]
    if tree.get("lang") != "en":
        found.append("no language")
    if not (tree.findtext(f"{SPACE}head/{SPACE}title") or "").strip():
        found.append("no title")
    return found


@pytest.mark.share(6)
@pytest.mark.parametrize("name", [*documents(), "404.html", "index.html"])
def test_a_page_is_valid_html(html: Path, name):
    assert objections((html / name).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", [n for n in documents() if n != "search.html"])
def test_a_page_has_one_title(pages, name):
    assert len(pages[name].find("article").find_all("h1")) == 1


@pytest.mark.parametrize(
    "wrong",
    ["<p><div>x</div></p>", '<i id="x"></i><b id="x"></b>', "<a href='/'><button>x</button></a>"],
)
def test_what_is_wrong_is_objected_to(wrong):
    page = '<!DOCTYPE html><html lang="en"><head><title>x</title></head><body>{}</body></html>'
    assert objections(page.format("<p>x</p>")) == []
    assert objections(page.format(wrong))
