"""What the person who gave a mark saw: each graded cell's answer and verdict, as a short record.

Where neither has changed, judging again does not ask the person to review the mark.

TRUST BOUNDARY. Answers are hashed, not kept; verdicts are ours.
"""

import hashlib
from collections.abc import Mapping

from nbformat import NotebookNode
from nbgrader.utils import is_solution

from autograder.judge.judgement import Judgement
from autograder.judge.marks import auto_scores
from autograder.notebook.reading import CHECK

Seen = Mapping[str, list]  # by grade id: the answer's digest, its score, verdict, the reason


def seen_in(notebook: NotebookNode, judgement: Judgement) -> dict[str, list]:
    """What a person sees of each graded cell of a judged notebook, by grade id."""
    answers = {
        cell.metadata["nbgrader"]["grade_id"]: hashlib.sha256(
            cell.source.encode("utf-8", "surrogatepass")
        ).hexdigest()
        for cell in notebook.cells
        if is_solution(cell)
    }
    found = {}
    for name, score in auto_scores(notebook, judgement).items():
        exercise = name.removeprefix(CHECK)
        verdict = judgement.verdicts.get(exercise)
        kind = verdict and verdict.verdict
        found[name] = [answers.get(exercise), score, kind, judgement.reason]
    return found


def unchanged_cells(before: Seen, after: Seen) -> set[str]:
    """The cells that look the same as before."""
    return {name for name, seen in after.items() if before.get(name) == seen}
