"""The part of `autograder` that students have: what the sandbox mounts and the bundle packs.

TRUST BOUNDARY. All of it is public: everything but the instructor's rooms. The code that judges
by the reference, the reference itself and the known mistakes (`solutions`) are not part of it.
"""

from pathlib import Path

import autograder

ROOT = Path(autograder.__file__).resolve().parent
INSTRUCTORS = ("bank", "grader", "publishing", "cli.py")


def student_side() -> dict[str, Path]:
    """The student's files and folders, by their path inside `autograder`."""
    rest = (path for path in sorted(ROOT.iterdir()) if path.name not in INSTRUCTORS)
    return {p.name: p for p in rest if p.suffix in (".py", ".bin") or (p / "__init__.py").is_file()}
