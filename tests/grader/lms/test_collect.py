"""Archives from Moodle and Canvas become submissions; what cannot be matched is told and kept."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unicodedata import normalize

import pytest
from lms_archives import (
    FILE,
    GERMAN_HEAD,
    MOODLE_HEAD,
    NAME,
    OTHER,
    ROOT,
    archive,
    canvas,
    canvas_rows,
    flat,
    handed_in,
    moodle,
    moodle_row,
    notebook,
    table,
)

from autograder.gradebook.gradebook import Book
from autograder.gradebook.submissions import find_tasks, timestamp_in
from autograder.judge.job import Options
from autograder.lms.collect import NEW, NEWER, OLDER, SAME, CollectResult, collect

PEOPLE = """
timezone = "Europe/Berlin"

[students.ada]
first_name = "Ada"
last_name = "King"
email = "ada@example.org"

[students.muellerj]
first_name = "Jürgen"
last_name = "Müller-Lüdenscheidt"

[students.ob]
first_name = "Aoife"
last_name = "O'Brien"
"""
ADA, ADAS = f"ada/{NAME}/{FILE}", "Ada King"


@pytest.fixture
def course(tmp_path) -> Path:
    (tmp_path / "course.toml").write_text(PEOPLE, encoding="utf-8")
    return tmp_path


def sort(course: Path, files, **how) -> CollectResult:
    return collect(archive(course / "class.zip", files), course, **how)


def stamp(course: Path, student: str) -> str | None:
    return timestamp_in(course / "submitted" / student / NAME / "timestamp.txt")


# --- Names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("way", [moodle, flat, lambda n, i: moodle(n, i, old=False)])
def test_moodles_names_find_their_students(course, form, way):
    names = [ADAS, "Jürgen Müller-Lüdenscheidt", "Aoife OBrien"]  # Moodle drops the apostrophe
    files = {
        way(normalize(form, name), 4000 + n): notebook(f"return {n}")
        for n, name in enumerate(names)
    }
    done = sort(course, files)
    assert done.problems == [] and done.exit_status == 0
    assert handed_in(course) == {
        f"{student}/{NAME}/{FILE}": notebook(f"return {n}")
        for n, student in enumerate(["ada", "muellerj", "ob"])
    }


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_canvas_names_find_their_students(course, form):
    names = ["King, Ada", "Müller-Lüdenscheidt, Jürgen", "O'Brien, Aoife"]
    files = {
        canvas(normalize(form, name), 70 + n, 990 + n, late=n == 1): notebook(f"return {n}")
        for n, name in enumerate(names)
    }
    done = sort(course, files)
    assert done.problems == [] and set(done.outcomes.values()) == {NEW}
    assert {student for student, _ in done.outcomes} == {"ada", "muellerj", "ob"}
    assert any(
        "LATE, without a time, for müllerlüdenscheidtjürgen" in line for line in done.remarks
    )


def test_an_archive_that_says_nothing_of_utf8_is_read_as_such(course):
    path = archive(course / "class.zip", {moodle("Jürgen Müller-Lüdenscheidt", 7): notebook()})
    data = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.index(mark) + at
        data[place + 1] &= ~0x08  # the flag that names are UTF-8
    path.write_bytes(data)
    assert collect(path, course).outcomes == {("muellerj", NAME): NEW}


def test_graders_find_what_was_collected(course):
    sort(course, {moodle(ADAS, 1): notebook(), moodle("Aoife OBrien", 2, "my work.ipynb"): b"{}"},
         assignment=NAME)  # fmt: skip
    tasks, ignored = find_tasks(course / "submitted", ROOT / "notebooks", Options())
    assert [(task.student, task.assignment) for task in tasks] == [("ada", NAME), ("ob", NAME)]
    assert ignored == []


def test_namesakes_are_nobody_until_a_worksheet_tells_them_apart(course):
    twins = PEOPLE + '\n[students.king2]\nfirst_name = "Ada"\nlast_name = "King"\n'
    (course / "course.toml").write_text(twins + 'email = "a.king@example.org"\n', encoding="utf-8")
    files = {moodle(ADAS, 11): notebook("one"), moodle(ADAS, 12): notebook("two")}
    done = sort(course, files)
    assert handed_in(course) == {} and len(done.problems) == 2 and done.exit_status == 1
    assert all("Ada King can be ada, king2" in line for line in done.problems)
    kept = {path.read_bytes() for path in (course / "collected" / NAME / "aside").rglob("*.ipynb")}
    assert kept == {notebook("one"), notebook("two")}
    rows = [moodle_row(11, ADAS, "A.King@example.org"), moodle_row(12, ADAS, "ada@example.org")]
    sheet = table(course / "sheet.csv", [MOODLE_HEAD, *rows])
    assert sort(course, files, worksheet=sheet).problems == []
    assert handed_in(course) == {ADA: notebook("two"), f"king2/{NAME}/{FILE}": notebook("one")}


def test_two_participants_of_one_name_are_not_one_student(course):
    done = sort(course, {moodle(ADAS, 11): notebook("one"), moodle(ADAS, 12): notebook("two")})
    assert handed_in(course) == {} and len(done.problems) == 2
    assert all("several participants (11, 12)" in line for line in done.problems)


def test_a_stranger_is_told_and_kept(course):
    done = sort(course, {moodle("Eve Nobody", 9): notebook("x"), moodle(ADAS, 1): notebook()})
    assert [*handed_in(course)] == [ADA]
    (line,) = done.problems
    assert "Eve Nobody (9) is not one of the course's students" in line
    kept = course / line.rpartition("kept in ")[2]
    assert kept.read_bytes() == notebook("x")


def test_the_gradebooks_students_are_known_too(tmp_path):
    book = Book(f"sqlite:///{tmp_path / 'gradebook.db'}")
    with book.transaction():
        book.add_student("u1", first_name="Ada", last_name="King")
    book.close()
    done = sort(tmp_path, {canvas("King, Ada", 7, 99): notebook()})
    assert done.outcomes == {("u1", NAME): NEW}


def test_without_any_list_people_go_by_their_names(tmp_path):
    done = sort(tmp_path, {moodle("Zoë Ångström", 5): notebook()})
    assert done.outcomes == {("Zoë Ångström", NAME): NEW}
    done = sort(tmp_path, {canvas("Ångström, Zoë", 7, 99): notebook()})
    assert done.outcomes == {("ångströmzoë-7", NAME): NEW}  # Canvas's number is theirs for good


def test_without_any_list_a_worksheets_logins_become_ids(tmp_path):
    people = [("King, Ada", 7, "aking"), ("King, Ada", 8, "aking2")]
    sheet = table(tmp_path / "gradebook.csv", canvas_rows(people, "One (815)", "25.5"))
    files = {canvas("King, Ada", n, 90 + n): notebook(str(n)) for n in (7, 8)}
    done = sort(tmp_path, files, worksheet=sheet)
    assert done.outcomes == {("aking", NAME): NEW, ("aking2", NAME): NEW}


def test_a_list_of_people_with_addresses_is_read_whatever_its_columns_are_called(course):
    rows = [["First name", "Surname", "Email address"], ["Ada", "King", "ADA@example.org"]]
    sheet = table(course / "people.csv", rows, delimiter=";")
    assert sort(course, {moodle(ADAS, 3): notebook()}, worksheet=sheet).outcomes == {
        ("ada", NAME): NEW
    }


def test_who_has_withdrawn_is_told(course):
    left = PEOPLE.replace("[students.ada]", "[students.ada]\nwithdrawn = true")
    (course / "course.toml").write_text(left, encoding="utf-8")
    done = sort(course, {moodle(ADAS, 1): notebook()})
    assert "ada has withdrawn, and will not be graded" in done.remarks


# --- Files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [f"{NAME}-1.ipynb", f"{NAME} (2).ipynb", f"Copy of {NAME}.ipynb", "homework.ipynb"]
)
def test_a_renamed_notebook_is_known_by_its_cells_or_its_name(course, name):
    marks = name == "homework.ipynb"
    done = sort(course, {canvas("King, Ada", 7, 99, name): notebook("x", nbgrader=marks)})
    assert done.outcomes == {("ada", NAME): NEW} and [*handed_in(course)] == [ADA]


def test_a_notebook_that_says_nothing_needs_an_assignment(course):
    files = {moodle(ADAS, 1, "homework.ipynb"): b"half a file"}
    done = sort(course, files)
    assert done.outcomes == {} and "cannot tell which chapter homework.ipynb is" in done.problems[0]
    assert sort(course, files, assignment="kernel_regression").outcomes == {("ada", NAME): NEW}
    assert handed_in(course)[ADA] == b"half a file"  # the grader says what is wrong with it


def test_one_archive_can_hold_several_chapters_and_a_wrong_one_is_told(course):
    files = {
        moodle(ADAS, 1): notebook("x"),
        moodle(ADAS, 1, "y.ipynb"): notebook("y", "causal_mask"),
    }
    done = sort(course, files, assignment=NAME)
    assert done.outcomes == {("ada", NAME): NEW}
    assert f"y.ipynb is a notebook of {OTHER}, not of {NAME}" in done.problems[0]
    assert sort(course, files).outcomes == {("ada", NAME): SAME, ("ada", OTHER): NEW}


def test_other_files_texts_and_noise_are_told_or_passed_over(course):
    files = {
        moodle(ADAS, 1): notebook(),
        moodle(ADAS, 1, "plot.png"): b"png",
        moodle(ADAS, 1, "onlinetext.html", plugin="onlinetext"): b"<p>Hello</p>",
        moodle("Aoife OBrien", 2, "onlinetext.html", plugin="onlinetext"): b"<p>My answer</p>",
        f"__MACOSX/{moodle(ADAS, 1)}": b"",
        "readme.txt": b"",
    }
    done = sort(course, files)
    assert done.outcomes == {("ada", NAME): NEW}
    assert any("plot.png is not a notebook" in line for line in done.remarks)
    assert done.problems == [
        "readme.txt: not named as by Blackboard, Canvas or Moodle",
        "Aoife OBrien (2): no notebook, but onlinetext in onlinetext.html",
    ]


def test_canvas_texts_and_anonymous_files_are_told(course):
    files = {
        "kingada_7_text.html": b"",
        f"anon_Xy1Zz_991_{FILE}": notebook(),
        canvas("O'Brien, Aoife", 8, 99): notebook(),
    }
    done = sort(course, files)
    assert done.outcomes == {("ob", NAME): NEW}
    assert any("kingada (7): no notebook, but text" in line for line in done.problems)
    assert any(f"anon_Xy1Zz_991_{FILE}: not named as" in line for line in done.problems)


@pytest.mark.parametrize(
    "first, second",
    [
        (canvas("King, Ada", 7, 100), canvas("King, Ada", 7, 101, f"{NAME}-1.ipynb")),
        (canvas("King, Ada", 7, 100, f"{NAME}-1.ipynb"), canvas("King, Ada", 7, 101)),
        (moodle(ADAS, 1), moodle(ADAS, 1, f"{NAME}-1.ipynb")),
        (moodle(ADAS, 1, "draft.ipynb"), moodle(ADAS, 1)),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_of_several_notebooks_the_newest_counts(course, first, second, turned):
    items = [(first, notebook("old")), (second, notebook("new"))]
    done = sort(course, items[::-1] if turned else items)
    assert handed_in(course) == {ADA: notebook("new")}
    said = "has a newer one, " if "kingada" in first else "not known which is newer"
    taken = second.partition("/")[2] or second.partition("_101_")[2]
    assert any(said in line and taken in line for line in done.remarks)
    (kept,) = (course / "collected" / NAME / "earlier" / "ada").iterdir()
    assert kept.read_bytes() == notebook("old")


# --- Resubmissions and times ----------------------------------------------------------------------


LARGE = {"output_type": "display_data", "data": {"image/png": 'iVBORw0K[]{}"\\' * 7_000_000}}


@pytest.mark.share(0)
def test_outputs_of_100_mb_are_dropped_from_each_archive(course):
    """And so they are when the notebook comes in a zip, or with a browser's suffix."""
    tree = json.loads(notebook("def softmax(scores):\n    return scores"))
    small = json.dumps(tree).encode()
    tree["cells"][0]["outputs"] = [LARGE]
    large = json.dumps(tree).encode()
    assert len(large) > 100_000_000
    own = archive(course / "own.zip", {FILE: large}).read_bytes()
    for file in (moodle(ADAS, 101, "my.zip"), canvas("King, Ada", 7, 1, f"{FILE}.txt")):
        for outcome in (NEW, SAME):
            done = sort(course, {file: own if file.endswith(".zip") else large})
            assert done.outcomes == {("ada", NAME): outcome} and not done.problems
        assert (course / "submitted" / ADA).read_bytes() == small
        shutil.rmtree(course / "submitted")


