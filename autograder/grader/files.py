"""Judges single files, `.py` or `.ipynb`, without a gradebook: what `autograder judge` does.

TRUST BOUNDARY. The files are hostile. Only a regular file of a sensible size is read, as text; what
it holds is run in the sandbox alone, by `judge_cells`.
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.engine.verdict import Verdict
from autograder.exercises import chapters, exercises_of
from autograder.grader.judge import Cell, judge_cells
from autograder.grader.names import defined_names, parse
from autograder.grader.notebook.reading import CHECK, Unusable, cells_of, json_of
from autograder.grader.sandbox.limits import Limits

MAX_FILE = 20 << 20


def judge_file(
    path: str | os.PathLike[str],
    exercises: Sequence[str] | None = None,
    seed: bytes | None = None,
    device: str = "cpu",
    isolation: str = "bwrap",
    limits: Limits | None = None,
) -> dict[str, Any]:
    """Judge a `.py` or `.ipynb` on every exercise that it defines, or on the named ones.

    `seed` fixes the inputs; without it they are fresh. Returns what `judge --json` prints. Raises
    `Unusable` for a file that cannot be judged, `IsolationError` for a machine that cannot isolate
    it.
    """
    text = _read_text(Path(path))
    is_notebook = Path(path).suffix == ".ipynb"
    cells, names = _notebook(text) if is_notebook else _script(text)
    known = {e.name: (slug, e) for slug in chapters() for e in exercises_of(slug)}
    wanted = known.keys() if exercises is None else set(exercises)
    asked = [known[name] for name in known if name in names & wanted]
    if not asked:
        what = "no exercise" if exercises is None else f"none of {', '.join(exercises)}"
        raise Unusable(f"defines {what}")
    base = os.urandom(32) if seed is None else seed
    seeds = {exercise.name: base + exercise.name.encode() for _, exercise in asked}
    judged = judge_cells(
        cells,
        asked,
        seeds,
        device=device,
        isolation=isolation,
        limits=limits,
        module="__main__" if is_notebook else "answer",
    )
    return as_json(str(path), device, judged.verdicts)


def as_json(file: str, device: str, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """The object that `judge --json` prints for a file."""
    return {
        "file": file,
        "device": device,
        "points": round(sum(v.points for v in verdicts.values()), 6),
        "score": round(sum(v.score for v in verdicts.values()), 6),
        "exercises": {
            name: {
                "points": verdict.points,
                "score": verdict.score,
                "verdict": verdict.verdict,
                "mistake": verdict.mistake,
                "aspects": [
                    {
                        "title": aspect.title,
                        "passed": aspect.passed,
                        "points": aspect.points,
                        "hint": aspect.hint,
                        "error": aspect.message,
                    }
                    for aspect in verdict.aspects
                ],
            }
            for name, verdict in verdicts.items()
        },
    }


def _read_text(path: Path) -> str:
    """A file's text; only a regular file of a sensible size is ever read."""
    if path.suffix not in (".py", ".ipynb"):
        raise Unusable("is neither a .py nor an .ipynb file")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a FIFO must not block us
    except (OSError, ValueError) as error:
        raise Unusable(getattr(error, "strerror", None) or str(error)) from None
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        raise Unusable("is a directory" if stat.S_ISDIR(mode) else "is not a regular file")
    with open(fd, "rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise Unusable(f"is larger than {MAX_FILE >> 20} MB")
    if not data.strip():
        raise Unusable("is empty")
    if b"\0" in data:
        raise Unusable("is not a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unusable(f"is not UTF-8 (byte {error.start})") from None


def _script(text: str) -> tuple[list[Cell], set[str]]:
    try:
        parse(text)
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        raise Unusable(f"has a syntax error{where}: {error.msg}") from None
    return [Cell(text)], defined_names(text)


def _notebook(text: str) -> tuple[list[Cell], set[str]]:
    """A notebook's code cells, and the exercises it answers: by grade id or by definition."""
    cells: list[Cell] = []
    names = set[str]()
    for found in cells_of(json_of(text), []):
        if found.kind != "code":
            continue
        grade_id = found.grade_id or ""
        if grade_id.startswith(CHECK):
            name = grade_id.removeprefix(CHECK)
            cells.append(Cell(found.source, check=name))
            names.add(name)
        else:
            cells.append(Cell(found.source, skip="draw" in found.tags))
            names |= {grade_id, *defined_names(found.source)} - {""}
    return list(_answered_above(cells)), names


def _answered_above(cells: Sequence[Cell]) -> Iterator[Cell]:
    """The cells; a check above its answer is dropped, and the exercise is judged at the end."""
    below = [defined_names(cell.source) if cell.check is None else set() for cell in cells]
    above = set[str]()
    for number, cell in enumerate(cells):
        above |= below[number]
        late = cell.check not in above and any(cell.check in names for names in below[number:])
        yield Cell("") if late else cell
