"""Which of the files in a submission's folder is graded.

TRUST BOUNDARY. Folders and files are hostile: names are shown in an inert form, links are not
followed, and files are read as bytes.
"""

import os
import re
from pathlib import Path

from autograder.gradebook.scripts import SUFFIX, notebook_of
from autograder.notebook.archive import only_answer
from autograder.notebook.effort import ANSWERED, effort_in, is_notebook_of
from autograder.notebook.reading import UnusableFile, read_file

MOST_TOLD = 10  # entries of one folder that are told one by one
_OTHER = re.compile(r"\.(py|zip|ipynb\.(txt|json))$", re.IGNORECASE)  # where there is no notebook


def is_printable(name: str) -> bool:
    """Whether a name is encodable text on one line."""
    return name.isprintable() and name.encode("utf-8", "replace").decode() == name


def shown_name(name: str) -> str:
    return ascii(name)[1:-1][:80] if not is_printable(name) else name[:80]


def notebooks_in(folder: Path, release: Path) -> list[Path]:
    """The notebook in a submission's folder that is graded, or else those that it could be.

    It has the expected name, unless it is an untouched copy of the release and another one is not;
    a script counts where there is no notebook. Of many, of which none is graded, two stand for all.
    """
    expected = folder / f"{folder.name}.ipynb"
    there = sorted(path for path in folder.iterdir() if path.suffix.casefold() == ".ipynb")
    if there == [expected] or (not there and os.path.lexists(expected)):
        return [expected]
    others = [path for path in there if path != expected][:MOST_TOLD]
    if not others:
        others = sorted(path for path in folder.iterdir() if _OTHER.search(path.name))[:MOST_TOLD]
    if os.path.lexists(expected) and _effort(expected, release) == ANSWERED:
        return [expected]
    answered = [path for path in others if _is_work(path, release)]
    if os.path.lexists(expected) and not answered:
        return [expected]
    if expected in there:
        return sorted(answered, key=_copy)[-1:]
    if answered and sum(_effort(path, release) == ANSWERED for path in others) == 1:
        return answered
    return others[:2]


def _copy(path: Path) -> tuple[int, str]:
    """Sorts copies by their numbers."""
    found = re.findall(r"\d{1,4}", path.stem.rpartition("-Copy")[2] or "")
    return (int(found[-1]) if "-Copy" in path.stem and found else 0), path.name


def _effort(path: Path, release: Path) -> int:
    try:
        return effort_in(data_in(path)[1], release)
    except (UnusableFile, OSError):
        return ANSWERED  # it may have held some


def _is_work(path: Path, release: Path) -> bool:
    """Whether a file other than the expected one holds answers to this assignment."""
    try:
        name, data = data_in(path)
    except (UnusableFile, OSError):
        return False
    is_this = name.casefold().endswith(SUFFIX) or is_notebook_of(data, release)
    return is_this and effort_in(data, release) == ANSWERED


def data_in(path: Path) -> tuple[str, bytes]:
    """The name and contents of a notebook, or of a script as one; of the one in an archive.

    Raises `UnusableFile`, `OSError`.
    """
    name, data = path.name, read_file(path)
    if path.suffix.casefold() == ".zip":
        name, data = only_answer(name, data, f"{path.parent.name}.ipynb")
    return name, notebook_of(data) if name.casefold().endswith(SUFFIX) else data


def passed_over(folder: Path, release: Path) -> list[str]:
    """Which of several notebooks counts, and which do not."""
    try:
        if folder.is_symlink() or not folder.is_dir():
            return []
        taken = notebooks_in(folder, release)
        there = (p for p in folder.iterdir() if p.suffix.casefold() == ".ipynb")
        rest = sorted(path.name for path in there if path not in taken)
    except OSError:
        return []
    if len(taken) != 1 or not rest:
        return []
    names = ", ".join(map(shown_name, rest[:MOST_TOLD]))
    where = f"{shown_name(folder.parent.name)}/{folder.name}"
    return [f"{where}/{names}: {shown_name(taken[0].name)} was taken instead"]
