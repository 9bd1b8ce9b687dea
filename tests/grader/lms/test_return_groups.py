"""Every member of a group gets marks and feedback back; so does who has a number for a name."""

import zipfile

import pytest
from lms_archives import (
    MOODLE_HEAD,
    archive,
    canvas,
    canvas_rows,
    moodle,
    moodle_row,
    read_table,
    table,
)
from terms import NAME, OTHER, QUESTION, answered, mark, run

from autograder.lms.collect import collect
from autograder.lms.return_grades import return_grades

PEOPLE = {"ann": "Ann Lee", "bob": "Bob Day", "zoe": "Zoe Hill"}
TIME = "Friday, 1 March 2030, 11:59 AM"
GROUPS = {"ann": "Team A", "bob": "Team A", "zoe": "Team B"}


@pytest.fixture
def course(term_course):
    return term_course


def marked(course, **scores: float) -> None:
    run(course)
    for student, score in scores.items():
        for cell in (QUESTION, OTHER):
            mark(course, student, cell, score)


def pages(course) -> set[str]:
    with zipfile.ZipFile(course / "returned" / NAME / "feedback.zip") as packed:
        return set(packed.namelist())


def name_people(course) -> None:
    lines = (f'[students.{s}]\nfirst_name = "{n[:3]}"\nlast_name = "{n[4:]}"\n'
             for s, n in PEOPLE.items())  # fmt: skip
    (course / "course.toml").write_text("".join(lines), encoding="utf-8")


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("with_sheet", [True, False])
def test_each_member_of_moodles_group_gets_marks_and_page(course, old, with_sheet):
    name_people(course)
    head = [*MOODLE_HEAD[:4], "Group", *MOODLE_HEAD[4:]]
    rows = [moodle_row(n, name, "", TIME, "9.00") for n, name in enumerate(PEOPLE.values(), 11)]
    rows = [[*r[:4], g, *r[4:]] for r, g in zip(rows, GROUPS.values(), strict=True)]
    sheet = table(course / "sheet.csv", [head, *rows])
    files = {moodle("Team A", 12, old=old): answered(rest="return 1"),
             moodle("Team B", 18, old=old): answered(rest="return 'wrong'")}  # fmt: skip
    assert collect(archive(course / "a.zip", files), course, worksheet=sheet).problems == []
    marked(course, ann=1, bob=2, zoe=0)
    (done,) = return_grades(course, "moodle", worksheet=sheet if with_sheet else None)
    assert done.totals == {"ann": 7, "bob": 9, "zoe": 1} and done.left_out == []
    head, *rows = read_table(course / "returned" / NAME / "grades.csv")
    grade = head.index("Grade")
    assert {row[0]: float(row[grade]) for row in rows} == {
        "Participant 11": 7, "Participant 12": 9, "Participant 13": 1
    }  # fmt: skip
    numbered = enumerate(PEOPLE.values(), 11)
    assert pages(course) == {
        f"{name}_{n}_assignsubmission_file_/{NAME}.html" for n, name in numbered
    }


def test_each_member_of_canvas_group_gets_marks_and_page(course):
    name_people(course)
    head = ["name", "canvas_user_id", "user_id", "login_id", "sections", "group_name"]
    rows = [[n, str(k), "", s, "", g] for k, (s, n), g in
            zip((71, 72, 73), PEOPLE.items(), GROUPS.values(), strict=True)]  # fmt: skip
    sheet = table(course / "groups.csv", [head, *rows])
    files = {canvas("Team A", 72, 990): answered(rest="return 1"),
             canvas("Team B", 73, 991): answered(rest="return 'wrong'")}  # fmt: skip
    assert collect(archive(course / "a.zip", files), course, worksheet=sheet).problems == []
    marked(course, ann=1, bob=2, zoe=0)
    people = [("Lee, Ann", 71, "ann"), ("Day, Bob", 72, "bob"), ("Hill, Zoe", 73, "zoe")]
    gradebook = table(course / "book.csv", canvas_rows(people, "One (815)", "9.00"))
    (done,) = return_grades(course, "canvas", worksheet=gradebook, column="815")
    assert done.totals == {"ann": 7, "bob": 9, "zoe": 1}
    rows = read_table(course / "returned" / NAME / "grades.csv")[2:]
    assert {row[1]: float(row[5]) for row in rows} == {"71": 7, "72": 9, "73": 1}
    assert pages(course) == {
        f"teama_71_990_{NAME}.html", f"teama_72_990_{NAME}.html", f"teamb_73_991_{NAME}.html"
    }  # fmt: skip


