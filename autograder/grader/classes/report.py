"""The class on one page: marks, what fails most, mistakes made, times, and who needs attention.

TRUST BOUNDARY. Ids, reasons, notes and messages come from outside and are escaped
everywhere. The page holds no script, loads nothing, and says so to the browser.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import mean, median
from urllib.parse import quote

from autograder.engine.verdict import CRASH, MEMORY, MISSING, POLICY, TIMEOUT
from autograder.exercises import find_exercise
from autograder.grader.classes.classroom import FAILED, GRADED, Mark, Row, read_class
from autograder.grader.notebook.reading import CHECK
from autograder.table import number

MOST = 12  # lines in a list of what is most frequent
WORDS = {
    CRASH: "crashed",
    TIMEOUT: "took too long",
    MEMORY: "used too much memory",
    POLICY: "needs a person's judgement",
}


def report(root: Path, out: Path, db: str | None = None) -> Path:
    """Draw the class whose gradebook lies in `root`; write the page to `out` and return its path.

    Raises `FileNotFoundError` if there is no gradebook.
    """
    if db is None and not (root / "gradebook.db").is_file():
        raise FileNotFoundError(f"no gradebook in {root}: run `autograder grade` first")
    rows = read_class(root, db)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(rows, feedback_links(rows, root, out)), encoding="utf-8")
    return out


def feedback_links(rows: Iterable[Row], root: Path, out: Path) -> dict[tuple[str, str], str]:
    """The relative path to each feedback page, by student and assignment."""
    links = {}
    for row in rows:
        path = root / "feedback" / row.student / row.assignment / f"{row.assignment}.html"
        if path.is_file():
            way = os.path.relpath(path.resolve(), out.resolve().parent)
            links[row.student, row.assignment] = quote(way)
    return links


def page(rows: Sequence[Row], links: Mapping[tuple[str, str], str] | None = None) -> str:
    """The report of some submissions, as a whole HTML page."""
    by_assignment: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_assignment[row.assignment].append(row)
    body = "".join(_assignment(name, by_assignment[name], links or {}) for name in by_assignment)
    return _PAGE.replace("<!-- body -->", body or "<p>Nobody has handed anything in.</p>")


def _assignment(name: str, rows: list[Row], links: Mapping[tuple[str, str], str]) -> str:
    """The part of the page about one assignment."""
    scored = [row for row in rows if row.status != FAILED]
    parts = [
        f"<h2>{escape(name)}</h2>",
        _tiles(rows),
        _section("Who needs a look", _troubled(rows)),
        _section("Marks", _marks(rows, links), _MARKS_SAY),
        _section("How the totals spread", _spread(scored)),
        _section("What fails most often", _aspects(scored), _ASPECTS_SAY),
        _section("Mistakes made most often", _mistakes(scored)),
        _section("Time per submission", _times(rows)),
        _section("Notes on single submissions", _notes(rows)),
    ]
    return f"<article>{''.join(parts)}</article>"


_MARKS_SAY = "The stronger the colour, the more points were lost; full marks stand on plain ground."
_ASPECTS_SAY = "Among the answers that were there and ran: how many failed it."


def _section(title: str, content: str, say: str = "") -> str:
    if not content:
        return ""
    lead = f"<p>{escape(say)}</p>" if say else ""
    return f"<section><h3>{escape(title)}</h3>{lead}{content}</section>"


def _tiles(rows: list[Row]) -> str:
    """The class in a few numbers."""
    scores = [row.score for row in rows if row.status != FAILED]
    points = max((row.points for row in rows), default=0.0)
    waiting = sum(any(mark.by_hand for mark in row.marks.values()) for row in rows)
    tiles = [("submissions", str(len(rows)))]
    if scores:
        of = f" of {number(points)}"
        tiles += [("mean", number(mean(scores)) + of), ("median", number(median(scores)) + of)]
    tiles.append(("could not be graded", str(sum(row.status != GRADED for row in rows))))
    if waiting:
        tiles.append(("wait for marks by hand", str(waiting)))
    items = "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for label, value in tiles)
    return f'<dl class="tiles">{items}</dl>'


# --- Marks ----------------------------------------------------------------------------------------


def _columns(rows: list[Row]) -> list[str]:
    """The graded cells, exercises first, each in the order in which it was checked."""
    ordered: dict[str, None] = {}
    for row in rows:
        ordered |= dict.fromkeys(CHECK + name for name in row.verdicts if CHECK + name in row.marks)
    for row in rows:
        ordered |= dict.fromkeys(sorted(row.marks))
    return list(ordered)


def _marks(rows: list[Row], links: Mapping[tuple[str, str], str]) -> str:
    """A table of students and exercises; each score is also a shade."""
    columns = _columns(rows)
    points = {name: row.marks[name].points for row in rows for name in columns if name in row.marks}
    heads = "".join(_head(name, points[name]) for name in columns)
    total = number(max((row.points for row in rows), default=0.0))
    head = (
        f'<tr><th scope="col">Student</th>{heads}<th scope="col">Total<br><i>{total}</i></th></tr>'
    )
    body = "".join(_mark_row(row, columns, links) for row in rows)
    graded = [row for row in rows if row.status == GRADED]
    foot = ""
    if graded:
        means = [_mean([r.marks[name] for r in graded if name in r.marks]) for name in columns]
        cells = "".join(f"<td>{value}</td>" for value in means)
        whole = number(mean(row.score for row in graded))
        foot = f'<tr><th scope="row">mean of the graded</th>{cells}<td>{whole}</td></tr>'
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Marks"><table class="marks">'
        f"<thead>{head}</thead><tbody>{body}</tbody><tfoot>{foot}</tfoot></table></div>"
    )


def _head(name: str, points: float) -> str:
    exercise = name.removeprefix(CHECK)
    label = exercise.removeprefix("question_")
    kind = "question" if label != exercise else "exercise"
    text = "<wbr>_".join(escape(part) for part in label.split("_"))
    title = escape(_title(exercise) or kind)
    return f'<th scope="col" title="{title}"><code>{text}</code><br><i>{number(points)}</i></th>'


def _title(exercise: str) -> str | None:
    try:
        return find_exercise(exercise)[1].title
    except KeyError:
        return None


def _mark_row(row: Row, columns: list[str], links: Mapping[tuple[str, str], str]) -> str:
    student = escape(row.student)
    link = links.get((row.student, row.assignment))
    student = f'<a href="{escape(link)}">{student}</a>' if link else student
    if row.status == FAILED:
        cells = f'<td class="none" colspan="{len(columns) + 1}">no marks: grading failed</td>'
    else:
        cells = "".join(_mark_cell(row, name) for name in columns)
        cells += f"<td><b>{number(row.score)}</b></td>"
    return f'<tr><th scope="row">{student}</th>{cells}</tr>'


def _mark_cell(row: Row, name: str) -> str:
    mark = row.marks.get(name)
    if mark is None:
        return "<td>–</td>"
    if mark.by_hand:
        return '<td class="none" title="to be marked by hand">?</td>'
    lost = 1 - mark.score / mark.points if mark.points else 0.0
    shade = round(100 * min(max(lost, 0.0), 1.0))
    style = f' style="--lost:{shade}%"' if shade else ""
    return f"<td{style}>{number(mark.score)}</td>"


def _mean(marks: list[Mark]) -> str:
    """The mean of some marks; none while some still have to be given by hand."""
    if not marks or any(mark.by_hand for mark in marks):
        return "–"
    return number(mean(mark.score for mark in marks))


# --- Pictures -------------------------------------------------------------------------------------


def _spread(rows: list[Row]) -> str:
    """A histogram of the totals in tenths of the points."""
    if not rows:
        return ""
    counts = [0] * 10
    for row in rows:
        share = row.score / row.points if row.points else 0.0
        counts[min(9, max(0, int(share * 10 + 1e-9)))] += 1
    points = max(row.points for row in rows)
    edges = [points * i / 10 for i in range(11)]
    width, height, base, step = 640, 200, 160, 62
    tall = max(counts)
    bars = []
    for i, count in enumerate(counts):
        x, size = 10 + i * step, 120 * count / tall
        if count:
            bars.append(
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
        f'<line x1="10" x2="{10 + 10 * step}" y1="{base}" y2="{base}"/>{"".join(bars)}{marks}'
        f'<text class="tick" x="{10 + 5 * step}" y="{base + 38}">total points</text></svg>'
    )


def _bars(lines: Sequence[tuple[str, str, float]]) -> str:
    """A list with a bar behind each line: the label (HTML), the text at its end, the share."""
    items = "".join(
        f'<li><div class="label"><span>{label}</span><b>{escape(end)}</b></div>'
        f'<div class="track"><div style="width:{100 * share:.1f}%"></div></div></li>'
        for label, end, share in lines
    )
    return f'<ol class="bars">{items}</ol>'


def _aspects(rows: list[Row]) -> str:
    """The aspects that most answers failed."""
    failed: Counter[tuple[str, str]] = Counter()
    judged: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for exercise, verdict in row.verdicts.items():
            if verdict.get("note"):  # nothing was judged: it is missing, or crashed
                continue
            for aspect in verdict.get("aspects", ()):
                key = exercise, aspect["title"]
                judged[key] += 1
                failed[key] += not aspect["passed"]
    ranked = sorted(failed, key=lambda key: (-failed[key], -failed[key] / judged[key], key))
    lines = [
        (
            f"<code>{escape(exercise)}</code> {escape(title)}",
            f"{failed[exercise, title]} of {judged[exercise, title]}",
            failed[exercise, title] / judged[exercise, title],
        )
        for exercise, title in ranked
        if failed[exercise, title]
    ]
    return _bars(lines[:MOST]) if lines else "<p>Nothing failed.</p>"


def _mistakes(rows: list[Row]) -> str:
    """The known mistakes that were made, with causes and students."""
    made: dict[tuple[str, str], list[str]] = defaultdict(list)
    causes: dict[tuple[str, str], str] = {}
    for row in rows:
        for exercise, verdict in row.verdicts.items():
            if verdict.get("mistake"):
                key = exercise, verdict["mistake"]
                made[key].append(row.student)
                causes[key] = verdict.get("cause") or ""
    if not made:
        return "<p>No answer was equal to a known mistake.</p>"
    lines = []
    for exercise, mistake in sorted(made, key=lambda key: (-len(made[key]), key))[:MOST]:
        who = made[exercise, mistake]
        label = (
            f"<code>{escape(exercise)}</code> {escape(mistake.replace('_', ' '))}"
            f"<small>{_code(causes[exercise, mistake])}</small>"
            f"<small>{escape(', '.join(who))}</small>"
        )
        lines.append((label, str(len(who)), len(who) / len(rows)))
    return _bars(lines)


def _code(text: str) -> str:
    """Text, escaped, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _times(rows: list[Row]) -> str:
    """How long each submission took, the longest first."""
    timed = [row for row in rows if row.seconds]
    if not timed:
        return ""
    timed.sort(key=lambda row: -(row.seconds or 0.0))
    longest = timed[0].seconds or 1.0
    lines = [
        (escape(row.student), f"{row.seconds:.1f} s", (row.seconds or 0.0) / longest)
        for row in timed[:MOST]
    ]
    rest = len(timed) - len(lines)
    typical = f"Half of them took less than {median(row.seconds or 0.0 for row in timed):.1f} s."
    more = f" {rest} shorter ones are left out." if rest else ""
    return f"<p>{typical}{more}</p>{_bars(lines)}"


