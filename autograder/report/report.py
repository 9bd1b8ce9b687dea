"""The class on one page: marks, items, what fails most, mistakes made, times, who needs attention.

TRUST BOUNDARY. Ids, names, reasons, notes and messages come from outside and are escaped
everywhere. The page holds one script, our own, which the browser knows by its hash
(`page.js`); it loads nothing, and tells the browser so.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from statistics import mean, median
from urllib.parse import quote

from autograder.gradebook.roster import Roster, read_roster, who_needs_help
from autograder.gradebook.rows import OLD, UNDATED, Row, read_absent, read_class
from autograder.gradebook.submissions import release_folder
from autograder.judge.judgement import FAILED, GRADED
from autograder.judge.runner import DEFINING
from autograder.report.drawing import bars, controls, histogram, html_page, section, tabs
from autograder.report.items import items_of, write_items, write_marks
from autograder.report.marks_table import marks_table
from autograder.report.sections import (
    FORMGRADER,
    alike_list,
    class_table,
    describe_student,
    help_list,
    items_table,
    search_attribute,
    timeline,
    waiting_list,
)
from autograder.report.similarity import Pair, answers_in, pairs_alike
from autograder.student.engine.verdict import CRASH, MEMORY, MISSING, POLICY, TIMEOUT, Verdict
from autograder.student.engine.words import one_line
from autograder.student.table import number

MOST = 12  # lines in a list of what is most frequent
OF_EACH = 2  # of them about the same exercise
WORDS = {
    CRASH: "crashed",
    TIMEOUT: "took too long",
    MEMORY: "used too much memory",
    POLICY: "needs a person's judgement",
}


@dataclass(frozen=True)
class Extra:
    """What the report shows besides marks and verdicts."""

    roster: Roster = field(default_factory=Roster)
    similar_pairs: Mapping[str, Sequence[Pair]] = field(default_factory=dict)  # by assignment
    formgrader: str = FORMGRADER


def report(
    root: Path,
    out: Path,
    db: str | None = None,
    *,
    items: Path | None = None,
    marks: Path | None = None,
    formgrader: str = FORMGRADER,
) -> Path:
    """Draw the class whose gradebook lies in `root`; write the page to `out` and return its path.

    `items` and `marks` are files for the exercises' numbers and the marks as tables; `formgrader`
    is the address to which links lead. Raises `FileNotFoundError` if there is no gradebook.
    """
    if db is None and not (root / "gradebook.db").is_file():
        raise FileNotFoundError(f"no gradebook in {root}: run `autograder grade` first")
    if not formgrader.startswith(("http://", "https://")):
        raise ValueError(f"expected formgrader's address, such as {FORMGRADER}, got {formgrader}")
    rows, absent = read_class(root, db), read_absent(root, db)
    extra = Extra(read_roster(root, db), _alike(root, rows), formgrader)
    if items is not None:
        by_assignment = _by_assignment(rows).items()
        write_items(items, (i for name, theirs in by_assignment for i in items_of(name, theirs)))
    if marks is not None:
        write_marks(marks, rows, {s for some in absent.values() for s in some}, extra.roster.names)
    out.parent.mkdir(parents=True, exist_ok=True)
    text = page(rows, feedback_links(rows, root, out), absent, extra)
    out.write_text(text, encoding="utf-8", errors="replace")
    return out


def _alike(root: Path, rows: Sequence[Row]) -> dict[str, list[Pair]]:
    """The pairs of submissions that are alike, by assignment."""
    try:
        release = release_folder(root)
    except ValueError:
        return {}
    found = {}
    for name, theirs in _by_assignment(rows).items():
        answers = {
            row.student: answers_in(root / "autograded" / row.student / name / f"{name}.ipynb")
            for row in theirs
            if row.status == GRADED
        }
        given = answers_in(release / name / f"{name}.ipynb").values()
        found[name] = pairs_alike(answers, given)
    return found


def _by_assignment(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.assignment].append(row)
    return found


def feedback_links(rows: Iterable[Row], root: Path, out: Path) -> dict[tuple[str, str], str]:
    """The relative path to each feedback page, by student and assignment."""
    links = {}
    for row in rows:
        path = root / "feedback" / row.student / row.assignment / f"{row.assignment}.html"
        if os.path.isfile(path):
            way = os.path.relpath(path.resolve(), out.resolve().parent)
            links[row.student, row.assignment] = quote(way)
    return links


def page(
    rows: Sequence[Row],
    links: Mapping[tuple[str, str], str] | None = None,
    absent: Mapping[str, Sequence[str]] | None = None,
    extra: Extra | None = None,
) -> str:
    """The report of some submissions, as a whole HTML page; `absent` by assignment."""
    extra, absent = extra or Extra(), absent or {}
    parts = [
        (name, _assignment(name, theirs, links or {}, absent.get(name, ()), extra))
        for name, theirs in _by_assignment(rows).items()
    ]
    if not parts:
        return html_page("<p>Nobody has handed anything in.</p>")
    whom = help_list(who_needs_help(rows, absent), extra.roster)
    overview = (
        section("Chapters", _chapters(rows, absent))
        + section("Who needs help", whom, _HELP_SAYS)
        + section("Everybody", class_table(rows, absent, extra.roster), _CLASS_SAYS)
    )
    return html_page(controls() + tabs([("The class", overview), *parts]))


def _chapters(rows: Sequence[Row], absent: Mapping[str, Sequence[str]]) -> str:
    """A line for each assignment: who handed it in, the mean, what waits."""
    lines = []
    for name, theirs in _by_assignment(rows).items():
        scored = [row for row in theirs if row.status != FAILED]
        shares = [row.total / row.points for row in scored if row.points]
        waits = sum(any(mark.by_hand for mark in row.marks.values()) for row in theirs)
        told = f"{len(theirs)} of {len(theirs) + len(absent.get(name, ()))} handed it in"
        told += f", {waits} wait for marks by hand" if waits else ""
        average = mean(shares) if shares else 0.0
        label = f"{escape(name)}<small>{told}</small>"
        lines.append((label, f"mean {average:.0%}", min(1.0, average)))
    return bars(lines)


def _assignment(
    name: str,
    rows: list[Row],
    links: Mapping[tuple[str, str], str],
    absent: Sequence[str],
    extra: Extra,
) -> str:
    """The part of the page about one assignment."""
    scored = [row for row in rows if row.status != FAILED]
    roster = extra.roster
    attempts = {row.student: roster.attempts.get((row.student, name), ()) for row in rows}
    parts = [
        _tiles(rows, len(absent)),
        _old(rows),
        section("Who needs a look", _troubled(rows, roster)),
        section("What waits for you", waiting_list(name, rows, roster, extra.formgrader)),
        section("Marks", marks_table(rows, links, absent, roster), _MARKS_SAY),
        section("Exercises and questions", items_table(items_of(name, rows)), _ITEMS_SAY),
        section("How the totals are spread", _spread(scored)),
        section("What fails most often", _aspects(scored), _ASPECTS_SAY),
        section("Mistakes made most often", _mistakes(scored, roster)),
        section(
            "Answers that are alike",
            alike_list(extra.similar_pairs.get(name, ()), roster),
            _ALIKE_SAYS,
        ),
        section("Attempts over time", timeline(attempts, roster.due.get(name))),
        section("Time per submission", _times(rows, roster)),
        section("Notes on single submissions", _notes(rows, roster)),
    ]
    return "".join(parts)


_HELP_SAYS = (
    "Something missing that half of the class has handed in, less than half of the points, or a "
    "quarter of them less than before. These are reasons to ask, not verdicts."
)
_CLASS_SAYS = "Shares of the points; – was not handed in, ? still waits for a mark by hand."
_ITEMS_SAY = (
    "How many did each in which way. Discrimination is the correlation of an item's marks with the "
    "sum of the others, from ten students on; below 0.2 it says little about who can do the rest."
)
_ALIKE_SAYS = (
    "They share passages that few others have, whatever the names in them. That proves nothing: "
    "read both. Rewritten answers are not found, nor those too short to be anybody's own."
)
_MARKS_SAY = (
    "The stronger the colour, the more points were lost; full marks stand on plain ground. "
    "– was not attempted, ? waits for a person, 2? has a mark by hand from before it changed."
)
_ASPECTS_SAY = "How many failed it, of the answers that ran; the most frequent of each exercise."


def _tiles(rows: list[Row], absent: int) -> str:
    """The class in a few numbers."""
    scores = [row.total for row in rows if row.status != FAILED]
    points = max((row.points for row in rows), default=0.0)
    waiting = sum(any(mark.by_hand for mark in row.marks.values()) for row in rows)
    tiles = [("submissions", str(len(rows)))]
    if scores:
        of = f" of {number(points)}"
        tiles += [("mean", number(mean(scores)) + of), ("median", number(median(scores)) + of)]
    tiles.append(("could not be graded", str(sum(row.status != GRADED for row in rows))))
    if absent:
        tiles.append(("handed in nothing", str(absent)))
    if waiting:
        tiles.append(("wait for marks by hand", str(waiting)))
    items = "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for label, value in tiles)
    return f'<dl class="tiles">{items}</dl>'


def _old(rows: list[Row]) -> str:
    """A note that some verdicts are not known, if so."""
    count = sum(OLD in row.notes for row in rows)
    if not count:
        return ""
    return (
        f"<p><b>{count} of {len(rows)} were graded by another version of the grader.</b> Their "
        "marks stand; what failed and which mistakes were made is not known here. To have them "
        "judged again: <code>autograder grade --force</code></p>"
    )


# --- How it spreads, what fails, how long it took -------------------------------------------------


def _spread(rows: list[Row]) -> str:
    """A histogram of the totals in tenths of the points."""
    if not rows:
        return ""
    shares = [row.total / row.points if row.points else 0.0 for row in rows]
    return histogram(shares, max(row.points for row in rows))


def _aspects(rows: list[Row]) -> str:
    """The aspects that most answers failed."""
    failed: Counter[tuple[str, str]] = Counter()
    judged: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for exercise, verdict in row.verdicts.items():
            if verdict.note:  # nothing was judged: it is missing, or crashed
                continue
            for aspect in verdict.aspects:
                key = exercise, aspect.title
                judged[key] += 1
                failed[key] += not aspect.passed
    ranked = sorted(failed, key=lambda key: (-failed[key], -failed[key] / judged[key], key))
    lines, told = [], Counter[str]()
    for exercise, title in ranked:
        count, of = failed[exercise, title], judged[exercise, title]
        told[exercise] += 1
        if count and told[exercise] <= OF_EACH:
            label = f"<code>{escape(exercise)}</code> {escape(title)}"
            lines.append((label, f"{count} of {of}", count / of))
    if not judged:
        return "<p>No verdicts are known.</p>"
    return bars(lines[:MOST]) if lines else "<p>Nothing failed.</p>"


def _mistakes(rows: list[Row], roster: Roster) -> str:
    """The known mistakes that were made, with causes and students."""
    made: dict[tuple[str, str], list[str]] = defaultdict(list)
    causes: dict[tuple[str, str], str] = {}
    for row in rows:
        for exercise, verdict in row.verdicts.items():
            if verdict.mistake:
                key = exercise, verdict.mistake
                made[key].append(row.student)
                causes[key] = verdict.cause or ""
    if not made:
        return "<p>No answer was equal to a known mistake.</p>"
    lines = []
    for exercise, mistake in sorted(made, key=lambda key: (-len(made[key]), key))[:MOST]:
        by = made[exercise, mistake]
        label = (
            f"<code>{escape(exercise)}</code> {escape(mistake.replace('_', ' '))}"
            f"<small>{_code(causes[exercise, mistake])}</small>"
            f"<small>{escape(', '.join(map(roster.name, by)))}</small>"
        )
        lines.append((label, str(len(by)), len(by) / len(rows)))
    return bars(lines)


def _code(text: str) -> str:
    """Text, escaped, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _times(rows: list[Row], roster: Roster) -> str:
    """How long each submission took, the longest first."""
    timed = [row for row in rows if row.seconds]
    if not timed:
        return ""
    timed.sort(key=lambda row: -(row.seconds or 0.0))
    longest = timed[0].seconds or 1.0
    lines = [
        (escape(roster.name(row.student)), f"{row.seconds:.1f} s", (row.seconds or 0.0) / longest)
        for row in timed[:MOST]
    ]
    rest = len(timed) - len(lines)
    typical = f"Half of them took less than {median(row.seconds or 0.0 for row in timed):.1f} s."
    more = f" {rest} shorter ones are left out." if rest else ""
    return f"<p>{typical}{more}</p>{bars(lines)}"


