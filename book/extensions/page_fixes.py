"""Finished pages polished: what the theme leaves to chance, on paper, on phones, without a script.

A section that is far away is laid out only when it comes near (book.css); until then the browser
uses the height estimated here, so that the scrollbar does not jump.
"""

import html
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from sphinx.application import Sphinx

# No line may begin with the full stop after a formula, nor end with the bracket before it.
FORMULA = re.compile(
    r'([(\[“‘]*)(<span class="math"[^>]*>(?:(?!</math>).)*</math></span>)([^\s<(\[—]*)', re.DOTALL
)
GLUED = "glued"
# Nor may a line end within a short vector, (1, 3, 2), or sum, 4 + 2 − 0 = 6.
NUMBER = r"[−-]?[\d½¼¾⅓⅔][\d.,/]*(?<![.,])%?"
PIECES = re.compile(rf"\({NUMBER}(?:, {NUMBER})+\)|{NUMBER}(?: [+−·÷/=≈] {NUMBER})+")
WHOLE_PIECE, WHOLE_CELL, WHOLE_VECTOR = (
    26,
    14,
    10,
)  # characters: in text, in a table, a vector there
RUNS = re.compile(
    r"<(script|style|pre|code|template|svg|math|title|output)\b.*?</\1>|</?(t[dh])\b[^>]*>|<[^>]*>|[^<]+",
    re.DOTALL,
)
TITLE = re.compile(r"<title>(.+?) &#8212; \1</title>")
# A script sets the theme; without scripts, the page must be readable.
NO_SCRIPT = re.compile(r'(<html\b[^>]*\bdata-theme=)"auto"')
# On paper every page is light, and pictures are loaded that nobody has scrolled to.
PAPER = """<script>
{const root = document.documentElement.dataset; let theme;
addEventListener("beforeprint", () => {theme = root.theme; root.theme = "light";
document.querySelectorAll("img[loading=lazy]").forEach((image) => {image.loading = "eager"})});
addEventListener("afterprint", () => {root.theme = theme})}
</script>
"""
CHINESE = re.compile(r"[\u4e00-\u9fff](?:[\u4e00-\u9fff、 ，]*[\u4e00-\u9fff])?")
TERM = re.compile(r"<dd><p>\(([^()]*[\u4e00-\u9fff][^()]*)\)")

CODE = re.compile(
    r'((<div class="stub [^"]*">)?<div class="highlight"><pre[^>]*>)((?:(?!</pre>).)*)(?=</pre>)',
    re.DOTALL,
)
ROOM = 82  # characters that a line of code has on a wide page
# a line of a docstring continues on the next one if that one's first word would not have fitted
FULL = 79
WORD = re.compile(r"`[^`]*`\S*|\S+")
PIECE = re.compile(r'(?:<span class="(\w+)">)?([^<]+)(?:</span>)?')
# The font of the text, upright and italic, before the style sheet asks for it. A font that comes
# too late is not used at all, and with only one of the two a page would mix two typefaces.
FACES = "".join(
    f'<link rel="preload" href="{{0}}_static/{file}.woff2" as="font" type="font/woff2" '
    "crossorigin />\n"
    for file in ("source-sans-3", "source-sans-3-italic")
)
SHEET = re.compile(r'<link rel="stylesheet" href="((?:\.\./)*)_static/')
# on a page, where nothing moves, a bar that is short of its end: the run was over before
STOPPED = re.compile(
    r'(<p class="progress-bar">)<progress max="(\d+)" value="(\d+)"[^>]*></progress> '
    r"(\w+) \3 of \2"
)

LINE = {"wide": 92, "narrow": 42}  # characters
WIDTH = {"wide": 640, "narrow": 358}  # pixels, the most that a picture takes


def polish(page: str) -> str:
    """The page with its formulas glued to their punctuation, its heights estimated, and so on."""
    if PAPER in page:  # it is as an earlier build left it
        return page
    page = TITLE.sub(r"<title>\1</title>", page)
    page = NO_SCRIPT.sub(r'\1"light"', page)
    page = page.replace("</head>", f"{PAPER}</head>", 1)
    page = unbroken(FORMULA.sub(_glue, page))
    page = TERM.sub(_in_chinese, page)
    page = CODE.sub(_wrap, page)
    page = STOPPED.sub(_stop, page)
    if sheet := SHEET.search(page):
        page = page.replace(sheet[0], FACES.format(sheet[1]) + sheet[0], 1)
    return _with_heights(page)


def _glue(match: re.Match) -> str:
    before, formula, after = match.groups()
    return f'<span class="{GLUED}">{match[0]}</span>' if before or after else formula


def unbroken(page: str) -> str:
    """A page in whose text short vectors and sums stay on one line."""
    room = WHOLE_PIECE

    def kept(match: re.Match) -> str:
        nonlocal room
        if match[2]:
            room = WHOLE_PIECE if match[0].startswith("</") else WHOLE_CELL
        return match[0] if match[0].startswith("<") else PIECES.sub(glue, match[0])

    def glue(match: re.Match) -> str:
        vector = room == WHOLE_CELL and match[0].startswith("(")
        fits = len(match[0]) <= (WHOLE_VECTOR if vector else room)
        return f'<span class="{GLUED}">{match[0]}</span>' if fits else match[0]

    return RUNS.sub(kept, page)


