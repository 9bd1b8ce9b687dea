"""What one participant hands in costs that participant alone when an archive is collected."""

import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from lms_archives import FILE, MOODLE_HEAD, NAME, handed_in, moodle, moodle_row, notebook, table
from odd_folders import PLACED, SAID, TEXTS, in_place_of

from autograder.lms.collect import NEW, CollectResult, collect
from tests.grader.gradebook.test_odd_folders import bound_by_modes

ORDINARY = {"Ada King": notebook("return 1"), "Bob Day": notebook("return 2")}
Packer = Callable[[zipfile.ZipFile, str, int], None]
PACKED: dict[str, Packer] = {}


def packed(make: Packer) -> Packer:
    PACKED[make.__name__] = make
    return make


def entry(**fields) -> Packer:
    """An ordinary notebook whose entry says something odd."""

    def pack(archive: zipfile.ZipFile, label: str, number: int) -> None:
        info = zipfile.ZipInfo(moodle(label, number))
        for name, value in fields.items():
            setattr(info, name, value)
        archive.writestr(info, notebook("return 3"))

    return pack


def data(content: bytes, file: str = FILE) -> Packer:
    return lambda archive, label, number: archive.writestr(moodle(label, number, file), content)


PACKED |= {f"notebook_{name}": data(text) for name, text in TEXTS.items()}
PACKED |= {
    f"file_{name}": data(notebook("return 3"), file)
    for name, file in {
        "long": "𝛼" * 120 + ".ipynb", "longer": "x" * 5000 + ".ipynb", "newline": "a\nb.ipynb",
        "escape": "\x1b[2J.ipynb", "backwards": "\u202e.ipynb", "option": "-rf.ipynb",
        "dots": "...ipynb", "blank": " .ipynb", "capitals": FILE.upper(), "up": "../../x.ipynb",
        "drive": "C:\\x.ipynb", "no_notebook": "essay.pdf",
    }.items()
}  # fmt: skip
PACKED |= {
    "link": entry(create_system=3, external_attr=(stat.S_IFLNK | 0o777) << 16),
    "pipe": entry(create_system=3, external_attr=stat.S_IFIFO << 16),
    "device": entry(create_system=3, external_attr=stat.S_IFCHR << 16),
    "no_modes": entry(create_system=3, external_attr=stat.S_IFREG << 16),
    "time_of_nobody": entry(_raw_time=0, date_time=(1980, 0, 0, 0, 0, 0)),
    "time_of_31_february": entry(date_time=(2030, 2, 31, 31, 63, 62)),
    "time_at_the_end": entry(date_time=(2107, 12, 31, 23, 59, 58)),
    "extra_of_nothing": entry(extra=struct.pack("<HHB", 0x5455, 1, 1)),
    "extra_of_too_much": entry(extra=struct.pack("<HHBI", 0x5455, 5, 1, 2**32 - 1)),
}


@packed
def everything_twice(archive: zipfile.ZipFile, label: str, number: int) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        for answer in ("return 3", "return 4"):
            archive.writestr(moodle(label, number), notebook(answer))


@packed
def notebooks_by_the_hundred(archive: zipfile.ZipFile, label: str, number: int) -> None:
    for n in range(300):
        archive.writestr(moodle(label, number, f"{n}.ipynb"), notebook(f"return {n}"))


@packed
def a_hundred_megabytes(archive: zipfile.ZipFile, label: str, number: int) -> None:
    for n in range(8):
        name = moodle(label, number, f"{n}.ipynb")
        archive.writestr(name, bytes(19_000_000), zipfile.ZIP_DEFLATED)


@packed
def more_than_is_read(archive: zipfile.ZipFile, label: str, number: int) -> None:
    archive.writestr(moodle(label, number), bytes(21_000_000), zipfile.ZIP_DEFLATED)


def damaged(archive: Path, name: str, how: str) -> None:
    """Change an entry where it stands: its method, its size, or what it holds."""
    content = bytearray(archive.read_bytes())
    raw = name.encode()
    central, local = content.rindex(raw) - 46, content.index(raw) - 30
    if how == "method":
        for place in (central + 10, local + 8):
            struct.pack_into("<H", content, place, 99)
    elif how == "sum":
        struct.pack_into("<I", content, central + 16, 1)
    elif how == "size":
        struct.pack_into("<II", content, central + 20, 5, 7)
    elif how == "locked":
        content[central + 8] |= 1
    elif how == "local_name":
        content[local + 30] ^= 1
    elif how == "place":
        struct.pack_into("<I", content, central + 42, 3)
    else:
        start = local + 30 + len(raw) + 12
        content[start : start + 8] = b"\xff" * 8
    archive.write_bytes(content)


BROKEN = {
    f"{how}_{method}": (how, method)
    for how in ("method", "sum", "size", "locked", "local_name", "place", "content")
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
}