# --- Who and why ----------------------------------------------------------------------------------


def _troubled(rows: list[Row], roster: Roster) -> str:
    """The submissions that could not be graded, and the answers that did not finish."""
    items = [
        f"<li {search_attribute(roster, row.student)}>{describe_student(roster, row.student)}: "
        f"{escape(one_line(row.reason or row.status))}</li>"
        for row in rows
        if row.status != GRADED
    ]
    items += [
        f"<li {search_attribute(roster, row.student)}>{describe_student(roster, row.student)}: "
        f"{escape(UNDATED)}</li>"
        for row in rows
        if UNDATED in row.notes
    ]
    items += [
        f"<li {search_attribute(roster, row.student)}>{describe_student(roster, row.student)}: "
        f"<code>{escape(exercise)}</code> {what}{_because(verdict)}</li>"
        for row in rows
        if row.status == GRADED
        for exercise, verdict, what in _accidents(row)
    ]
    return f"<ul>{''.join(items)}</ul>" if items else ""


def _accidents(row: Row) -> Iterator[tuple[str, Verdict, str]]:
    for exercise, verdict in row.verdicts.items():
        if verdict.verdict in WORDS:
            yield exercise, verdict, WORDS[verdict.verdict]
        elif verdict.verdict == MISSING and (verdict.note or "").startswith(DEFINING):
            yield exercise, verdict, "is missing"


def _because(verdict: Verdict) -> str:
    note = one_line(verdict.note or "")
    note = note if len(note) <= 200 else note[:200] + "…"
    return f"<small>{escape(note)}</small>" if note else ""


def _notes(rows: list[Row], roster: Roster) -> str:
    """What was repaired in the notebooks, and what happened while they ran."""
    items = [
        f"<dt>{escape(roster.name(row.student))}</dt>"
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
    text, times = one_line(note[0]), note[1]
    return escape(text if len(text) <= 300 else text[:300] + "…") + (
        f" (×{times})" if times > 1 else ""
    )
