"""Each symbol in a chapter's formulas, tied to its line in the notation page.

The tables of `book/notation.md` are the only source: what a symbol means, its shape, its name in
our code and in torch, and the chapters in which it means that. A formula's MathML gets a mark on
every symbol that the tables know; `static/symbols.js` shows the line on hover and by keyboard, as
it does the glossary's entry for a term that is linked. Without the script the formula's `title`
says the same.
"""

import html
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

BOOK = Path(__file__).resolve().parents[1]
NOTATION = BOOK / "notation.md"
CHAPTER = re.compile(r"^book/(\d\d)_(\w+)$")
COLUMNS = ("symbol", "meaning", "shape", "in our code", "in torch", "chapters")
INDEX = re.compile(r"[ijhp−]+")
INDICES = re.compile(r"[ijlhkpqrnmtHΔ\d,+−-]+")
POWER = re.compile(r"[⊤′\d−/-]+")
NOTHING = ("", "–")
GREEK = frozenset("αβγδεζηθικλμνξοπρστυφχψω")
ACCENTS = {"ˆ": "\u0302", "^": "\u0302", "~": "\u0303", "¯": "\u0304", "‾": "\u0304"}
SPACED = frozenset("=<>≤≥≠−+·∈")

GLOSSARY = "../book/glossary.html"
ENTRY = re.compile(r'((?:<dt id="term-[^"]+">.*?</dt>\s*)+)<dd>(.*?)</dd>', re.DOTALL)
TERM = re.compile(r'<dt id="([^"]+)">(.*?)<a class="headerlink"')
EXPLAINED = re.compile(r'glossary\.html#term-|class="reference internal" href="#id')

Parts = tuple[str, str, str]  # base, subscript, superscript


@dataclass(frozen=True)
class Symbol:
    """A line of the notation page: its anchor, the heads of its formulas, and its cells."""

    anchor: str
    heads: tuple[tuple[Parts, bool], ...]  # with whether "(" must follow
    cells: dict[str, str]
    chapters: frozenset[int]

    @property
    def name(self) -> str:
        return ", ".join(_plain(head) for head, _ in self.heads)

    @property
    def title(self) -> str:
        return f"{self.name}: {_text(self.cells['meaning'])}"


# --- the tables ---------------------------------------------------------------------------------


@cache
def symbols() -> tuple[Symbol, ...]:
    """The lines of the notation page's tables, in the page's order."""
    found: list[Symbol] = []
    taken: set[str] = set()
    header: list[str] = []
    for line in NOTATION.read_text(encoding="utf-8").split("\n"):
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not header:
            header = cells
        elif header[0] == "symbol" and set(cells[0]) - set("-: "):
            named = dict(zip(header, cells, strict=False))
            formulas = re.findall(r"\$(.+?)\$", named["symbol"])
            anchor = _anchor(formulas[0], taken)
            heads = tuple(_head(tex) for tex in formulas)
            found.append(Symbol(anchor, heads, named, _chapters(named.get("chapters", ""))))
    return tuple(found)


