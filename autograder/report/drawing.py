"""How the report draws: its page and style, a histogram, bars behind a list, columns by day.

TRUST BOUNDARY. Labels come as HTML that the caller has escaped; all other text is escaped here. The
page holds one script, our own, allowed by its hash; it loads nothing, and tells the browser so.
"""

from collections.abc import Sequence
from datetime import date
from html import escape

from autograder.report.report_script import HASH, SCRIPT
from autograder.student.table import number


def html_page(body: str, title: str = "Class report") -> str:
    """The page around its contents."""
    page = _PAGE.replace("<!-- title -->", escape(title)).replace("HASH", HASH)
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


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-HASH'">
<title><!-- title --></title>
<style>
:root { color-scheme: light dark; --ground: #fff; --ink: #1d2433; --quiet: #576074;
  --line: #d9dde5; --tint: #f4f6f9; --lost-most: #f0a35e; --bar: #35659c; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181f; --ink: #e4e8ef; --quiet: #a3adbd;
  --line: #333b48; --tint: #1d232d; --lost-most: #99531a; --bar: #6ea3dc; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 66rem; background: var(--ground);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.3rem; margin: 2rem 0 1rem; overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; margin: 2.2rem 0 .4rem; }
p { margin: .3rem 0 .8rem; color: var(--quiet); max-width: 44rem; }
a { color: inherit; text-decoration-color: var(--bar); text-underline-offset: .2em; }
code { font: .92em ui-monospace, monospace; overflow-wrap: anywhere; }
small { display: block; color: var(--quiet); font-size: .875rem; overflow-wrap: anywhere; }
ul, ol { padding-left: 1.2rem; margin: .4rem 0; }
li { overflow-wrap: anywhere; }
[hidden] { display: none !important; }
.tabs, .controls { display: none; }
.live .tabs { display: flex; flex-wrap: wrap; gap: .3rem; margin: 0 0 1rem; }
.tabs button { padding: .35rem .7rem; border: 1px solid var(--line); border-radius: .4rem;
  background: var(--tint); color: var(--ink); font: inherit; font-size: .9rem; cursor: pointer;
  overflow-wrap: anywhere; }
.tabs button[aria-selected="true"] { background: var(--bar); color: var(--ground);
  border-color: var(--bar); }
.live .controls { display: flex; flex-wrap: wrap; gap: .6rem 1rem; align-items: center;
  margin: 0 0 1rem; font-size: .9rem; }
.controls input, .controls select { font: inherit; color: var(--ink); background: var(--ground);
  border: 1px solid var(--quiet); border-radius: .3rem; padding: .25rem .4rem; max-width: 100%; }
.controls output { color: var(--quiet); }
:focus-visible { outline: 2px solid var(--bar); outline-offset: 2px; }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid var(--bar); }
th[aria-sort="ascending"] button::after { content: " ↑"; }
th[aria-sort="descending"] button::after { content: " ↓"; }
html:not(.live) th button { cursor: default; }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem; margin: 0; }
.tiles div { display: flex; flex-direction: column-reverse; flex: 1 1 8rem; padding: .6rem .9rem;
  background: var(--tint); border-radius: .4rem; }
.tiles dt { color: var(--quiet); font-size: .875rem; }
.tiles dd { margin: 0; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; border: 1px solid var(--line); border-radius: .4rem; }
.wide:focus-visible { outline: 2px solid var(--bar); outline-offset: 2px; }
.marks, .items { border-collapse: separate; border-spacing: 0; width: 100%; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
.marks th, .marks td, .items th, .items td { padding: .3rem .55rem; text-align: right;
  vertical-align: bottom;
  border-bottom: 1px solid var(--line); }
.marks tbody tr:last-child > *, .items tbody tr:last-child > * { border-bottom: 0; }
.marks tfoot > tr > * { border-top: 2px solid var(--line); border-bottom: 0; color: var(--quiet);
  font-weight: 400; }
.marks thead th, .items thead th { font-weight: 400; background: var(--tint); font-size: .8rem;
  line-height: 1.35; }
.marks thead code { font-size: 1em; overflow-wrap: normal; }
.marks i { font-style: normal; color: var(--quiet); }
.marks th:first-child { position: sticky; left: 0; text-align: left; background: var(--ground);
  min-width: 6.5rem; max-width: 11rem; overflow-wrap: anywhere; z-index: 1; }
.marks thead th:first-child { background: var(--tint); }
.marks tbody td { background: color-mix(in srgb, var(--lost-most) var(--lost, 0%), var(--ground)); }
.marks tr > :last-child:not([colspan]) { position: sticky; right: 0;
  border-left: 1px solid var(--line); }
.marks tr > td:last-child { background: var(--ground); }
.marks small { font-size: .75rem; white-space: nowrap; }
.items th:first-child { text-align: left; font-weight: 400; min-width: 8rem; }
.items small, .who small, .marks th[data-sort] small { display: inline; white-space: nowrap; }
.marks th[data-sort] small { margin-left: .4em; }
.items thead th:first-child, .items .who { white-space: nowrap; }
.grid td { background: color-mix(in srgb, var(--lost-most) var(--lost, 0%), var(--ground)); }
.grid th, .grid td { padding: .15rem .55rem; }
.items .low { background: color-mix(in srgb, var(--lost-most) 45%, var(--ground)); }
.marks .blank { color: var(--quiet); background-image: repeating-linear-gradient(
  -45deg, var(--line) 0 1px, transparent 1px 6px); }
.marks .none { color: var(--quiet); text-align: center; }
.marks .none[colspan] { text-align: left; }
svg { display: block; width: 100%; max-width: 44rem; height: auto; }
svg text { fill: var(--ink); font: 15px system-ui, sans-serif; text-anchor: middle; }
svg .tick { fill: var(--quiet); font-size: 13px; }
svg .bar { fill: var(--bar); }
svg .again { fill: none; stroke: var(--bar); stroke-width: 2; }
svg .due { stroke: var(--ink); stroke-dasharray: 4 3; }
svg .start { text-anchor: start; }
svg .end { text-anchor: end; }
svg line { stroke: var(--quiet); }
.bars { list-style: none; padding: 0; max-width: 44rem; }
.bars li { margin: 0 0 .7rem; }
.label { display: flex; justify-content: space-between; gap: 1rem; align-items: baseline; }
.label b { font-weight: 600; white-space: nowrap; font-variant-numeric: tabular-nums; }
.track { height: .4rem; margin-top: .2rem; background: var(--tint); border-radius: .2rem; }
.track div { height: 100%; min-width: 2px; background: var(--bar); border-radius: .2rem; }
.beside { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); gap: 2rem; }
.model { align-self: start; position: sticky; top: .5rem; max-height: 100vh; overflow: auto; }
.model h3:first-child { margin-top: 0; }
.answers { padding: 0; margin: 0; list-style: none; }
.answers li { border-top: 1px solid var(--line); padding: .5rem 0 .8rem; }
.answer p, .model p { color: var(--ink); overflow-wrap: anywhere; }
.answer pre, .answer table { overflow-x: auto; max-width: 100%; display: block; }
@media (max-width: 50rem) { .beside { grid-template-columns: minmax(0, 1fr); }
  .model { position: static; max-height: none; } }
summary { cursor: pointer; }
details dt { font-weight: 600; margin-top: .6rem; }
details dd { margin: 0 0 0 1.2rem; color: var(--quiet); overflow-wrap: anywhere; }
@media print { .wide { overflow: visible; } * { print-color-adjust: exact; } }
</style>
</head>
<body>
<h1><!-- title --></h1>
<!-- body -->
<!-- script -->
</body>
</html>
"""
