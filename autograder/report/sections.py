"""Parts of the report that are about people and items: who waits, who needs help, what is alike.

TRUST BOUNDARY. Names come from outside and are escaped everywhere; addresses of formgrader are made
of ids that the gradebook has made itself, and quoted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from html import escape
from statistics import fmean
from urllib.parse import quote

from autograder.gradebook.roster import Attempt, Roster
from autograder.gradebook.rows import Row
from autograder.judge.judgement import FAILED
from autograder.report.drawing import columns_by_day
from autograder.report.items import Item
from autograder.report.similarity import Pair
from autograder.student.table import number

FORMGRADER = "http://localhost:8888/formgrader"
FIRST = 12  # of those who need help; the others are folded away
LONG = 60  # days of a timeline; what came later is counted together


def describe_student(roster: Roster, student: str) -> str:
    """A student, by name and id."""
    name = roster.name(student)
    small = f" <small>{escape(student)}</small>" if name != student else ""
    return f'<span class="who"><b>{escape(name)}</b>{small}</span>'


def search_attribute(roster: Roster, student: str) -> str:
    """The attribute by which the page's search finds a student."""
    name = roster.name(student)
    text = student if name == student else f"{name} {student}"
    return f'data-who="{escape(text)}"'


def help_list(reasons: Sequence[tuple[str, Sequence[str]]], roster: Roster) -> str:
    """The students to be asked how they are, with the reasons."""
    items = [
        f"<li {search_attribute(roster, student)}>{describe_student(roster, student)}: "
        f"{escape('; '.join(why))}</li>"
        for student, why in reasons
    ]
    first, rest = "".join(items[:FIRST]), "".join(items[FIRST:])
    more = f"<details><summary>{len(items) - FIRST} more</summary><ul>{rest}</ul></details>"
    return f"<ul>{first}</ul>{more if rest else ''}" if items else ""


def class_table(rows: Sequence[Row], absent: Mapping[str, Sequence[str]], roster: Roster) -> str:
    """A row for each student, a column for each assignment: the share of its points."""
    assignments = sorted({row.assignment for row in rows})
    there = {(row.student, row.assignment): row for row in rows}
    students = {row.student for row in rows}
    students |= {student for name in assignments for student in absent.get(name, ())}
    heads = "".join(
        f'<th scope="col"><button type="button">{escape(title)}</button></th>'
        for title in ("Student", *assignments, "Mean")
    )
    lines = []
    for student in sorted(students, key=lambda one: (roster.name(one).casefold(), one)):
        theirs = [there.get((student, name)) for name in assignments]
        shares = [_share(row) for row in theirs if row is not None]
        known = [share for share in shares if share is not None]
        mean = fmean(known) if known else None
        cells = "".join(_share_cell(row) for row in theirs)
        last = "–" if mean is None else f"<b>{mean:.0%}</b>"
        flags = {
            "waits": any(row and any(m.by_hand for m in row.marks.values()) for row in theirs),
            "low": mean is None or mean < 0.5,
            "late": any(row and row.penalty for row in theirs),
            "absent": None in theirs,
        }
        told = " ".join(flag for flag, on in flags.items() if on)
        sort = "" if mean is None else f"{mean:.6g}"
        lines.append(
            f'<tr {search_attribute(roster, student)} data-flags="{told}">'
            f'<th scope="row" data-sort="{escape(roster.name(student))}">'
            f"{describe_student(roster, student)}</th>"
            f'{cells}<td data-sort="{sort}">{last}</td></tr>'
        )
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="The class by chapter">'
        f'<table class="items grid sortable"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _share(row: Row) -> float | None:
    """What counts of the points, penalties included; None if there are none."""
    return row.total / row.points if row.status != FAILED and row.points else None


def _share_cell(row: Row | None) -> str:
    share = _share(row) if row is not None else None
    if row is None or share is None:
        return f'<td class="none" data-sort="">{"–" if row is None else "?"}</td>'
    lost = round(100 * min(max(1 - share, 0.0), 1.0))
    open_ = "?" if any(mark.by_hand for mark in row.marks.values()) else ""
    return f'<td style="--lost:{lost}%" data-sort="{share:.6g}">{share:.0%}{open_}</td>'


