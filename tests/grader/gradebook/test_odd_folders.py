"""One student's folder costs that folder alone, whatever lies in it: marks, files, pages."""

import ctypes
import re
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unicodedata import normalize
from zoneinfo import ZoneInfo

import pytest
from faults import TINY, PagesHere, grade_quickly, hand_in, outcome_of
from hypothesis import given
from hypothesis import strategies as st
from lms_archives import MOODLE_HEAD, moodle_row, read_table, table
from odd_folders import AFTER, BAD, FINE, NAMES, SAID, SKIPPED, TIMES, Maker

from autograder.gradebook import writer
from autograder.gradebook.classroom import ClassResult
from autograder.gradebook.rows import UNDATED
from autograder.gradebook.submissions import timestamp_in
from autograder.judge.judgement import GRADED, UNUSABLE
from autograder.lms.return_grades import ReturnResult, return_grades
from autograder.report.marking import marking_page
from autograder.report.report import report

ORDINARY = {"ann": 3.0, "bob": 0.5}
MAKERS = TIMES | BAD | SKIPPED | FINE
CALLED = {f"called {name}": normalize("NFC", name) for name in NAMES}


# --- the steps ------------------------------------------------------------------------------------


@contextmanager
def bound_by_modes() -> Iterator[None]:
    """As an ordinary user: the modes of files bind root, too."""
    libc = ctypes.CDLL(None, use_errno=True)
    head, powers = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(head, powers) == 0
    before = powers[0]
    powers[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(head, powers) == 0
    try:
        yield
    finally:
        powers[0] = before
        assert libc.capset(head, powers) == 0


def course_of(root: Path, release: Path, odd: dict[str, Maker]) -> Path:
    """A course of two ordinary students, and one for each odd thing, named for it."""
    shutil.copytree(release, root / "notebooks")
    for student, score in ORDINARY.items():
        hand_in(root, release, student, f"def softmax(scores, axis=-1):\n    return {score}")
    for student, make in odd.items():
        hand_in(root, release, student, "def softmax(scores, axis=-1):\n    return 1.0")
        make(root, student)
    return root


def graded(course: Path) -> ClassResult:
    with bound_by_modes():
        return grade_quickly(course, course / "notebooks")


def read_again(course: Path) -> ReturnResult:
    """Draw the report, the page for marking, and what goes back to Moodle."""
    people = [*ORDINARY, *sorted(path.name for path in (course / "autograded").iterdir())]
    names = [*dict.fromkeys(name for name in people if name.isprintable())]
    rows = [moodle_row(n, name, f"{name}@x.org") for n, name in enumerate(names, 1)]
    sheet = table(course / "sheet.csv", [MOODLE_HEAD, *rows])
    with pytest.MonkeyPatch.context() as patch, bound_by_modes():
        patch.setattr(writer, "PageMaker", PagesHere)
        report(course, course / "report.html", items=course / "items.csv")
        marking_page(course, TINY, course / "marking.html")
        (back,) = return_grades(course, "moodle", worksheet=sheet, open_too=True, scale=True)
    return back


def seen_of(course: Path, result: ClassResult) -> dict[str, tuple]:
    """What the ordinary students get: marks, files, and their places in each table and archive."""
    rows = {row.student: (row.status, row.score, row.notes) for row in result.rows}
    files, drawn = outcome_of(course), (course / "report.html").read_text("utf-8")
    marked = (course / "marking.html").read_text("utf-8")
    marked = re.sub(r"/submissions/[\w-]+", "", marked)  # an id by chance
    back = course / "returned" / TINY
    grades = {row[1]: row[4] for row in read_table(back / "grades.csv")}
    with zipfile.ZipFile(back / "feedback.zip") as packed:
        pages = {name.split("_")[0]: packed.read(name) for name in packed.namelist()}
    return {
        name: (
            rows[name],
            files[name],
            re.search(rf'<tr data-student="{name}".*?</tr>', drawn)[0],
            re.sub(
                r"/submissions/\w+", "", re.search(rf'<li data-who="{name}".*?</li>', marked)[0]
            ),
            grades[name],
            pages[name],
        )
        for name in ORDINARY
    }


# --- what comes out -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def usual(tmp_path_factory, release) -> dict[str, tuple]:
    """What the ordinary students get where nobody is odd."""
    course = course_of(tmp_path_factory.mktemp("usual"), release, {})
    result = graded(course)
    read_again(course)
    found = seen_of(course, result)
    assert {name: found[name][0][:2] for name in found} == {
        name: (GRADED, score) for name, score in ORDINARY.items()
    }
    return found


def check_odd(odd: str, course: Path, result: ClassResult) -> None:
    """The odd one has what it deserves, and its name is told if that is not all."""
    rows = {row.student: row for row in result.rows}
    told = " ".join(result.ignored)
    drawn = (course / "report.html").read_text("utf-8")
    row = rows.get(CALLED.get(odd, odd))
    if odd in SKIPPED:
        assert row is None and (odd in told or odd.startswith("name_"))
    elif odd in BAD:
        assert row.status == UNUSABLE and row.score == 0 and row.reason and row.reason in drawn
    elif odd in TIMES:
        assert row.status == GRADED and row.score == 1.0 and UNDATED in row.notes
        assert f"{odd}/{TINY}/timestamp.txt" in told and f'data-who="{odd}"' in drawn
        assert UNDATED in (course / "logs" / odd / f"{TINY}.log").read_text("utf-8")
        assert f"<b>{odd}</b></span>: {UNDATED}" in drawn
    else:
        assert row.status == GRADED and row.score == 1.0


@pytest.mark.share(24, rest="nightly")
@pytest.mark.parametrize("odd", MAKERS)
def test_one_odd_folder_costs_that_folder_alone(tmp_path, release, usual, odd):
    course = course_of(tmp_path, release, {odd: MAKERS[odd]})
    result = graded(course)
    read_again(course)
    assert seen_of(course, result) == usual
    check_odd(odd, course, result)
    assert result.exit_status == int(odd not in FINE)


@pytest.mark.share(0)
@pytest.mark.parametrize("odds", [FINE, MAKERS], ids=["fine", "all"])
def test_odd_folders_at_once_cost_those_folders_alone(tmp_path, release, usual, odds):
    course = course_of(tmp_path, release, odds)
    result = graded(course)
    read_again(course)
    assert seen_of(course, result) == usual
    for odd in odds:
        check_odd(odd, course, result)
    assert result.exit_status == int(odds is not FINE)
    told = [line for line in result.ignored if line.startswith("time_")]
    assert len(told) == len(odds.keys() & TIMES.keys())
    again = graded(course)
    assert {row.student for row in again.rows if not row.unchanged} == set()


@pytest.mark.share(24, rest="nightly")
@pytest.mark.parametrize("odd", AFTER)
def test_what_happens_to_one_students_pages_costs_nobody_else(tmp_path, release, usual, odd):
    course = course_of(tmp_path, release, {odd: lambda *_: None})
    graded(course)
    AFTER[odd](course, odd)
    read_again(course)
    result = graded(course)
    assert seen_of(course, result) == usual


@pytest.mark.share(0)
def test_whatever_happens_to_pages_costs_nobody_else(tmp_path, release, usual):
    course = course_of(tmp_path, release, dict.fromkeys(AFTER, lambda *_: None))
    graded(course)
    for odd, change in AFTER.items():
        change(course, odd)
    read_again(course)
    result = graded(course)
    assert seen_of(course, result) == usual
    assert {row.student for row in result.rows} == AFTER.keys() | ORDINARY.keys()


@given(st.text() | st.binary() | st.from_regex(r"[-0-9:T /+A-Z]{1,40}", fullmatch=True))
def test_no_text_makes_a_time_by_chance(tmp_path_factory, text):
    """What is taken for a time says year, month, day, hour and minute; nothing else ends."""
    path = tmp_path_factory.getbasetemp() / "timestamp.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "replace"))
    said = timestamp_in(path)
    assert said is None or len([part for part in said if part.isalnum()]) >= 8


@pytest.mark.parametrize(
    "said",
    ["2030-03-01 12:00:00 UTC", "2030-03-01 12:00:00.123456 Europe/Berlin", "2030-03-01T12:00Z",
     "2030-03-01T12:00:00+01:00", "2030-03-01 12:00", "3 March 2030 12:00", "13/04/2030 12:00"],
)  # fmt: skip
def test_what_says_a_time_in_full_is_one(tmp_path, said):
    path = tmp_path / "timestamp.txt"
    path.write_text(said)
    assert timestamp_in(path) == said
    assert said not in SAID.values()


@pytest.mark.parametrize(
    "said, at",
    [("2030-03-01 12:30", "11:30"), ("Friday, 1 March 2030, 12:30 PM", "11:30"),
     ("Freitag, 1. März 2030, 12:30", "11:30"), ("\ufeff\ufeff2030-03-01 12:30", "11:30"),
     ("2030-03-01T12:30", "11:30")],
)  # fmt: skip
def test_a_time_without_a_zone_is_by_the_courses_clock(tmp_path, said, at):
    path = tmp_path / "timestamp.txt"
    path.write_text(said, encoding="utf-8")
    assert timestamp_in(path, ZoneInfo("Europe/Berlin")) == f"2030-03-01 {at}:00 UTC"


@pytest.mark.parametrize("said", ["2030-10-27 02:30", "2030-03-31 02:30", "2030-03-31T02:30"])
def test_an_hour_that_the_clocks_showed_twice_or_never_says_no_time(tmp_path, said):
    path = tmp_path / "timestamp.txt"
    path.write_text(said)
    assert timestamp_in(path, ZoneInfo("Europe/Berlin")) is None
    assert timestamp_in(path, ZoneInfo("Asia/Tokyo")) is not None


@pytest.mark.parametrize(
    "said",
    [
        "2030-03-01 12:30 UTC",
        "2030-03-01T12:30Z",
        "2030-03-01T12:30:00+09:00",
        "2030-03-01 12:30 Asia/Tokyo",
    ],
)
def test_a_time_with_a_zone_is_by_that(tmp_path, said):
    path = tmp_path / "timestamp.txt"
    path.write_text(said)
    assert timestamp_in(path, ZoneInfo("Europe/Berlin")) == said
