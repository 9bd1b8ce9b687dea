"""Pictures pasted into students' notebooks: kept if they really are pictures of a sane size.

Jupyter keeps a pasted picture beside the text, as an attachment; Colab and VS Code may write it
into the text, as a `data:` address. Both become attachments here, or are dropped.

TRUST BOUNDARY. Everything that comes in is hostile. A picture is kept only if its bytes begin like
a PNG, JPEG or GIF and its header gives a sane width and height; it is labelled with the kind that
its bytes show, not with the one that was claimed. Nothing here decodes a picture: the browser of
the person who marks it does.
"""

import base64
import binascii
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_PICTURE = 4_000_000  # characters of Base64
MAX_PICTURES = 12_000_000  # of all in a notebook
MAX_COUNT = 100
MAX_PIXELS = 50_000_000
MAX_NAME = 200
LOST = "attachment:no-picture"  # replaces an embedded picture that is not one

_WRITTEN = re.compile(r"data:image/[\w.+-]{1,20};base64,[A-Za-z0-9+/]{100,}={0,2}")  # no example
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # JPEG's markers that give the size


@dataclass
class Album:
    """The pictures of one notebook, and notes on what was left out and why."""

    room: int = MAX_PICTURES
    count: int = 0
    notes: list[str] = field(default_factory=list)

    def attach(self, attachments: object) -> dict[str, dict[str, str]]:
        """The pictures among a cell's attachments, in nbformat's form."""
        kept = {}
        for name, bundle in attachments.items() if isinstance(attachments, Mapping) else ():
            if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
                self._drop("its name is missing or too long")
            elif picture := self._first(bundle):
                kept[name.encode("utf-8", "replace").decode()] = picture  # as in the text
        return kept

    def _first(self, bundle: object) -> dict[str, str] | None:
        """The first picture of a bundle, which may hold the same in several forms."""
        for data in list(bundle.values())[:4] if isinstance(bundle, Mapping) else ():
            if (kind := self._kind(data)) is not None:
                return {kind[0]: kind[1]}
        self._drop("it is not a PNG, JPEG or GIF of a sensible size")
        return None

    def lift_all(self, text: str) -> tuple[str, dict[str, dict[str, str]]]:
        """A text with its `data:` pictures turned into attachments, and these attachments."""
        made: dict[str, dict[str, str]] = {}

        def lift(found: re.Match[str]) -> str:
            kind = self._kind(found[0].partition(",")[2])
            if kind is None:
                self._drop("it is not a PNG, JPEG or GIF of a sensible size")
                return LOST
            name = f"written-{len(made) + 1}.{kind[0].rpartition('/')[2]}"
            made[name] = {kind[0]: kind[1]}
            return f"attachment:{name}"

        return _WRITTEN.sub(lift, text), made

    def _kind(self, data: object) -> tuple[str, str] | None:
        """A picture's kind and its Base64, if there is room for it."""
        if isinstance(data, list):
            data = "".join(part for part in data if isinstance(part, str))
        if not isinstance(data, str) or len(data) > min(MAX_PICTURE, self.room):
            return None
        found = picture(data)
        if found is None or self.count >= MAX_COUNT:
            return None
        self.room -= len(found[1])
        self.count += 1
        return found

    def _drop(self, why: str) -> None:
        self.notes.append(f"A picture in the text was left out: {why}.")


def picture(data: str) -> tuple[str, str] | None:
    """The kind of a picture in Base64, and that without white space; None if it is no picture."""
    try:
        content = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    for kind, size in (("png", _png), ("jpeg", _jpeg), ("gif", _gif)):
        try:
            found = size(content)
        except (struct.error, IndexError):  # it ends before it gives its size
            return None
        if found is not None:
            width, height = found
            sane = width > 0 and height > 0 and width * height <= MAX_PIXELS
            return (f"image/{kind}", base64.b64encode(content).decode()) if sane else None
    return None


def _png(content: bytes) -> tuple[int, int] | None:
    if not content.startswith(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"):
        return None
    return struct.unpack_from(">II", content, 16)


def _gif(content: bytes) -> tuple[int, int] | None:
    if not content.startswith((b"GIF87a", b"GIF89a")):
        return None
    return struct.unpack_from("<HH", content, 6)


def _jpeg(content: bytes) -> tuple[int, int] | None:
    if not content.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    for _ in range(1000):  # segments before the one that gives the size
        if content[at] != 0xFF:
            break
        marker = content[at + 1]
        (length,) = struct.unpack_from(">H", content, at + 2)
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", content, at + 5)
            return width, height
        at += 2 + length
    return 0, 0  # it begins like a JPEG, but gives no size