def test_collecting_again_changes_nothing(course):
    files = {moodle(ADAS, 1): notebook("a"), moodle("Eve Nobody", 9): notebook("x")}
    sort(course, files)
    before = {p: p.stat().st_mtime_ns for p in (course / "submitted").rglob("*")}
    kept = sorted((course / "collected").rglob("*"))
    assert sort(course, files).outcomes == {("ada", NAME): SAME}
    assert {p: p.stat().st_mtime_ns for p in (course / "submitted").rglob("*")} == before
    assert sorted((course / "collected").rglob("*")) == kept


def test_a_later_archive_replaces_what_was_there_and_keeps_it(course):
    sort(course, {moodle(ADAS, 1): notebook("old")})
    done = sort(course, {moodle(ADAS, 1): notebook("new")})
    assert done.outcomes == {("ada", NAME): NEWER} and handed_in(course) == {ADA: notebook("new")}
    (kept,) = (course / "collected" / NAME / "earlier" / "ada").iterdir()
    assert kept.read_bytes() == notebook("old")


def test_an_older_archive_replaces_nothing(course):
    sort(course, {canvas("King, Ada", 7, 200): notebook("new")})
    done = sort(course, {canvas("King, Ada", 7, 150): notebook("old")})
    assert done.outcomes == {("ada", NAME): OLDER} and handed_in(course) == {ADA: notebook("new")}
    assert (course / "collected" / NAME / "earlier" / "ada" / FILE).read_bytes() == notebook("old")


