"""The preprocessors that `nbgrader_config.py` adds to nbgrader: Rebuild, Judge, SaveReasons.

TRUST BOUNDARY. A submission comes in as text and goes to the judge; what comes back from the
sandbox (outputs, error messages, names) is hostile data. It is copied key by key and cut to size
here, and made inert before a browser shows it (`inert`). Marks come from our own verdicts alone.
"""

import math
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nbformat
import nbgrader.preprocessors
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution
from traitlets import Float, Integer, Unicode

from autograder.engine.verdict import CRASH, MEMORY, MISSING, POLICY, TIMEOUT, Verdict
from autograder.exercises import Exercise, find_exercise
from autograder.grader.judge import Cell, Judged, judge_cells, seed_for
from autograder.grader.notebook.reading import ADDED, exercise_of
from autograder.grader.notebook.rebuild import rebuild
from autograder.grader.sandbox.host import Limits
from autograder.table import table_html, table_text

SECRET = ".autograder-secret"
MAX_TEXT = 100_000
MAX_IMAGE = 4_000_000
MAX_SHOWN = 4_000_000  # characters of text in all of a notebook's outputs
MAX_PICTURES = 24_000_000
MAX_OUTPUTS = 2_000
MIME = {
    "text/plain": MAX_TEXT,
    "text/html": MAX_TEXT,
    "text/markdown": MAX_TEXT,
    "text/latex": MAX_TEXT,
    "image/png": MAX_IMAGE,
    "image/jpeg": MAX_IMAGE,
    "image/svg+xml": MAX_IMAGE,
}
REASONS = {
    CRASH: "The answer crashed.",
    TIMEOUT: "The answer did not finish in time.",
    MEMORY: "The answer used too much memory.",
    POLICY: "The score is withheld until a person has looked at the answer.",
    MISSING: "There is no answer.",
}


# --- The secret behind the fresh inputs -----------------------------------------------------------


def secret_of(root: Path) -> bytes:
    """The course's secret, made on first use and readable by its owner alone."""
    path = root / SECRET
    if not path.exists():
        new = root / f"{SECRET}.{os.getpid()}.{secrets.token_hex(4)}"
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(32) + "\n")
        with suppress(FileExistsError):  # another process was first
            os.link(new, path)
        new.unlink()
    text = path.read_text(encoding="ascii").strip()
    if len(text) < 32:
        raise ValueError(f"{path} does not hold a secret; remove it to have a new one made")
    return text.encode("ascii")


# --- Judging a rebuilt notebook -------------------------------------------------------------------


def exercises_in(notebook: NotebookNode) -> list[tuple[str, Exercise]]:
    """The exercises that a notebook checks, each with its chapter's slug.

    Raises `KeyError` for a check of something that is no exercise.
    """
    names = [name for cell in notebook.cells if (name := exercise_of(cell))]
    return [find_exercise(name) for name in names]


def seeds_of(
    notebook: NotebookNode, secret: bytes, student: str, assignment: str
) -> dict[str, bytes]:
    """The seeds of a student's inputs in a notebook, by exercise."""
    names = [exercise.name for _, exercise in exercises_in(notebook)]
    return {name: seed_for(secret, student, assignment, name) for name in names}


