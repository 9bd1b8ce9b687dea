"""How the report draws: its page (`page.html`), a histogram, bars behind a list, columns by day.

TRUST BOUNDARY. Labels come as HTML that the caller has escaped; all other text is escaped here. The
page holds one script, our own (`page.js`), allowed by its hash; it loads nothing, and tells the
browser so.
"""

import base64
import hashlib
from collections.abc import Sequence
from datetime import date
from html import escape
from pathlib import Path

from autograder.student.table import number

_PAGE, SCRIPT = (
    Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("page.html", "page.js")
)
_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()


def html_page(body: str, title: str = "Class report") -> str:
    """The page around its contents."""
    page = _PAGE.replace("<!-- title -->", escape(title)).replace("HASH", _HASH)
    before, after = page.split("<!-- body -->")
    return before + body + after.replace("<!-- script -->", f"<script>{SCRIPT}</script>")


def tabs(parts: Sequence[tuple[str, str]]) -> str:
    """Parts of the page (title, content), shown one at a time where scripts run, else all."""
    listed = "".join(
        f'<button type="button" role="tab" id="tab-{n}" aria-controls="part-{n}" '
        f'aria-selected="{str(not n).lower()}">{escape(title)}</button>'
        for n, (title, _) in enumerate(parts)
    )
    panels = "".join(
        f'<article id="part-{n}" role="tabpanel" aria-labelledby="tab-{n}" tabindex="0">'
        f"<h2>{escape(title)}</h2>{content}</article>"
        for n, (title, content) in enumerate(parts)
    )
    return f'<div class="tabs" role="tablist" aria-label="Parts">{listed}</div>{panels}'


def controls() -> str:
    """The search and the filter, for all parts at once."""
    kinds = (
        ("", "everyone"),
        ("waits", "waits for a mark by hand"),
        ("low", "less than half of the points"),
        ("late", "late"),
        ("absent", "handed in nothing"),
    )
    options = "".join(f'<option value="{value}">{text}</option>' for value, text in kinds)
    return (
        '<div class="controls" role="search"><label>Search '
        '<input type="search" id="search" autocomplete="off"></label>'
        f'<label>Show <select id="only">{options}</select></label>'
        '<output id="found" for="search only"></output></div>'
    )


def section(title: str, content: str, say: str = "") -> str:
    """A part of the page; nothing if it has no content."""
    if not content:
        return ""
    lead = f"<p>{escape(say)}</p>" if say else ""
    return f"<section><h3>{escape(title)}</h3>{lead}{content}</section>"


def histogram(shares: Sequence[float], points: float) -> str:
    """How many totals, as shares of the points, lie in each tenth of them."""
    counts = [0] * 10
    for share in shares:
        counts[min(9, max(0, int(share * 10 + 1e-9)))] += 1
    edges = [points * i / 10 for i in range(11)]
    width, height, base, step = 660, 200, 160, 62  # with room for the last number
    tall = max(counts)
    drawn = []
    for i, count in enumerate(counts):
        x, size = 10 + i * step, 120 * count / tall
        if count:
            drawn.append(
                f'<rect class="bar" x="{x + 3}" y="{base - size:.1f}" width="{step - 6}" '
                f'height="{size:.1f}"/>'
                f'<text x="{x + step / 2}" y="{base - size - 6:.1f}">{count}</text>'
            )
    marks = "".join(
        f'<text class="tick" x="{10 + i * step}" y="{base + 18}">{number(edge)}</text>'
        for i, edge in enumerate(edges)
    )
    told = ", ".join(
        f"{count} with {number(edges[i])} to {number(edges[i + 1])}"
        for i, count in enumerate(counts)
        if count
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Submissions by total points: {told}.">'
        f'<line x1="10" x2="{10 + 10 * step}" y1="{base}" y2="{base}"/>{"".join(drawn)}{marks}'
        f'<text class="tick" x="{10 + 5 * step}" y="{base + 38}">total points</text></svg>'
    )


def columns_by_day(days: Sequence[tuple[date, int, int]], due: date | None) -> str:
    """Columns of first (filled) and later (outlined) attempts, by day; a line at the due date."""
    width, base, room = 640, 150, 620
    step = room / max(1, len(days))
    tall = max(first + later for _, first, later in days) or 1
    drawn = []
    for n, (day, first, later) in enumerate(days):
        x, wide = 10 + n * step, max(2.0, step - 4)
        low, high = 120 * first / tall, 120 * later / tall
        if first:
            drawn.append(
                f'<rect class="bar" x="{x:.1f}" y="{base - low:.1f}" width="{wide:.1f}" '
                f'height="{low:.1f}"/>'
            )
        if later:
            drawn.append(
                f'<rect class="again" x="{x + 1:.1f}" y="{base - low - high + 1:.1f}" '
                f'width="{max(1.0, wide - 2):.1f}" height="{max(1.0, high - 2):.1f}"/>'
            )
        if day == due:
            drawn.append(
                f'<line class="due" x1="{x + step - 2:.1f}" x2="{x + step - 2:.1f}" y1="18" '
                f'y2="{base}"/><text class="tick" x="{min(x + step, 600):.1f}" y="12">due</text>'
            )
    ends = [(10, "start", days[0][0])] + [(630, "end", days[-1][0])] * (len(days) > 1)
    marks = "".join(
        f'<text class="tick {anchor}" x="{x}" y="{base + 18}">{day.isoformat()}</text>'
        for x, anchor, day in ends
    )
    told = ", ".join(
        f"{day.isoformat()}: {first} first and {later} later"
        for day, first, later in days
        if first or later
    )
    return (
        f'<svg viewBox="0 0 {width} 180" role="img" aria-label="Attempts by day. {told}.">'
        f'<line x1="10" x2="630" y1="{base}" y2="{base}"/>{"".join(drawn)}{marks}</svg>'
    )


def bars(lines: Sequence[tuple[str, str, float]]) -> str:
    """A list with a bar behind each line: the label (HTML), the text at its end, the share."""
    items = "".join(
        f'<li><div class="label"><span>{label}</span><b>{escape(end)}</b></div>'
        f'<div class="track"><div style="width:{100 * share:.1f}%"></div></div></li>'
        for label, end, share in lines
    )
    return f'<ol class="bars">{items}</ol>'
