"""Archives are hostile: what they name, and how large they say they are, leads nowhere."""

import os
import stat
import struct
import zipfile
from pathlib import Path

import pytest
from lms_archives import FILE, MOODLE_HEAD, NAME, archive, handed_in, moodle, notebook, table

from autograder.lms import collect as collecting
from autograder.lms.collect import NEW, collect
from autograder.notebook import archive as archives

GOOD = moodle("Ada King", 1)


@pytest.fixture
def course(tmp_path) -> Path:
    root = tmp_path / "outer" / "course"
    root.mkdir(parents=True)
    return root


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


HOSTILE_NAMES = [
    f"../../../{GOOD}",
    f"/etc/{GOOD}",
    f"Ada King_1_assignsubmission_file_/../../../{FILE}",
    f"C:/Ada King_1_assignsubmission_file_/{FILE}",
    f"Ada King_1_assignsubmission_file_\\..\\..\\{FILE}",
    f"Ada King_1_assignsubmission_file_//{FILE}",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_no_name_leads_out_of_the_course(course, name):
    done = collect(
        archive(course / "a.zip", {name: b"x", moodle("Bob Day", 2): notebook()}), course
    )
    assert done.outcomes == {("Bob Day", NAME): NEW}
    assert any("its name leads out of the archive" in line for line in done.problems)
    assert everything(course.parent.parent) - everything(course) >= {"outer", "outer/course"}
    assert {path.name for path in course.parent.iterdir()} == {"course"}
    assert [*handed_in(course)] == [f"Bob Day/{NAME}/{FILE}"]


@pytest.mark.parametrize(
    "name", ["..", ".", "~", "-rf", "a\x1b[31mb", "x\u202ey", "  ", "CON\n", "<b>", "a*?[]b"]
)
def test_a_students_name_makes_no_path(course, name):
    """A folder below submitted/, or nothing: the notebook is put aside under a plain name."""
    done = collect(archive(course / "a.zip", {moodle(name, 1): notebook()}), course)
    for path in (course / "submitted").rglob("*"):
        assert path.resolve().is_relative_to(course / "submitted")
    folders = {p.name for p in (course / "submitted").iterdir()} if done.outcomes else set()
    assert all(folder.isprintable() and folder.strip("./~ ") for folder in folders)
    kept = [p for p in course.rglob("*.ipynb") if p.read_bytes() == notebook()]
    assert len(kept) == 1
    assert all(part.isprintable() for part in kept[0].relative_to(course).parts)
    assert all("\x1b" not in line and "\n" not in line for line in done.problems + done.remarks)


def test_links_and_devices_are_refused(course):
    path = course / "a.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for number, kind in enumerate((stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO), 1):
            info = zipfile.ZipInfo(moodle("Ada King", number))
            info.create_system, info.external_attr = 3, (kind | 0o777) << 16
            packed.writestr(info, "/etc/passwd")
        packed.writestr(moodle("Bob Day", 9), notebook())
    done = collect(path, course)
    assert done.outcomes == {("Bob Day", NAME): NEW}
    assert [line.partition("refused, ")[2] for line in done.problems if "refused" in line] == [
        "a link, or no ordinary file", "no ordinary file", "no ordinary file"
    ]  # fmt: skip


def test_links_in_the_course_are_not_followed(course):
    (course / "elsewhere").mkdir()
    (course / "submitted").mkdir()
    (course / "submitted" / "Ada King").symlink_to(course / "elsewhere")
    done = collect(archive(course / "a.zip", {GOOD: notebook()}), course)
    assert done.outcomes == {} and "Ada King is a link" in done.problems[0]
    assert not [*(course / "elsewhere").iterdir()]
    (course / "submitted").rename(course / "moved")
    (course / "submitted").symlink_to(course / "elsewhere")
    with pytest.raises(ValueError, match="is a link"):
        collect(course / "a.zip", course)
    assert not [*(course / "elsewhere").iterdir()]


def test_a_bomb_is_refused_whatever_size_it_states(course, monkeypatch):
    """Two megabytes of one letter, which an archive can call ten bytes."""
    monkeypatch.setattr(archives, "MAX_BYTES", 1_500_000)
    honest = archive(course / "a.zip", {GOOD: b"a" * 2_000_000})
    assert any("more than" in line for line in collect(honest, course).problems)
    data = bytearray(honest.read_bytes())
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", data, data.index(mark) + at, 10)
    (course / "b.zip").write_bytes(data)
    done = collect(course / "b.zip", course)
    assert handed_in(course) == {} and any("refused" in line for line in done.problems)


def test_a_participant_who_packs_bombs_costs_nobody_else(course, monkeypatch):
    """However often the archives in the archive would have to be read."""
    monkeypatch.setattr(archives, "MAX_FILE", 100_000)
    monkeypatch.setattr(collecting, "MAX_SIZE", 1_000_000)
    monkeypatch.setattr(archives, "MAX_IN_ALL", 3_000_000)
    bomb = archive(course / "b.zip", {f"{n}.ipynb": b"[" * 200_000 for n in range(90)})
    files = [(moodle("Ada King", 1, f"{n}.zip"), bomb.read_bytes()) for n in range(9)]
    done = collect(archive(course / "a.zip", [*files, (moodle("Bob Day", 2), notebook())]), course)
    assert done.outcomes == {("Bob Day", NAME): NEW}
    assert any("too many or too large" in line for line in done.problems)


def test_an_archive_of_too_much_is_refused(course, monkeypatch):
    files = {moodle("Ada King", n): os.urandom(1000) for n in range(1, 6)}
    path = archive(course / "a.zip", files)
    for limit, most in (("MAX_MEMBERS", 4), ("MAX_IN_ALL", 3000), ("MAX_ARCHIVE", 2000)):
        with monkeypatch.context() as patch:
            patch.setattr(archives, limit, most)
            with pytest.raises(ValueError, match=r"a\.zip (has|holds) more than"):
                collect(path, course)
    assert handed_in(course) == {}


def test_what_is_damaged_or_encrypted_is_told(course):
    path = archive(course / "a.zip", [(GOOD, notebook() * 50), (moodle("Bob Day", 2), notebook())])
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as packed:
        start = packed.infolist()[0].header_offset + 30 + len(GOOD)
    data[start + 10] ^= 0xFF
    path.write_bytes(data)
    done = collect(path, course)
    assert done.outcomes == {("Bob Day", NAME): NEW}
    assert any("refused, damaged" in line for line in done.problems)
    secret = bytearray(archive(path, {GOOD: b"x"}).read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        secret[secret.index(mark) + at] |= 1
    path.write_bytes(secret)
    assert collect(path, course).problems == [f"{GOOD}: refused, encrypted"]


@pytest.mark.parametrize("data", [b"", b"no archive", b"PK\x03\x04" + b"\0" * 40])
def test_what_is_no_archive_is_told(course, data):
    (course / "a.zip").write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.zip cannot be read as a \.zip"):
        collect(course / "a.zip", course)


def test_an_archive_of_another_kind_is_told(course):
    with pytest.raises(ValueError, match="expected names such as Ada King_12345"):
        collect(archive(course / "a.zip", {"notes/a.ipynb": notebook()}), course)
    with pytest.raises(ValueError, match="no assignment chapter_1; there are"):
        collect(archive(course / "a.zip", {GOOD: notebook()}), course, assignment="chapter_1")
    with pytest.raises(ValueError, match="no archive"):
        collect(course / "nowhere.zip", course)


@pytest.mark.parametrize(
    "rows, words",
    [
        ([], "a row of headings"),
        ([["Colour", "Size"], ["red", "3"]], "expected a column of names, addresses or ids"),
    ],
)
def test_a_worksheet_that_is_none_is_told(course, rows, words):
    path = archive(course / "a.zip", {GOOD: notebook()})
    with pytest.raises(ValueError, match=words):
        collect(path, course, worksheet=table(course / "s.csv", rows))
    short = table(course / "s.csv", [MOODLE_HEAD, ["Participant 1", "Ada King"]])
    assert collect(path, course, worksheet=short).outcomes == {("Ada King", NAME): NEW}


def test_a_login_makes_no_path(course):
    head = ["name", "username", "email"]
    sheet = table(course / "s.csv", [head, ["Ada King", "../../evil", "ada@example.org"]])
    done = collect(archive(course / "a.zip", {GOOD: notebook()}), course, worksheet=sheet)
    assert done.outcomes == {("ada@example.org", NAME): NEW}


def test_the_ids_of_the_course_make_no_path_either(course):
    text = '[students."../evil"]\nfirst_name = "Ada"\nlast_name = "King"\n'
    (course / "course.toml").write_text(text, encoding="utf-8")
    done = collect(archive(course / "a.zip", {GOOD: notebook()}), course)
    assert handed_in(course) == {} and "../evil is not a safe name for a folder" in done.problems[0]
