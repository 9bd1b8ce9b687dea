"""Groups, anonymous participants, and numbers that fit no name: nobody gets another's work."""

import json
from pathlib import Path

import nbformat
import pytest
from lms_archives import (
    FILE,
    GERMAN_HEAD,
    MOODLE_HEAD,
    NAME,
    NOTEBOOKS,
    archive,
    canvas,
    handed_in,
    moodle,
    moodle_row,
    notebook,
    read_table,
    table,
)

from autograder.lms.collect import NEW, OLDER, CollectResult, collect

PEOPLE = {"ada": "Ada King", "ben": "Ben Day", "eve": "Eve Hill"}
TIME = "Friday, 1 March 2030, 11:59 AM"
TEAM_HEAD = [*MOODLE_HEAD[:4], "Group", *MOODLE_HEAD[4:]]


@pytest.fixture
def course(tmp_path) -> Path:
    text = "".join(
        f'[students.{student}]\nfirst_name = "{name.split()[0]}"\nlast_name = "{name.split()[1]}"\n'
        for student, name in PEOPLE.items()
    )
    (tmp_path / "course.toml").write_text(text, encoding="utf-8")
    return tmp_path


def sheet(course: Path, groups: dict[str, str]) -> Path:
    """A worksheet of an assignment for groups; `groups` maps students to theirs."""
    rows = []
    for number, (student, name) in enumerate(PEOPLE.items(), 11):
        row = moodle_row(number, name, f"{student}@x.org", TIME)
        rows.append([*row[:4], groups.get(student, ""), *row[4:]])
    return table(course / "sheet.csv", [TEAM_HEAD, *rows])


def sort(course: Path, files, **how) -> CollectResult:
    return collect(archive(course / "class.zip", files), course, **how)


def placed(course: Path) -> dict[str, bytes]:
    return {
        path.split("/")[0]: data for path, data in handed_in(course).items() if path.endswith(FILE)
    }


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("number", [17, 11, 13])  # 11 and 13 are participants' numbers, too
def test_a_groups_notebook_is_every_members(course, old, number):
    files = {
        moodle("Team A", number, old=old): notebook("A"),
        moodle("Team B", 18, old=old): notebook("B"),
    }
    groups = {"ada": "Team A", "ben": "Team A", "eve": "Team B"}
    done = sort(course, files, worksheet=sheet(course, groups))
    assert done.problems == []
    assert placed(course) == {"ada": notebook("A"), "ben": notebook("A"), "eve": notebook("B")}
    record = json.loads((course / "collected" / NAME / "record.json").read_text(encoding="utf-8"))
    assert {s: (p["number"], p["prefix"]) for s, p in record.items()} == {
        student: (str(n), f"{name}_{n}_assignsubmission_file_")
        for n, (student, name) in enumerate(PEOPLE.items(), 11)
    }
    assert (course / "submitted/ben" / NAME / "timestamp.txt").read_text() == (
        "2030-03-01 11:59:00 UTC"
    )


def filed(name: str) -> str:
    """A name as Moodle's `clean_filename` leaves it, after `_` has become a space."""
    return "".join(c for c in name.replace("_", " ") if c not in "&<>\"'`|:/\\")


@pytest.mark.parametrize("one, other", [
    ("C++", "C#"), ("🚀", "🌟"), ("A & B", "A B"), ("Team_A", "Team-A"), ("2025", "17"),
    ("Ada King", "Ben Day"), ("Ben Day", "Ada King"), ("Mo_10:30/1", "Mo 10:30/2"),
])  # fmt: skip
@pytest.mark.parametrize("number", [11, 17])  # 11 is Ada's, too
def test_groups_have_whatever_names(course, one, other, number):
    files = {moodle(filed(one), number, old=False): notebook("1"),
             moodle(filed(other), 18, old=False): notebook("2")}  # fmt: skip
    done = sort(course, files, worksheet=sheet(course, {"ada": one, "ben": one, "eve": other}))
    assert done.problems == []
    assert placed(course) == {"ada": notebook("1"), "ben": notebook("1"), "eve": notebook("2")}


