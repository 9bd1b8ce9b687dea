"""A whole term: release, collect, grade, late, again, withdrawal, typo, marks by hand, return.

The totals at each step are worked out here: softmax has 3 points, gaussian_scores 2, each of the
two questions 2. Being late costs a tenth of them for each day begun.
"""

import zipfile
from pathlib import Path

import pytest
import terms
from lms_archives import MOODLE_HEAD, archive, handed_in, moodle, moodle_row, read_table, table

from autograder.gradebook.rows import read_class
from autograder.lms.collect import NEW, NEWER, SAME, collect
from autograder.lms.return_grades import return_grades

PEOPLE = {"ann": "Ann Lee", "bob": "Bob Day", "ivo": "Ivo Hill"}
COURSE = """
timezone = "Europe/Berlin"

[due]
kernel_regression = 2030-03-01T12:00:00

[late]
per_day = 0.1
"""
ON_TIME, LATE = "Friday, 1 March 2030, 11:00 AM", "Sunday, 3 March 2030, 9:00 AM"
LATER = "Sunday, 3 March 2030, 1:00 PM"


@pytest.fixture
def course(tmp_path) -> Path:
    terms.release(tmp_path)
    write_course(tmp_path)
    return tmp_path


def write_course(course: Path, **more: str) -> None:
    """Write course.toml; `more` maps students to lines about them."""
    text = COURSE
    for student, name in PEOPLE.items():
        first, last = name.split()
        text += f'\n[students.{student}]\nfirst_name = "{first}"\nlast_name = "{last}"\n'
        text += more.get(student, "")
    (course / "course.toml").write_text(text, encoding="utf-8")


def from_moodle(course: Path, times: dict[str, str], **notebooks: bytes) -> dict[str, str]:
    """Collect what an archive and a worksheet of Moodle's hold; what became of each notebook."""
    numbers = {student: n for n, student in enumerate(PEOPLE, 41)}
    files = {moodle(PEOPLE[s], numbers[s]): data for s, data in notebooks.items()}
    rows = [moodle_row(numbers[s], name, "", times[s], "9.00") for s, name in PEOPLE.items()]
    sheet = table(course / "worksheet.csv", [MOODLE_HEAD, *rows])
    done = collect(archive(course / "class.zip", files), course, worksheet=sheet)
    assert done.problems == []
    return {student: how for (student, _), how in done.outcomes.items()}


def all_show(course: Path, **expected: float) -> None:
    """Report, export, feedback, log and `grade` show these totals, and nobody else's."""
    assert {row.student: row.total for row in read_class(course)} == pytest.approx(expected)
    for student, total in expected.items():
        assert set(terms.totals(course, student).values()) == {total}


def test_a_whole_term(course, monkeypatch):
    judged = terms.with_stand_in(monkeypatch)
    right, half = (
        terms.answered(rest="return 1"),
        terms.answered(softmax="return 'wrong'", rest="return 1"),
    )
    times = {"ann": ON_TIME, "bob": LATE, "ivo": ON_TIME}

    how = from_moodle(course, times, ann=right, bob=half, ivo=right)
    assert how == dict.fromkeys(PEOPLE, NEW) and len(handed_in(course)) == 6  # with their times
    terms.run(course)  # Bob: 0.5 and 2, two days begun
    all_show(course, ann=5.0, bob=2.0, ivo=5.0)

    times |= {"bob": LATER}
    how = from_moodle(course, times, ann=right, bob=right, ivo=right)
    assert how == {"ann": SAME, "bob": NEWER, "ivo": SAME}
    judged.clear()
    terms.run(course)  # three days begun by now
    assert judged == ["bob"]
    all_show(course, ann=5.0, bob=3.5, ivo=5.0)

    write_course(course, bob=f"extension = {{ {terms.NAME} = 1.5 }}\n", ivo="withdrawn = true\n")
    judged.clear()
    terms.run(course)  # one day begun, and nothing judged again
    assert judged == []
    all_show(course, ann=5.0, bob=4.5)

    terms.mark(course, "ann", terms.QUESTION, 1.5)
    terms.mark(course, "bob", terms.QUESTION, 2.0)
    terms.release(course, terms.RELEASED.replace(terms.TYPO, terms.TYPO.replace("z", "s")))
    terms.run(course)  # judged again, and no mark goes back to the marker
    assert sorted(judged) == ["ann", "bob"]
    assert terms.waits(course, "ann") == terms.waits(course, "bob") == {terms.OTHER}
    all_show(course, ann=6.5, bob=6.3)

    (one,) = return_grades(course, "moodle", worksheet=course / "worksheet.csv")
    assert one.totals == {} and len(one.left_out) == 2  # a mark is still missing

    terms.mark(course, "ann", terms.OTHER, 2.0)
    terms.mark(course, "bob", terms.OTHER, 0.0)
    (one,) = return_grades(course, "moodle", worksheet=course / "worksheet.csv")
    assert one.left_out == []
    all_show(course, ann=8.5, bob=6.3)
    head, *rows = read_table(course / "returned" / terms.NAME / "grades.csv")
    grade = head.index("Grade")
    assert {row[1]: row[grade] for row in rows} == {
        "Ann Lee": "8.5", "Bob Day": "6.3", "Ivo Hill": ""
    }  # fmt: skip
    with zipfile.ZipFile(course / "returned" / terms.NAME / "feedback.zip") as packed:
        assert packed.namelist() == [
            f"{PEOPLE[s]}_{n}_assignsubmission_file_/{terms.NAME}.html"
            for s, n in (("ann", 41), ("bob", 42))
        ]