def judge_notebook(
    notebook: NotebookNode,
    seeds: Mapping[str, bytes],
    *,
    device: str = "cpu",
    isolation: str = "bwrap",
    limits: Limits | None = None,
) -> Judged:
    """Judge a rebuilt notebook in the sandbox. The outputs are numbered by code cell.

    Raises `IsolationError`.
    """
    exercises = exercises_in(notebook)
    cells = [
        Cell(
            cell.source,
            exercise_of(cell),
            skip="draw" in cell.metadata.get("tags", ()),
            ours=not cell.get("id", "").startswith(ADDED) and not is_solution(cell),
        )
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    return judge_cells(cells, exercises, seeds, device=device, isolation=isolation, limits=limits)


def write_judgement(
    notebook: NotebookNode,
    outputs: Mapping[int, Sequence[Mapping[str, Any]]],
    verdicts: Mapping[str, Verdict],
    record: Mapping[str, Any],
) -> None:
    """Write the outputs and verdicts into a notebook, in place, for nbgrader and for people."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    room = _Room()
    for number, cell in enumerate(code):
        cell.execution_count = None
        name = exercise_of(cell)
        if name is None:
            cell.outputs = list(room.fill(safe_outputs(outputs.get(number, ()))))
        else:
            points = float(cell.metadata.nbgrader.points)
            cell.outputs = _verdict_outputs(verdicts[name], points)
            cell.metadata["autograder"] = _plain(asdict(verdicts[name]))
    notebook.metadata["autograder"] = _plain(dict(record))


def score_of(verdict: Verdict, points: float) -> float:
    """What a verdict earns where the check cell is worth `points`: between 0 and `points`."""
    share = verdict.score / verdict.points if verdict.points else 0.0
    return round(min(max(share, 0.0), 1.0) * points, 6) if math.isfinite(share) else 0.0


def _verdict_outputs(verdict: Verdict, points: float) -> list[NotebookNode]:
    table = {"text/html": table_html(verdict), "text/plain": _text(table_text(verdict))}
    score = {"text/plain": f"{score_of(verdict, points):g}"}  # nbgrader reads the marks here
    return [
        new_output("display_data", data=table),
        new_output("execute_result", data=score, execution_count=None),
    ]


class _Room:
    """How much more the outputs of one notebook may take."""

    def __init__(self) -> None:
        self.outputs, self.text, self.pictures = MAX_OUTPUTS, MAX_SHOWN, MAX_PICTURES

    def fill(self, outputs: Iterator[NotebookNode]) -> Iterator[NotebookNode]:
        """A cell's outputs, as far as there is room; the last one says that more are missing."""
        for output in outputs:
            pictures, text = 0, 0
            for key, value in {**output, **output.get("data", {})}.items():
                size = sum(map(len, value)) if isinstance(value, list | str) else 0
                if key.startswith("image/"):
                    pictures += size
                else:
                    text += size
            if not self.outputs or text > self.text or pictures > self.pictures:
                yield new_output("stream", name="stderr", text="… more is not shown here")
                return
            self.outputs -= 1
            self.text -= text
            self.pictures -= pictures
            yield output


def safe_outputs(outputs: Any) -> Iterator[NotebookNode]:
    """The outputs from the sandbox that may go into a notebook, copied key by key."""
    for output in outputs if isinstance(outputs, list | tuple) else ():
        if not isinstance(output, Mapping):
            continue
        kind = output.get("output_type")
        if kind == "stream":
            name = "stderr" if output.get("name") == "stderr" else "stdout"
            yield new_output("stream", name=name, text=_text(output.get("text")))
        elif kind in ("display_data", "execute_result"):
            data = dict(_safe_data(output.get("data")))
            if data:
                yield new_output("display_data", data=data)
        elif kind == "error":
            lines = output.get("traceback")
            lines = lines if isinstance(lines, list | tuple) else ()
            yield new_output(
                "error",
                ename=_text(output.get("ename"), 200),
                evalue=_text(output.get("evalue"), 2000),
                traceback=[_text(line, 4000) for line in lines[:100]],
            )


def _safe_data(data: Any) -> Iterator[tuple[str, str]]:
    for mime, most in MIME.items():
        value = data.get(mime) if isinstance(data, Mapping) else None
        if isinstance(value, list | tuple):
            value = "".join(part for part in value if isinstance(part, str))
        if isinstance(value, str) and len(value) <= most:
            yield mime, _text(value, most)


def _text(value: Any, most: int = MAX_TEXT) -> str:
    """A string that can be written as UTF-8, cut to size."""
    parts = value if isinstance(value, list | tuple) else [value]
    text = "".join(part for part in parts if isinstance(part, str))
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= most else text[:most] + "\n… cut off here"


def _plain(value: Any) -> Any:
    """The value as JSON that every parser accepts: no NaN, infinity or lone surrogates."""
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return _text(value)
    return value if value is None or isinstance(value, bool | int) else str(value)


def comment_on(verdict: Mapping[str, Any]) -> str | None:
    """The gradebook's comment on why an answer failed, in Markdown; None if the table says it.

    Text that a student can influence is put in a code span, where it is inert.
    """
    if verdict.get("mistake") and verdict.get("cause"):
        return f"A known mistake. {verdict['cause']}"
    reason = REASONS.get(verdict.get("verdict", ""))
    if reason is None:
        return None
    note = re.sub(r"[\s`$\\]+", " ", verdict.get("note") or "").strip()[:400]
    return f"{reason} `{note}`" if note else reason


# --- nbgrader's preprocessors ---------------------------------------------------------------------


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
            nb.metadata["autograder"] = {"notes": notes}  # Judge adds the rest
        return nb, resources


class Judge(NbGraderPreprocessor):
    """Run a rebuilt notebook in the sandbox and write the results; replaces `Execute`.

    An existing judgement comes in `resources["autograder"]`.
    """

    device = Unicode("cpu", help="Where the answers are computed: cpu or cuda.").tag(config=True)
    isolation = Unicode("bwrap", help="bwrap, or none for files that you trust.").tag(config=True)
    cell_seconds = Float(60.0, help="How long one cell may run.").tag(config=True)
    probe_seconds = Float(20.0, help="How long one call of an answer may run.").tag(config=True)
    memory_mb = Integer(4096, help="How much memory one submission may use.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        ready = resources.get("autograder")
        if ready is not None:
            write_judgement(nb, ready["outputs"], ready["verdicts"], ready["record"])
            return nb, resources
        ours = resources["nbgrader"]
        secret = secret_of(Path(_converter(self).coursedir.root))
        judged = judge_notebook(
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
        notes = [*nb.metadata.get("autograder", {}).get("notes", ()), *judged.notes]
        record = {"status": "graded", "notes": notes, "seconds": judged.seconds}
        write_judgement(nb, judged.outputs, judged.verdicts, record)
        return nb, resources


class SaveAutoGrades(nbgrader.preprocessors.SaveAutoGrades):
    """nbgrader's own, but in one transaction instead of one per cell."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        ours = resources["nbgrader"]
        self.notebook_id, self.assignment_id = ours["notebook"], ours["assignment"]
        self.student_id, self.db_url = ours["student"], ours["db_url"]
        with Gradebook(self.db_url) as self.gradebook:
            session = self.gradebook.db
            commit, session.commit = session.commit, session.flush
            nb, resources = NbGraderPreprocessor.preprocess(self, nb, resources)
            commit()
        return nb, resources


class SaveReasons(NbGraderPreprocessor):
    """Write into the gradebook, after `SaveAutoGrades`, why an answer failed."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        ours = resources["nbgrader"]
        where = (ours["notebook"], ours["assignment"], ours["student"])
        with Gradebook(ours["db_url"]) as gradebook:
            for name, comment in auto_comments(nb).items():
                gradebook.find_comment(name, *where).auto_comment = comment
            for name, score in auto_scores(nb).items():
                if score is None:  # a person decides
                    given = gradebook.find_grade(name, *where)
                    given.auto_score, given.needs_manual_grade = None, True
            gradebook.db.commit()
        return nb, resources


def auto_scores(nb: NotebookNode) -> dict[str, float | None]:
    """The score of each graded cell of a judged notebook; None where a person has to decide."""
    scores = {}
    for cell in nb.cells:
        if is_grade(cell):
            withheld = cell.metadata.get("autograder", {}).get("verdict") == POLICY
            score = None if withheld else determine_grade(cell)[0]
            scores[cell.metadata["nbgrader"]["grade_id"]] = score
    return scores


def auto_comments(nb: NotebookNode) -> dict[str, str | None]:
    """The comment on each answer of a judged notebook; None if the table says it all."""
    unusable = nb.metadata.get("autograder", {}).get("reason")
    comments: dict[str, str | None] = {}
    for cell in nb.cells:
        if is_solution(cell):
            mark = cell.metadata["nbgrader"]
            unanswered = mark.get("checksum") == compute_checksum(cell)
            said = "No response." if unanswered else None  # as nbgrader says it
            comments[mark["grade_id"]] = unusable or said
    for cell in nb.cells:
        name, verdict = exercise_of(cell), cell.metadata.get("autograder")
        if name in comments and verdict and comments[name] is None:
            comments[name] = comment_on(verdict)
    return comments


def _converter(preprocessor: NbGraderPreprocessor) -> Any:
    """nbgrader's converter, which made the exporter, which made the preprocessor."""
    return preprocessor.parent.parent


def _release(preprocessor: NbGraderPreprocessor, assignment: str, notebook: str) -> NotebookNode:
    coursedir = _converter(preprocessor).coursedir
    folder = coursedir.format_path(coursedir.release_directory, ".", assignment)
    path = Path(folder) / f"{notebook}.ipynb"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: run `autograder release` first")
    return nbformat.read(path, as_version=4)