def _anchor(tex: str, taken: set[str]) -> str:
    bare = re.sub(r"\\text|[{}\\]", "", tex.split("(", maxsplit=1)[0])
    name = "symbol-" + re.sub(r"[^A-Za-z0-9_]+", "-", bare).strip("-")
    number = 1
    while (anchor := name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    taken.add(anchor)
    return anchor


def _head(tex: str) -> tuple[Parts, bool]:
    """The parts of a symbol's formula; of a(q, k) only the a, which "(" must follow."""
    from mathml import mathml

    name, bracket, _ = tex.partition("(")
    root = ET.fromstring(mathml(name.strip()))
    while root.tag in ("math", "mrow") and len(root) == 1:
        root = root[0]
    return _parts(root), bool(bracket)


def _chapters(text: str) -> frozenset[int]:
    """ "1", "2, 4", "2–7"; nothing means all."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:\s*–\s*(\d+))?", text):
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found or range(1, 100))


# --- formulas -----------------------------------------------------------------------------------


def _text_of(element: ET.Element) -> str:
    """What a part of a formula says, white space aside."""
    if element.tag == "mover":
        accent = _text_of(element[1])
        return _text_of(element[0]) + ACCENTS.get(accent, accent)
    if element.tag in ("msub", "msup", "msubsup"):
        return _plain(_parts(element))
    return "".join("".join(element.itertext()).split())


def _parts(element: ET.Element) -> Parts:
    texts = [_text_of(child) for child in element]
    match element.tag:
        case "msub":
            return texts[0], texts[1], ""
        case "msup":
            return texts[0], "", texts[1]
        case "msubsup":
            return texts[0], texts[1], texts[2]
    return _text_of(element), "", ""


def _plain(parts: Parts) -> str:
    base, sub, sup = parts
    return base + (f"_{sub}" if sub else "") + (f"^{sup}" if sup else "")


def find(parts: Parts, before_bracket: bool, chapter: int) -> Symbol | None:
    """The symbol that parts of a formula stand for in a chapter; the closest match wins."""
    here = [s for s in symbols() if chapter in s.chapters]
    here.sort(key=lambda s: len(s.chapters))  # what holds in one chapter goes before the rest
    base, sub, sup = parts
    for wanted in _readings(base, sub, sup):
        for symbol in here:
            for head, call in symbol.heads:
                if head == wanted and (before_bracket or not call):
                    return symbol
                index = INDEX.fullmatch(head[1]) and INDICES.fullmatch(wanted[1])
                if index and (head[0], head[2]) == (wanted[0], wanted[2]):
                    return symbol
    return None


def _readings(base: str, sub: str, sup: str) -> list[Parts]:
    """The parts as they stand, without a power or transpose, and as an entry of a matrix."""
    found = [(base, sub, sup)]
    power = POWER.fullmatch(sup) is not None
    if power:
        found.append((base, sub, ""))
    entry = re.fullmatch(r"[ijl]+", sub) and (len(base) > 1 or base.isupper() or base in GREEK)
    if entry and (power or not sup):
        found.append((base, "", ""))
    return found


def mark(math: str, chapter: int) -> tuple[str, list[Symbol]]:
    """A `<math>` element with its known symbols marked, and these symbols in their order."""
    root = ET.fromstring(math)
    found: dict[str, Symbol] = {}
    _mark(root, chapter, found)
    if not found:
        return math, []
    return ET.tostring(root, encoding="unicode", short_empty_elements=False), list(found.values())


def _mark(element: ET.Element, chapter: int, found: dict[str, Symbol]) -> None:
    for child, after in pairwise([*element, None]):
        if child.tag not in ("mi", "msub", "msup", "msubsup", "mover"):
            _mark(child, chapter, found)
            continue
        bracket = after is not None and _text_of(after).startswith("(")
        symbol = find(_parts(child), bracket, chapter)
        if symbol is not None:
            child.set("data-symbol", symbol.anchor)
            found[symbol.anchor] = symbol
        elif child.tag != "mi":
            # an unknown name's own letter and bare indices are no symbols; a sum's limits and a
            # bracket's power may be
            limits = child[0].tag in ("mo", "mrow")
            for part in child:
                if part.tag == "mrow" or (part is not child[0] and (limits or part.tag != "mi")):
                    wrapper = ET.Element("mrow")
                    wrapper.append(part)
                    _mark(wrapper, chapter, found)


# --- pages --------------------------------------------------------------------------------------


def chapter_of(docname: str) -> int | None:
    """The number of a chapter's page."""
    match = CHAPTER.match(docname)
    return int(match[1]) if match else None


def mark_symbols(math: str, docname: str) -> tuple[str, str]:
    """A formula of a page with its symbols marked, and the `title` of what holds it."""
    chapter = chapter_of(docname)
    if chapter is None:
        return math, ""
    math, found = mark(math, chapter)
    title = "; ".join(symbol.title for symbol in found)
    return math, f' title="{html.escape(title)}"' if title else ""


def cards(glossary: str) -> str:
    """A card for each line of the notation, and for each entry of the glossary's finished page.

    Their links hold for a file in the folder `_static`.
    """
    told = [_card(symbol) for symbol in symbols()]
    for terms, text in ENTRY.findall(glossary):
        anchors, names = zip(*TERM.findall(terms), strict=True)
        also = f"<span>, {', '.join(names[1:])}</span>" if names[1:] else ""
        told.append(
            f'<div data-card="{" ".join(anchors)}"><strong>{names[0]}</strong>{also}'
            + text.strip().replace('href="#', f'href="{GLOSSARY}#')
            + f'<a href="{GLOSSARY}#{anchors[0]}">Glossary</a></div>'
        )
    return "\n".join(told)


def _card(symbol: Symbol) -> str:
    rows = [("shape", "shape"), ("in our code", "our code"), ("in torch", "torch")]
    facts = "".join(
        f"<dt>{label}</dt><dd>{inline_html(symbol.cells[column])}</dd>"
        for column, label in rows
        if symbol.cells.get(column, "") not in NOTHING
    )
    return (
        f'<div data-card="{symbol.anchor}"><strong>{inline_html(symbol.cells["symbol"])}</strong> '
        f"<span>{inline_html(symbol.cells['meaning'])}</span>{facts and f'<dl>{facts}</dl>'}"
        f'<a href="../book/notation.html#{symbol.anchor}">Notation</a></div>'
    )


def inline_html(text: str) -> str:
    """Markdown of a table's cell or a fold's title as HTML: formulas, code, emphasis, words."""
    from mathml import mathml

    pieces = re.split(r"(\$.+?\$|`.+?`|(?<!\w)\*\w[^*]*\*)", text)
    for i, piece in enumerate(pieces):
        if piece.startswith("$"):
            pieces[i] = mathml(piece[1:-1])
        elif piece.startswith("`"):
            pieces[i] = f"<code>{html.escape(piece[1:-1])}</code>"
        elif piece.startswith("*"):
            pieces[i] = f"<em>{html.escape(piece[1:-1])}</em>"
        else:
            pieces[i] = html.escape(piece.replace("\\|", "|"))
    return "".join(pieces)


def _text(text: str) -> str:
    """A table's cell as bare words."""
    from mathml import mathml

    def said(match: re.Match) -> str:
        return " ".join(_words(ET.fromstring(mathml(match[1]))).split())

    return re.sub(r"\$(.+?)\$", said, text).replace("`", "")


def _words(element: ET.Element) -> str:
    """A formula as a line of text."""
    if element.tag in ("msub", "msup", "msubsup"):
        return _plain(_parts(element))
    if element.tag in ("math", "mrow"):
        return "".join(_words(part) for part in element)
    text = _text_of(element)
    return f" {text} " if text in SPACED else text


def depend(app: Sphinx, docname: str, text: list[str]) -> None:
    """A chapter is read again when the notation has changed."""
    if chapter_of(docname) is not None:
        app.env.note_dependency(str(NOTATION))


def anchor_rows(app: Sphinx, doctree: nodes.document) -> None:
    """Give each line of the notation page's tables an address, and each cell its column's name."""
    if app.env.docname != "book/notation":
        return
    anchors = iter(symbol.anchor for symbol in symbols())
    for table in doctree.findall(nodes.table):
        head = next(table.findall(nodes.thead))
        if next(head.findall(nodes.entry)).astext() != "symbol":
            continue
        table["classes"].append("notation")
        columns = [entry.astext().replace(" ", "-") for entry in head.findall(nodes.entry)]
        for row in next(table.findall(nodes.tbody)).findall(nodes.row):
            row["ids"].append(next(anchors))
            for column, cell in zip(columns, row, strict=True):
                nothing = ["nothing"] if cell.astext() in NOTHING else []
                cell["classes"] += [f"column-{column}", *nothing]


def add_script(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Load the script that shows cards: with a page's formulas, or once somebody moves about."""
    body = context.get("body", "")
    if "data-symbol=" in body:
        app.add_js_file("symbols.js", type="module")
    elif EXPLAINED.search(body):
        load = f'() => import("./{context["pathto"]("_static", 1)}/symbols.js"), {{once: true}}'
        kinds = '["pointerover", "focusin"]'
        app.add_js_file(None, body=f"for (const kind of {kinds}) addEventListener(kind, {load})")


def write_cards(app: Sphinx, error: Exception | None) -> None:
    """Write the file of cards; runs when the glossary is finished."""
    if error is not None or app.builder.format != "html":
        return
    output = Path(app.outdir)
    glossary = (output / "book" / "glossary.html").read_text(encoding="utf-8")
    (output / "_static" / "cards.html").write_text(cards(glossary), encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", lambda app: symbols.cache_clear())
    app.connect("source-read", depend)
    app.connect("doctree-read", anchor_rows)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write_cards, priority=990)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