@pytest.mark.parametrize("listed", [True, False])
def test_anonymous_participants_get_theirs_by_number(course, listed):
    if listed:
        name_people(course)
    head = [MOODLE_HEAD[0], *MOODLE_HEAD[3:]]
    rows = [moodle_row(n, "", "", TIME, "9.00") for n in (11, 12)]
    sheet = table(course / "sheet.csv", [head, *([row[0], *row[3:]] for row in rows)])
    files = {moodle("Participant", n): answered(rest="return 1") for n in (11, 12)}
    assert collect(archive(course / "a.zip", files), course, worksheet=sheet).problems == []
    marked(course, **{"Participant 11": 1, "Participant 12": 2})
    (done,) = return_grades(course, "moodle", worksheet=sheet)
    assert done.totals == {"Participant 11": 7, "Participant 12": 9}
    head, *rows = read_table(course / "returned" / NAME / "grades.csv")
    assert {row[0]: row[head.index("Grade")] for row in rows} == {
        "Participant 11": "7", "Participant 12": "9"
    }  # fmt: skip
    assert pages(course) == {
        f"Participant_{n}_assignsubmission_file_/{NAME}.html" for n in (11, 12)
    }


@pytest.mark.parametrize("old", [False, True])
def test_each_anonymous_member_of_a_group_gets_theirs(course, old):
    head = [MOODLE_HEAD[0], MOODLE_HEAD[3], "Group", *MOODLE_HEAD[4:]]
    groups = {11: "A", 12: "A", 13: "B"}
    rows = [[r[0], r[3], f"Team {g}", *r[4:]] for n, g in groups.items()
            for r in [moodle_row(n, "", "", TIME, "9.00")]]  # fmt: skip
    sheet = table(course / "sheet.csv", [head, *rows])
    work = {"A": answered(rest="return 1"), "B": answered(rest="return 'wrong'")}
    files = {moodle(f"Team {g}-Participant", n): work[g] for n, g in groups.items()}
    if not old:
        files = {moodle(f"Team {g}", n, old=False): work[g] for g, n in (("A", 12), ("B", 18))}
    assert collect(archive(course / "a.zip", files), course, worksheet=sheet).problems == []
    marked(course, **{f"Participant {n}": n - 11 for n in groups})
    (done,) = return_grades(course, "moodle", worksheet=sheet)
    assert done.left_out == []
    head, *rows = read_table(course / "returned" / NAME / "grades.csv")
    grades = {row[0]: float(row[head.index("Grade")]) for row in rows}
    assert grades == {"Participant 11": 5, "Participant 12": 7, "Participant 13": 5}
    assert pages(course) == {
        f"{f'Team {g}-' * old}Participant_{n}_assignsubmission_file_/{NAME}.html"
        for n, g in groups.items()
    }


def test_the_number_of_a_group_gives_nobody_elses_row_a_mark(course):
    """Collected without the worksheet, as if the group was a student."""
    files = {moodle("Team A", 12, old=False): answered(rest="return 1")}
    collect(archive(course / "a.zip", files), course)
    marked(course, **{"Team A": 1})
    rows = [moodle_row(n, name, "", TIME, "9.00") for n, name in enumerate(PEOPLE.values(), 11)]
    sheet = table(course / "sheet.csv", [MOODLE_HEAD, *rows])
    (done,) = return_grades(course, "moodle", worksheet=sheet)
    assert done.totals == {} and "Team A: not found in sheet.csv" in done.left_out
    head, *back = read_table(course / "returned" / NAME / "grades.csv")
    assert {row[head.index("Grade")] for row in back} == {""}


def test_members_without_numbers_need_the_worksheet_to_get_theirs(course):
    name_people(course)
    rows = [[*PEOPLE[student].split(), "", group] for student, group in GROUPS.items()]
    listed = table(course / "people.csv", [["First name", "Last name", "Email", "Groups"], *rows])
    files = {moodle("Team A", 12, old=False): answered(rest="return 1")}
    assert collect(archive(course / "a.zip", files), course, worksheet=listed).problems == []
    marked(course, ann=1, bob=2)
    (done,) = return_grades(course, "moodle")
    assert done.totals == {} and len(done.left_out) == 2
    rows = [moodle_row(n, name, "", TIME, "9.00") for n, name in enumerate(PEOPLE.values(), 11)]
    sheet = table(course / "sheet.csv", [MOODLE_HEAD, *rows])
    (done,) = return_grades(course, "moodle", worksheet=sheet)
    assert done.totals == {"ann": 7, "bob": 9} and done.left_out == []
    head, *back = read_table(course / "returned" / NAME / "grades.csv")
    assert {row[1]: row[head.index("Grade")] for row in back} == {
        "Ann Lee": "7", "Bob Day": "9", "Zoe Hill": ""
    }  # fmt: skip
    assert pages(course) == {
        f"{n}_{k}_assignfeedback_file_/{NAME}.html" for n, k in (("Ann Lee", 11), ("Bob Day", 12))
    }


def test_who_is_not_in_the_worksheet_is_told_so_and_no_more(course):
    """A worksheet may be of one tutorial, whose tutor has nothing to do with other marks."""
    collect(archive(course / "a.zip", {moodle("Zed Moor", 19): answered(rest="return 1")}), course)
    run(course)
    rows = [moodle_row(n, name, "", TIME, "9.00") for n, name in enumerate(PEOPLE.values(), 11)]
    sheet = table(course / "sheet.csv", [MOODLE_HEAD, *rows])
    for open_too in (True, False):
        (done,) = return_grades(course, "moodle", worksheet=sheet, open_too=open_too)
        assert (done.left_out, done.remarks) == (["Zed Moor: not found in sheet.csv"], [])
