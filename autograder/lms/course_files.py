"""Files of a course that collecting writes, beside others or in their place.

TRUST BOUNDARY. Names come from outside: none becomes a path before `safe_file` has seen it. Links
are not followed.
"""

import os
import re
from pathlib import Path
from unicodedata import normalize

from autograder.gradebook.writer import put
from autograder.lms.people import short as short_name


class PathOccupied(Exception):
    """Something where a student's notebook should be placed."""


def home(submitted: Path, student: str) -> Path:
    """A student's folder, in whatever Unicode form its name is there."""
    there = submitted.iterdir() if submitted.is_dir() else ()
    plain = normalize("NFC", student)
    same = [path for path in there if normalize("NFC", path.name) == plain]
    return same[0] if len(same) == 1 else submitted / student


def read_there(path: Path) -> bytes | None:
    if not os.path.lexists(path):
        return None
    if path.is_symlink() or not path.is_file():
        raise PathOccupied(f"{path} is not an ordinary file: move it away, and collect again")
    return path.read_bytes()


def safe_file(name: str) -> str:
    """A name from outside as a file's name: letters, digits, spaces, dots, dashes."""
    plain = re.sub(r"[^\w .()-]+", "_", name).strip(" .")
    return short_name(plain[-100:]).strip(" .") or "file"


def keep(folder: Path, name: str, data: bytes) -> Path:
    """Keep a file beside others; the same contents once, others under another name."""
    name = safe_file(name)
    stem, dot, kind = name.rpartition(".")
    number = 1
    while True:
        path = folder / (name if number == 1 else f"{stem or kind}-{number}{dot and '.' + kind}")
        if not os.path.lexists(path):
            put(path, data, 0o644)
            return path
        if path.is_file() and not path.is_symlink() and path.read_bytes() == data:
            return path
        number += 1
