"""What students have of the grader and the course (the bundle packs it), and what a sandbox has.

TRUST BOUNDARY. All of it is public: `autograder/student/` and the course's own package. The code
that judges by the reference, the reference itself and the known mistakes are elsewhere.
"""

from collections.abc import Iterator
from pathlib import Path

import autograder
from autograder.student import course
from autograder.student.authoring.counterexample import BUGS

ROOT = Path(autograder.__file__).resolve().parent
_KINDS = (".py", ".bin", ".paths", ".json")


def student_package() -> dict[str, Path]:
    """The student's files, by the path at which they are imported."""
    found = {"autograder/__init__.py": ROOT / "__init__.py"}
    for above, folder in ((ROOT, ROOT / "student"), (course.folder(), course.folder())):
        for path in sorted(folder.rglob("*")):
            if path.suffix in _KINDS and path.name != "held.json":
                found[f"{above.name}/{path.relative_to(above).as_posix()}"] = path
    return found


def parts_in_a_sandbox() -> dict[str, Path]:
    """The same without what holds right answers, which no process has that judges (`block_code`);
    whole folders where all that is in them is there."""
    found = {"autograder/__init__.py": ROOT / "__init__.py", "autograder/student": ROOT / "student"}
    ours = course.folder()
    answers = {ours / BUGS, *_modules(course.blocks())}
    return found | {f"{ours.name}/{n}": path for n, path in _parts(ours, ours, answers)}


def _modules(package: str) -> set[Path]:
    """The folder or the file of a package of the course."""
    inside = course.root().joinpath(*package.split("."))
    return {inside, inside.with_suffix(".py")} if package else set()


def _parts(folder: Path, ours: Path, without: set[Path]) -> Iterator[tuple[str, Path]]:
    """What is in a folder, as whole folders where nothing in it is left out."""
    for path in sorted(folder.iterdir()):
        if path in without or path.name == "__pycache__":
            continue
        if path.is_dir() and any(path in one.parents for one in without):
            yield from _parts(path, ours, without)
        elif path.is_dir() or path.suffix in _KINDS:
            yield path.relative_to(ours).as_posix(), path
