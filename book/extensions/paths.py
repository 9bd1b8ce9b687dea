"""The essential path through each chapter: what is marked stays open, the rest folds to a line.

Marks are comments in the source, each alone on its line, and hold in reading order:

    % essential      from here to the next mark or heading is on the path, cells without their code
    % beyond         from here to the next heading is not
    % fold: Title    from here to `% unfold`, or the next heading, is folded for everybody

What comes before the first section is on the path. What is off it is in `details` that are open and
whose lines do not show until `static/path.js` offers the choice and the reader takes it; without
the script, everything is there. What `check` says about a right answer is one line for everybody,
and unfolds.
"""

import html
import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from chapter_header import CHAPTER, FRONT, minutes, pencil_minutes
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from symbols import inline_html

MARK = re.compile(r"(essential|beyond|unfold)|(fold): *(\S.*)")
SLOT = '<div class="progress-slot"></div>'
CLOSE = "</details>"
OPEN_LINES = 12  # of what a cell prints: so much stays on the path
MANY = 3  # sections off the path in a row
# what check(…) says if all aspects hold and there is nothing else to say
VERDICT = re.compile(
    r'<div class="abh-check[^"]*" style="([^"]*)"><p><strong>([^<]*)</strong></p>'
    r"(<table>(?:(?!</table>).)*</table>)</div>",
    re.DOTALL,
)
HOLDS = re.compile(r'<b role="img" aria-label="passes"[^>]*>✓</b>')
COUNTS = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve"),
)


class Marks:
    """What the marks of a chapter say of its parts: what is on the path, and what folds anyway.

    Raises `ExtensionError`, with file and line, for a mark that is unknown or out of place.
    """

    def __init__(self, chapter: nodes.section):
        self.on: set[nodes.Node] = set()
        self.folded: set[nodes.Node] = set()
        self.shown: set[nodes.Node] = set()  # of these, on the path: their line is seen
        for section in list(chapter.findall(nodes.section)):
            self._take(section, essential=section is chapter)
        for node in chapter.findall(nodes.comment):
            raise _wrong(node, node.astext(), "stands inside something else")

    def _take(self, section: nodes.section, essential: bool) -> None:
        """Take the marks out of a section, and fold what is to be folded for everybody."""
        fold = False
        own = [node for node in section[1:] if not isinstance(node, nodes.section)]
        for node in own:
            if not isinstance(node, nodes.comment):
                if fold or essential:
                    (self.folded if fold else self.on).add(node)
                if fold and essential:
                    self.shown.add(node)
                continue
            ends = []
            for line in node.astext().split("\n"):
                found = MARK.fullmatch(line.strip())
                if found is None:
                    raise _wrong(node, line, "is unknown")
                mark = found[1] or found[2]
                if fold != (mark == "unfold"):
                    raise _wrong(node, line, "inside a fold" if fold else "without a fold")
                if "fold" in mark:
                    fold = not fold
                    ends.append(_opened("evidence", inline_html(found[3])) if fold else _closed())
                    self.shown.update(ends[-1:] if essential else ())
                else:
                    essential = mark == "essential"
            node.replace_self(ends)
            self.folded.update(ends)
        if fold:
            self.folded.add(end := _closed())
            self.shown.update([end] if essential else ())
            section.insert(1 + sum(not isinstance(n, nodes.section) for n in section[1:]), end)

    def fold(self, section: nodes.section) -> None:
        """Fold what is off the path in a section: all that is below its heading, or the runs."""
        if self.on.isdisjoint(section.findall()):
            time = minutes([section], least=1)
            section["classes"].append("off-path")
            line = f"Show this section{_exercises([section])} (about {time} min)"
            _wrap(section, 1, len(section), line)
            return
        for within, run in [(w, list(r)) for w, r in groupby(section[1:], self._stays)]:
            if within:
                for part in run:
                    if isinstance(part, nodes.section):
                        self.fold(part)
                self._gather(section, run)
            elif any(node not in self.folded for node in run):
                first, time = section.index(run[0]), minutes(run, least=1)
                line = f"Show more{_exercises(run)} (about {time} min)"
                _wrap(section, first, first + len(run), line)

    def _gather(self, section: nodes.section, parts: list[nodes.Node]) -> None:
        """Fold sections off the path to one line where many follow one another."""
        for off, run in [(o, list(r)) for o, r in groupby(parts, _off)]:
            if off and len(run) >= MANY:
                first, time = section.index(run[0]), minutes(run, least=1)
                line = f"More in this chapter{_exercises(run)} (about {time} min)"
                _wrap(section, first, first + len(run), line)

    def _stays(self, node: nodes.Node) -> bool:
        return node in self.on | self.shown or isinstance(node, nodes.section)


def _exercises(parts: Iterable[nodes.Node]) -> str:
    """The exercises in parts of a chapter, to be named where these are folded."""
    boxes = (box for part in parts for box in part.findall(nodes.container))
    heads = [box["ids"][0] for box in boxes if "exercise-head" in box["classes"]]
    names = [f"<code>{head.removeprefix('exercise-')}</code>" for head in heads]
    return f": exercise{'s' * (len(names) > 1)} {', '.join(names)}" if names else ""