@pytest.mark.parametrize("head", [MOODLE_HEAD, GERMAN_HEAD])
@pytest.mark.parametrize("heading", ["Grupp", "Abgabegruppe", "Группа", "Submitted by"])
def test_the_column_of_groups_may_be_called_anything(course, head, heading):
    groups = {"ada": "Team A", "ben": "Team A", "eve": "Default group"}
    whole = read_table(sheet(course, groups))[1:]
    listed = table(course / "sheet.csv", [[*head[:4], heading, *head[4:]], *whole])
    files = {moodle("Team A", 12, old=False): notebook("A"),
             f"Default group_assignsubmission_file/{FILE}": notebook("D")}  # fmt: skip
    assert sort(course, files, worksheet=listed).problems == []
    assert placed(course) == {"ada": notebook("A"), "ben": notebook("A"), "eve": notebook("D")}


def test_a_list_of_participants_tells_members_too(course):
    rows = [[*name.split(), f"{student}@x.org", f"Tutorial 3, Team {group}"]
            for (student, name), group in zip(PEOPLE.items(), "AAB", strict=True)]  # fmt: skip
    head = ["First name", "Last name", "Email address", "Groups"]
    listed = table(course / "people.csv", [head, *rows])
    files = {moodle(f"Team {g}", n, old=False): notebook(g) for g, n in (("A", 12), ("B", 18))}
    assert sort(course, files, worksheet=listed).problems == []
    assert placed(course) == {"ada": notebook("A"), "ben": notebook("A"), "eve": notebook("B")}


def test_who_is_not_in_the_worksheet_is_no_new_student(tmp_path):
    """Where the course has no list, either: it may be a group of another assignment."""
    rows = [moodle_row(11, "Ada King", "ada@x.org", TIME)]
    listed = table(tmp_path / "sheet.csv", [MOODLE_HEAD, *rows])
    files = {moodle("Team Z", 17, old=False): notebook("Z"), moodle("Ada King", 11): notebook("a")}
    done = sort(tmp_path, files, worksheet=listed)
    assert placed(tmp_path) == {"ada@x.org": notebook("a")}
    assert "Team Z (17) is not in sheet.csv" in done.problems[0]


def test_a_groups_id_makes_it_nobody_elses(course):
    """Without its members' names, though a participant has the same number."""
    rows = [moodle_row(n, name, "", TIME) for n, name in enumerate(PEOPLE.values(), 11)]
    listed = table(course / "sheet.csv", [MOODLE_HEAD, *rows])
    files = {moodle("Team A", 11, old=False): notebook("A"), moodle("Ben Day", 12): notebook("b")}
    done = sort(course, files, worksheet=listed)
    assert placed(course) == {"ben": notebook("b")}
    (line,) = done.problems
    assert "Team A (11) is Ada King by the worksheet, so it is nobody's" in line


def test_one_number_of_two_names_is_not_one_person(course):
    files = {moodle("Ada King", 11): notebook("a"), moodle("Ben Day", 11): notebook("b")}
    sort(course, files)
    assert placed(course) == {"ada": notebook("a"), "ben": notebook("b")}


def test_before_moodle_41_each_member_has_a_copy(course):
    files = {
        moodle("Team A-Ada King", 11): notebook("A"), moodle("Team A-Ben Day", 12): notebook("A")
    }  # fmt: skip
    done = sort(course, files, worksheet=sheet(course, {"ada": "Team A", "ben": "Team A"}))
    assert done.problems == [] and placed(course) == dict.fromkeys(("ada", "ben"), notebook("A"))


def test_a_name_that_ends_as_anothers_is_not_theirs(course):
    done = sort(course, {moodle("Anna-Ada King", 11): notebook("x")})
    assert placed(course) == {} and len(done.problems) == 1


def test_the_default_group_has_no_number(course):
    files = {"Default group_assignsubmission_file/" + FILE: notebook("D")}
    done = sort(course, files, worksheet=sheet(course, {"eve": "Default group"}))
    assert done.problems == [] and placed(course) == {"eve": notebook("D")}
    done = sort(course, files)
    assert any("Default group is a group's: a --worksheet" in line for line in done.problems)


