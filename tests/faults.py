"""What the tests of faults share: a small class, a judge that costs nothing, a grader to kill."""

import os
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import nbformat
from nbformat import NotebookNode
from sqlalchemy import create_engine, text

from autograder.gradebook import classroom, writer
from autograder.gradebook.feedback import PageMaker
from autograder.gradebook.feedback_pages import Pages, config_of
from autograder.gradebook.gradebook import database
from autograder.gradebook.schedulers import JobQueue, Judge, Results, Source
from autograder.judge.job import Job, Outcome, _read, judge_job
from autograder.judge.judge_notebook import exercises_in
from autograder.judge.judgement import GRADED, Judgement
from autograder.judge.marks import show_verdicts
from autograder.notebook.reading import UnusableFile
from autograder.notebook.rebuild import rebuild
from autograder.student.engine.verdict import WRONG, no_marks

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
TINY = "tiny"
SECRET = "5" * 64
SCORES = {"ann": 3.0, "bob": 0.5, "cid": 1.25}  # what `quick` gives, of 3


def cut_down(notebook: NotebookNode, kept: Collection[str]) -> NotebookNode:
    """The notebook, reduced to its imports and the cells with these ids."""
    first = next(cell for cell in notebook.cells if "\nimport numpy as np\n" in cell.source)
    notebook.cells = [cell for cell in notebook.cells if cell is first or cell.id in kept]
    return notebook


def tiny_release(folder: Path) -> Path:
    """A released chapter of one exercise and one question, softmax of chapter 1, in `folder`."""
    (path,) = NOTEBOOKS.glob("*_kernel_regression/*.ipynb")
    kept = ("softmax", "check_softmax", "question_w_of_zero")
    made = folder / TINY / f"{TINY}.ipynb"
    made.parent.mkdir(parents=True)
    nbformat.write(cut_down(nbformat.read(path, as_version=4), kept), made)
    return folder


def hand_in(course: Path, release: Path, student: str, source: str) -> Path:
    """Hand in the tiny chapter with `source` as the answer."""
    notebook = nbformat.read(release / TINY / f"{TINY}.ipynb", as_version=4)
    next(cell for cell in notebook.cells if cell.id == "softmax").source = source
    path = course / "submitted" / student / TINY / f"{TINY}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


def new_course(folder: Path, release: Path, scores: dict[str, float]) -> Path:
    """A course whose students hand in answers to which `quick` gives these scores."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".autograder-secret").write_text(SECRET)
    for student, score in scores.items():
        hand_in(folder, release, student, f"def softmax(scores, axis=-1):\n    return {score}")
    return folder


def quick(job: Job) -> Outcome:
    """Stands in for `judge_job`: gives the score that the answer returns."""
    release = nbformat.v4.reads(job.release.decode())
    try:
        submitted, _ = _read(job, release)
        notebook, _ = rebuild(release, submitted)
    except UnusableFile:
        return judge_job(job)  # of which nothing runs
    verdicts = {}
    for _, exercise in exercises_in(notebook):
        score = float(re.search(r"return ([\d.]+)", job.submission.decode())[1])
        verdicts[exercise.name] = replace(no_marks(exercise, WRONG, "quick"), score=score)
    show_verdicts(notebook, verdicts)
    judgement = Judgement(GRADED, verdicts)
    return Outcome(judgement, (nbformat.writes(notebook) + "\n").encode(), "here")


def stuck(job: str) -> str:
    """Stands in for a judge that hangs on some jobs: busy, asleep, or stopped."""
    while job == "busy":
        pass
    if job == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    while job == "asleep":
        signal.pause()
    return job.upper()


class Inline:
    """Stands in for the processes that judge: judges in this one."""

    def __init__(self, *_: object, **__: object):
        pass

    def run(self, source: Source, judge: Judge) -> Results:
        todo = JobQueue(source)
        while not todo.is_empty:
            task = todo.take()
            if task is not None:
                yield task[0], judge(task[1])


@dataclass
class Child:
    """A fork of this process that does something."""

    pid: int
    said: BinaryIO

    def end(self) -> int:
        """Wait for its end; return the number of the signal that ended it, or 0.

        Raises `AssertionError` with its traceback if it failed otherwise.
        """
        with self.said:
            said = self.said.read().decode()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert code <= 0, said
        return -code


def fork(act: Callable[[], object]) -> Child:
    """Do something in a fork of this process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            act()
            status = 0
        except BaseException:
            os.write(writer, traceback.format_exc()[-3000:].encode())
        finally:
            os._exit(status)
    os.close(writer)
    return Child(pid, open(reader, "rb"))  # noqa: SIM115  (closed at its end)