def waiting_list(assignment: str, rows: Sequence[Row], roster: Roster, formgrader: str) -> str:
    """What waits for a mark by hand, with links to formgrader's pages."""
    waits: dict[str, list[str]] = {}
    for row in rows:
        for name, mark in row.marks.items():
            if mark.by_hand:
                waits.setdefault(name, []).append(row.student)
    if not waits:
        return ""
    base = formgrader.rstrip("/")
    place = quote(assignment, safe="")
    items = []
    for name, students in sorted(waits.items(), key=lambda item: (-len(item[1]), item[0])):
        links = ", ".join(_at_formgrader(student, assignment, roster, base) for student in students)
        items.append(
            f"<li><details><summary><code>{escape(name)}</code> of {len(students)}</summary>"
            f"{links}</details></li>"
        )
    everything = f"{base}/gradebook/{place}/{place}/"
    return (
        f'<p><a href="{escape(everything)}">Open them in formgrader</a>, while Jupyter runs.</p>'
        f"<ul>{''.join(items)}</ul>"
    )


def _at_formgrader(student: str, assignment: str, roster: Roster, base: str) -> str:
    name, known = escape(roster.name(student)), roster.submissions.get((student, assignment))
    if known is None:
        return name
    address = f"{base}/submissions/{quote(known, safe='')}/"
    return f'<a href="{escape(address)}">{name}</a>'


def items_table(items: Sequence[Item]) -> str:
    """A row for each exercise and question: how it was done, its mean, its discrimination."""
    if not items:
        return ""
    heads = ("Item", "Points", "Not attempted", "Wrong", "Partial", "Full", "Waits", "Mean",
             "Discrimination")  # fmt: skip
    head = "".join(
        f'<th scope="col"><button type="button">{escape(title)}</button></th>' for title in heads
    )
    body = "".join(_item_row(item) for item in items)
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Exercises and questions">'
        f'<table class="items sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _item_row(item: Item) -> str:
    name = "<wbr>_".join(map(escape, item.exercise.removeprefix("question_").split("_")))
    counts = (item.blank, item.wrong, item.partial, item.full, item.waiting)
    cells = "".join(f"<td>{count or '·'}</td>" for count in counts)
    mean = "–" if item.mean is None else number(item.mean)
    share = "" if item.share is None else f" <small>{item.share:.0%}</small>"
    sort = "" if item.mean is None else f"{item.share or 0.0:.6g}"
    tells = "–" if item.discrimination is None else f"{item.discrimination:.2f}".replace("-", "−")
    low = ' class="low"' if item.discrimination is not None and item.discrimination < 0.2 else ""
    tell = "" if item.discrimination is None else f"{item.discrimination:.6g}"
    kind = " <small>question</small>" if item.is_question else ""
    return (
        f'<tr><th scope="row"><code>{name}</code>{kind}</th><td>{number(item.points)}</td>{cells}'
        f'<td data-sort="{sort}">{mean}{share}</td><td{low} data-sort="{tell}">{tells}</td></tr>'
    )


def alike_list(pairs: Sequence[Pair], roster: Roster) -> str:
    """Pairs of submissions that share unusual passages."""
    items = [
        f"<li>{describe_student(roster, pair.first)} and {describe_student(roster, pair.second)}: "
        f"{pair.share:.0%}, "
        f"{pair.shared} passages, in "
        + ", ".join(f"<code>{escape(name)}</code>" for name in pair.exercises)
        + "</li>"
        for pair in pairs
    ]
    return f"<ul>{''.join(items)}</ul>" if items else ""


def timeline(attempts: Mapping[str, Sequence[Attempt]], due: datetime | None) -> str:
    """Attempts by day, first ones and later ones, and what the later ones brought."""
    days: Counter[tuple[date, bool]] = Counter()
    for theirs in attempts.values():
        for n, attempt in enumerate(theirs):
            days[attempt.moment.date(), n == 0] += 1
    if not days:
        return ""
    there = sorted({day for day, _ in days})

    def shown(start: date) -> int:
        return sum(n for (day, _), n in days.items() if 0 <= (day - start).days < LONG)

    first = max(there, key=shown)  # one time that is far off hides no others
    last = max(day for day in there if (day - first).days < LONG)
    counts = []
    for n in range((last - first).days + 1):
        day = first + timedelta(days=n)
        counts.append((day, days[day, True], days[day, False]))
    later = sum(count for (day, _), count in days.items() if day > last)
    sooner = sum(count for (day, _), count in days.items() if day < first)
    drawn = columns_by_day(counts, due.date() if due else None)
    more = f" {sooner} came sooner." if sooner else ""
    more += f" {later} came later." if later else ""
    again = [theirs for theirs in attempts.values() if len(theirs) > 1]
    if again:
        before, after = (
            fmean(a.score / a.points if a.points else 0.0 for a in (theirs[at] for theirs in again))
            for at in (0, -1)
        )
        more += (
            f" {len(again)} handed in more than once: on average {before:.0%} of the points at "
            f"first, {after:.0%} in the end, marks by hand not counted before they were given."
        )
    return f"<p>First attempts are filled, later ones outlined.{more}</p>{drawn}"
