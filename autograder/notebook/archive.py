"""The files in an archive that a learning management system has handed out.

TRUST BOUNDARY. An archive, and every name and size in it, comes from outside. Nothing is unpacked:
members are read one by one, into memory, up to a limit that does not rely on the size which the
archive states, large notebooks without their outputs, and the caller chooses where they go. A
member's name is a text to look at, never a path to write to. What is refused is reported with its
reason and stays in the archive.

Source: PKWARE, *.ZIP File Format Specification* (APPNOTE), 6.3.10: 4.4.4 for the flags, 4.5.3 for
extra fields; Info-ZIP's field 0x5455 for times in UTC.
"""

import io
import stat
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path, PurePosixPath
from unicodedata import normalize

from autograder.notebook.reading import MAX_BYTES, MAX_FILE, NOTEBOOK, UnusableFile, without_outputs

MAX_ARCHIVE = 4_000_000_000  # bytes of the file
MAX_MEMBERS = 200_000
MAX_INNER = 1000  # files of a student's archive
MAX_IN_ALL = 100_000_000_000  # bytes that are read from one archive; each notebook is read twice
_UTF8, _ENCRYPTED = 0x800, 0x1
_ENTRY, _END = struct.Struct("<4s24xHHH12x"), struct.Struct("<4s4xHHIIH")  # of the directory
_MAX_DIRECTORY = 100_000_000  # bytes of a damaged one that are looked at
_NAMELESS = "a file without a name"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_NOISE = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini", ".ipynb_checkpoints")


@dataclass(frozen=True)
class Member:
    """A file in an archive: its name there, in Unicode's form NFC, and when it was last changed.

    `moment` is None where the archive has no time for it. A file in an archive in the archive has
    `inner`, its entry there.
    """

    name: str
    moment: datetime | None
    info: zipfile.ZipInfo
    inner: zipfile.ZipInfo | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        return PurePosixPath(self.name).parts


class RefusedArchive(ValueError):
    """A member that is not read; the message says why."""


class Archive:
    """A ZIP archive, open for reading. A context manager.

    Raises `ValueError` for what is not such an archive, or has too many files or too large ones.
    """

    def __init__(self, path: Path, zone: tzinfo = UTC, data: bytes | None = None):
        """`zone` is that of the times that the archive does not give in UTC; `data` are the
        contents of a student's archive, which `path` only names."""
        self.path, self.zone, self.left = path, zone, MAX_IN_ALL
        self._opened: tuple[zipfile.ZipInfo, Archive] | None = None  # the last one in this one
        if data is not None and data.count(b"PK\1\2") > MAX_INNER:
            raise ValueError(f"{path.name} has more than {MAX_INNER} files")
        if data is None and not path.is_file():
            raise ValueError(f"no archive {path}: expected the .zip that the system hands out")
        if data is None and path.stat().st_size > MAX_ARCHIVE:
            raise ValueError(f"{path.name} has more than {MAX_ARCHIVE // 10**9} GB")
        source = path if data is None else io.BytesIO(data)
        self._damaged: list[tuple[str, str]] = []
        try:
            self._zip = zipfile.ZipFile(source)
            if any(_swallows(info) for info in self._zip.infolist()):
                self._zip.close()
                raise ValueError("its directory is damaged")
        except Exception as error:  # noqa: BLE001  (a damaged directory has many)
            whole = _repair(source, path.name, self._damaged)
            if whole is None:
                raise ValueError(f"{path.name} cannot be read as a .zip ({error})") from None
            self._zip = whole
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
        yield from self._damaged
        for info in self._zip.infolist():
            name = _name(info)
            if name.endswith("/") or _is_noise(name):
                continue
            why = _refusal(info, name)
            yield (
                (shown(name) or _NAMELESS, why)
                if why
                else Member(name, _moment(info, self.zone), info)
            )

    def members_within(self, member: Member) -> Iterator[Member | tuple[str, str]]:
        """The files in an archive in this one, as `members` gives them. Raises `RefusedArchive`."""
        for inner in self._inner(member).members():
            if isinstance(inner, Member):
                yield replace(member, name=f"{member.name}/{inner.name}", inner=inner.info)
            else:
                yield shown(f"{member.name}/{inner[0]}"), inner[1]

    def _inner(self, member: Member) -> "Archive":
        if self._opened is None or self._opened[0] is not member.info:
            data = self._read(member.info, MAX_FILE)
            try:
                self._opened = member.info, Archive(Path(member.name), self.zone, data)
            except ValueError as error:
                what = str(error).removeprefix(f"{Path(member.name).name} ")
                raise RefusedArchive(f"an archive that {what}") from None
        return self._opened[1]

    def read(self, member: Member) -> bytes:
        """A file's contents, of a large notebook without its outputs. Raises `RefusedArchive`."""
        most = MAX_FILE if NOTEBOOK.search(member.name) else MAX_BYTES
        if member.inner is None:
            data = self._read(member.info, most)
        else:
            packed = self._inner(member)
            packed.left = self.left
            try:
                data = packed._read(member.inner, most)
            finally:
                self.left = packed.left
        if len(data) <= MAX_BYTES:
            return data
        with suppress(UnusableFile):
            data = without_outputs(data)
        if len(data) > MAX_BYTES:
            raise RefusedArchive(f"more than {MAX_BYTES // 10**6} MB without its outputs")
        return data

    def _read(self, info: zipfile.ZipInfo, most: int) -> bytes:
        try:
            with self._zip.open(info) as stream:
                data = stream.read(min(most, self.left) + 1)
        except Exception as error:  # noqa: BLE001  (each way to compress has errors of its own)
            raise RefusedArchive(f"damaged ({error})") from None
        self.left -= len(data)
        if len(data) > most:
            raise RefusedArchive(f"more than {most // 10**6} MB")
        if self.left < 0:
            raise ValueError(f"{self.path.name} holds more than {MAX_IN_ALL // 10**9} GB")
        return data


