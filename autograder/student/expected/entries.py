"""A chapter's entries: a folder with a file for each exercise, read when it is first needed."""

import gc
import lzma
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from autograder.student.engine.arrays import Value
from autograder.student.engine.values import MAX_BYTES, decode, encode

Entry = TypeVar("Entry")
Part = TypeVar("Part")


class Entries(Mapping[str, Entry], Generic[Entry]):
    """Entries by the name of the exercise, from the files of a folder that end in `suffix`.

    `read` makes an entry of the tree that a file holds.
    """

    def __init__(self, folder: Path, suffix: str, read: Callable[[Value], Entry]):
        self._files = {file.stem: file for file in sorted(folder.glob(f"*{suffix}"))}
        self._read, self._known = read, dict[str, Entry]()

    def __getitem__(self, name: str) -> Entry:
        if name not in self._known:
            self._known[name] = unpack(self._files[name].read_bytes(), self._read)
        return self._known[name]

    def part(self, name: str, part: str, read: Callable[[Value], Part]) -> Part:
        """What is read of one part of an entry: the others may take most of the time."""
        return unpack(self._files[name].read_bytes(), read, part)

    def beginning(self, name: str) -> bytes:
        """The first bytes of an entry, uncompressed; the others are not read."""
        return lzma.LZMADecompressor().decompress(self._files[name].read_bytes(), 6000)

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def pack(tree: object) -> bytes:
    """An entry's tree as the bytes of its file."""
    return lzma.compress(encode(tree, room=2 * MAX_BYTES), preset=9)


def unpack(data: bytes, read: Callable[[Value], Entry], part: str | None = None) -> Entry:
    """The entry in the bytes of a file, or what is read of one `part` of its tree."""
    with _without_collections():
        return read(decode(lzma.decompress(data), math.inf, part))


@contextmanager
def _without_collections() -> Iterator[None]:
    """Put off garbage collections, which take most of the time where so many objects are made:
    each goes through all that there is, and finds nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
