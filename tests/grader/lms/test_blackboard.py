"""Blackboard's archives become submissions, and marks go back in the table that it takes.

Its forms are written out here after Blackboard's instructor help (*Download Assignments*;
*Uploading or Downloading Grade Center Items for Working Offline*).
"""

import re
import zipfile
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from lms_archives import FILE, archive, notebook, read_table
from terms import NAME, QUESTION, answered, mark, release, run, with_stand_in

from autograder.gradebook.submissions import TIME, has_odd_time
from autograder.lms.collect import collect
from autograder.lms.return_grades import return_grades


def named(user: str, day: str = "2030-03-01-10-15-30", file: str = FILE, title="Chapter_1") -> str:
    return f"{title}_{user}_attempt_{day}_{file}"


@pytest.fixture
def course(tmp_path) -> Path:
    root = tmp_path / "course"
    root.mkdir()
    release(root)
    (root / "course.toml").write_text('timezone = "Europe/Berlin"\n', encoding="utf-8")
    return root


def notebooks(course: Path) -> dict[str, bytes]:
    """What each student has handed in."""
    there = course.glob(f"submitted/*/{NAME}/{FILE}")
    return {path.parent.parent.name: path.read_bytes() for path in there}


def sort(course: Path, files: dict[str, bytes], **how):
    return collect(archive(course / "bb.zip", files), course, **how)


def test_newest_attempt_of_each_counts_by_the_time_in_its_name(course):
    done = sort(
        course,
        {
            named("aking", "2030-03-02-09-00-00"): notebook("newer"),
            named("aking", "2030-03-01-09-00-00"): notebook("older"),
            named("bday"): notebook("hers"),
            "Chapter_1_aking_attempt_2030-03-02-09-00-00.txt": b"Name: Ada King (aking)",
        },
    )
    assert done.problems == []
    assert notebooks(course) == {"aking": notebook("newer"), "bday": notebook("hers")}
    stamp = course / "submitted" / "aking" / NAME / TIME
    assert stamp.read_text().strip() == "2030-03-02 08:00:00 UTC"  # by the clocks of Berlin


@pytest.mark.parametrize(
    "users", [("ada_king", "bob_king"), ("king", "ada_king"), ("s_1", "t_1"), ("a", "b")]
)
def test_usernames_with_underscores_are_never_mixed_up(course, users):
    one, two = users
    assert sort(course, {named(one): notebook("1"), named(two): notebook("2")}).problems == []
    assert notebooks(course) == {one: notebook("1"), two: notebook("2")}


def test_two_assignments_in_an_archive_are_not_mixed_up_either(course):
    files = {
        named("ada_king", title="Chapter 1"): notebook("1"),
        named("bob_king", title="Test"): notebook("2"),
    }
    sort(course, files)
    assert sorted(notebooks(course).values()) == sorted(files.values())


def test_list_of_people_says_which_part_is_the_username(course):
    with (course / "course.toml").open("a", encoding="utf-8") as stream:
        for student in ("s_1", "s_2"):  # all names begin with Chapter_1_s_
            stream.write(f'[students.{student}]\nfirst_name = "{student}"\n')
    assert sort(course, {named("s_1"): notebook("1"), named("s_2"): notebook("2")}).problems == []
    assert notebooks(course) == {"s_1": notebook("1"), "s_2": notebook("2")}


def test_a_number_in_a_file_name_is_not_taken_for_canvass(course):
    assert sort(course, {named("aking", file=f"my_1_2_{FILE}"): notebook("x")}).problems == []
    assert notebooks(course) == {"aking": notebook("x")}


def grade_center(points: float) -> list[list[str]]:
    who = ["Last Name", "First Name", "Username", "Student ID", "Availability"]
    return [
        [*who, "Essay [Total Pts: 10 Score] |7", f"{NAME} [Total Pts: {points:g} Score] |1281892"],
        ["King", "Ada", "aking", "0042", "Yes", "8.00", ""],
        ["Day", "Bob", "bday", "0043", "Yes", "9.00", ""],
        ["Lee", "Ann", "alee", "0044", "Yes", "7.00", "1.00"],
    ]


@pytest.fixture
def graded(course, monkeypatch) -> Path:
    with_stand_in(monkeypatch)
    text = answered(rest="return 1")
    assert sort(course, {named("aking"): text, named("bday"): text}).problems == []
    run(course)
    for student, score in (("aking", 1.5), ("bday", 0.0)):
        for name, found in run(course)[student].marks.items():
            if found.by_hand:
                mark(course, student, name, score if name == QUESTION else 0.0)
    return course


def written(path: Path, table: list[list[str]]) -> Path:
    """A table as it is downloaded: tabs, in UTF-16."""
    text = "".join("\t".join(f'"{cell}"' for cell in row) + "\r\n" for row in table)
    path.write_bytes(text.encode("utf-16"))
    return path


def test_a_time_that_is_none_is_not_taken_for_on_time(course):
    """The hour that the clocks of Berlin showed twice: whoever grades is told."""
    sort(course, {named("aking", "2030-10-27-02-30-00"): notebook("x")})
    said = course / "submitted" / "aking" / NAME / TIME
    assert said.read_text() == "2030-10-27 02:30:00" and has_odd_time(
        said.parent, ZoneInfo("Europe/Berlin")
    )


def test_a_table_says_who_a_username_is(course):
    sheet = written(course / "gc.xls", grade_center(9))
    (course / "course.toml").write_text('[students.ada]\nfirst_name = "Ada"\nlast_name = "King"\n')
    assert sort(course, {named("aking"): notebook("x")}, worksheet=sheet).problems == []
    assert notebooks(course) == {"ada": notebook("x")}


def test_marks_go_back_in_their_own_column_and_no_other_mark_with_them(graded):
    rows = run(graded)
    totals, table = {s: row.total for s, row in rows.items()}, grade_center(rows["aking"].points)
    sheet = written(graded / "gc.xls", table)
    (done,) = return_grades(graded, "blackboard", worksheet=sheet, column="1281892")
    assert done.left_out == []
    head, *back = read_table(graded / "returned" / NAME / "grades.csv", "\t")
    assert head == ["Last Name", "First Name", "Username", table[0][-1]]
    assert {row[2]: row[3] for row in back} == {
        "aking": f"{totals['aking']:g}", "bday": f"{totals['bday']:g}", "alee": "1.00",
    }  # fmt: skip
    with zipfile.ZipFile(graded / "returned" / NAME / "feedback.zip") as packed:
        assert sorted(packed.namelist()) == [f"aking_{NAME}.html", f"bday_{NAME}.html"]
    assert any("hand out" in line for line in done.remarks)


def test_without_a_table_one_is_made_and_what_its_column_needs_is_told(graded):
    (done,) = return_grades(graded, "blackboard")
    head, *rows = read_table(graded / "returned" / NAME / "grades.csv")
    assert head == ["Last Name", "First Name", "Username", NAME]
    assert [row[2] for row in rows] == ["aking", "bday"]
    assert any(re.search(r"make a new assignment .* --column", line) for line in done.remarks)


def test_another_systems_table_is_refused_by_name(graded):
    sheet = graded / "moodle.csv"
    rows = ["Identifier,Full name,Email address,Status,Grade,Maximum Grade"]
    rows += [f"Participant {n},A,a{n}@x.org,-,,5" for n in (1, 2)]
    sheet.write_text("\n".join(rows), encoding="utf-8")
    with pytest.raises(ValueError, match="expected a Grade Center table of Blackboard's"):
        return_grades(graded, "blackboard", worksheet=sheet)