def target(course: Path, label: str) -> Path:
    return course / "submitted" / label / NAME / FILE


BEFORE: dict[str, Callable[[Path, str], object]] = {}
PLACES = {name: make for name, make in PLACED.items() if name != "large"}
for _what, _place in {
    "student": lambda course, label: target(course, label).parent.parent,
    "folder": lambda course, label: target(course, label).parent,
    "notebook": target,
    "stamp": lambda course, label: target(course, label).with_name("timestamp.txt"),
    "earlier": lambda course, label: course / "collected" / NAME / "earlier" / label,
}.items():
    BEFORE |= {f"{_what}_{name}": in_place_of(_place, make) for name, make in PLACES.items()}


def another_notebook(text: str) -> Callable[[Path, str], object]:
    def make(course: Path, label: str) -> None:
        target(course, label).parent.mkdir(parents=True)
        target(course, label).write_bytes(notebook("return 5"))
        target(course, label).with_name("timestamp.txt").write_text(text)

    return make


BEFORE |= {f"before_{name}": another_notebook(text) for name, text in SAID.items()}
ODD = [*PACKED, *BROKEN, *BEFORE, *(f"said_{name}" for name in SAID)]


def collected(course: Path, odd: list[str]) -> CollectResult:
    """Collect an archive of the ordinary participants and of one for each odd thing."""
    path, course = course / "a.zip", course / "course"
    course.mkdir()
    labels = {f"odd {name.replace('_', ' ')}": name for name in odd}
    rows, names = [], list(ORDINARY)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (label, name) in enumerate(labels.items(), 100):
            method = BROKEN[name][1] if name in BROKEN else zipfile.ZIP_DEFLATED
            pack = PACKED.get(name)
            if pack is not None:
                pack(archive, label, number)
            else:
                archive.writestr(moodle(label, number), notebook("return 3"), method)
            if name in BEFORE:
                BEFORE[name](course, label)
            said = SAID.get(name.removeprefix("said_"), "-") if name[:5] == "said_" else "-"
            rows.append(moodle_row(number, label, "", said or "-"))
        for number, label in enumerate(names, 1):
            archive.writestr(moodle(label, number), ORDINARY[label])
            rows.append(moodle_row(number, label, "", "Friday, 1 March 2030, 12:00 PM"))
    for number, (label, name) in enumerate(labels.items(), 100):
        if name in BROKEN:
            damaged(path, moodle(label, number), BROKEN[name][0])
    sheet = table(path.with_name("sheet.csv"), [MOODLE_HEAD, *rows])
    with bound_by_modes():
        return collect(path, course, assignment=NAME, worksheet=sheet)


def check(course: Path, done: CollectResult, odd: list[str]) -> None:
    """The ordinary ones have what they handed in; who has not is told by name."""
    root = course / "course"
    files = {path: root / "submitted" / path for path in (f"{n}/{NAME}/{FILE}" for n in ORDINARY)}
    assert {path: file.read_bytes() for path, file in files.items()} == {
        f"{name}/{NAME}/{FILE}": content for name, content in ORDINARY.items()
    }
    for name in ORDINARY:
        assert done.outcomes[name, NAME] == NEW
        stamp = (root / "submitted" / name / NAME / "timestamp.txt").read_text()
        assert stamp == "2030-03-01 12:00:00 UTC"
    told = "\n".join(done.problems + done.remarks)
    for name in odd:
        label = f"odd {name.replace('_', ' ')}"
        assert (label, NAME) in done.outcomes or label in told or "refused" in told
    assert all(line.isprintable() for line in done.problems + done.remarks)


@pytest.mark.share(24)
@pytest.mark.parametrize("odd", ODD)
def test_one_odd_entry_costs_that_participant_alone(tmp_path, odd):
    check(tmp_path, collected(tmp_path, [odd]), [odd])


def test_all_odd_entries_at_once_cost_those_participants_alone(tmp_path):
    done = collected(tmp_path, ODD)
    check(tmp_path, done, ODD)


def test_collected_in_a_class_of_such_names_all_is_graded(tmp_path):
    """Names that a course's folder or files have make no other folder of the class's."""
    from autograder.gradebook.command_suggestions import check_folder

    names = ["submitted", NAME, "Ada.ipynb", "notebooks", "Ada King"]
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number, name in enumerate(names, 1):
            archive.writestr(moodle(name.replace("_", " "), number), notebook())
    done = collect(path, tmp_path)
    assert len(done.outcomes) == len(names) == len(handed_in(tmp_path))
    (tmp_path / "submitted" / NAME / NAME).mkdir(parents=True)
    check_folder(tmp_path / "submitted", tmp_path / "released", [NAME])
    with pytest.raises(ValueError, match="is the folder of the course"):
        check_folder(tmp_path, tmp_path / "released", [NAME])
