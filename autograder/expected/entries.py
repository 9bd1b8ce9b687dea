"""A chapter's entries in a file of ours, each decoded when it is first needed."""

import gc
import lzma
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from autograder.engine.values import parts

Entry = TypeVar("Entry")


class Entries(Mapping[str, Entry]):
    """Entries by the name of the exercise.

    `packed` is a mapping that `values.encode` has packed; `read` makes an entry of the tree of one.
    """

    def __init__(self, packed: bytes, read: Callable[[Any], Entry]):
        with _without_collections():
            self._packed: dict[str, Callable[[], Any] | None] = {**parts(packed)}
        self._read, self._known = read, dict[str, Entry]()

    def __getitem__(self, name: str) -> Entry:
        if name not in self._known:
            with _without_collections():
                self._known[name] = self._read(self._packed[name]())
            self._packed[name] = None  # which frees what it was decoded from
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._packed

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def unzipped(data: bytes, read: Callable[[Any], Entry]) -> Entries[Entry]:
    """The entries in the bytes of a file."""
    return Entries(lzma.decompress(data), read)


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
