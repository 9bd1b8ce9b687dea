"""`autograder new course`: a course of one small chapter, which does everything that a course does.

What it copies lies in `example/`, beside this file, and is a whole course itself.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path

EXAMPLE = Path(__file__).with_name("example")
_TITLE, _NAME, _PACKAGE = "Smoothing by Hand", "smoothing-by-hand", "smoothing_by_hand"
_RENAMED = {"gitignore": ".gitignore"}  # packages carry no hidden files


def new_course(folder: Path, title: str = "") -> list[Path]:
    """Make a course in an empty or new folder, and return its files.

    Raises `FileExistsError` if the folder is not empty, `ValueError` for a title that has no
    letters.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} is not empty: a new course needs a folder of its own")
    title = " ".join(title.split()) or _TITLE
    name = "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())
    if not name.isascii() or not name:
        raise ValueError(f"{title!r}: expected a title with letters from a to z")
    skipped = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=skipped)
    for old, new in _RENAMED.items():
        (folder / old).rename(folder / new)
    package = name.replace("-", "_")
    if not package.isidentifier() or find_spec(package) is not None:  # "3d", "numpy"
        package = f"course_{package}"
    (folder / _PACKAGE).rename(folder / package)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        text = path.read_text(encoding="utf-8")
        for old, new in ((_TITLE, title), (_NAME, name), (_PACKAGE, package)):
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    return files
