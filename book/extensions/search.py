"""Search by passage: what the finished pages say, section by section, in one file.

It is made of the articles as they are published, and so can give away nothing that they do not
show. A line of the glossary or of the notation is a passage, too; the names of one entry of the
glossary are synonyms. `static/search.js` ranks the passages in the reader's browser, and no query
leaves it.
"""

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from sphinx.application import Sphinx

LEFT_OUT = {
    "headerlink", "section-number", "prev-next-footer", "page-foot", "glance", "hints",
    "exercise-done", "progress-slot", "path-slot", "path-more", "fold-line",
    "exercise-points", "collapsed", "expanded",
}  # fmt: skip
UNREAD = {"script", "style", "template", "button", "select"}
VOID = {"br", "hr", "img", "input", "wbr", "source", "link", "meta"}
BLOCKS = {
    "p", "li", "dt", "dd", "td", "th", "tr", "div", "section", "figure", "figcaption", "pre",
    "h1", "h2", "h3", "h4", "h5", "summary",
}  # fmt: skip
HEADINGS = ("h1", "h2", "h3", "h4", "h5")
BETWEEN = {"msub": "_", "msup": "^", "msubsup": "_^", "mfrac": "/"}  # a formula's parts
IDENTIFIER = re.compile(r"[A-Za-z_]\w\w+")
DEFINED = re.compile(r"^ *(?:def|class) ([A-Za-z]\w+)", re.MULTILINE)


@dataclass
class Passage:
    """A section of its own, without those inside it, or a line of the glossary or the notation.

    `names` are a section's title, an entry's terms, or a symbol; `terms` the entries of the
    glossary that it links to.
    """

    anchors: list[str]  # of an entry: one for each name
    kind: str
    names: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    terms: set[str] = field(default_factory=set)


class Reader(HTMLParser):
    """Reads a finished page into passages, in the page's order."""

    def __init__(self) -> None:
        super().__init__()
        self.passages: list[Passage] = []
        self.open: list[Passage] = []
        self.tags: list[list] = []  # open elements: tag, whether unread, parts so far, whose end
        self.unread = 0
        self.naming: list[str] | None = None
        self.found = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.found = self.found or tag == "article"
        if not self.found:
            return
        if self.tags and self.tags[-1][0] in BETWEEN:
            parent = self.tags[-1]
            if 0 < parent[2] <= len(BETWEEN[parent[0]]):
                self.handle_data(BETWEEN[parent[0]][parent[2] - 1])
            parent[2] += 1
        if tag in BLOCKS or tag in ("mo", "br"):
            self.handle_data("\n")
        elif tag == "msqrt":
            self.handle_data("√")
        if tag in VOID:
            return
        classes = set(given.get("class", "").split())
        unread = bool(tag in UNREAD or classes & LEFT_OUT or given.get("data-part") == "controls")
        self.unread += unread
        begins = self._begins(tag, given)
        self.tags.append([tag, unread, 0, begins])
        link = given.get("href", "")
        if tag == "a" and "#term-" in link and self.open:
            self.open[-1].terms.add(link.partition("#")[2])

    def _begins(self, tag: str, given: dict[str, str]) -> bool:
        """Whether an element begins a passage, which then is open; its name may begin, too."""
        anchor, kind = given.get("id", ""), ""
        if tag == "section":
            kind = "section"
        elif tag == "tr" and anchor.startswith("symbol-"):
            kind = "symbol"
        elif tag == "dt" and anchor.startswith("term-") and not self._names_follow():
            self._close_term()
            kind = "term"
        if kind:
            self.open.append(Passage([anchor], kind))
            self.passages.append(self.open[-1])
        elif tag == "dt" and anchor.startswith("term-"):
            self.open[-1].anchors.append(anchor)
        if self.open and (tag in HEADINGS or tag == "dt" and anchor.startswith("term-")):
            self.naming = []
        elif tag == "td" and self.open and self.open[-1].kind == "symbol":
            self.naming = [] if len(self.open[-1].names) < 2 else None
        return bool(kind) and kind != "term"

    def _names_follow(self) -> bool:
        """Whether an entry of the glossary is open that has names so far, and no text."""
        here = self.open[-1] if self.open else None
        return here is not None and here.kind == "term" and not "".join(here.text).strip()

    def _close_term(self) -> None:
        if self.open and self.open[-1].kind == "term":
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not any(entry[0] == tag for entry in self.tags):
            return
        while self.tags:
            name, unread, _, begins = self.tags.pop()
            self.unread -= unread
            if name in (*HEADINGS, "dt", "td") and self.naming is not None:
                if words := " ".join("".join(self.naming).split()):
                    self.open[-1].names.append(words)
                self.naming = None
            if name == "dl":
                self._close_term()
            if begins:
                self._close_term()
                self.open.pop()
            if name in BLOCKS or name == "mo":
                self.handle_data("\n")
            if name == "article":
                self.found = False
            if name == tag:
                return

    def handle_data(self, data: str) -> None:
        if self.unread or not self.open:
            return
        if self.naming is not None:
            self.naming.append(data)
            return
        code = any(entry[0] == "pre" for entry in self.tags)
        (self.open[-1].code if code else self.open[-1].text).append(data)


def passages(page: str) -> list[dict]:
    """The passages of a finished page, as `static/search.js` reads them."""
    reader = Reader()
    reader.feed(page)
    found = []
    for passage in reader.passages:
        if not passage.names:
            continue
        text = " ".join("".join(passage.text).split())
        code = "".join(passage.code)
        words, defined = set(IDENTIFIER.findall(code)), set(DEFINED.findall(code))
        kept = {"at": passage.anchors, "kind": passage.kind, "names": passage.names, "text": text}
        kept |= {"code": " ".join(sorted(words)), "defines": " ".join(sorted(defined))}
        found.append(kept | {"terms": sorted(passage.terms)})
    return found


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write what the search reads; runs when all pages are finished."""
    if error is not None or app.builder.format != "html":
        return
    output = Path(app.outdir)
    pages = []
    for path in sorted(output.rglob("*.html")):
        if "_static" in path.parts or path.stem in ("search", "genindex"):
            continue
        if found := passages(path.read_text(encoding="utf-8")):
            url = path.relative_to(output).as_posix()
            pages.append({"url": url, "title": found[0]["names"][0], "passages": found})
    told = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    (output / "_static" / "passages.json").write_text(told, encoding="utf-8")


def add_script(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Load suggestions when somebody goes to a search field, and on the search page the search."""
    static = "./" + context["pathto"]("_static", 1)
    field = 'event.target.matches?.(".bd-search input")'
    app.add_js_file(
        None,
        body=f'addEventListener("focusin", (event) => {field} && import("{static}/suggest.js"))',
    )
    if pagename == "search":
        app.add_js_file(None, body=f'import "{static}/search.js"', type="module")


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", add_script)
    app.connect("build-finished", finish, priority=990)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
