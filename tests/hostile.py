"""What hostile classes are made with: a small release, submissions, searches of a page."""

import base64
import hashlib
import json
import struct
import zlib
from html.parser import HTMLParser
from pathlib import Path

import nbformat
from faults import cut_down
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from autograder.notebook import stubs

ROOT = Path(__file__).resolve().parents[1]
NAME = "01_kernel_regression"


FULL = {"check_softmax": 3.0, "check_gaussian_scores": 2.0}
EVIL = "PWNED"


def mark(cell: NotebookNode) -> dict:
    return cell.metadata.get("nbgrader", {})


# Two exercises of the chapter and a question.
RELEASE = cut_down(
    nbformat.read(ROOT / "notebooks" / NAME / f"{NAME}.ipynb", as_version=4),
    ("softmax", "gaussian_scores", *FULL, "question_w_of_zero"),
)
assert sum(cell.cell_type == "code" for cell in RELEASE.cells) == 5


class ArchiveEntry:
    """A submission in the making: a notebook, and the folder that it lies in."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.notebook = nbformat.reads(nbformat.writes(RELEASE), as_version=4)
        for name in ("softmax", "gaussian_scores"):
            self.cell(name).source = stubs.source("kernel_regression", name)

    def cell(self, grade_id: str) -> NotebookNode:
        return self.notebook.cells[self.at(grade_id)]

    def at(self, grade_id: str) -> int:
        ids = [mark(cell).get("grade_id") for cell in self.notebook.cells]
        return ids.index(grade_id)

    def before(self, grade_id: str, source: str) -> None:
        self.notebook.cells.insert(self.at(grade_id), new_code_cell(source))

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{NAME}.ipynb"
        path.write_text(json.dumps(self.notebook), encoding="utf-8")  # as it is, unrepaired


def bytes_below(folder: Path) -> dict[str, str]:
    """What lies in a folder, by path."""
    found = {}
    for path in sorted(folder.rglob("*")):
        regular = path.is_file() and not path.is_symlink()
        kind = hashlib.sha256(path.read_bytes()).hexdigest() if regular else path.lstat().st_mode
        found[str(path.relative_to(folder))] = str(kind)
    return found


class Dangers(HTMLParser):
    """Collects whatever in a page could act on an attacker's behalf."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self.inside.append(tag)
        for name, value in attrs:
            text = (value or "").lower()
            acts = name.startswith("on") or "javascript:" in text or name == "srcdoc"
            leads = name in ("src", "href", "action", "style", "id", "class") and "pwned" in text
            if acts or leads:
                self.found.append(f"{tag} {name}={value}")
        if tag in ("iframe", "form", "object", "embed", "base"):
            self.found.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if self.inside and EVIL in data:
            self.found.append(f"in <{self.inside[-1]}>: {data[:60]}")


def dangers(page: str) -> list[str]:
    parser = Dangers()
    parser.feed(page)
    return parser.found


def png(red: int, width: int = 2, height: int = 2) -> str:
    """A picture of one colour, in Base64."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = b"".join(b"\0" + bytes([red, 0, 0]) * 2 for _ in range(2))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 0))
    return base64.b64encode(content + chunk(b"IEND", b"")).decode()


class Frames(HTMLParser):
    """The classes of the elements in which each **strong** word stands."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.strong: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("div", "strong"):
            self.open.append((tag, dict(attrs).get("class") or ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("div", "strong"):
            while self.open and self.open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][0] == "strong":
            self.strong.append((data, [name for _, names in self.open for name in names.split()]))
