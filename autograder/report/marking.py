"""Marking by question: all answers to a written question beside its model answer, on one page.

The model answer comes from the instructor's notebook, which `autograder release` makes in
build/source/; what it says about points is set apart as the rubric. Marks are given in formgrader,
to which each answer has a link.

TRUST BOUNDARY. Answers are hostile Markdown, and are cleaned as on the feedback pages (`inert`).
Names come from outside and are escaped. The page is an instructor's: it holds the model answers.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from autograder.gradebook.command_suggestions import assignment_named
from autograder.gradebook.roster import Roster, read_roster
from autograder.gradebook.rows import Row, read_class
from autograder.gradebook.submissions import release_folder
from autograder.notebook.inert import clean_markdown, new_page
from autograder.notebook.stubs import BEGIN, END, TEXT_STUB
from autograder.report.drawing import controls, html_page, tabs
from autograder.report.sections import FORMGRADER, describe_student, search_attribute
from autograder.student.table import number

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9])")
_POINTS = re.compile(r"\b(half a|one|two|three|four|each|no|\d+(\.\d+)?) points?\b", re.IGNORECASE)
Answer = tuple[str, Mapping[str, Mapping[str, str]]]  # its Markdown, and the pictures in it


def marking_page(
    root: Path, assignment: str, out: Path, db: str | None = None, formgrader: str = FORMGRADER
) -> Path:
    """Write the page of an assignment's written questions, and return its path.

    Raises `ValueError` if the assignment has none, or nobody has handed it in.
    """
    if db is None and not (root / "gradebook.db").is_file():
        raise FileNotFoundError(f"no gradebook in {root}: run `autograder grade` first")
    release = release_folder(root)
    every = read_class(root, db)
    graded = sorted({row.assignment for row in every})
    name = assignment_named(assignment, graded)
    if name is None:
        raise ValueError(f"{assignment} is not graded; there are {', '.join(graded) or 'none'}")
    questions = questions_in(release / name / f"{name}.ipynb")
    if not questions:
        raise ValueError(f"{name} has no written questions")
    model = questions_in(root / "build" / "source" / name / f"{name}.ipynb")
    rows = [row for row in every if row.assignment == name]
    answers = {
        row.student: questions_in(root / "autograded" / row.student / name / f"{name}.ipynb")
        for row in rows
    }
    roster = read_roster(root, db)
    parts = [
        (
            question.removeprefix("question_").replace("_", " "),
            _question(question, text, model.get(question), rows, answers, roster, formgrader),
        )
        for question, text in questions.items()
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(html_page(controls() + tabs(parts), f"Marking {name}"), "utf-8", "replace")
    return out


def questions_in(path: Path) -> dict[str, Answer]:
    """The written questions in one of our notebooks, with the contents of their cells."""
    found = {}
    try:
        cells = json.loads(path.read_bytes() if os.path.isfile(path) else b"")["cells"]
        for cell in cells:
            mark = cell.get("metadata", {}).get("nbgrader", {})
            if cell.get("cell_type") == "markdown" and mark.get("solution"):
                source = cell.get("source", "")
                text = "".join(source) if isinstance(source, list) else source
                found[mark["grade_id"]] = text, cell.get("attachments") or {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    return found


def model_answer(cell: str) -> tuple[str, str]:
    """The model answer in the instructor's cell, and the sentences of it that give points."""
    text = cell.partition(BEGIN)[2].partition(END)[0].strip().lstrip("#").strip()
    text = text.rstrip("#").strip()
    rubric = [part for part in _SENTENCE.split(text) if _POINTS.search(part)]
    plain = text
    for part in rubric:
        plain = plain.replace(part, "")
    return plain.strip(), " ".join(rubric)


def own_words(answer: str, question: str) -> str:
    """What a student wrote into a question's cell, without the question."""
    asked = question.replace(TEXT_STUB, "").strip()
    return answer.strip().removeprefix(asked).strip().removeprefix(TEXT_STUB).strip()


def _question(
    name: str,
    question: Answer,
    model: Answer | None,
    rows: Sequence[Row],
    answers: Mapping[str, Mapping[str, Answer]],
    roster: Roster,
    formgrader: str,
) -> str:
    asked = question[0].replace(TEXT_STUB, "").strip()
    plain, rubric = model_answer(model[0]) if model else ("", "")
    missing = "<p>No model answer: run <code>autograder release</code> first.</p>"
    beside = (
        f"<h3>Question</h3>{clean_markdown(asked)}"
        f"<h3>Model answer</h3>{clean_markdown(plain) if plain else missing}"
        + (f"<h3>Rubric</h3>{clean_markdown(rubric)}" if rubric else "")
    )
    order = {True: 0, False: 1}
    marked = [row for row in rows if name in row.marks]
    marked.sort(
        key=lambda row: (order[row.marks[name].by_hand], roster.name(row.student).casefold())
    )
    items = "".join(
        _answer(name, row, answers[row.student].get(name), question[0], roster, formgrader)
        for row in marked
    )
    waits = sum(row.marks[name].by_hand for row in marked)
    return (
        f"<p>{waits} of {len(marked)} wait for a mark.</p>"
        '<div class="beside"><section class="model" tabindex="0" aria-label="Question">'
        f"{beside}</section>"
        f'<ol class="answers">{items}</ol></div>'
    )


def _answer(
    name: str, row: Row, answer: Answer | None, question: str, roster: Roster, formgrader: str
) -> str:
    mark = row.marks[name]
    of = f"of {number(mark.points)}"
    if mark.blank:
        state = "left unchanged"
    elif not mark.known:
        state = "waits for a mark"
    else:
        state = f"{number(mark.score)} {of}" + (", changed since" if mark.by_hand else "")
    known = roster.submissions.get((row.student, row.assignment))
    link = ""
    if known is not None:
        address = f"{formgrader.rstrip('/')}/submissions/{quote(known, safe='')}/#{quote(name)}"
        link = f' · <a href="{escape(address)}">mark {escape(roster.name(row.student))}</a>'
    text = own_words(answer[0], question) if answer else ""
    new_page()  # no answer takes another one's time
    shown = clean_markdown(text, answer[1] if answer else {}) if text else "<p>–</p>"
    flags = "waits" if mark.by_hand else ""
    return (
        f'<li {search_attribute(roster, row.student)} data-flags="{flags}"><div class="label">'
        f"<span>{describe_student(roster, row.student)}{link}</span><b>{state}</b></div>"
        f'<div class="answer">{shown}</div></li>'
    )
