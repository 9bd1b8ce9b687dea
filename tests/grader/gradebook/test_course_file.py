"""course.toml: dates, policy and people in one file, read by all who need them."""

import re
import shutil
from datetime import datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.gradebook import classroom
from autograder.gradebook.classroom import grade
from autograder.gradebook.course_file import CourseFile, Late, read_course
from autograder.gradebook.export import rows
from autograder.gradebook.feedback import PageFailed, PageMaker
from autograder.gradebook.rows import read_class
from autograder.gradebook.writer import Writer
from autograder.judge.job import Outcome, judge_job
from autograder.report.report import report

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = ROOT / "notebooks"
NAME = next(NOTEBOOKS.glob("*_kernel_regression")).name
WHOLE = """
chapters = ["kernel_regression"]
timezone = "Europe/Berlin"

[book]
address = "https://example.org/attention/"

[due]
kernel_regression = 2030-03-01T12:00:00

[late]
grace_minutes = 15
per_day = 0.1
at_most = 0.5

[students.ann]
first_name = "Ann"
last_name = "Lee"

[students.bob]
extension = { 01_kernel_regression = 2.5 }

[students.ivo]
withdrawn = true
"""


def test_the_whole_file_is_read(tmp_path):
    (tmp_path / "course.toml").write_text(WHOLE, encoding="utf-8")
    course = read_course(tmp_path, [NAME])
    assert course.due == {NAME: datetime.fromisoformat("2030-03-01T11:00:00+00:00")}
    assert course.late == Late(0.1, 0.5, 15)
    assert course.chapters == (NAME,)
    assert course.address == "https://example.org/attention"
    assert course.person("ann").details == {"first_name": "Ann", "last_name": "Lee"}
    assert course.person("bob").extension[NAME].total_seconds() == 60 * 3600
    assert course.withdrawn("ivo") and not course.withdrawn("ann")


def test_without_a_file_nothing_is_said(tmp_path):
    assert read_course(tmp_path) == CourseFile()


