"""The page *What runs where it is graded* names what the sandbox has, and the limits that hold."""

import re
from pathlib import Path

from sandboxes import errors, printed

from autograder.judge.job import Options
from autograder.judge.verdicts import Cell, judge_cells
from autograder.notebook.reading import MAX_BYTES
from autograder.sandbox.limits import Limits
from autograder.student.course import find_exercise

PAGE = (Path(__file__).parents[2] / "book" / "what_runs.md").read_text(encoding="utf-8")
LIMITS = Limits()


def test_its_limits_are_those_of_the_sandbox():
    assert dict(re.findall(r"^\| (.+) \| (.+) \|$", PAGE, re.MULTILINE)) == {
        "what": "how much",
        "time of a cell": f"{LIMITS.cell_seconds:g} s, unless your instructor allows more",
        "time of all calls of an answer": f"{LIMITS.probe_seconds:g} s",
        "time of a notebook": f"{LIMITS.total_seconds / 60:g} min",
        "memory": f"{LIMITS.memory_mb >> 10} GB",
        "what a cell prints": f"{LIMITS.output_bytes >> 20} MB",
        "the notebook's file": f"{MAX_BYTES / 1e6:g} MB without its outputs",
    }
    usual = Options()
    assert (usual.cell_seconds, usual.probe_seconds) == (LIMITS.cell_seconds, LIMITS.probe_seconds)
    assert usual.memory_mb == LIMITS.memory_mb


def test_what_it_names_is_there_and_the_folder_is_as_large_as_it_says():
    (named,) = re.findall(r"^\* (NumPy, .+) and what they bring along", PAGE, re.MULTILINE)
    assert "the course's own `check`, `blocks` and `plots`." in PAGE
    (size,) = re.findall(r"A folder of its own for files, of (\d+) MB, ", PAGE)
    modules = [{"scikit-learn": "sklearn"}.get(name, name.lower()) for name in named.split(", ")]
    cell = "\n".join([
        *(f"import {module}\n{module}.__name__" for module in modules),
        "from autograder import check",
        "from attention_by_hand import plots",
        "from attention_by_hand.blocks import softmax",
        "import os\nfree = os.statvfs('.')",
        "print(free.f_blocks * free.f_frsize >> 20)",
        "def causal_mask(n): return softmax, plots, check",
    ])  # fmt: skip
    judged = judge_cells([Cell(cell)], [find_exercise("causal_mask")], {"causal_mask": b"seed"})
    (outputs,) = judged.outputs.values()
    assert judged.notes == () and not errors(outputs) and printed(outputs).split() == [size]