def _in_chinese(match: re.Match) -> str:
    """A glossary's terms, marked as Chinese: simplified, then, behind a slash, traditional."""
    simplified, slash, traditional = match[1].partition(" / ")
    both = CHINESE.sub(r'<span lang="zh-Hans">\g<0></span>', simplified)
    if slash:
        both += slash + CHINESE.sub(r'<span lang="zh-Hant">\g<0></span>', traditional)
    return match[0].replace(match[1], both)


def _wrap(match: re.Match) -> str:
    """Code whose lines wrap: of a stub, and where a line would not fit on a wide page."""
    start, stub, code = match.groups()
    long = max(map(len, _text(code).split("\n"))) > ROOM
    if stub or (long and "<" not in PIECE.sub("", code)):
        return start + in_lines(code)
    return match[0]


def in_lines(code: str) -> str:
    """Highlighted code with an element for each line, which says how far it is indented."""
    lines = [""]
    for piece in PIECE.finditer(code):
        kind, text = piece.groups()
        for number, part in enumerate(text.split("\n")):
            if number:
                lines[-1] += "\n"
                lines.append("")
            if part:
                lines[-1] += f'<span class="{kind}">{part}</span>' if kind else part
    return "".join(_element(group) for group in _paragraphs([line for line in lines if line]))


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Lines of code one by one, but lines of a docstring that were wrapped as one group."""
    group: list[str] = []
    for line in lines:
        if group and not (
            '<span class="sd">' in group[-1]
            and '<span class="sd">' in line
            and _text(line).strip(' \n"')
            and len(_text(group[-1])) + len(WORD.match(_text(line).strip())[0]) >= FULL
            and _indent(group[-1]) == _indent(line)
        ):
            yield group
            group = []
        group.append(line)
    yield group


def _element(group: list[str]) -> str:
    kind = "flow" if len(group) > 1 else "one"
    return f'<span data-line="{kind}" style="--in: {_indent(group[0])}">{"".join(group)}</span>'


def _text(line: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", line))


def _indent(line: str) -> int:
    text = _text(line)
    return len(text) - len(text.lstrip(" "))


def _stop(match: re.Match) -> str:
    start, total, value, unit = match.groups()
    if value == total:
        return f"{start}all {total} {unit}s"
    return f"{start}stopped at {unit} {value} of at most {total}"


# --- how high a section is ----------------------------------------------------------------------


def _with_heights(page: str) -> str:
    if "<article" not in page:
        return page
    for section in BeautifulSoup(page, "html.parser").select("article > section > section[id]"):
        heights = " ".join(f"--{kind}: {_height(section, kind):.0f}px;" for kind in LINE)
        start = rf'(<section(?: class="[^"]*")? id="{re.escape(str(section["id"]))}")>'
        page = re.sub(start, rf'\1 style="{heights.strip()}">', page, count=1)
    return page


def _height(node: Tag, kind: str) -> float:
    """About how many pixels high an element is, margins included."""
    tag = node.name
    if tag in ("script", "style", "template"):
        return 0
    if tag == "details" and node.get("open") is None:
        return 40
    if tag == "pre":
        rows = node.get_text().rstrip("\n").split("\n")
        wrapped = sum(max(1, -(-len(row) // (LINE[kind] - 6))) for row in rows)
        return 19 * (wrapped if node.find_parent(class_="stub") else len(rows)) + 22
    if tag == "img":
        width, height = float(node.get("width") or 600), float(node.get("height") or 360)
        return height * min(1, WIDTH[kind] / width)
    if "panels" in node.get("class", ()):
        whole, *parts = node.find_all(True, recursive=False)
        if kind == "wide":
            return _height(whole, kind)
        sizes = [re.findall(r"\d+", part.span["style"])[1:] for part in parts]
        return sum(27 + int(h) * min(0.8, WIDTH[kind] / int(w)) for w, h in sizes)
    if tag == "svg":
        box = [float(part) for part in (node.get("viewbox") or "0 0 640 360").split()]
        return box[3] * min(1, WIDTH[kind] / box[2])
    if "math-display" in node.get("class", ()):
        return 80
    if tag == "tr":
        longest = max((len(cell.get_text()) for cell in node.find_all(["th", "td"])), default=0)
        return 38 + 26 * (longest // (LINE[kind] // 2))
    if tag in ("p", "figcaption", "summary", "dt"):
        return 27 * -(-len(node.get_text()) // LINE[kind]) + 18
    if tag in ("h2", "h3", "h4"):
        return 70
    return sum(_height(child, kind) for child in node.find_all(True, recursive=False))


def finish(app: Sphinx, error: Exception | None) -> None:
    """Polish all pages, side by side; runs after their pictures have got their sizes."""
    if error is not None or app.builder.format != "html":
        return
    found = [path for path in Path(app.outdir).rglob("*.html") if "_static" not in path.parts]
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        for _ in pool.map(_polish, sorted(found, key=lambda path: -path.stat().st_size)):
            pass


def _polish(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    if (better := polish(page)) != page:
        path.write_text(better, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", finish, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
