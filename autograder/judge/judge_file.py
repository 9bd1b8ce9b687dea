"""Judges single files, `.py` or `.ipynb`, without a gradebook: what `autograder judge` does.

TRUST BOUNDARY. The files are hostile, though their paths are the caller's, who may name a link.
They are read by `reading`; what they hold is run in the sandbox alone, by `judge_cells`.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from autograder.judge.verdicts import Cell, judge_cells
from autograder.notebook.archive import only_answer
from autograder.notebook.names import defined_names, in_their_lines
from autograder.notebook.reading import (
    CHECK,
    NOTEBOOK,
    UnusableFile,
    cells_of,
    conflict_in,
    parse_notebook,
    read_file,
    text_in,
)
from autograder.sandbox.limits import Limits
from autograder.student.course import chapters, exercises_of
from autograder.student.engine.verdict import Verdict


def judge_file(
    path: str | os.PathLike[str],
    exercises: Sequence[str] | None = None,
    *,
    device: str = "cpu",
    **options: Any,
) -> dict[str, Any]:
    """What `judge --json` prints of a file; the options are those of `verdicts_on`."""
    return as_json(str(path), device, verdicts_on(path, exercises, device=device, **options))


def verdicts_on(
    path: str | os.PathLike[str],
    exercises: Sequence[str] | None = None,
    seed: bytes | None = None,
    device: str = "cpu",
    isolation: str = "bwrap",
    limits: Limits | None = None,
) -> dict[str, Verdict]:
    """Judge a `.py` or `.ipynb` on every exercise that it defines, or on the named ones.

    `seed` fixes the inputs; without it they are fresh. Raises `UnusableFile` for a file that cannot
    be judged, `IsolationError` for a machine that cannot isolate it.
    """
    path = Path(path)
    name, data = _contents(path)
    is_notebook = bool(NOTEBOOK.search(name))
    cells, names = _notebook(data) if is_notebook else _script(data)
    known = {e.name: (slug, e) for slug in chapters() for e in exercises_of(slug)}
    wanted = known.keys() if exercises is None else set(exercises)
    asked = [known[name] for name in known if name in names & wanted]
    if not asked:
        what = "no exercise" if exercises is None else f"none of {', '.join(exercises)}"
        raise UnusableFile(f"It defines {what}.")
    base = os.urandom(32) if seed is None else seed
    seeds = {exercise.name: base + exercise.name.encode() for _, exercise in asked}
    judgement = judge_cells(
        cells,
        asked,
        seeds,
        device=device,
        isolation=isolation,
        limits=limits,
        module="__main__" if is_notebook else "answer",
    )
    return dict(judgement.verdicts)


def _contents(path: Path) -> tuple[str, bytes]:
    """The name and the contents of a file, or of the only one in a zip that can be judged.

    A notebook may have the further suffix that a browser gave it. Raises `UnusableFile`.
    """
    if not re.search(r"\.(py|zip)$", path.name, re.IGNORECASE) and not NOTEBOOK.search(path.name):
        raise UnusableFile("It is neither a .py nor an .ipynb file.")
    name, data = path.name, read_file(path, links=True)
    return only_answer(name, data) if path.suffix.casefold() == ".zip" else (name, data)


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
                "cause": verdict.cause,
                "likely": [*verdict.suspected_mistakes],
                "guess": " ".join(filter(None, (verdict.other_problems, verdict.suspicion)))
                or None,
                "remark": verdict.remark,
                "pointer": verdict.pointer,  # which only the sandbox vouches for
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


def _script(data: bytes) -> tuple[list[Cell], Set[str]]:
    text = text_in(data, "file")
    if "\0" in text:
        raise UnusableFile("The file is not a text file.")
    try:
        statements = in_their_lines(text)
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        wrong = conflict_in(text) or f"has a syntax error{where}: {error.msg}."
        raise UnusableFile(f"It {wrong}") from None
    return [*map(Cell, statements)], defined_names(text)


def _notebook(data: bytes) -> tuple[list[Cell], Set[str]]:
    """A notebook's code cells, and the exercises it answers: by grade id or by definition."""
    cells: list[Cell] = []
    names = set[str]()
    for found in cells_of(parse_notebook(data), []):
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