def test_a_member_who_handed_in_alone_too_waits_and_the_others_do_not(course):
    files = {moodle("Team A", 17): notebook("A"), moodle("Ada King", 11): notebook("a")}
    done = sort(course, files, worksheet=sheet(course, {"ada": "Team A", "ben": "Team A"}))
    assert placed(course) == {"ben": notebook("A")} and len(done.problems) == 2
    assert all("each would be ada, so none is" in line for line in done.problems)


def test_a_group_of_canvas_is_placed_by_its_list_of_members_alone(course):
    head = ["name", "canvas_user_id", "user_id", "login_id", "sections", "group_name",
            "canvas_group_id", "group_id"]  # fmt: skip
    rows = [
        [name, str(n), f"S{n}", student, "1", "Team A" if n < 73 else "", "5", ""]
        for n, (student, name) in enumerate(PEOPLE.items(), 71)
    ]
    listed = table(course / "groups.csv", [head, *rows])
    files = {canvas("Team A", 72, 990): notebook("A"), canvas("Hill, Eve", 73, 991): notebook("e")}
    done = sort(course, files, worksheet=listed)
    assert done.problems == []
    assert placed(course) == {"ada": notebook("A"), "ben": notebook("A"), "eve": notebook("e")}
    record = json.loads((course / "collected" / NAME / "record.json").read_text(encoding="utf-8"))
    assert record["ada"]["prefix"] == "teama_71_990_" and record["ada"]["number"] == "71"


def test_a_group_of_canvas_is_not_its_representatives(course):
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "One (815)"]
    rows = [["King, Ada", "71", "", "ada", "1", ""], ["Day, Ben", "72", "", "ben", "1", ""]]
    listed = table(course / "book.csv", [head, *rows])
    done = sort(course, {canvas("Team A", 72, 990): notebook("A")}, worksheet=listed)
    assert placed(course) == {} and "teama (72) is Day, Ben by the worksheet" in done.problems[0]


# --- Anonymous marking ----------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["Participant", "Teilnehmer/in"])
@pytest.mark.parametrize("with_sheet", [True, False])
def test_anonymous_participants_go_by_their_numbers(course, word, with_sheet):
    label = word.replace("/", "")
    files = {moodle(label, n): notebook(str(n)) for n in (11, 12)}
    head = [MOODLE_HEAD[0], *MOODLE_HEAD[3:]]
    rows = [moodle_row(n, "", "", TIME, participant=word) for n in (11, 12)]
    listed = table(course / "sheet.csv", [head, *([row[0], *row[3:]] for row in rows)])
    done = sort(course, files, worksheet=listed if with_sheet else None)
    assert done.problems == []
    assert placed(course) == {f"{label} {n}": notebook(str(n)) for n in (11, 12)}
    stamp = course / "submitted" / f"{label} 11" / NAME / "timestamp.txt"
    assert stamp.exists() == with_sheet


@pytest.mark.parametrize("status, word", [("Status", "Participant"), ("Állapot", "Résztvevő")])
@pytest.mark.parametrize("old", [False, True])
def test_anonymous_members_of_groups_go_by_their_numbers(course, status, word, old):
    groups = {11: "A", 12: "A", 13: "B"}
    rows = [[f"{word} {n}", "Handed in", f"Team {g}", *moodle_row(n, "", "", TIME)[4:]]
            for n, g in groups.items()]  # fmt: skip
    listed = table(course / "sheet.csv", [["Id", status, "Team", *MOODLE_HEAD[4:]], *rows])
    files = {moodle(f"Team {g}-{word}", n): notebook(g) for n, g in groups.items()}
    if not old:
        files = {moodle(f"Team {g}", n, old=False): notebook(g) for g, n in (("A", 12), ("B", 17))}
    assert sort(course, files, worksheet=listed).problems == []
    assert placed(course) == {f"{word} {n}": notebook(g) for n, g in groups.items()}


# --- An untouched copy ----------------------------------------------------------------------------

