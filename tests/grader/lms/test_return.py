"""Feedback and marks go back to Moodle and Canvas in the forms that these take."""

import re
import shutil
import zipfile
from pathlib import Path

import pytest
from lms_archives import (
    FILE,
    GERMAN_HEAD,
    MOODLE_HEAD,
    archive,
    canvas,
    canvas_rows,
    flat,
    moodle,
    moodle_row,
    read_table,
    table,
)
from terms import NAME, OTHER, QUESTION, answered, mark, release, run, totals, with_stand_in

from autograder.lms.collect import collect
from autograder.lms.return_grades import ReturnResult, return_grades

ANN, BOB, EVE = "Ann Lee", "Bob Day", "Zoë Ångström"
PEOPLE = "".join(
    f'[students.{student}]\nfirst_name = "{first}"\nlast_name = "{last}"\n'
    f'email = "{student}@x.org"\n'
    for student, first, last in (
        ("ann", "Ann", "Lee"),
        ("bob", "Bob", "Day"),
        ("zoe", "Zoë", "Ångström"),
    )
)
POINTS = 9.0  # of the two exercises and the two questions


@pytest.fixture(scope="module")
def graded(tmp_path_factory) -> Path:
    """A course in which Ann and Bob have all marks, and Zoë waits for hers."""
    root = tmp_path_factory.mktemp("back") / "course"
    root.mkdir()
    release(root)
    (root / "course.toml").write_text(PEOPLE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        with_stand_in(patch)
        text = answered(rest="return 1")
        for name, way in (("moodle.zip", moodle), ("canvas.zip", canvas)):
            names = (ANN, BOB, EVE) if way is moodle else ("Lee, Ann", "Day, Bob", "Ångström, Zoë")
            files = {
                way(person, 11 + n, *((900 + n,) if way is canvas else ())): text
                for n, person in enumerate(names)
            }
            archive(root / name, files)
        assert collect(root / "moodle.zip", root).problems == []
        run(root)
        for student, score in (("ann", 1.5), ("bob", 0.0)):
            mark(root, student, QUESTION, score)
            mark(root, student, OTHER, score)
        assert run(root)["ann"].points == POINTS
    return root


@pytest.fixture
def course(graded, tmp_path, monkeypatch) -> Path:
    with_stand_in(monkeypatch)
    shutil.copytree(graded, tmp_path / "course")
    return tmp_path / "course"


def back(course: Path, system: str = "moodle", **how) -> ReturnResult:
    (one,) = return_grades(course, system, **how)
    return one


def grades(course: Path, delimiter: str = ",") -> list[list[str]]:
    return read_table(course / "returned" / NAME / "grades.csv", delimiter)


def pages(course: Path) -> dict[str, str]:
    with zipfile.ZipFile(course / "returned" / NAME / "feedback.zip") as packed:
        return {info.filename: packed.read(info).decode() for info in packed.infolist()}


# --- Moodle ---------------------------------------------------------------------------------------


def test_moodle_gets_pages_under_its_own_names_and_the_totals_that_all_show(course):
    done = back(course)
    assert set(done.totals) == {"ann", "bob"}
    assert list(pages(course)) == [
        f"Ann Lee_11_assignsubmission_file_/{NAME}.html",
        f"Bob Day_12_assignsubmission_file_/{NAME}.html",
    ]
    head, *rows = grades(course)
    assert head == MOODLE_HEAD
    told = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert told.keys() == {"Participant 11", "Participant 12"}
    for student, number in (("ann", 11), ("bob", 12)):
        row = told[f"Participant {number}"]
        assert {float(row["Grade"])} == set(totals(course, student).values())
        assert float(row["Maximum Grade"]) == POINTS
        page = pages(course)[f"{row['Full name']}_{number}_assignsubmission_file_/{NAME}.html"]
        assert float(re.search(r"Score: ([\d.]+)", page)[1]) == float(row["Grade"])


def test_moodle_would_know_each_page_again(course):
    """By the rule of its importer: name, number, kind and plugin, between underscores."""
    back(course)
    for name in pages(course):
        part = name.split("/")[0].split("_", 4)
        assert len(part) >= 4 and part[1].isdecimal() and part[2:4] == ["assignsubmission", "file"]


def test_where_moodle_has_no_folders_the_names_have_none(course):
    shutil.rmtree(course / "collected")
    collect(archive(course / "flat.zip", {flat(ANN, 11): answered(rest="return 1")}), course)
    done = back(course)
    assert list(pages(course)) == [f"Ann Lee_11_assignsubmission_file_{NAME}.html"]
    assert "bob: not collected from Moodle; a --worksheet may list them" in done.left_out


@pytest.mark.parametrize("head", [MOODLE_HEAD, GERMAN_HEAD])
def test_a_worksheet_of_moodles_is_filled_in_and_otherwise_left(course, head):
    time = "Friday, 1 March 2030, 11:59 AM"
    rows = [
        moodle_row(11, ANN, "ann@x.org", time, "9.00", comment="Well done"),
        moodle_row(12, BOB, "bob@x.org", time, "9.00"),
        moodle_row(13, EVE, "zoe@x.org", time, "9.00"),
        moodle_row(14, "Tom Cat", "tom@x.org", "-", "9.00"),
    ]
    sheet = table(course / "sheet.csv", [head, *rows], delimiter=";")
    done = back(course, worksheet=sheet)
    after = grades(course, ";")
    assert after[0] == head
    for before, row, student in zip(rows, after[1:], ("ann", "bob", "zoe", ""), strict=True):
        assert [*row[:4], *row[5:9]] == [*before[:4], *before[5:9]]
        assert row[4] == (f"{done.totals[student]:g}" if student in done.totals else "")
    if head is MOODLE_HEAD:  # elsewhere it is not known which column has the comments
        assert after[1][9] == "Well done" and "of 9 points" in after[2][9] and not after[3][9]


def test_a_maximum_of_another_size_is_told_and_scaled_only_if_that_is_said(course):
    rows = [moodle_row(11, ANN, "ann@x.org", maximum="100.00")]
    sheet = table(course / "sheet.csv", [MOODLE_HEAD, *rows])
    with pytest.raises(ValueError, match="gives 100 points .* which has 9: .* use --scale"):
        back(course, worksheet=sheet)
    done = back(course, worksheet=sheet, scale=True)
    assert float(grades(course)[1][4]) == pytest.approx(done.totals["ann"] * 100 / 9, abs=1e-3)


@pytest.mark.parametrize("with_sheet", [True, False])
def test_a_mark_above_the_maximum_is_told_by_name(course, with_sheet):
    mark(course, "ann", QUESTION, 4.5)  # of 2: 11 of 9 in all
    rows = [moodle_row(11, ANN, "ann@x.org", maximum="9.00"),
            moodle_row(12, BOB, "bob@x.org", maximum="9.00")]  # fmt: skip
    sheet = table(course / "sheet.csv", [MOODLE_HEAD, *rows])
    done = back(course, worksheet=sheet if with_sheet else None)
    (line,) = [line for line in done.remarks if "maximum" in line]
    assert line.startswith(f"ann: {done.totals['ann']:g} is more than the maximum of 9, and Moodle")


# --- Canvas ---------------------------------------------------------------------------------------


@pytest.fixture
def of_canvas(course) -> Path:
    shutil.rmtree(course / "collected")
    assert collect(course / "canvas.zip", course).problems == []
    return course


def test_canvas_gets_pages_under_the_names_of_what_was_handed_in(of_canvas):
    done = back(of_canvas, "canvas", column="One (815)")
    assert list(pages(of_canvas)) == [f"leeann_11_900_{NAME}.html", f"daybob_12_901_{NAME}.html"]
    for name in pages(of_canvas):  # its rule: the first two parts that are numbers
        assert [part for part in name.split("_") if part.isdecimal()][:2] in (
            ["11", "900"], ["12", "901"]
        )  # fmt: skip
    head, points, *rows = grades(of_canvas)
    assert head == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "One (815)"]
    assert points == ["    Points Possible", "", "", "", "", "9"]
    assert {row[1]: float(row[5]) for row in rows} == {
        "11": done.totals["ann"], "12": done.totals["bob"]
    }  # fmt: skip