# --- Who and why ----------------------------------------------------------------------------------


def _troubled(rows: list[Row]) -> str:
    """The submissions that could not be graded, and the answers that did not finish."""
    items = [
        f"<li><b>{escape(row.student)}</b>: {escape(row.reason or row.status)}</li>"
        for row in rows
        if row.status != GRADED
    ]
    items += [
        f"<li><b>{escape(row.student)}</b>: <code>{escape(exercise)}</code> {what}"
        f"{_because(verdict)}</li>"
        for row in rows
        if row.status == GRADED
        for exercise, verdict, what in _accidents(row)
    ]
    return f"<ul>{''.join(items)}</ul>" if items else ""


def _accidents(row: Row) -> Iterator[tuple[str, dict, str]]:
    for exercise, verdict in row.verdicts.items():
        kind = verdict.get("verdict")
        if kind in WORDS:
            yield exercise, verdict, WORDS[kind]
        elif kind == MISSING and (verdict.get("note") or "").startswith("The cell that defines it"):
            yield exercise, verdict, "is missing"


def _because(verdict: Mapping) -> str:
    note = (verdict.get("note") or "").strip()
    note = note if len(note) <= 200 else note[:200] + "…"
    return f"<small>{escape(note)}</small>" if note else ""


def _notes(rows: list[Row]) -> str:
    """What was repaired in the notebooks, and what happened while they ran."""
    items = [
        f"<dt>{escape(row.student)}</dt>"
        + "".join(f"<dd>{_counted(n)}</dd>" for n in _grouped(row))
        for row in rows
        if row.notes
    ]
    return (
        f"<details><summary>{len(items)} submissions</summary><dl>{''.join(items)}</dl></details>"
        if items
        else ""
    )


