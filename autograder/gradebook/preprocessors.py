"""The preprocessors that `nbgrader_config.py` adds to nbgrader's own commands.

`nbgrader autograde` runs two chains: `Rebuild` belongs to the first, before nbgrader's sanitizers;
`Judge`, `SaveAutoGrades` and `SaveJudgement` to the second. `nbgrader generate_feedback` runs
`ShowVerdicts`.

TRUST BOUNDARY. A submission comes in as text and goes to the judge; its metadata and outputs are
not read. The judgement passes from `Judge` to the gradebook in memory, never through a notebook.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import nbgrader.preprocessors
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Float, Integer, Unicode

from autograder.gradebook import tables
from autograder.gradebook.review import seen_in, unchanged_cells
from autograder.judge.judge_notebook import judge_notebook, seeds_of, show_outputs
from autograder.judge.marks import auto_comments, auto_scores, show_verdicts
from autograder.judge.seeds import secret_of
from autograder.notebook.rebuild import rebuild
from autograder.sandbox.limits import Limits

if TYPE_CHECKING:
    from nbgrader.converters.base import BaseConverter


class Rebuild(NbGraderPreprocessor):
    """Replace the submission by the released notebook with the student's answers and cells.

    Raises `FileNotFoundError` if there is no released notebook.
    """

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        ours = resources["nbgrader"]
        release = _release(self, ours["assignment"], ours["notebook"])
        nb, notes = rebuild(release, nb)
        for note in notes:
            self.log.warning("%s: %s", ours["student"], note)
        if notes:
            nb.metadata["autograder"] = {"notes": notes}  # for Judge, in the next chain
        return nb, resources


class Judge(NbGraderPreprocessor):
    """Run a rebuilt notebook in the sandbox and judge it; replaces `Execute`."""

    device = Unicode("cpu", help="Where the answers are computed: cpu or cuda.").tag(config=True)
    isolation = Unicode("bwrap", help="bwrap, or none for files that you trust.").tag(config=True)
    cell_seconds = Float(60.0, help="How long one cell may run.").tag(config=True)
    probe_seconds = Float(20.0, help="How long one call of an answer may run.").tag(config=True)
    memory_mb = Integer(4096, help="How much memory one submission may use.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        ours = resources["nbgrader"]
        secret = secret_of(Path(_converter(self).coursedir.root))
        judgement = judge_notebook(
            nb,
            seeds_of(nb, secret, ours["student"], ours["assignment"]),
            device=self.device,
            isolation=self.isolation,
            limits=Limits(
                memory_mb=self.memory_mb,
                cell_seconds=self.cell_seconds,
                probe_seconds=self.probe_seconds,
            ),
        )
        notes = (*nb.metadata.pop("autograder", {}).get("notes", ()), *judgement.notes)
        show_outputs(nb, judgement.outputs)
        show_verdicts(nb, judgement.verdicts)
        resources["autograder"] = replace(judgement, notes=notes, outputs={})
        return nb, resources


class SaveAutoGrades(nbgrader.preprocessors.SaveAutoGrades):
    """nbgrader's own, but in one transaction instead of one per cell.

    nbgrader's asks for every mark by hand to be reviewed, so this first notes which were settled;
    `SaveJudgement` spares those whose cell looks the same as before.
    """

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        ours = resources["nbgrader"]
        self.notebook_id, self.assignment_id = ours["notebook"], ours["assignment"]
        self.student_id, self.db_url = ours["student"], ours["db_url"]
        with Gradebook(self.db_url) as self.gradebook:
            session = self.gradebook.db
            grades = self.gradebook.find_submission_notebook(
                self.notebook_id, self.assignment_id, self.student_id
            ).grades
            resources["autograder_settled"] = {
                given.name
                for given in grades
                if given.manual_score is not None and not given.needs_manual_grade
            }
            commit, session.commit = session.commit, session.flush
            nb, resources = NbGraderPreprocessor.preprocess(self, nb, resources)
            commit()
        return nb, resources


class SaveJudgement(NbGraderPreprocessor):
    """After `SaveAutoGrades`, write the judgement, and why answers failed, into the gradebook."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        ours, judgement = resources["nbgrader"], resources["autograder"]
        where = (ours["notebook"], ours["assignment"], ours["student"])
        with Gradebook(ours["db_url"]) as gradebook:
            tables.make(gradebook.db)
            for name, comment in auto_comments(nb, judgement).items():
                gradebook.find_comment(name, *where).auto_comment = comment
            for name, score in auto_scores(nb, judgement).items():
                if score is None:  # a person decides
                    given = gradebook.find_grade(name, *where)
                    given.auto_score, given.needs_manual_grade = None, True
            key, seen = (ours["assignment"], ours["student"]), seen_in(nb, judgement)
            same = unchanged_cells(tables.read_seen(gradebook.db, *key), seen)
            for name in same & resources.get("autograder_settled", set()):
                gradebook.find_grade(name, *where).needs_manual_grade = False
            tables.store_judgement(gradebook.db, *key, judgement)
            tables.store_seen(gradebook.db, *key, seen)
            gradebook.db.commit()
        return nb, resources


class ShowVerdicts(NbGraderPreprocessor):
    """Show on a feedback page the verdicts that the gradebook keeps.

    A submission that was graded before the gradebook kept any is shown as it is in its notebook.
    """

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        ours = resources["nbgrader"]
        with Gradebook(ours["db_url"]) as gradebook:
            judgement = tables.read_judgement(gradebook.db, ours["assignment"], ours["student"])
        if judgement is not None:
            show_verdicts(nb, judgement.verdicts)
        return nb, resources


def _converter(preprocessor: NbGraderPreprocessor) -> "BaseConverter":
    """nbgrader's converter, which made the exporter, which made the preprocessor."""
    return preprocessor.parent.parent


def _release(preprocessor: NbGraderPreprocessor, assignment: str, notebook: str) -> NotebookNode:
    coursedir = _converter(preprocessor).coursedir
    folder = coursedir.format_path(coursedir.release_directory, ".", assignment)
    path = Path(folder) / f"{notebook}.ipynb"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: run `autograder release` first")
    return nbformat.read(path, as_version=4)