def test_without_a_column_canvas_would_make_a_new_assignment_and_that_is_told(of_canvas):
    assert any(
        "Canvas will make a new assignment" in line for line in back(of_canvas, "canvas").remarks
    )


def test_of_canvas_gradebook_only_this_assignment_comes_back(of_canvas):
    people = [("Lee, Ann", 11, "ann"), ("Day, Bob", 12, "bob"), ("Ångström, Zoë", 13, "zoe")]
    sheet = table(of_canvas / "book.csv", canvas_rows(people, "Chapter 1 (815)", "9.00"))
    with pytest.raises(ValueError, match=r"by --column; there are 'Essay \(814\)', 'Chapter 1"):
        back(of_canvas, "canvas", worksheet=sheet)
    for column in ("Chapter 1", "Chapter 1 (815)", "815"):
        done = back(of_canvas, "canvas", worksheet=sheet, column=column)
        head, points, *rows = grades(of_canvas)
        assert head[5:] == ["Chapter 1 (815)"] and points[5:] == ["9.00"]
        assert [row[5] for row in rows] == [f"{done.totals[s]:g}" for s in ("ann", "bob")] + [""]


# --- What is not final, and who is not known ------------------------------------------------------


def test_open_marks_are_not_returned_as_final(course):
    done = back(course)
    (line,) = done.left_out
    assert (
        line.startswith("zoe: ") and f"{OTHER}, {QUESTION} waits" in line and "--open-too" in line
    )
    done = back(course, open_too=True)
    assert done.left_out == [] and done.totals.keys() == {"ann", "bob", "zoe"}
    assert any(line.startswith("zoe: not final") for line in done.remarks)
    (row,) = [row for row in grades(course) if row[0] == "Participant 13"]
    assert row[9].endswith("not final yet")