RELEASED = (NOTEBOOKS / NAME / FILE).read_bytes()
COPY = f"{NAME}-Copy1.ipynb"


def changed(**texts: str) -> bytes:
    """The release, with other answers; `beside` is a cell that is added."""
    book = nbformat.reads(RELEASED.decode(), as_version=4)
    for cell in book.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = texts.get(name, cell.source)
    if "beside" in texts:
        book.cells.append(nbformat.v4.new_code_cell(texts["beside"], id="beside"))
    return nbformat.writes(book).encode()


def with_line_ends() -> bytes:
    book = nbformat.reads(RELEASED.decode(), as_version=4)
    for cell in book.cells:
        cell.source = "  \r\n".join(cell.source.splitlines())
    return nbformat.writes(book).encode()


WORK = changed(softmax="def softmax(x):\n    return x")
UNTOUCHED = {
    "released": RELEASED,
    "run": changed(beside=""),
    "with_line_ends": with_line_ends(),
    "scratch": changed(beside="print(1 + 1)"),
}


@pytest.mark.parametrize("copy", UNTOUCHED)
@pytest.mark.parametrize("names", [(FILE, COPY), (COPY, FILE), (f"{NAME} (2).ipynb", "my.ipynb")])
def test_an_untouched_copy_never_beats_work(course, copy, names):
    files = {moodle("Ada King", 1, names[0]): UNTOUCHED[copy],
             moodle("Ada King", 1, names[1]): WORK}  # fmt: skip
    done = sort(course, files)
    assert placed(course) == {"ada": WORK}
    (line,) = [line for line in done.remarks if "earlier" in line]
    assert names[0] in line and names[1] in line and "as they were released" in line


@pytest.mark.parametrize("work", [
    changed(question_w_of_zero="Because."), changed(beside="def softmax(x):\n    return x"),
    b"not a notebook any more",
])  # fmt: skip
def test_what_may_hold_an_answer_is_no_untouched_copy(course, work):
    sort(course, {moodle("Ada King", 1): RELEASED, moodle("Ada King", 1, COPY): work})
    assert placed(course) == {"ada": work}


def test_a_later_archive_of_the_untouched_release_leaves_the_work(course):
    sort(course, {moodle("Ada King", 1): WORK})
    done = sort(course, {moodle("Ada King", 1): RELEASED})
    assert placed(course) == {"ada": WORK} and done.outcomes == {("ada", NAME): OLDER}
    sort(course, {moodle("Ben Day", 2): RELEASED})
    assert sort(course, {moodle("Ben Day", 2): WORK}).outcomes[("ben", NAME)] != NEW
    assert placed(course)["ben"] == WORK


# --- Scripts --------------------------------------------------------------------------------------

SCRIPT = b"import numpy as np\n\ndef softmax(x):\n    return x\n"


@pytest.mark.parametrize("name", [f"{NAME}.py", "work.py", "WORK.PY"])
def test_a_script_is_placed_as_a_notebook(course, name):
    files = {moodle("Ada King", 1, name): SCRIPT, moodle("Ada King", 1, "helper.py"): b"x = 1"}
    done = sort(course, files)
    assert done.outcomes == {("ada", NAME): NEW} and done.problems == []
    book = nbformat.reads(placed(course)["ada"].decode(), as_version=4)
    nbformat.validate(book)
    assert "def softmax(x):\n    return x" in [cell.source.strip() for cell in book.cells]
    assert any("helper.py is a script that answers no exercise" in line for line in done.remarks)
    assert sort(course, files).outcomes == {("ada", NAME): "same"}


def test_a_script_beside_a_notebook_with_answers_does_not_replace_it(course):
    files = {moodle("Ada King", 1): WORK, moodle("Ada King", 1, "z.py"): SCRIPT}
    sort(course, files)
    assert placed(course) == {"ada": WORK}
    sort(course, {moodle("Ben Day", 2): RELEASED, moodle("Ben Day", 2, "z.py"): SCRIPT})
    assert b"softmax" in placed(course)["ben"] and placed(course)["ben"] != RELEASED
