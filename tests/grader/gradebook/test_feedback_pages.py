"""A page that fails costs no marks; the process that makes pages has limits and ends in time."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import nbformat
import pytest
from faults import SCORES, TINY, PagesHere, grade_quickly, in_a_child, new_course, outcome_of
from hostile import NAME
from nbformat.v4 import new_markdown_cell

from autograder import cli
from autograder.gradebook.classroom import ClassResult
from autograder.gradebook.feedback import MarkedNotebook, PageFailed, PageMaker, plain_page
from autograder.gradebook.feedback_pages import named
from autograder.gradebook.rows import Row
from autograder.student.engine.verdict import WRONG, AspectVerdict, Verdict


@pytest.fixture
def course(tmp_path, release) -> Path:
    return new_course(tmp_path / "course", release, SCORES)


def page_of(course: Path, student: str) -> str:
    return (course / "feedback" / student / TINY / f"{TINY}.html").read_text("utf-8")


def when_bob_is_shown(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen where bob's page is made."""
    made = PagesHere.page

    def page(self, notebook, assignment, student, marked):
        if student == "bob":
            act()
        return made(self, notebook, assignment, student, marked)

    monkeypatch.setattr(PagesHere, "page", page)


def fail() -> None:
    raise ValueError("<missing> attachment")


def check_all_is_there(course: Path, rows: list[Row]) -> None:
    assert {row.student: (row.status, row.score) for row in rows} == {
        name: ("graded", score) for name, score in SCORES.items()
    }
    assert {name: (times, score) for name, (times, score, *_) in outcome_of(course).items()} == {
        name: (1, score) for name, score in SCORES.items()
    }
    page = page_of(course, "bob")
    assert "could not be shown" in page and "(Score: 0.5 / 5)" in page and "missing" not in page
    for other in ("ann", "cid"):
        assert "could not be shown" not in page_of(course, other)


def test_a_page_that_fails_is_a_plain_one_and_the_marks_stand(course, release, monkeypatch):
    when_bob_is_shown(monkeypatch, fail)
    rows = grade_quickly(course, release).rows
    check_all_is_there(course, rows)
    (bob,) = [row for row in rows if row.student == "bob"]
    assert "plain one" in bob.notes[-1]


def test_killed_before_a_page_that_fails_the_next_run_goes_on(course, release, monkeypatch):
    when_bob_is_shown(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGKILL))
    for _ in range(2):  # as would a page whose making ends the grader, again and again
        assert in_a_child(lambda: grade_quickly(course, release)) == signal.SIGKILL
    monkeypatch.undo()
    when_bob_is_shown(monkeypatch, fail)
    check_all_is_there(course, grade_quickly(course, release).rows)


def test_a_page_that_cannot_be_written_stops_nobody(course, release):
    grade_quickly(course, release)
    path = course / "feedback" / "bob" / TINY / f"{TINY}.html"
    path.unlink()
    path.mkdir()
    rows = grade_quickly(course, release).rows
    assert {row.student: row.score for row in rows} == SCORES
    assert all(row.status == "graded" and row.unchanged for row in rows)


@pytest.fixture
def maker(tmp_path):
    made = PageMaker(tmp_path, wall_seconds=60.0)
    yield made
    made.close()


MARKED = MarkedNotebook(
    {f"check_{TINY}": (1.0, 3.0)}, {"softmax": "<b>well</b> done"}, 1.0, 3.0, 0.25
)
SHORT = nbformat.writes(nbformat.v4.new_notebook(cells=[new_markdown_cell("*words*")])).encode()


def test_pages_come_from_one_process_with_limits(maker):
    assert "<em>words</em>" in maker.page(SHORT, TINY, "ann", MARKED)
    pid = maker._process.pid
    memory, _ = resource.prlimit(pid, resource.RLIMIT_AS)
    seconds, _ = resource.prlimit(pid, resource.RLIMIT_CPU)
    assert 0 < memory < 8 << 30 and 0 < seconds < 60
    assert "<em>words</em>" in maker.page(SHORT, TINY, "bob", MARKED)
    assert maker._process.pid == pid


