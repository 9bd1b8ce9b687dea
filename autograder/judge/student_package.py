"""The part of `autograder` that students have (the bundle packs it), and what a sandbox has of it.

TRUST BOUNDARY. All of it is public: everything but the instructor's rooms. The code that judges
by the reference, the reference itself and the known mistakes (`solutions`) are not part of it.
"""

from pathlib import Path

import autograder

ROOT = Path(autograder.__file__).resolve().parent
INSTRUCTORS = ("bank", "grader", "publishing", "cli.py")
# Right answers, which no process has that judges (`block_code`), by their folder.
ANSWERS = {"blocks": ("*",), "exercises": ("bugs.py",)}


def student_side() -> dict[str, Path]:
    """The student's files and folders, by their path inside `autograder`."""
    rest = (path for path in sorted(ROOT.iterdir()) if path.name not in INSTRUCTORS)
    return {path.name: path for path in rest if _is_code(path)}


def _is_code(path: Path) -> bool:
    return path.suffix in (".py", ".bin") or (path / "__init__.py").is_file()


def sandbox_side() -> dict[str, Path]:
    """The same without the files that hold right answers."""
    found = student_side()
    for folder, answers in ANSWERS.items():
        if folder in found:
            parts = sorted(found.pop(folder).iterdir())
            kept = [p for p in parts if not any(map(p.match, answers)) and _is_code(p)]
            found |= {f"{folder}/{path.name}": path for path in kept}
    return found