def test_marks_given_after_the_pages_were_made_are_in_both(course):
    for cell in (QUESTION, OTHER):
        mark(course, "zoe", cell, 1.25)
    done = back(course)
    page = pages(course)[f"{EVE}_13_assignsubmission_file_/{NAME}.html"]
    assert float(re.search(r"Score: ([\d.]+)", page)[1]) == done.totals["zoe"]
    assert set(totals(course, "zoe").values()) == {done.totals["zoe"]}


def test_late_penalties_are_brought_up_to_date(course):
    before = back(course).totals["ann"]
    late = "[due]\nkernel_regression = 2030-03-01T12:00:00\n[late]\nper_day = 0.5\n"
    (course / "course.toml").write_text(late + PEOPLE, encoding="utf-8")
    stamp = course / "submitted" / "ann" / NAME / "timestamp.txt"
    stamp.write_text("2030-03-01 12:00:01 UTC")
    run(course)
    (course / "course.toml").write_text(late.replace("0.5", "0.1") + PEOPLE, encoding="utf-8")
    done = back(course)  # the policy has changed since
    assert done.totals["ann"] == pytest.approx(0.9 * before)
    (row,) = [row for row in grades(course) if row[0] == "Participant 11"]
    assert "off for being late" in row[9]


def test_formulas_are_defused_in_what_goes_back(course):
    evil = "=HYPERLINK(1)"
    rows = [moodle_row(11, evil, "ann@x.org", maximum="9.00"), moodle_row(12, BOB, "+1@x.org")]
    rows[1][5] = "9.00"
    back(course, worksheet=table(course / "sheet.csv", [MOODLE_HEAD, *rows]))
    after = grades(course)
    assert after[1][1] == "'" + evil and after[2][2] == "'+1@x.org"
    assert after[1][8] == "-" and after[1][4] and not after[1][4].startswith("'")


@pytest.mark.parametrize("system, how, words", [
    ("moodle", {"assignments": ["masking"]}, f"masking is not graded; there are {NAME}"),
    ("canvas", {"worksheet": "moodle"}, "expected a gradebook of Canvas's"),
    ("moodle", {"worksheet": "canvas"}, "expected a grading worksheet of Moodle's"),
    ("ilias", {}, "expected blackboard or canvas or moodle, got ilias"),
])  # fmt: skip
def test_a_call_that_makes_no_sense_is_told(course, system, how, words):
    sheets = {
        "moodle": [MOODLE_HEAD, moodle_row(11, ANN, "")],
        "canvas": canvas_rows([("Lee, Ann", 11, "ann")], "One (815)", "9"),
    }
    if "worksheet" in how:
        how = {"worksheet": table(course / "s.csv", sheets[how["worksheet"]])}
    (course / "notebooks" / "04_masking").mkdir()
    shutil.copy(
        course / "notebooks" / NAME / FILE, course / "notebooks/04_masking/04_masking.ipynb"
    )
    with pytest.raises(ValueError, match=re.escape(words)):
        return_grades(course, system, **how)


def test_a_name_from_an_archive_that_could_lead_elsewhere_makes_no_name_in_ours(course):
    record = course / "collected" / NAME / "record.json"
    text = record.read_text(encoding="utf-8").replace("Ann Lee_11", "../../Ann Lee_11")
    record.write_text(text, encoding="utf-8")
    done = back(course)
    assert "ann" in done.totals and all(".." not in name for name in pages(course))
    assert any("no feedback page goes back to ann" in line for line in done.remarks)
