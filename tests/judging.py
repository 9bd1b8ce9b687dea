"""What the tests of the judge share: answers, limits, and short ways to judge."""

import inspect
import json
from pathlib import Path

import solutions.kernel_regression as right
from autograder.judge.verdicts import Cell, judge_cells
from autograder.sandbox.limits import Limits
from autograder.student.course import find_exercise
from autograder.student.engine.verdict import Verdict

REFERENCE = Path(right.__file__)
QUICK = Limits(cell_seconds=20.0, probe_seconds=10.0, memory_mb=1024)
HASTY = Limits(cell_seconds=1.0, probe_seconds=1.0, memory_mb=1024)
HEAD = "from __future__ import annotations\nimport numpy as np\n"
SOFTMAX, SCORES = (inspect.getsource(f) for f in (right.softmax, right.gaussian_scores))
WATSON = inspect.getsource(right.nadaraya_watson)
WRONG = "def softmax(scores, axis=-1):\n    return scores * 0\n"


def verdicts(
    *cells: str | Cell, asked: tuple[str, ...] = ("softmax",), limits: Limits = QUICK, **more
) -> dict[str, Verdict]:
    """What the judge makes of some cells after the one with the imports."""
    made = [Cell(cell) if isinstance(cell, str) else cell for cell in (HEAD, *cells)]
    pairs = [find_exercise(name) for name in asked]
    seeds = {name: b"seed" + name.encode() for name in asked}
    return judge_cells(made, pairs, seeds, limits=limits, **more).verdicts


def notebook(*cells: dict, nbformat: int = 4) -> str:
    return json.dumps({"nbformat": nbformat, "nbformat_minor": 5, "metadata": {}, "cells": cells})


def code(source: str | list[str], grade_id: str | None = None, tags: tuple = ()) -> dict:
    metadata: dict = {"tags": list(tags)}
    if grade_id:
        metadata["nbgrader"] = {"grade_id": grade_id, "grade": grade_id.startswith("check_")}
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": []}
