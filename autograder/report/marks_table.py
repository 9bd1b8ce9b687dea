"""The report's table of marks: a row per student, a column per graded cell, scores as shades.

TRUST BOUNDARY. Ids come from outside and are escaped everywhere.
"""

from collections.abc import Mapping, Sequence
from html import escape
from statistics import mean

from autograder.gradebook.roster import Roster
from autograder.gradebook.rows import Mark, Row
from autograder.judge.judgement import FAILED, GRADED
from autograder.notebook.reading import CHECK
from autograder.report import items
from autograder.student.course import find_exercise
from autograder.student.table import number


def marks_table(
    rows: list[Row],
    links: Mapping[tuple[str, str], str],
    absent: Sequence[str] = (),
    roster: Roster | None = None,
) -> str:
    """A table of students and exercises; each score is also a shade.

    The `absent` have handed in nothing; `roster` has the names and the attempts.
    """
    roster = roster or Roster()
    columns = items.columns(rows)
    tries = {
        row.student: len(roster.attempts.get((row.student, row.assignment), ())) for row in rows
    }
    shows_tries = any(count > 1 for count in tries.values())
    points = {name: row.marks[name].points for row in rows for name in columns if name in row.marks}
    heads = "".join(_head(name, points[name]) for name in columns)
    total = number(max((row.points for row in rows), default=0.0))
    tried = f'<th scope="col">{_button("Attempts")}</th>' if shows_tries else ""
    head = (
        f'<tr><th scope="col">{_button("Student")}</th>{heads}{tried}'
        f'<th scope="col">{_button("Total")}<br><i>{total}</i></th></tr>'
    )
    counts = tries if shows_tries else None
    lines = [(row.student, _mark_row(row, columns, links, roster, counts)) for row in rows]
    lines += [
        (student, _absent_row(student, len(columns) + shows_tries, roster)) for student in absent
    ]
    ordered = sorted(lines, key=lambda line: (roster.name(line[0]).casefold(), line))
    body = "".join(line for _, line in ordered)
    graded = [row for row in rows if row.status == GRADED]
    foot = ""
    if graded:
        means = [_mean([r.marks[name] for r in graded if name in r.marks]) for name in columns]
        cells = "".join(f"<td>{value}</td>" for value in means)
        whole = number(mean(row.total for row in graded))
        cells += "<td></td>" * shows_tries
        foot = f'<tr><th scope="row">mean of the graded</th>{cells}<td>{whole}</td></tr>'
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Marks">'
        '<table class="marks sortable">'
        f"<thead>{head}</thead><tbody>{body}</tbody><tfoot>{foot}</tfoot></table></div>"
    )


def _head(name: str, points: float) -> str:
    exercise = name.removeprefix(CHECK)
    label = exercise.removeprefix("question_")
    kind = "question" if label != exercise else "exercise"
    text = "<wbr>_".join(escape(part) for part in label.split("_"))
    title = escape(_title(exercise) or kind)
    button = _button(f"<code>{text}</code>")
    return f'<th scope="col" title="{title}">{button}<br><i>{number(points)}</i></th>'


def _button(label: str) -> str:
    """A heading that sorts the table where the page's script runs."""
    return f'<button type="button">{label}</button>'


def _title(exercise: str) -> str | None:
    try:
        return find_exercise(exercise)[1].title
    except KeyError:
        return None


def _mark_row(
    row: Row,
    columns: list[str],
    links: Mapping[tuple[str, str], str],
    roster: Roster,
    tries: Mapping[str, int] | None,
) -> str:
    link = links.get((row.student, row.assignment))
    if row.status == FAILED:
        span = len(columns) + 1 + (tries is not None)
        cells = f'<td class="none" colspan="{span}">no marks: grading failed</td>'
    else:
        cells = "".join(_mark_cell(row, name) for name in columns)
        cells += f"<td>{tries[row.student] or '–'}</td>" if tries is not None else ""
        late = f"<small>late −{number(row.penalty)}</small>" if row.penalty else ""
        cells += f'<td data-sort="{row.total:.6g}"><b>{number(row.total)}</b>{late}</td>'
    flags = {
        "waits": any(mark.by_hand for mark in row.marks.values()),
        "low": row.status == FAILED or row.total < row.points / 2,
        "late": bool(row.penalty),
    }
    return _row(row.student, link, roster, [name for name, there in flags.items() if there], cells)


def _absent_row(student: str, columns: int, roster: Roster) -> str:
    cells = f'<td class="none" colspan="{columns + 1}">handed in nothing</td>'
    return _row(student, None, roster, ["absent"], cells)


def _row(student: str, link: str | None, roster: Roster, flags: Sequence[str], cells: str) -> str:
    """A student's row, which the page's search finds by name and id."""
    name = roster.name(student)
    shown = f'<a href="{escape(link)}">{escape(name)}</a>' if link else escape(name)
    small = f"<small>{escape(student)}</small>" if name != student else ""
    text = escape(student if name == student else f"{name} {student}")
    return (
        f'<tr data-student="{escape(student)}" data-who="{text}" data-flags="{" ".join(flags)}">'
        f'<th scope="row" data-sort="{escape(name)}">{shown}{small}</th>{cells}</tr>'
    )


def _mark_cell(row: Row, name: str) -> str:
    mark = row.marks.get(name)
    if mark is None:
        return "<td>–</td>"
    if mark.blank:
        return '<td class="blank" title="not attempted">–</td>'
    if not mark.known:
        return '<td class="none" title="to be marked by hand">?</td>'
    lost = 1 - mark.score / mark.points if mark.points else 0.0
    shade = round(100 * min(max(lost, 0.0), 1.0))
    style = f' style="--lost:{shade}%"' if shade else ""
    if mark.by_hand:
        title = "marked by hand; the answer has changed since"
        return f'<td{style} title="{title}">{number(mark.score)}?</td>'
    return f"<td{style}>{number(mark.score)}</td>"


def _mean(marks: list[Mark]) -> str:
    """The mean of some marks; none while some still have to be given by hand."""
    if not marks or not all(mark.known for mark in marks):
        return "–"
    return number(mean(mark.score for mark in marks))