@pytest.mark.parametrize(
    "text, words",
    [
        ("[dates]\n", "dates is not known here; there are chapters, timezone"),
        ('chapters = "masking"', "chapters: expected a list of names, got 'masking'"),
        ('chapters = ["kernels"]', f"chapters: no assignment kernels; there are {NAME}"),
        ("book.address = 'course'", "book.address: expected something like https://example.org/"),
        ("book.title = 'x'", "book.title is not known here; there are address"),
        ("[due]\nkernels = 2030-01-01T00:00:00", f"due: no assignment kernels; there are {NAME}"),
        ("[due]\nkernel_regression = 2030-01-01", "due.kernel_regression: expected a date and a"),
        ('timezone = "Berlin"', "timezone: 'Berlin' is not a time zone"),
        ("[late]\nper_day = 10", "late.per_day: expected a number from 0 to 1, got 10"),
        ("[late]\ngrace_minutes = 10", "late.per_day is missing"),
        ("[students]\nann = 3", "students.ann: expected a table"),
        ("[students.ann]\nwithdrawn = 1", "students.ann.withdrawn: expected true or false"),
        ("[students.ann]\nname = 'A'", "students.ann.name is not known here"),
        ("[students.ann.extension]\n01_kernel_regression = -1", "expected a number from 0, got -1"),
        ("[due\n", "course.toml: "),
    ],
)
def test_a_slip_is_told_with_its_place(tmp_path, text, words):
    (tmp_path / "course.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(words)):
        read_course(tmp_path, [NAME])


@pytest.mark.parametrize(
    "seconds, lost",
    [(1, 0), (15 * 60, 0), (15 * 60 + 1, 2), (86400 + 900, 2), (86400 + 901, 4), (10**7, 10)],
)
def test_what_late_costs(seconds, lost):
    """A tenth of 20 points for each day begun, after a quarter of an hour; half at most."""
    assert Late(0.1, 0.5, 15).cost(20.0, seconds) == lost


@pytest.fixture
def course(tmp_path, monkeypatch) -> Path:
    """Four students who handed the empty notebook in, a day and an hour after the due date.

    A stand-in for the judge gives 10 points to each.
    """

    def run(self, source, judge):
        for task, job in source:
            outcome = judge_job(job)  # of no notebook: nothing is run
            yield task, Outcome(outcome.judgement, outcome.notebook, "here")

    def plain(self, *_):
        raise PageFailed("a test wants it plain")

    monkeypatch.setattr(classroom.LocalPool, "run", run)
    monkeypatch.setattr(PageMaker, "start", lambda self: None)
    monkeypatch.setattr(PageMaker, "page", plain)
    for student in ("ann", "bob", "ivo"):
        folder = tmp_path / "submitted" / student / NAME
        folder.mkdir(parents=True)
        (folder / f"{NAME}.ipynb").write_bytes(b"no notebook")
        (folder / "timestamp.txt").write_text("2030-03-02 12:00:00 UTC")
    return tmp_path


def run(course: Path) -> dict:
    return {row.student: row for row in grade(course / "submitted", release=NOTEBOOKS).rows}


@pytest.mark.share(0)
def test_grade_report_and_export_follow_the_file(course):
    assert run(course).keys() == {"ann", "bob", "ivo"}
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for student in ("ann", "bob"):
            given = gradebook.find_grade("check_softmax", NAME, NAME, student)
            given.manual_score, given.needs_manual_grade = 2.0, False
        gradebook.db.commit()
    (course / "course.toml").write_text(WHOLE, encoding="utf-8")
    graded = run(course)
    assert graded.keys() == {"ann", "bob"} and all(row.unchanged for row in graded.values())
    assert graded["ann"].penalty == pytest.approx(0.4)  # two days begun, at a tenth each
    assert graded["bob"].penalty == 0
    assert [row.student for row in read_class(course)] == ["ann", "bob"]
    page = report(course, course / "report.html").read_text(encoding="utf-8")
    assert ">ann<" in page and ">ivo<" not in page
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        exported = list(rows(gradebook, [], [], read_course(course)))
        assert {row[3]: row[9] for row in exported} == {"ann": "1.6", "bob": "2"}
        assert gradebook.find_student("ann").last_name == "Lee"
    shorter = WHOLE.replace("2.5", "0.5")
    (course / "course.toml").write_text(shorter, encoding="utf-8")
    assert run(course)["bob"].penalty == pytest.approx(0.2)  # half a day longer: one day begun


def test_an_extension_counts_for_what_is_handed_in_later(course):
    (course / "course.toml").write_text(WHOLE, encoding="utf-8")
    with Writer(course, None, NOTEBOOKS) as one:
        one.register(NAME)
    shutil.rmtree(course / "submitted" / "ivo")
    run(course)
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        late = gradebook.find_submission(NAME, "ann").total_seconds_late
        assert late == 25 * 3600
        assert gradebook.find_submission(NAME, "bob").total_seconds_late == 0


def extensions(course: Path) -> dict[str, float | None]:
    """The days that students have more, by the gradebook."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        found = gradebook.find_assignment(NAME).submissions
        return {s.student.id: s.extension and s.extension.total_seconds() / 86400 for s in found}


def test_an_extension_granted_in_nbgrader_stays(course):
    (course / "course.toml").write_text(WHOLE, encoding="utf-8")
    run(course)
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        gradebook.grant_extension(NAME, "ann", days=3)
    run(course)
    assert extensions(course) == {"ann": 3, "bob": 2.5}
    (course / "course.toml").write_text(WHOLE.replace("extension", "#"), encoding="utf-8")
    run(course)
    assert extensions(course) == {"ann": 3, "bob": None}


def test_a_time_without_a_zone_follows_the_courses_clock(course):
    for student in ("ann", "bob", "ivo"):
        path = course / "submitted" / student / NAME / "timestamp.txt"
        path.write_text("2030-03-01 12:30")
    due = "[due]\nkernel_regression = 2030-03-01T12:00:00Z\n"
    for zone, moment in (("UTC", "12:30"), ("Europe/Berlin", "11:30"), ("Asia/Tokyo", "03:30")):
        (course / "course.toml").write_text(f'timezone = "{zone}"\n{due}', encoding="utf-8")
        run(course)
        with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
            found = gradebook.find_submission(NAME, "ann")
            assert found.timestamp == datetime.fromisoformat(f"2030-03-01T{moment}:00")
            assert found.total_seconds_late == (1800 if zone == "UTC" else 0)


def test_a_slip_stops_grading_before_anything(course):
    (course / "course.toml").write_text("[late]\nper_day = 10", encoding="utf-8")
    with pytest.raises(ValueError, match="late.per_day"):
        run(course)
    assert not (course / "gradebook.db").exists()


def test_the_sample_in_the_documentation_can_be_read(tmp_path):
    page = (ROOT / "book" / "running_a_course.md").read_text(encoding="utf-8")
    (sample,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "course.toml").write_text(sample, encoding="utf-8")
    released = [path.parent.name for path in NOTEBOOKS.glob("*/*.ipynb")]
    found = read_course(tmp_path, released)
    assert found.due and found.late and found.people
