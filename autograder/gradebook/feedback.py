"""Feedback pages, made in a process that can be killed, and a plain page if that fails.

TRUST BOUNDARY. What students wrote is turned into pages by large libraries, which some input may
keep busy for minutes or cost gigabytes. So this is done in another process (`feedback_pages`), with
limits on CPU time, memory and wall clock. It runs only our own code; what it sends is text that
`inert` has cleaned. A page that cannot be made affects neither marks nor the class: a plain one
replaces it.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from autograder.gradebook import fork_server
from autograder.student.engine.verdict import Verdict
from autograder.student.table import number

CPU_SECONDS = 10  # of one page
WALL_SECONDS = 60.0  # the same on a busy machine, including the start of the process
MEMORY_MB = 2048


@dataclass(frozen=True)
class MarkedNotebook:
    """What the gradebook says about a submission, as its page shows it.

    Scores (with points) and comments by grade id; the verdicts by exercise.
    """

    scores: Mapping[str, tuple[float, float]]
    comments: Mapping[str, str | None]
    score: float
    points: float
    penalty: float
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)


class PageFailed(RuntimeError):
    """A page could not be made; the message says why."""


class PageMaker:
    """The process that makes pages; started on first use, and again after it was killed."""

    def __init__(self, root: Path, wall_seconds: float = WALL_SECONDS):
        self.root, self.wall_seconds = root, wall_seconds
        self._process: ForkServerProcess | None = None
        self._pipe: Connection | None = None

    def start(self) -> None:
        """Start the process if it is not running; it gets ready in the background."""
        if self._process is not None:
            return
        context = fork_server.get_ready()
        ours, theirs = context.Pipe()
        with theirs:
            process = context.Process(target=_make_pages, args=(theirs,), daemon=True)
            process.start()
        self._process, self._pipe = process, ours
        with suppress(OSError):
            ours.send(str(self.root))

    def page(self, notebook: bytes, assignment: str, student: str, marked: MarkedNotebook) -> str:
        """The page of an autograded notebook. Raises `PageFailed`."""
        self.start()
        assert self._pipe is not None
        try:
            self._pipe.send((notebook, assignment, student, marked))
            if not self._pipe.poll(self.wall_seconds):
                self.close()
                raise PageFailed(f"it took more than {self.wall_seconds:g} s")
            made, said = self._pipe.recv()
        except (EOFError, OSError):
            raise PageFailed(f"the process that made it ended ({self._end()})") from None
        if not made:
            raise PageFailed(said)
        return said

    def _end(self) -> str:
        assert self._process is not None
        self._process.join(5)
        status = self._process.exitcode
        self.close()
        return "no answer" if status is None else f"status {status}"

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._pipe is not None
            self._pipe.close()
            self._process.kill()
            self._process.join()
        self._process = self._pipe = None


def _make_pages(pipe: Connection) -> None:
    """Runs in the process that makes pages; what the libraries print goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(nowhere, output)
    from autograder.gradebook.feedback_pages import serve

    serve(pipe)


def plain_page(assignment: str, student: str, marked: MarkedNotebook) -> str:
    """A page with the marks and comments alone, for a submission that cannot be shown."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{number(score)} / {number(points)}</td></tr>"
        for name, (score, points) in marked.scores.items()
    )
    comments = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(comment)}</dd>"
        for name, comment in marked.comments.items()
        if comment
    )
    penalty = f"<p>Late penalty: {number(marked.penalty)}</p>" if marked.penalty else ""
    total = f"{number(marked.score - marked.penalty)} / {number(marked.points)}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(assignment)}</title></head><body>\n"
        f"<h1>{escape(assignment)} (Score: {total})</h1>\n<p>{escape(student)}</p>\n"
        "<p><strong>The rest of this page could not be shown: the notebook holds something that "
        "takes too long or too much memory to display. The marks are not affected.</strong></p>\n"
        f"{penalty}<table>{rows}</table>\n<dl>{comments}</dl>\n</body></html>\n"
    )
