"""A short path through each chapter: what is essential stays open, the rest folds to a line.

Essential are the opening, as many of the first sections as can be read in a quarter of an hour, the
mistakes and the summary, without their code and exercises. The rest is in `details` that are open
and whose lines do not show until `static/path.js` offers the choice and the reader takes it;
without the script, everything is there. What `check` says about a right answer is one line for
everybody, and unfolds.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from learner import CHAPTER, minutes
from sphinx.application import Sphinx

FIRST = 3  # the idea, the example by hand, the formula; then as much as fits in
MOST = 15  # minutes
ALWAYS = re.compile(r"Mistakes\b|Summary$")
SLOT = '<div class="progress-slot"></div>'
CLOSE = "</details>"
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


def parts(chapter: nodes.section) -> Iterator[tuple[nodes.section, bool]]:
    """The sections of a chapter, each with whether it is on the short path."""
    sections = [child for child in chapter.children if isinstance(child, nodes.section)]
    always = [s for s in sections if ALWAYS.match(s[0].astext())]
    essential = [*opening(chapter), *always]
    within = True
    for number, section in enumerate(sections):
        if section in always:
            yield section, True
            continue
        essential.append(section)
        within &= number < FIRST or minutes(essential, code=False, least=1) <= MOST
        yield section, within


def opening(chapter: nodes.section) -> list[nodes.Node]:
    """What comes before the first section."""
    return [child for child in chapter.children if not isinstance(child, nodes.section)]


def fold(app: Sphinx, doctree: nodes.document) -> None:
    """Fold what is off the short path, and say at the head of the chapter how long it is."""
    if CHAPTER.match(app.env.docname) is None:
        return
    chapter = next(doctree.findall(nodes.section))
    essential = opening(chapter)
    for section, on_path in list(parts(chapter)):
        if on_path:
            essential.append(section)
        else:
            time = minutes([section], least=1)
            _wrap(section, 1, len(section), f"Show this section (about {time} min)")
    time = minutes(essential, code=False, least=1)
    for part in essential:
        for cell in list(part.findall(nodes.container)):
            if "cell" in cell["classes"]:
                _fold_cell(cell)
    for raw in doctree.findall(nodes.raw):
        if 'class="glance"' in raw.astext():
            slot = f'<div class="path-slot" data-short="{time}"></div>{SLOT}'
            raw.replace_self(nodes.raw("", raw.astext().replace(SLOT, slot), format="html"))
            break


def _fold_cell(cell: nodes.container) -> None:
    """Fold a cell's code, with what it prints; pictures and tables stay."""
    kinds = set(cell["classes"])
    if kinds & {"tag_hide-input", "tag_check"}:
        return  # it is folded for everybody
    place = next((i for i, c in enumerate(cell.children) if "cell_input" in _classes(c)), None)
    if place is None:
        return
    if "tag_exercise" in kinds:
        _wrap(cell, place, len(cell), "Show the exercise")
    elif any("cell_output" in _classes(c) and _pictures(c) for c in cell.children):
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
    opened = f'<details class="fold" open><summary class="fold-line">{line}</summary>'
    parent.insert(end, nodes.raw("", CLOSE, format="html"))
    parent.insert(first, nodes.raw("", opened, format="html"))


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
    checks = f"{count} check{'' if rows == 1 else 's'}"
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