def _grouped(row: Row) -> list[tuple[str, int]]:
    return list(Counter(row.notes).items())


def _counted(note: tuple[str, int]) -> str:
    text, times = note
    return escape(text if len(text) <= 300 else text[:300] + "…") + (
        f" (×{times})" if times > 1 else ""
    )


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>Class report</title>
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
.tiles { display: flex; flex-wrap: wrap; gap: .6rem; margin: 0; }
.tiles div { display: flex; flex-direction: column-reverse; flex: 1 1 8rem; padding: .6rem .9rem;
  background: var(--tint); border-radius: .4rem; }
.tiles dt { color: var(--quiet); font-size: .875rem; }
.tiles dd { margin: 0; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; border: 1px solid var(--line); border-radius: .4rem; }
.wide:focus-visible { outline: 2px solid var(--bar); outline-offset: 2px; }
.marks { border-collapse: separate; border-spacing: 0; width: 100%; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
.marks th, .marks td { padding: .3rem .55rem; text-align: right; vertical-align: bottom;
  border-bottom: 1px solid var(--line); }
.marks tbody tr:last-child > * { border-bottom: 0; }
.marks tfoot > tr > * { border-top: 2px solid var(--line); border-bottom: 0; color: var(--quiet);
  font-weight: 400; }
.marks thead th { font-weight: 400; background: var(--tint); font-size: .8rem; line-height: 1.35; }
.marks thead code { font-size: 1em; overflow-wrap: normal; }
.marks i { font-style: normal; color: var(--quiet); }
.marks th:first-child { position: sticky; left: 0; text-align: left; background: var(--ground);
  min-width: 6.5rem; max-width: 11rem; overflow-wrap: anywhere; z-index: 1; }
.marks thead th:first-child { background: var(--tint); }
.marks tbody td { background: color-mix(in srgb, var(--lost-most) var(--lost, 0%), var(--ground)); }
.marks .none { color: var(--quiet); text-align: center; }
svg { display: block; width: 100%; max-width: 44rem; height: auto; }
svg text { fill: var(--ink); font: 15px system-ui, sans-serif; text-anchor: middle; }
svg .tick { fill: var(--quiet); font-size: 13px; }
svg .bar { fill: var(--bar); }
svg line { stroke: var(--quiet); }
.bars { list-style: none; padding: 0; max-width: 44rem; }
.bars li { margin: 0 0 .7rem; }
.label { display: flex; justify-content: space-between; gap: 1rem; align-items: baseline; }
.label b { font-weight: 600; white-space: nowrap; font-variant-numeric: tabular-nums; }
.track { height: .4rem; margin-top: .2rem; background: var(--tint); border-radius: .2rem; }
.track div { height: 100%; min-width: 2px; background: var(--bar); border-radius: .2rem; }
summary { cursor: pointer; }
details dt { font-weight: 600; margin-top: .6rem; }
details dd { margin: 0 0 0 1.2rem; color: var(--quiet); overflow-wrap: anywhere; }
@media print { .wide { overflow: visible; } * { print-color-adjust: exact; } }
</style>
</head>
<body>
<h1>Class report</h1>
<!-- body -->
</body>
</html>
"""
