"""Reads what students hand in, for `grade` and `judge` alike: files, and notebooks as hostile JSON.

TRUST BOUNDARY. What comes in is whatever lies at a path, then bytes, then JSON of any shape. What
passes is an ordinary file's text that can be written as UTF-8, in cells of known kinds, and real
pictures; all of bounded size. No student's code is run, and no single cell can make anything here
raise.
"""

import codecs
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from autograder.notebook.pictures import Album

CHECK = "check_"  # how the id of a check cell begins
ADDED = "added-"  # how the id of a cell that is not the release's begins
MAX_BYTES = 20_000_000  # of a file, without a notebook's outputs
MAX_FILE = 200_000_000  # of a notebook with them
MAX_CELLS = 2_000
MAX_SOURCE = 200_000
MAX_FOREIGN = 2_000_000  # characters of all cells with text together
MAX_CODE = 600_000  # of all with code, which is parsed; a released notebook has 60,000
MAX_CONTAINERS = 2_000_000  # lists and objects: an empty one takes 60 times its text in memory
KINDS = ("code", "markdown", "raw")
NOTEBOOK = re.compile(r"\.ipynb(\.txt|\.json)?$", re.IGNORECASE)  # browsers add the second
_UTF16 = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE
_CONFLICT = re.compile(r"^(?:<<<<<<<|>>>>>>>)", re.MULTILINE)


class UnusableFile(ValueError):
    """A submission that cannot be graded; the message is one line that a student understands."""


@dataclass
class SubmittedFile:
    """A cell of a submission: its kind and text, the marks that identify it, its pictures."""

    kind: str
    source: str
    grade_id: str | None = None
    cell_id: str | None = None
    tags: frozenset[str] = frozenset()
    pictures: dict[str, dict[str, str]] = field(default_factory=dict)
    names: frozenset[str] | None = None  # those that it defines, once computed


def read_file(path: Path, *, links: bool = False) -> bytes:
    """The contents of an ordinary file of a sensible size; with `links`, also through a link.

    Of a large notebook, the outputs are left out.

    Raises `UnusableFile` for anything else at `path`, and never waits for it.
    """
    notebook, packed = bool(NOTEBOOK.search(path.name)), path.suffix.casefold() == ".zip"
    what = "notebook" if notebook else "file"
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    try:
        handle = os.open(path, flags)
    except FileNotFoundError:
        raise UnusableFile(f"There is no {what}.") from None
    except (OSError, ValueError) as error:
        if not links and path.is_symlink():
            raise UnusableFile(f"The {what} is a link, not a file.") from None
        why = getattr(error, "strerror", None) or error
        raise UnusableFile(f"The {what} cannot be opened ({why}).") from None
    info = os.fstat(handle)
    if not stat.S_ISREG(info.st_mode):
        os.close(handle)
        if stat.S_ISDIR(info.st_mode):
            raise UnusableFile(f"There is a folder where the {what} should be.")
        raise UnusableFile(f"The {what} is not an ordinary file.")
    with open(handle, "rb") as stream:
        most = MAX_FILE if notebook or packed else MAX_BYTES
        if info.st_size > most:
            raise _too_large(what, info.st_size, most)
        try:
            data = stream.read(most + 1)
        except OSError as error:
            raise UnusableFile(f"The {what} cannot be read ({error.strerror}).") from None
    data = without_outputs(data) if notebook and len(data) > MAX_BYTES else data
    if len(data) > MAX_BYTES and not packed:
        raise _too_large(what, len(data), MAX_BYTES)
    return data


def _too_large(what: str, size: int, most: int) -> UnusableFile:
    sizes = [f"{number / 1e6:.0f} MB" for number in (size, most)]
    advice = " Clear its outputs and hand it in again." if what == "notebook" else ""
    return UnusableFile(f"The {what} has {sizes[0]}; at most {sizes[1]} are accepted.{advice}")


_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_LARGE = rb'"outputs"\s*+:\s*+\[|"widgets"\s*+:\s*+\{'  # what programs write into a notebook
_NESTED = 40  # lists and objects in each other, in outputs that are left out


def _inside(depth: int) -> bytes:
    """A pattern of what stands in a list or object with at most `depth` more in each other."""
    deeper = rb"|[\[{]%b[\]}]" % _inside(depth - 1) if depth else b""
    return rb'(?:[^"\[\]{}]++|%b%b)*+' % (_STRING, deeper)


_OUTPUTS = re.compile(
    rb'(?:[^"]++|(?!%b)%b)*+(%b)%b(?=[\]}])' % (_LARGE, _STRING, _LARGE, _inside(_NESTED)),
    re.DOTALL,
)


def without_outputs(data: bytes) -> bytes:
    """The text of a notebook's JSON without what stands in its outputs and in the state of its
    widgets, or as it is from where these do not end. What stands in a string is no list of outputs.

    Raises `UnusableFile` for a text in UTF-16 that is none.
    """
    data = text_in(data).encode() if data.startswith(_UTF16) else data
    kept, at = bytearray(), 0
    while found := _OUTPUTS.match(data, at):
        kept += data[at : found.end(1)]
        at = found.end()
    return bytes(kept + data[at:])


