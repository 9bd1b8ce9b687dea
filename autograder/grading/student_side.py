"""Which files of `autograder` a student has: what the sandbox mounts and the bundle packs.

TRUST BOUNDARY. Everything listed here is public. What judges by the reference (`grading`), the
reference and the known mistakes (`solutions`) must never be listed.
"""

from pathlib import Path

import autograder

STUDENT_SIDE = (
    "__init__.py",
    "blocks",  # a module or a package
    "blocks.py",
    "check.py",
    "dates.py",
    "device.py",
    "exercises",
    "expected",
    "observe.py",
    "plots.py",
    "policy.py",
    "probe.py",
    "progress.py",
    "records.py",
    "state.py",
    "table.py",
    "values.py",
    "verdict.py",
)


def student_side() -> dict[str, Path]:
    """The student's files and folders that there are, by their path inside `autograder`."""
    root = Path(autograder.__file__).resolve().parent
    return {name: root / name for name in STUDENT_SIDE if (root / name).exists()}