def test_times_come_from_the_grading_worksheet(course):
    rows = [
        moodle_row(1, ADAS, "ada@example.org", "Friday, 1 March 2030, 11:59 AM"),
        moodle_row(2, "Aoife O'Brien", "", "-"),
    ]
    sheet = table(course / "sheet.csv", [MOODLE_HEAD, *rows])
    files = {moodle(ADAS, 1): notebook("a"), moodle("Aoife OBrien", 2): notebook("b")}
    assert sort(course, files, worksheet=sheet).problems == []
    assert stamp(course, "ada") == "2030-03-01 10:59:00 UTC"  # by the course's clock, Berlin's
    assert stamp(course, "ob") is None
    later = [moodle_row(1, ADAS, "ada@example.org", "Saturday, 2 March 2030, 8:00 PM"), rows[1]]
    table(course / "sheet.csv", [MOODLE_HEAD, *later])
    done = sort(course, files | {moodle(ADAS, 1): notebook("new")}, worksheet=sheet)
    assert done.outcomes["ada", NAME] == NEWER and stamp(course, "ada") == "2030-03-02 19:00:00 UTC"
    table(course / "sheet.csv", [MOODLE_HEAD, *rows])
    done = sort(course, files, worksheet=sheet)
    assert done.outcomes["ada", NAME] == OLDER and stamp(course, "ada") == "2030-03-02 19:00:00 UTC"