def test_after_a_notebook_that_is_none_the_process_goes_on(maker):
    with pytest.raises(PageFailed, match="JSON"):
        maker.page(b"{", TINY, "ann", MARKED)
    pid = maker._process.pid
    assert "<em>words</em>" in maker.page(SHORT, TINY, "bob", MARKED)
    assert maker._process.pid == pid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGXCPU, signal.SIGABRT])
def test_a_process_that_ends_costs_one_page(maker, number):
    maker.page(SHORT, TINY, "ann", MARKED)
    os.kill(maker._process.pid, number)
    with pytest.raises(PageFailed, match=f"ended .status -{int(number)}"):
        maker.page(SHORT, TINY, "bob", MARKED)
    assert "<em>words</em>" in maker.page(SHORT, TINY, "cid", MARKED)


def test_a_process_that_stands_still_is_killed(tmp_path):
    maker = PageMaker(tmp_path)
    maker.page(SHORT, TINY, "ann", MARKED)
    pid, maker.wall_seconds = maker._process.pid, 0.2
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(PageFailed, match="more than 0.2 s"):
        maker.page(SHORT, TINY, "bob", MARKED)
    assert not Path("/proc", str(pid)).exists()
    maker.wall_seconds = 60.0
    assert "<em>words</em>" in maker.page(SHORT, TINY, "cid", MARKED)
    maker.close()


def test_a_process_that_cannot_be_started_is_tried_again(maker, monkeypatch):
    def fail(self) -> None:
        raise OSError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(ForkServerProcess, "start", fail)
        with pytest.raises(OSError, match="no memory"):
            maker.page(SHORT, TINY, "ann", MARKED)
    assert "<em>words</em>" in maker.page(SHORT, TINY, "bob", MARKED)


def test_it_ends_with_the_grader(tmp_path):
    grader = f"""
import os, signal
from pathlib import Path
from autograder.gradebook.feedback import PageMaker

maker = PageMaker(Path({str(tmp_path)!r}))
maker.start()
print(maker._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run(
        [sys.executable, "-c", grader], capture_output=True, text=True, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    pid = int(ended.stdout)
    for _ in range(600):
        with suppress(FileNotFoundError):
            if "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text():
                time.sleep(0.1)
                continue
        return
    pytest.fail("it is still there")


def test_a_plain_page_holds_the_marks_and_comments_as_text():
    page = plain_page(TINY, "<script>", MARKED)
    assert "(Score: 0.75 / 3)" in page and "1 / 3" in page and "Late penalty: 0.25" in page
    assert "&lt;b&gt;well&lt;/b&gt; done" in page and "<script>" not in page


def test_no_name_is_cut_in_the_table_of_a_class(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    long = "ann_" + "o" * 80 + "_maria"
    rows = [Row(long, NAME, "graded", 1.0, 2.0, 3.0)]
    cli._print_class(ClassResult(Path(), rows, []))
    table = [line.split("│")[1:3] for line in capsys.readouterr().out.splitlines() if "│" in line]
    assert "".join(cells[0].strip() for cells in table) == long
    assert "".join(cells[1].strip() for cells in table) == NAME


def test_a_page_begins_with_names_of_exercises_and_mistakes():
    aspect = AspectVerdict("the values", 2.0, False, None, "x")
    wrong = Verdict("softmax", 2.0, 0.0, WRONG, (aspect,), "in_bits", "A base < e.")
    entry = '<a href="#{}">{}</a> (Score: 0.0 / 2.0)'
    asked, test = entry.format("question_why", "Written response"), "Test cell"
    body = f"<p>{entry.format('check_softmax', test)}</p>"
    page = f'<div id="toc"><ol>{entry.format("check_softmax", test)}{asked}</ol></div>{body}'
    found = named(page, {"softmax": wrong})
    assert entry.format("check_softmax", "softmax") + ": A base &lt; e." in found
    assert entry.format("question_why", "question why") in found
    assert found.endswith(body) and found.count(test) == 1  # what a student wrote stays