def text_in(data: bytes, what: str = "notebook") -> str:
    """The text in a file's contents, without what a disk may add. Raises `UnusableFile`."""
    if not data.strip(b"\0 \t\r\n"):
        raise UnusableFile(f"The {what} is an empty file.")
    try:
        text = data.decode("utf-16" if data.startswith(_UTF16) else "utf-8-sig")
        return text.rstrip("\0")
    except UnicodeDecodeError as error:
        place = f" (byte {error.start})"
        raise UnusableFile(f"The {what} is not a text file in UTF-8{place}.") from None


def conflict_in(text: str) -> str:
    """What to tell of a text that git could not merge; nothing of another."""
    marker = _CONFLICT.search(text)
    if marker is None:
        return ""
    where = f"{marker[0]} in line {text.count(chr(10), 0, marker.start()) + 1}"
    return f"holds both sides of a conflict in git ({where}). Merge them and hand it in again."


def parse_notebook(data: bytes) -> dict[str, Any]:
    """The JSON object of a notebook, in format 4; one of format 3 is converted, without outputs.

    Raises `UnusableFile`, which says what is wrong.
    """
    text = text_in(data)
    if text.count("[") + text.count("{") > MAX_CONTAINERS:
        raise UnusableFile("The notebook holds millions of lists; clear its outputs.")
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        wrong = conflict_in(text) or "is not valid JSON, so it is no notebook."
        raise UnusableFile(f"The notebook {wrong}") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("nbformat"), int):
        raise UnusableFile("The file is JSON but no notebook.")
    if notebook["nbformat"] == 3:
        notebook = {"nbformat": 4, "cells": [*_cells_of_3(notebook)]}
    if notebook["nbformat"] != 4:
        number = str(notebook["nbformat"])[:8]
        raise UnusableFile(
            f"The notebook has format {number}; only formats 3 and 4 are accepted. "
            "Save it with a current Jupyter and hand it in again."
        )
    if not isinstance(notebook.get("cells"), list):
        raise UnusableFile("The notebook has no list of cells.")
    return notebook


def _cells_of_3(notebook: Mapping[str, Any]) -> Iterator[Any]:
    """The cells of a notebook in format 3, which had several sheets of them."""
    sheets = notebook.get("worksheets")
    if not isinstance(sheets, list):
        raise UnusableFile("The notebook has no list of cells.")
    for sheet in sheets:
        listed = sheet.get("cells") if isinstance(sheet, dict) else None
        for cell in listed if isinstance(listed, list) else []:
            kind = cell.get("cell_type") if isinstance(cell, dict) else None
            if kind == "code":
                yield {**cell, "source": cell.get("input"), "outputs": []}
            else:
                yield {**cell, "cell_type": "markdown"} if kind == "heading" else cell


def cells_of(submitted: object, notes: list[str]) -> Iterator[SubmittedFile]:
    """The usable cells of a submission, in its order; `notes` say what was left out.

    Pictures in a Markdown cell, attached or embedded, become its attachments.
    """
    listed = submitted.get("cells") if isinstance(submitted, Mapping) else None
    listed = listed if isinstance(listed, list) else []
    if len(listed) > MAX_CELLS:
        notes.append(f"It has {len(listed)} cells; only the first {MAX_CELLS} were looked at.")
    left = {True: MAX_CODE, False: MAX_FOREIGN}
    album = Album(notes=notes)
    for item in listed[:MAX_CELLS]:
        kind = item.get("cell_type") if isinstance(item, Mapping) else None
        if kind not in KINDS:
            notes.append("A cell of an unknown kind was left out.")
            continue
        source = text_of(item.get("source"))
        pictures: dict[str, dict[str, str]] = {}
        if source is None:
            notes.append("A cell without text was left out.")
            continue
        if kind == "markdown":
            source, pictures = album.lift_all(source)
            pictures = album.attach(item.get("attachments")) | pictures
        left[kind == "code"] -= len(source)
        if len(source) > MAX_SOURCE or left[kind == "code"] < 0:
            notes.append(f"A cell of {len(source)} characters was left out: the notebook is huge.")
            continue
        metadata = item.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        mark, tags = metadata.get("nbgrader"), metadata.get("tags")
        tags = tags if isinstance(tags, list) else []
        grade_id = mark.get("grade_id") if isinstance(mark, Mapping) else None
        cell_id = item.get("id")
        yield SubmittedFile(
            kind,
            source,
            grade_id if isinstance(grade_id, str) else None,
            cell_id if isinstance(cell_id, str) else None,
            frozenset(tag for tag in tags if isinstance(tag, str)),
            pictures,
        )


def exercise_of(cell: NotebookNode) -> str | None:
    """The exercise that a check cell of a released or rebuilt notebook is about, or None."""
    mark = cell.metadata.get("nbgrader", {})
    grade_id = mark.get("grade_id", "")
    checks = mark.get("grade") and mark.get("locked") and not mark.get("solution")
    return grade_id.removeprefix(CHECK) if checks and grade_id.startswith(CHECK) else None


def text_of(source: object) -> str | None:
    """A cell's source as one string that can be written as UTF-8; None if it is not text.

    Line ends become Unix's, NULs are removed, and lone surrogates become question marks.
    """
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        return None
    source = source.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return source.encode("utf-8", "replace").decode("utf-8")
