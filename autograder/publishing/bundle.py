"""What a student downloads: an archive of the notebooks and the student's side of `autograder`.

TRUST BOUNDARY. Everything in the archive becomes public. Only `student_side` and released notebooks
go in; the reference, the known mistakes and the judge never do.
"""

import zipfile
from collections.abc import Iterator
from pathlib import Path

from autograder.exercises import chapters, exercises_of
from autograder.expected import digest, expected_of, fixed_runs
from autograder.grader.student_side import student_side

NAME = "attention-by-hand"
DOWNLOAD = f"_downloads/{NAME}.zip"  # relative to the book's pages
_EPOCH = (1980, 1, 1, 0, 0, 0)  # so that packing again gives the same bytes
_PACKAGES = ("torch", "numpy", "matplotlib", "jaxtyping", "Babel")

README = """\
# Attention by Hand: the notebooks

You need Python 3.11 or later. In this folder:

    python3 -m venv .venv && .venv/bin/pip install -r requirements.txt
    .venv/bin/jupyter lab notebooks/

On Windows, use `py -m venv .venv` and `.venv\\Scripts\\` for `.venv/bin/`. On Linux, pip's
torch comes with gigabytes for NVIDIA GPUs; if you have none, first install the CPU build of the
torch version in `requirements.txt`.

The browser opens on the chapters. Begin with `01_kernel_regression`: run its cells from the top
with Shift+Enter, replace each `raise NotImplementedError` with your own code, and run the
`check(...)` cell below it. The check tells you what is right, what is wrong, and why.

Write the answers yourself. A ready-made one, from torch or from the course's own
`autograder.blocks`, is good to compare with, but earns no marks until a person has looked at it;
`check` tells you so.

In VS Code, open this folder and choose `.venv` as the notebook's kernel.
"""

PYPROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "attention-by-hand-student"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = [{dependencies}]

[tool.setuptools.packages.find]
include = ["autograder*"]

[tool.setuptools.package-data]
"autograder.expected" = ["*.bin"]
"""


def bundle(root: Path, archive: Path | None = None) -> Path:
    """Pack the student's archive of the course at `root`; return its path.

    Raises `FileNotFoundError` if nothing has been released yet, `ValueError` if the exercises have
    changed since the expected values were computed.
    """
    for slug in chapters():
        stored = expected_of(slug)
        for exercise in exercises_of(slug):
            if digest(fixed_runs(exercise)) != stored[exercise.name].digest:
                raise ValueError(f"{exercise.name} has changed: run `autograder release` first")
    archive = archive or root / "build" / f"{NAME}.zip"
    notebooks = sorted((root / "notebooks").glob("*/*.ipynb"))
    if not notebooks:
        raise FileNotFoundError("there are no notebooks: run `autograder release` first")
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w") as packed:
        for name, data in sorted(_contents(root, notebooks)):
            entry = zipfile.ZipInfo(f"{NAME}/{name}", _EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            packed.writestr(entry, data)
    return archive


def _contents(root: Path, notebooks: list[Path]) -> Iterator[tuple[str, bytes]]:
    yield "README.md", README.encode()
    # without versions: in Colab, a pin of torch would fetch gigabytes that are there already
    yield "pyproject.toml", PYPROJECT.format(dependencies=str(list(_PACKAGES))[1:-1]).encode()
    yield "requirements.txt", _requirements(root).encode()
    yield "LICENSE", (root / "LICENSE").read_bytes()
    for path in notebooks:
        yield str(path.relative_to(root)), path.read_bytes()
    for name, path in student_side().items():
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            if file.suffix in (".py", ".bin"):
                inside = Path(name) / file.relative_to(path) if path.is_dir() else Path(name)
                yield f"autograder/{inside}", file.read_bytes()


def _requirements(root: Path) -> str:
    """The pins of the packages that a student needs, and the package itself."""
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line.split("==")[0].strip() in _PACKAGES]
    return "\n".join([*pins, "jupyterlab>=4", "-e .", ""])
