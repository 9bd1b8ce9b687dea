"""What was collected, kept for the way back: collected/<assignment>/record.json.

TRUST BOUNDARY. The file is ours; what it quotes comes from outside and is made inert where it is
shown or written. A damaged file is reported, not guessed at.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from autograder.gradebook.writer import put

COLLECTED = "collected"


@dataclass(frozen=True)
class Origin:
    """Where a student's notebook came from: what the system needs to recognise the student."""

    system: str
    number: str
    label: str
    prefix: str
    filename: str
    in_folder: bool = False
    file_number: int = 0
    late: bool = False
    name: str = ""
    email: str = ""
    login: str = ""


def folder_of(root: Path, assignment: str) -> Path:
    return root / COLLECTED / assignment


def read_record(root: Path, assignment: str) -> dict[str, Origin]:
    """Where each student's notebook came from. Raises `ValueError` for a damaged file."""
    path = folder_of(root, assignment) / "record.json"
    if not path.is_file():
        return {}
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
        return {student: Origin(**place) for student, place in tree.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged ({error}): collect the archive again") from None


def write_record(root: Path, assignment: str, places: Mapping[str, Origin]) -> None:
    tree = {student: asdict(place) for student, place in sorted(places.items())}
    data = json.dumps(tree, indent=1, ensure_ascii=False).encode()
    put(folder_of(root, assignment) / "record.json", data, 0o644)
