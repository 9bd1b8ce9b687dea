"""A judgement in nbgrader's form: a table and a score per check cell, a comment per answer.

TRUST BOUNDARY. Tables and scores come from our own verdicts alone. The table escapes what it
quotes; text in a comment that a student can influence is put in a code span, where it is inert.
"""

import math
import re
from collections.abc import Mapping

from nbformat import NotebookNode, from_dict
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution

from autograder.judge.judgement import Judgement
from autograder.notebook.outputs import cut
from autograder.notebook.reading import exercise_of
from autograder.student.engine.verdict import CRASH, MEMORY, MISSING, POLICY, TIMEOUT, Verdict
from autograder.student.engine.words import one_line
from autograder.student.table import table_html, table_text

REASONS = {
    CRASH: "The answer crashed.",
    TIMEOUT: "The answer did not finish in time.",
    MEMORY: "The answer used too much memory.",
    POLICY: "The score is withheld until a person has looked at the answer.",
    MISSING: "There is no answer.",
}


def show_verdicts(notebook: NotebookNode, verdicts: Mapping[str, Verdict]) -> None:
    """Put the verdicts into the check cells, in place: a table for people, marks for nbgrader."""
    for cell in notebook.cells:
        name = exercise_of(cell)
        if name is not None and name in verdicts:
            cell.outputs = _verdict_outputs(verdicts[name], float(cell.metadata.nbgrader.points))


def score_of(verdict: Verdict, points: float) -> float:
    """What a verdict earns where the check cell is worth `points`: between 0 and `points`."""
    share = verdict.score / verdict.points if verdict.points else 0.0
    return round(min(max(share, 0.0), 1.0) * points, 6) if math.isfinite(share) else 0.0


def _verdict_outputs(verdict: Verdict, points: float) -> list[NotebookNode]:
    table = {"text/html": table_html(verdict), "text/plain": cut(table_text(verdict))}
    score = {"text/plain": f"{score_of(verdict, points):g}"}  # nbgrader reads the marks here
    shown = {"output_type": "display_data", "metadata": {}, "data": table}
    marks = {"output_type": "execute_result", "metadata": {}, "data": score}
    return from_dict([shown, marks | {"execution_count": None}])


def comment_on(verdict: Verdict) -> str | None:
    """The gradebook's comment on why an answer failed, in Markdown; None if the table says it."""
    if verdict.mistake and verdict.cause:
        return f"A known mistake. {verdict.cause}"
    reason = REASONS.get(verdict.verdict)
    if reason is None:
        return None
    note = re.sub(r"[\s`$\\]+", " ", one_line(verdict.note or ""))[:400].strip()
    return f"{reason} `{note}`" if note else reason


def auto_scores(notebook: NotebookNode, judgement: Judgement) -> dict[str, float | None]:
    """The score of each graded cell of a judged notebook; None where a person has to decide."""
    scores = {}
    for cell in notebook.cells:
        if is_grade(cell):
            mark = cell.metadata["nbgrader"]
            verdict = judgement.verdicts.get(exercise_of(cell) or "")
            if verdict is None:  # a question: marked by hand, unless it was left unchanged
                score = determine_grade(cell)[0]
            elif verdict.verdict == POLICY:
                score = None
            else:
                score = score_of(verdict, float(mark["points"]))
            scores[mark["grade_id"]] = score
    return scores


def auto_comments(notebook: NotebookNode, judgement: Judgement) -> dict[str, str | None]:
    """The comment on each answer of a judged notebook; None if the table says it all."""
    comments: dict[str, str | None] = {}
    for cell in notebook.cells:
        if is_solution(cell):
            mark = cell.metadata["nbgrader"]
            unanswered = mark.get("checksum") == compute_checksum(cell)
            said = "No response." if unanswered else None  # nbgrader's own words
            comments[mark["grade_id"]] = judgement.reason or said
    for name, verdict in judgement.verdicts.items():
        if name in comments and comments[name] is None:
            comments[name] = comment_on(verdict)
    return comments