def test_a_worksheet_in_another_language_is_understood_by_its_order(course):
    times = ("Freitag, 1. März 2030, 11:59", "Samstag, 2. März 2030, 00:05")
    rows = [
        moodle_row(n, name, "", when, "25,50", "Teilnehmer/in")
        for n, (name, when) in enumerate(zip((ADAS, "Aoife O'Brien"), times, strict=True), 1)
    ]
    sheet = table(course / "sheet.csv", [GERMAN_HEAD, *rows])
    files = {moodle(ADAS, 1): notebook("a"), moodle("Aoife OBrien", 2): notebook("b")}
    assert sort(course, files, worksheet=sheet).problems == []
    assert stamp(course, "ada") == "2030-03-01 10:59:00 UTC"
    assert stamp(course, "ob") == "2030-03-01 23:05:00 UTC"


def test_a_time_that_cannot_be_read_is_told(course):
    """By file and line, and again by whoever grades: a time not known is never "on time"."""
    for said in ("03/04/2030", "01.03.2030 12:30", "2030-02-30 12:00", "Friday", "9" * 5000):
        other = moodle_row(2, "Aoife O'Brien", "", "Friday, 1 March 2030, 11:59 AM")
        rows = [MOODLE_HEAD, other, moodle_row(1, ADAS, "ada@example.org", said)]
        done = sort(course, {moodle(ADAS, 1): notebook()},
                    worksheet=table(course / "sheet.csv", rows))  # fmt: skip
        assert ("ada", NAME) in done.outcomes and stamp(course, "ada") is None
        (line,) = done.problems
        assert line.startswith("sheet.csv, line 3: expected a time such as")
        assert (
            said[:100] in line and "whether Participant 1 Ada King came late is not known" in line
        )
        _, ignored = find_tasks(course / "submitted", ROOT / "notebooks", Options())
        assert [line.partition(":")[0] for line in ignored] == [f"ada/{NAME}/timestamp.txt"]


def test_the_archives_own_times_count_only_if_that_is_said(course):
    files = {
        moodle(ADAS, 1) + " @ 2030-03-01 12:30": notebook("a"),
        moodle("Aoife OBrien", 2) + " @ 2030-03-02 08:00": notebook("b"),
    }
    done = sort(course, files)
    assert stamp(course, "ada") is None
    assert any("from 2030-03-01 11:30 to 2030-03-02 07:00 UTC" in line for line in done.remarks)
    sort(course, files, archive_times=True)
    assert stamp(course, "ada") == "2030-03-01 11:30:00 UTC"


# --- The command ----------------------------------------------------------------------------------


def test_the_command_says_what_became_of_everybody(course):
    files = {moodle(ADAS, 1): notebook(), moodle("Eve Nobody", 9): notebook("x")}
    archive(course / "class.zip", files)
    run = subprocess.run(
        [sys.executable, "-m", "autograder.cli", "collect", "class.zip"], cwd=course,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 1 and run.stdout == f"{NAME}: 1 students (1 new)\n"
    assert "look at this: Eve Nobody (9) is not one of the course's students" in run.stderr
