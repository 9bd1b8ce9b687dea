"""Judging one submission, in a local process or on another machine.

TRUST BOUNDARY. A `Job` travels from the grader to a process that judges, an `Outcome` travels back;
between machines Dask pickles them, so grader, scheduler and workers must trust each other, and
nobody else may reach the scheduler. What a student handed in is inside as bytes, which are read as
JSON here and run only in the judge's sandbox. A job holds seeds derived for this one submission:
neither the course's secret, nor the gradebook, nor the student's name leaves the grader. Verdicts
are made here, in trusted code, after a check that it is the grader's version of that code.
"""

import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.preprocessors import CheckCellMetadata, LimitOutput

from autograder.judge.allowance import LimitExceeded, limit_computing
from autograder.judge.dependencies import code_that_judges, digest_of
from autograder.judge.judge_notebook import exercises_in, judge_notebook, show_outputs
from autograder.judge.judgement import UNUSABLE, Judgement
from autograder.judge.marks import show_verdicts
from autograder.notebook.given_away import given_away
from autograder.notebook.reading import UnusableFile, parse_notebook
from autograder.notebook.rebuild import rebuild
from autograder.sandbox.limits import Limits
from autograder.student.engine.runs import SECONDS
from autograder.student.engine.verdict import MISSING, no_marks


class OtherVersion(RuntimeError):
    """A machine of the cluster has another version of the course than the grader."""


@dataclass(frozen=True)
class Options:
    """How to judge."""

    device: str = "cpu"
    isolation: str = "bwrap"
    cell_seconds: float = 60.0
    probe_seconds: float = SECONDS
    memory_mb: int = 4096


@dataclass(frozen=True)
class Job:
    """One submission to judge. `problem` says why there is no file; `renamed` is its unusual name.

    `version` is the grader's, for a judge that may have another one.
    """

    assignment: str
    release: bytes
    submission: bytes
    problem: str | None
    renamed: str | None
    seeds: Mapping[str, bytes]
    options: Options
    version: str | None = None


@dataclass(frozen=True)
class Outcome:
    """The judgement, the autograded notebook that shows it, and the machine that made them."""

    judgement: Judgement
    notebook: bytes
    where: str


def version_of(slugs: Iterable[str]) -> str:
    """A digest of all code that decides about the marks of some chapters."""
    return _version(tuple(sorted(set(slugs))))


@lru_cache(maxsize=64)
def _version(slugs: tuple[str, ...]) -> str:
    return digest_of(code_that_judges(slugs))


def judge_job(job: Job) -> Outcome:
    """Judge a submission. Raises `IsolationError`, `OtherVersion`."""
    release = _release(job.release)
    slugs = (slug for slug, _ in exercises_in(release))
    if job.version is not None and job.version != version_of(slugs):
        raise OtherVersion(f"{socket.gethostname()} has another version of the course")
    try:
        with limit_computing():
            submitted, notes = _read(job, release)
            notebook, more = rebuild(release, submitted)
    except UnusableFile as error:
        return unusable(job, str(error))
    except LimitExceeded as error:
        return unusable(job, f"Reading the notebook {error}.")
    options = job.options
    limits = Limits(
        memory_mb=options.memory_mb,
        cell_seconds=options.cell_seconds,
        probe_seconds=options.probe_seconds,
    )
    found = judge_notebook(
        notebook, job.seeds, device=options.device, isolation=options.isolation, limits=limits
    )
    judgement = replace(found, notes=(*notes, *more, *found.notes), outputs={})
    try:
        with limit_computing():
            show_outputs(notebook, found.outputs)
            return _shown(notebook, judgement)
    except LimitExceeded as error:
        note = f"Showing its outputs {error}: they are left out."
        judgement = replace(judgement, notes=(*judgement.notes, note))
        return _shown(_without_outputs(notebook), judgement)


def unusable(job: Job, reason: str) -> Outcome:
    """What comes of a submission that cannot be judged: the release, headed by the reason."""
    return _shown(*_unusable(_release(job.release), reason))


def _shown(notebook: NotebookNode, judgement: Judgement) -> Outcome:
    """A judgement, and the notebook that shows it."""
    show_verdicts(notebook, judgement.verdicts)
    notebook, _ = LimitOutput().preprocess(notebook, {})
    text = nbformat.v4.writes(given_away(notebook))
    return Outcome(judgement, (text + "\n").encode(), socket.gethostname())


def _without_outputs(notebook: NotebookNode) -> NotebookNode:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    return notebook


@lru_cache(maxsize=8)
def _release(data: bytes) -> NotebookNode:
    """A released notebook, not to be changed; its metadata, which rebuilt ones keep, is checked."""
    return CheckCellMetadata().preprocess(nbformat.v4.reads(data.decode()), {})[0]


def _read(job: Job, release: NotebookNode) -> tuple[dict[str, Any], list[str]]:
    """The notebook handed in, as JSON, and notes. Raises `UnusableFile`.

    One under another name is accepted if it has at least half of the grade ids.
    """
    if job.problem is not None:
        raise UnusableFile(job.problem)
    notebook = parse_notebook(job.submission)
    if job.renamed is None:
        return notebook, []
    ids = {cell.metadata.get("nbgrader", {}).get("grade_id") for cell in release.cells} - {None}
    if 2 * len(set(_grade_ids(notebook["cells"])) & ids) < len(ids):
        missing = f"There is no notebook {job.assignment}.ipynb"
        raise UnusableFile(f"{missing}, and the notebook under another name is a different one.")
    return notebook, [f"The notebook is named {job.renamed}; it was graded all the same."]


def _grade_ids(cells: list[Any]) -> Iterator[str]:
    """The grade ids in hostile cells."""
    for cell in cells:
        metadata = cell.get("metadata") if isinstance(cell, dict) else None
        mark = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        grade_id = mark.get("grade_id") if isinstance(mark, dict) else None
        if isinstance(grade_id, str):
            yield grade_id


def _unusable(release: NotebookNode, reason: str) -> tuple[NotebookNode, Judgement]:
    """The released notebook, headed by the reason, and a judgement that gives no marks."""
    notebook, _ = rebuild(release, {})
    head = f"# This submission could not be graded\n\n**{reason}** It counts as not answered."
    notebook.cells.insert(0, new_markdown_cell(head, id="unusable"))
    verdicts = {e.name: no_marks(e, MISSING, reason) for _, e in exercises_in(release)}
    return notebook, Judgement(UNUSABLE, verdicts, 0.0, reason)
