"""How far grading has come, and how fast: a bar for people, lines of JSON for scripts."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from autograder.gradebook.classroom import Progress
    from autograder.gradebook.rows import Row


@dataclass
class GradingRate:
    """Submissions per minute and the time left, estimated from those judged in this run."""

    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)
    judged: int = 0

    def __post_init__(self) -> None:
        self.started = self.clock()

    def step(self, row: "Row", done: int, total: int) -> tuple[float | None, float | None]:
        """Count a submission; its pace per minute and the seconds left, None while unknown."""
        self.judged += not row.unchanged
        spent = self.clock() - self.started
        if not self.judged or spent <= 0:
            return None, None
        return 60 * self.judged / spent, (total - done) * spent / self.judged


@contextmanager
def bar(what: str) -> Iterator["Progress"]:
    """A bar on stderr; yields a function to call after each submission."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
    )
    pace, console = GradingRate(), Console(stderr=True)
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as shown:
        task = shown.add_task(what, total=None, pace="")

        def step(row: "Row", done: int, total: int) -> None:
            told = in_words(*pace.step(row, done, total))
            name = f"{what}: {row.student}"
            shown.update(task, completed=done, total=total, description=name, pace=told)

        yield step


def in_words(per_minute: float | None, left: float | None) -> str:
    """A pace and the time left, as text."""
    if per_minute is None or left is None:
        return ""
    hours, minutes, seconds = int(left) // 3600, int(left) // 60 % 60, int(left) % 60
    clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
    return f"{per_minute:.3g} a minute, {clock} left"


@contextmanager
def lines(stream: TextIO | None = None) -> Iterator["Progress"]:
    """A line of JSON per submission; yields a function to call after each."""
    pace, out = GradingRate(), stream or sys.stdout

    def step(row: "Row", done: int, total: int) -> None:
        per_minute, left = pace.step(row, done, total)
        told: dict[str, object] = {
            "event": "submission",
            "done": done,
            "total": total,
            "student": row.student,
            "assignment": row.assignment,
            "status": row.status,
            "unchanged": row.unchanged,
            "score": row.score,
            "penalty": row.penalty,
            "points": row.points,
            "seconds": row.seconds,
            "per_minute": per_minute and round(per_minute, 2),
            "seconds_left": left if left is None else round(left, 1),
        }
        print(json.dumps(told), file=out, flush=True)

    yield step
