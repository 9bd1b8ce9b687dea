"""The essential path through each chapter: what is marked stays open, the rest folds to a line.

Marks are comments in the source, each alone on its line, and hold in reading order:

    % essential      from here to the next mark or heading is on the path, cells without their code
    % beyond         from here to the next heading is not
    % fold: Title    from here to `% unfold`, or the next heading, is folded for everybody

What comes before the first section is on the path. What is off it is in open `details`, and below
the section, or below those that follow it and are off the path as a whole, one line says how much
that is. `static/path.js` closes the `details` of a reader who takes the path, and opens those of a
line; without the script, everything is there. What `check` says about a right answer is one line
for everybody, and unfolds.
"""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
NAMED = 3  # exercises in a line; of more there is their number
OPEN_LINES = 12  # of what a cell prints: so much stays on the path
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
                    ends.append(_open("evidence", inline_html(found[3])) if fold else _close())
                    self.shown.update(ends[-1:] if essential else ())
                else:
                    essential = mark == "essential"
            node.replace_self(ends)
            self.folded.update(ends)
        if fold:
            self.folded.add(end := _close())
            self.shown.update([end] if essential else ())
            section.insert(1 + sum(not isinstance(n, nodes.section) for n in section[1:]), end)

    def fold(self, chapter: nodes.section, number: int) -> None:
        """Fold what is off the path, and below what is on it put a line that tells what follows."""
        waiting = self._runs(chapter)
        for place, section in enumerate(_sections(chapter), 1):
            found = self._fold(section, f"{number}.{place}")
            if not _is_off(section):
                _tell(chapter, chapter.index(section), waiting)
                waiting = []
            waiting += found
        _tell(chapter, len(chapter), waiting)

    def _fold(self, section: nodes.section, number: str) -> list["FoldedPart"]:
        """Fold all that is below a section's heading if it is off the path, or what in it is."""
        if self.on.isdisjoint(section.findall()):
            found = [FoldedPart(section[1:], number, section[0].astext())]
            section["classes"].append("off-path")
            _wrap(section, 1, len(section), "fold", "More")
            return found
        found = self._runs(section)
        for place, part in enumerate(_sections(section), 1):
            found += self._fold(part, f"{number}.{place}")
        return found

    def _runs(self, section: nodes.section) -> list["FoldedPart"]:
        """Fold what is off the path in a section's own text."""
        found = []
        for stays, run in [(s, list(r)) for s, r in groupby(section[1:], self._stays)]:
            if not stays and any(node not in self.folded for node in run):
                first = section.index(run[0])
                _wrap(section, first, first + len(run), "fold", "More")
                found.append(FoldedPart(run))
        return found

    def _stays(self, node: nodes.Node) -> bool:
        return node in self.on | self.shown or isinstance(node, nodes.section)


@dataclass(frozen=True)
class FoldedPart:
    """What is folded in one piece; a section has its number and its title."""

    parts: Sequence[nodes.Node]
    number: str = ""
    title: str = ""


def line(folded: Sequence[FoldedPart]) -> str:
    """What tells how much is folded: which sections, whose exercises, how many minutes."""
    sections = [part for part in folded if part.number]
    said = ["More on this"] if len(sections) < len(folded) else []
    if len(sections) == 1:
        said.append(f"section {sections[0].number}, {html.escape(sections[0].title)}")
    elif sections:
        said.append(f"sections {_list_numbers([part.number for part in sections])}")
    parts = [node for part in folded for node in part.parts]
    time = max(1, minutes(parts, least=1) + pencil_minutes(parts, least=1))
    told = "; ".join([", and ".join(said), *_exercises(parts)])
    return f"{told[0].upper()}{told[1:]} ({time} min)"


def _list_numbers(numbers: Sequence[str]) -> str:
    """Numbers of sections in order, three or more that follow one another as 1.10–1.12."""
    runs: list[list[str]] = []
    for number in numbers:
        around, _, last = number.rpartition(".")
        if runs and runs[-1][-1] == f"{around}.{int(last) - 1}":
            runs[-1].append(number)
        else:
            runs.append([number])
    told = [part for run in runs for part in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else run)]
    return " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))


def _tell(chapter: nodes.section, place: int, folded: Sequence[FoldedPart]) -> None:
    """Put the line that unfolds some parts before the `place`-th child of a chapter."""
    if folded:
        button = f'<button type="button" aria-expanded="false">{line(folded)}</button>'
        text = f'<p class="path-more">{button}</p>'
        chapter.insert(place, nodes.raw("", text, format="html"))


def _exercises(parts: Iterable[nodes.Node]) -> list[str]:
    """The exercises in parts of a chapter, to be named where these are folded."""
    boxes = (box for part in parts for box in part.findall(nodes.container))
    heads = [box["ids"][0] for box in boxes if "exercise-head" in box["classes"]]
    names = [f"<code>{head.removeprefix('exercise-')}</code>" for head in heads]
    if len(names) > NAMED:
        return [f"{COUNTS[len(names)]} exercises"]
    return [f"exercise{'s' * (len(names) > 1)} {', '.join(names)}"] if names else []


def _sections(section: nodes.section) -> list[nodes.section]:
    return [part for part in section if isinstance(part, nodes.section)]


def _is_off(section: nodes.section) -> bool:
    return "off-path" in section["classes"]


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
    name = CHAPTER.match(app.env.docname)
    if name is None:
        return
    chapter = next(doctree.findall(nodes.section))
    marks = Marks(chapter)
    marks.fold(chapter, int(name[1][:2]))
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
    short = any(
        "cell_output" in _classes(c) and (_pictures(c) or c.astext().count("\n") < OPEN_LINES)
        for c in cell.children
    )
    shown = "tag_outcome" in kinds or (short and "tag_exercise" not in kinds)
    _wrap(cell, place, place + 1 if shown else len(cell), "fold code", "Code")


def _classes(node: nodes.Node) -> list[str]:
    return node.get("classes", []) if isinstance(node, nodes.Element) else []


def _pictures(output: nodes.Element) -> bool:
    return any(
        isinstance(node, nodes.image | nodes.raw) or node.get("mime_type", "text/plain") in RICH
        for node in output.findall(nodes.Element)
    )


RICH = {"text/html", "image/svg+xml", "image/png"}


def _wrap(parent: nodes.Element, first: int, end: int, kind: str, line: str) -> None:
    parent.insert(end, _close())
    parent.insert(first, _open(kind, line))


def _open(kind: str, line: str) -> nodes.raw:
    opened = "" if kind == "evidence" else " open"
    shown = "" if kind == "evidence" else ' class="fold-line"'
    text = f'<details class="{kind}"{opened}><summary{shown}>{line}</summary>'
    return nodes.raw("", text, format="html")


def _close() -> nodes.raw:
    return nodes.raw("", CLOSE, format="html")


# --- what check(…) says of a right answer ---------------------------------------------------------


def fold_verdicts(page: str) -> str:
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
        if (shorter := fold_verdicts(page)) != page:
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
