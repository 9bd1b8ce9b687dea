"""The report's table of marks: a row per student, a column per graded cell, scores as shades.

TRUST BOUNDARY. Ids come from outside and are escaped everywhere.
"""

from collections.abc import Mapping, Sequence
from html import escape
from statistics import mean

from autograder.exercises import find_exercise
from autograder.grader.classes.rows import Mark, Row
from autograder.grader.judgement import FAILED, GRADED
from autograder.grader.notebook.reading import CHECK
from autograder.table import number


def _columns(rows: list[Row]) -> list[str]:
    """The graded cells, exercises first, each in the order in which it was checked."""
    ordered: dict[str, None] = {}
    for row in rows:
        ordered |= dict.fromkeys(CHECK + name for name in row.verdicts if CHECK + name in row.marks)
    for row in rows:
        ordered |= dict.fromkeys(sorted(row.marks))
    return list(ordered)


def marks_table(
    rows: list[Row], links: Mapping[tuple[str, str], str], absent: Sequence[str] = ()
) -> str:
    """A table of students and exercises; each score is also a shade.

    The `absent` have handed nothing in.
    """
    columns = _columns(rows)
    points = {name: row.marks[name].points for row in rows for name in columns if name in row.marks}
    heads = "".join(_head(name, points[name]) for name in columns)
    total = number(max((row.points for row in rows), default=0.0))
    head = (
        f'<tr><th scope="col">Student</th>{heads}<th scope="col">Total<br><i>{total}</i></th></tr>'
    )
    lines = [(row.student, _mark_row(row, columns, links)) for row in rows]
    lines += [(student, _absent_row(student, len(columns))) for student in absent]
    body = "".join(line for _, line in sorted(lines))
    graded = [row for row in rows if row.status == GRADED]
    foot = ""
    if graded:
        means = [_mean([r.marks[name] for r in graded if name in r.marks]) for name in columns]
        cells = "".join(f"<td>{value}</td>" for value in means)
        whole = number(mean(row.total for row in graded))
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
        late = f"<small>late −{number(row.penalty)}</small>" if row.penalty else ""
        cells += f"<td><b>{number(row.total)}</b>{late}</td>"
    return f'<tr><th scope="row">{student}</th>{cells}</tr>'


def _absent_row(student: str, columns: int) -> str:
    cells = f'<td class="none" colspan="{columns + 1}">handed nothing in</td>'
    return f'<tr><th scope="row">{escape(student)}</th>{cells}</tr>'


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