def in_a_child(act: Callable[[], object]) -> int:
    """Do something in a fork of this process and wait for it, as `Child.end` does."""
    return fork(act).end()


class Bomb:
    """Kills this process with SIGKILL at the n-th call of a function, Python's or C's."""

    def __init__(self, after: int | None = None):
        self.after, self.count = after, 0

    def __enter__(self) -> "Bomb":
        sys.setprofile(self._step)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _step(self, frame: object, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            self.count += 1
            if self.count == self.after:
                os.kill(os.getpid(), signal.SIGKILL)


def grade_quickly(course: Path, release: Path, **options) -> classroom.ClassResult:
    """Grade with `quick`, in this process alone."""
    kept = classroom.judge_job, classroom.LocalPool, writer.PageMaker
    classroom.judge_job, classroom.LocalPool, writer.PageMaker = quick, Inline, PagesHere
    try:
        return classroom.grade(course / "submitted", release=release, **options)
    finally:
        classroom.judge_job, classroom.LocalPool, writer.PageMaker = kept


class PagesHere(PageMaker):
    """Stands in for the process that makes pages: makes them in this one."""

    made: Pages | None = None

    def start(self) -> None:
        pass

    def page(self, notebook: bytes, *rest: Any) -> str:
        PagesHere.made = PagesHere.made or Pages(config_of(self.root))
        return self.made.page(nbformat.v4.reads(notebook.decode()), *rest)


def outcome_of(course: Path, db: str | None = None) -> dict[str, tuple]:
    """By student: how often graded, the score, and the bytes of notebook and feedback page."""
    engine = create_engine(database(course, db))
    with engine.connect() as connection:
        times = dict(connection.execute(text(TIMES)).all())
        scores = dict(connection.execute(text(MARKS)).all())
        count = connection.execute(text("select count(*) from submitted_assignment")).scalar()
    engine.dispose()
    assert count == len(scores)
    return {name: (times.get(name), scores[name], *_files(course, name)) for name in scores}


TIMES = "select student, times from autograder_graded"
MARKS = """
select a.student_id, sum(g.auto_score) from grade g
join submitted_notebook n on g.notebook_id = n.id
join submitted_assignment a on n.assignment_id = a.id group by a.student_id
"""


def _files(course: Path, student: str) -> Iterator[bytes | None]:
    for folder, suffix in (("autograded", "ipynb"), ("feedback", "html")):
        path = course / folder / student / TINY / f"{TINY}.{suffix}"
        yield path.read_bytes() if path.is_file() else None


def leftovers(course: Path) -> list[Path]:
    """Files that a killed run left and nobody needs."""
    return [path for path in course.rglob("*") if path.name.endswith((".new", "-journal"))]


# --- a run as a process ---------------------------------------------------------------------------

RIGHT = """def softmax(scores, axis=-1):
    top = np.max(scores, axis=axis, keepdims=True)
    shares = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = shares.sum(axis=axis, keepdims=True)
    return shares / np.where(total > 0, total, 1)"""
LEAVES = "def softmax(scores, axis=-1):\n    import os\n    os._exit(0)"
DESERVED = {"ada": 3.0, "ben": 0.0, "cleo": 3.0, "dan": 0.0, "eve": 3.0, "finn": 3.0}


def start(course: Path, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "autograder.cli", "grade", "submitted", "--json"]
    return subprocess.Popen(
        [*command, *options], cwd=course, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def family(pid: int) -> dict[int, bytes]:
    """A process's descendants, with their command lines."""
    found, queue = {}, [pid]
    for parent in queue:
        try:
            for thread in os.listdir(f"/proc/{parent}/task"):
                children = Path(f"/proc/{parent}/task/{thread}/children").read_text().split()
                queue += map(int, children)
        except OSError:
            continue
    for child in queue[1:]:
        try:
            found[child] = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
    return found


def alive(pids: dict[int, bytes]) -> list[int]:
    """Which of these processes are still running."""
    found = []
    for pid, command in pids.items():
        try:
            zombie = ") Z " in Path(f"/proc/{pid}/stat").read_text()
            if not zombie and Path(f"/proc/{pid}/cmdline").read_bytes() == command:
                found.append(pid)
        except OSError:
            continue
    return found