def _off(part: nodes.Node) -> bool:
    return isinstance(part, nodes.section) and "off-path" in part["classes"]


def _wrong(comment: nodes.comment, mark: str, reason: str) -> ExtensionError:
    """What is wrong with a mark; comments know no line, so it is looked for below the heading."""
    around = comment.parent
    while not isinstance(around, nodes.section):
        around = around.parent
    source = Path(comment.document["source"])
    lines = source.read_text(encoding="utf-8").split("\n")
    first = around[0].line or 1
    line = next((n for n in range(first, len(lines)) if mark.strip() in lines[n - 1]), first)
    return ExtensionError(f"{source}:{line}: the mark {mark.strip()!r} {reason}")


def fold(app: Sphinx, doctree: nodes.document) -> None:
    """Fold what is off the essential path, and say at the head of the chapter how long it is."""
    if app.env.docname == FRONT:
        Marks(next(doctree.findall(nodes.section)))
    if CHAPTER.match(app.env.docname) is None:
        return
    chapter = next(doctree.findall(nodes.section))
    marks = Marks(chapter)
    marks.fold(chapter)
    time = minutes(marks.on, code=False, least=1) + pencil_minutes(marks.on, least=1)
    path_minutes(app)[app.env.docname] = time
    for part in marks.on:
        for cell in list(part.findall(nodes.container)):
            if "cell" in cell["classes"]:
                _fold_cell(cell)
    for raw in doctree.findall(nodes.raw):
        if 'class="glance"' in raw.astext():
            slot = f'<div class="path-slot" data-short="{time}"></div>{SLOT}'
            raw.replace_self(nodes.raw("", raw.astext().replace(SLOT, slot), format="html"))
            break


def path_minutes(app: Sphinx) -> dict[str, int]:
    """How long each chapter's essential path takes, read with a pencil, in minutes."""
    if not hasattr(app.env, "path_minutes"):
        app.env.path_minutes = {}
    return app.env.path_minutes


def _fold_cell(cell: nodes.container) -> None:
    """Fold a cell's code, and what it prints if that is long; pictures and outcomes stay."""
    kinds = set(cell["classes"])
    if kinds & {"tag_hide-input", "tag_check"}:
        return  # it is folded for everybody
    place = next((i for i, c in enumerate(cell.children) if "cell_input" in _classes(c)), None)
    if place is None:
        return
    if "tag_exercise" in kinds:
        _wrap(cell, place, len(cell), "Show the exercise")
    elif "tag_outcome" in kinds or any(
        "cell_output" in _classes(c) and (_pictures(c) or c.astext().count("\n") < OPEN_LINES)
        for c in cell.children
    ):
        _wrap(cell, place, place + 1, "Show the code")
    else:
        _wrap(cell, place, len(cell), "Show the code and what it prints")


def _classes(node: nodes.Node) -> list[str]:
    return node.get("classes", []) if isinstance(node, nodes.Element) else []


def _pictures(output: nodes.Element) -> bool:
    return any(
        isinstance(node, nodes.image | nodes.raw) or node.get("mime_type", "text/plain") in RICH
        for node in output.findall(nodes.Element)
    )


RICH = {"text/html", "image/svg+xml", "image/png"}


def _wrap(parent: nodes.Element, first: int, end: int, line: str) -> None:
    parent.insert(end, _closed())
    parent.insert(first, _opened("fold", line))


def _opened(kind: str, line: str) -> nodes.raw:
    shown = ' class="fold-line"' if kind == "fold" else ""
    opened = " open" if kind == "fold" else ""
    return nodes.raw(
        "", f'<details class="{kind}"{opened}><summary{shown}>{line}</summary>', format="html"
    )


def _closed() -> nodes.raw:
    return nodes.raw("", CLOSE, format="html")


# --- what check(…) says of a right answer ---------------------------------------------------------


def folded(page: str) -> str:
    """A page in which each verdict whose aspects all hold is folded to a line."""
    return VERDICT.sub(_line, page)


def _line(match: re.Match) -> str:
    style, headline, table = match.groups()
    rows = table.count("<tr>") - 1
    ticks = HOLDS.findall(table)
    if not rows or len(ticks) != rows:
        return match[0]
    count = COUNTS[rows] if rows < len(COUNTS) else str(rows)
    checks = f"{count} check{'' if rows == 1 else 's'}, with the course’s solution"
    return (
        f'<details class="abh-check" style="{style}"><summary><strong>'
        f"{html.escape(html.unescape(headline))}</strong> {ticks[0]} {checks}</summary>{table}"
        f"{CLOSE}"
    )


def finish(app: Sphinx, error: Exception | None) -> None:
    """Fold the verdicts on all pages."""
    if error is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("book/*.html"):
        page = path.read_text(encoding="utf-8")
        if (shorter := folded(page)) != page:
            path.write_text(shorter, encoding="utf-8")


def add_script(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Load our script on the chapters' pages."""
    if CHAPTER.match(pagename):
        app.add_js_file("path.js", type="module")


def setup(app: Sphinx) -> dict:
    app.connect("doctree-read", fold, priority=650)  # the head is in its place by then
    app.connect("html-page-context", add_script)
    app.connect("build-finished", finish, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