def only_answer(name: str, data: bytes, expected: str = "") -> tuple[str, bytes]:
    """What a student's archive holds, by name and contents: its only notebook or script.

    With an `expected` name, that file, or else the only notebook, whatever scripts are beside it.
    Raises `UnusableFile`.
    """
    try:
        with Archive(Path(name), data=data) as archive:
            files = [m for m in archive.members() if isinstance(m, Member)]
            notebooks = [m for m in files if NOTEBOOK.search(m.name)]
            both = notebooks + [m for m in files if m.name.casefold().endswith(".py")]
            named = [m for m in both if m.parts[-1] == expected]
            for found in (named, notebooks, both) if expected else (both,):
                if len(found) == 1:
                    return found[0].parts[-1], archive.read(found[0])
    except ValueError as error:
        raise UnusableFile(f"The zip cannot be read ({error}).") from None
    raise UnusableFile(f"The zip holds {len(both)} .py and .ipynb files, not one.")


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


def _repair(
    source: Path | io.BytesIO, called: str, damaged: list[tuple[str, str]]
) -> zipfile.ZipFile | None:
    """An archive with what can be read of its directory; None if that is nothing.

    `damaged` gets the names of the entries that cannot be read, and the reasons.
    """
    with source.open("rb") if isinstance(source, Path) else source as stream:
        size = stream.seek(0, io.SEEK_END)
        before = max(0, size - _MAX_DIRECTORY)
        stream.seek(before)
        tail = stream.read()
        at = tail.rfind(b"PK\5\6")
        at = at if 0 <= at <= len(tail) - _END.size else len(tail)
        length, said, _ = _END.unpack_from(tail[at:].ljust(_END.size))[3:]
        places = (said - before, at - length, tail.find(b"PK\1\2"))
        there = [n for n in places if n >= 0 and tail.startswith(b"PK\1\2", n)]
        if not there:
            return None
        directory, start = tail[there[0] : at], before + there[0]
        good: list[bytes] = []
        while directory:
            _, name, extra, comment = _ENTRY.unpack_from(directory.ljust(_ENTRY.size))
            entry = directory[: _ENTRY.size + name + extra + comment]
            if not directory.startswith(b"PK\1\2") or b"PK\1\2" in entry[1:]:  # to the next one
                entry = directory[: directory.find(b"PK\1\2", 1) % (len(directory) + 1)]
            directory = directory[len(entry) :]
            try:
                if len(entry) != _ENTRY.size + name + extra + comment:
                    raise ValueError("its length is wrong")
                zipfile.ZipFile(io.BytesIO(entry + _end_of(1, entry, 0))).close()
                good.append(entry)
            except Exception as error:  # noqa: BLE001
                title = entry[_ENTRY.size :][:name].decode("utf-8", "replace") or called
                damaged.append((shown(title), f"its entry in the directory is damaged ({error})"))
        whole = tempfile.TemporaryFile()  # noqa: SIM115  (the archive closes it)
        stream.seek(0)
        while (left := start - stream.tell()) > 0 and (piece := stream.read(min(left, 2**20))):
            whole.write(piece)
    entries = b"".join(good)
    whole.write(entries + _end_of(len(good), entries, start))
    return zipfile.ZipFile(whole) if good else None


def _swallows(info: zipfile.ZipInfo) -> bool:
    """Whether an entry's name or fields hold the beginning of another entry."""
    name = info.orig_filename.encode("utf-8", "replace")
    return any(b"PK\1\2" in part for part in (name, info.extra, info.comment))


def _end_of(count: int, entries: bytes, start: int) -> bytes:
    """The record that ends a directory."""
    count = min(count, 0xFFFF)  # it is not what readers go by
    return _END.pack(b"PK\5\6", count, count, len(entries), start, 0)


def _is_noise(name: str) -> bool:
    parts = name.split("/")
    return any(part in _NOISE for part in parts) or parts[-1].startswith(("._", ".~"))


def _refusal(info: zipfile.ZipInfo, name: str) -> str | None:
    """Why a member is not to be read, if so."""
    if not name:
        return "it has no name"
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
    if info.compress_type not in _METHODS:
        method = getattr(zipfile, "compressor_names", {}).get(
            info.compress_type, str(info.compress_type)
        )
        return f"compressed by {method}, which is not read here; pack it again as an ordinary .zip"
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
