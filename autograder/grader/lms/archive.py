"""The files in an archive that a learning management system has handed out.

TRUST BOUNDARY. An archive, and every name and size in it, comes from outside. Nothing is unpacked:
members are read one by one, into memory, up to a limit that does not rely on the size which the
archive states, and the caller chooses where they go. A member's name is a text to look at, never a
path to write to. What is refused is reported with its reason and stays in the archive.

Source: PKWARE, *.ZIP File Format Specification* (APPNOTE), 6.3.10: 4.4.4 for the flags, 4.5.3 for
extra fields; Info-ZIP's field 0x5455 for times in UTC.
"""

import stat
import struct
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path, PurePosixPath
from unicodedata import normalize

from autograder.grader.notebook.reading import MAX_BYTES

MAX_ARCHIVE = 4_000_000_000  # bytes of the file
MAX_MEMBERS = 200_000
MAX_IN_ALL = 4_000_000_000  # bytes that are read from one archive; each notebook is read twice
_UTF8, _ENCRYPTED = 0x800, 0x1
_NOISE = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")


@dataclass(frozen=True)
class Member:
    """A file in an archive: its name there, in Unicode's form NFC, and when it was last changed.

    `moment` is None where the archive has no time for it.
    """

    name: str
    moment: datetime | None
    info: zipfile.ZipInfo

    @property
    def parts(self) -> tuple[str, ...]:
        return PurePosixPath(self.name).parts


class Refused(ValueError):
    """A member that is not read; the message says why."""


class Archive:
    """A ZIP archive, open for reading. A context manager.

    Raises `ValueError` for what is not such an archive, or has too many files or too large ones.
    """

    def __init__(self, path: Path, zone: tzinfo = UTC):
        """`zone` is that of the times that the archive does not give in UTC."""
        self.path, self.zone, self._left = path, zone, MAX_IN_ALL
        if not path.is_file():
            raise ValueError(f"no archive {path}: expected the .zip that the system hands out")
        if path.stat().st_size > MAX_ARCHIVE:
            raise ValueError(f"{path.name} has more than {MAX_ARCHIVE // 10**9} GB")
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
            raise ValueError(f"{path.name} cannot be read as a .zip ({error})") from None
        if len(self._zip.infolist()) > MAX_MEMBERS:
            self._zip.close()
            raise ValueError(f"{path.name} has more than {MAX_MEMBERS} files")

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def members(self) -> Iterator[Member | tuple[str, str]]:
        """The files; in place of one that is refused, its name and the reason.

        Folders, and what operating systems leave behind, are passed over.
        """
        for info in self._zip.infolist():
            name = _name(info)
            if info.is_dir() or _is_noise(name):
                continue
            why = _refused(info, name)
            yield (shown(name), why) if why else Member(name, _moment(info, self.zone), info)

    def read(self, member: Member) -> bytes:
        """A file's contents. Raises `Refused`."""
        most = min(MAX_BYTES, self._left)
        try:
            with self._zip.open(member.info) as stream:
                data = stream.read(most + 1)
        except NotImplementedError as error:
            raise Refused(str(error)) from None
        except Exception as error:  # noqa: BLE001  (each way to compress has errors of its own)
            raise Refused(f"damaged ({error})") from None
        self._left -= len(data)
        if len(data) > MAX_BYTES:
            raise Refused(f"more than {MAX_BYTES // 10**6} MB")
        if self._left < 0:
            raise ValueError(f"{self.path.name} holds more than {MAX_IN_ALL // 10**9} GB")
        return data


def shown(text: str) -> str:
    """A name from outside, in a form fit for a message: one line of bounded length."""
    plain = text if text.isprintable() else ascii(text)[1:-1]
    return plain if len(plain) <= 120 else plain[:117] + "…"


def _name(info: zipfile.ZipInfo) -> str:
    """A member's name, as UTF-8 even if the archive does not say so, since some writers omit it."""
    name = info.filename
    if not info.flag_bits & _UTF8:
        with suppress(UnicodeError):
            name = info.orig_filename.encode("cp437").decode("utf-8")
    return normalize("NFC", name)


def _is_noise(name: str) -> bool:
    parts = name.split("/")
    return any(part in _NOISE for part in parts) or parts[-1].startswith(("._", ".~"))


def _refused(info: zipfile.ZipInfo, name: str) -> str | None:
    """Why a member is not to be read, if so."""
    parts = name.split("/")
    mode = info.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "a link, or no ordinary file" if stat.S_ISLNK(mode) else "no ordinary file"
    if ".." in parts or "" in parts or "\\" in info.orig_filename or parts[0].endswith(":"):
        return "its name leads out of the archive"
    if "\0" in info.orig_filename or name.encode("utf-8", "replace").decode() != name:
        return "its name is no text"
    if info.flag_bits & _ENCRYPTED:
        return "encrypted"
    if info.file_size > MAX_BYTES:
        return f"more than {MAX_BYTES // 10**6} MB"
    return None


def _moment(info: zipfile.ZipInfo, zone: tzinfo) -> datetime | None:
    """When a member was changed: in UTC where it says so, else by the clock of its `zone`."""
    extra = info.extra
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if kind == 0x5455 and size >= 5 and len(extra) >= 9 and extra[4] & 1:
            return datetime.fromtimestamp(struct.unpack_from("<I", extra, 5)[0], UTC)
        extra = extra[4 + size :]
    if info.date_time[:3] == (1980, 1, 1):  # the earliest time there is: its writer knew none
        return None
    try:
        return datetime(*info.date_time, tzinfo=zone).astimezone(UTC)
    except ValueError:
        return None
