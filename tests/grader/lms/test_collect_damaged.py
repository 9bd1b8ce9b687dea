"""A damaged archive costs those whose entries are damaged; a packed one is opened, once."""

import io
import struct
import zipfile
from pathlib import Path

import pytest
from lms_archives import FILE, NAME, archive, handed_in, moodle, notebook

from autograder.lms.collect import NEW, collect

ADA, BOB, EVE = (moodle(name, n) for n, name in enumerate(("Ada King", "Bob Day", "Eve Hill"), 1))
NOTEBOOKS = {ADA: notebook("1"), BOB: notebook("2"), EVE: notebook("3")}


def entry(data: bytearray, name: str) -> int:
    """Where a file's entry in the directory begins."""
    return data.rindex(name.encode()) - 46


def no_signature(data: bytearray) -> None:
    at = entry(data, BOB)
    data[at : at + 4] = b"XXXX"


def no_utf8(data: bytearray) -> None:
    at = entry(data, BOB)
    struct.pack_into("<H", data, at + 8, 0x800)
    data[at + 46] = 0xFF


def extra_of_zip64(data: bytearray) -> None:
    """It says that its sizes stand in an extra field, which is too short."""
    at = entry(data, BOB)
    struct.pack_into("<II", data, at + 20, 2**32 - 1, 2**32 - 1)
    field = struct.pack("<HH", 1, 0)
    end = at + 46 + len(BOB)
    data[end:end] = field
    struct.pack_into("<H", data, at + 30, len(field))
    last = data.rindex(b"PK\5\6")
    (size,) = struct.unpack_from("<I", data, last + 12)
    struct.pack_into("<I", data, last + 12, size + len(field))


def no_name(data: bytearray) -> None:
    """The name begins with a zero byte, at which readers end it."""
    data[entry(data, BOB) + 46] = 0


def bytes_lost(data: bytearray) -> None:
    at = entry(data, BOB)
    del data[at + 20 : at + 33]


def bytes_added(data: bytearray) -> None:
    at = entry(data, BOB) + 4
    data[at:at] = b"?" * 7


def name_too_long(data: bytearray) -> None:
    struct.pack_into("<H", data, entry(data, BOB) + 28, 60_000)


@pytest.mark.parametrize(
    "spoil", [no_signature, no_utf8, extra_of_zip64, no_name, bytes_lost, bytes_added]
)
def test_a_damaged_entry_of_the_directory_costs_that_file_alone(tmp_path, spoil):
    done = collected(tmp_path, spoil)
    assert done.outcomes == {("Ada King", NAME): NEW, ("Eve Hill", NAME): NEW}
    (line,) = done.problems
    assert "ob Day" in line or "refused" in line


def collected(tmp_path, spoil):
    """What comes of the class's archive once its bytes are spoilt."""
    path = archive(tmp_path / "class.zip", NOTEBOOKS)
    data = bytearray(path.read_bytes())
    spoil(data)
    path.write_bytes(data)
    return collect(path, tmp_path)


def test_an_entry_that_swallows_the_next_ones_costs_itself_alone(tmp_path):
    done = collected(tmp_path, name_too_long)
    assert done.outcomes == {("Ada King", NAME): NEW, ("Eve Hill", NAME): NEW}
    assert any("damaged" in line and "Bob Day" in line for line in done.problems)


def test_an_unknown_way_to_compress_is_named(tmp_path):
    def as_deflate64(data: bytearray) -> None:
        struct.pack_into("<H", data, entry(data, BOB) + 10, 9)

    (line,) = collected(tmp_path, as_deflate64).problems
    assert "compressed by deflate64, which is not read here" in line and "damaged" not in line


def packed(files: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as inner:
        for name, content in files.items():
            inner.writestr(name, content)
    return data.getvalue()


@pytest.mark.parametrize("file", [FILE, f"homework/{FILE}", "mine.ipynb"])
def test_a_notebook_in_a_packed_file_is_placed(tmp_path, file):
    zipped = moodle("Ada King", 1, "work.zip")
    done = collect(archive(tmp_path / "a.zip", {zipped: packed({file: notebook("x")})}), tmp_path)
    assert done.outcomes == {("Ada King", NAME): NEW}
    assert handed_in(tmp_path) == {f"Ada King/{NAME}/{FILE}": notebook("x")}


@pytest.mark.parametrize(
    "content, words",
    [
        (b"no archive", "an archive that cannot be read"),
        (packed({"../../x.ipynb": notebook()}), "its name leads out of the archive"),
        (packed({"in.zip": packed({FILE: notebook()})}), "no notebook, but in.zip"),
        (packed({"essay.pdf": b""}), "no notebook, but essay.pdf"),
        (packed({}), "no notebook, but work.zip"),
        (b"PK\1\2" * 2000, "an archive that has more than 1000 files"),
    ],
)
def test_a_packed_file_without_one_is_told_and_the_rest_placed(tmp_path, content, words):
    files = {moodle("Ada King", 1, "work.zip"): content, BOB: notebook("2")}
    done = collect(archive(tmp_path / "a.zip", files), tmp_path)
    assert done.outcomes == {("Bob Day", NAME): NEW}
    assert any(words in line for line in done.problems)


@pytest.mark.parametrize("end", [".ipynb.txt", ".ipynb.json", ".IPYNB.TXT"])
def test_a_notebook_that_a_browser_renamed_is_placed(tmp_path, end):
    done = collect(archive(tmp_path / "a.zip", {moodle("Ada King", 1, f"{NAME}{end}"): notebook()}),
                   Path(tmp_path))  # fmt: skip
    assert done.outcomes == {("Ada King", NAME): NEW}
    assert [*handed_in(tmp_path)] == [f"Ada King/{NAME}/{FILE}"]
