"""The report in Chromium: tabs, search, sorting; in light and dark, wide and narrow."""

import http.server
import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from autograder.gradebook.roster import Attempt, Roster
from autograder.gradebook.rows import Mark, Row
from autograder.judge.judgement import GRADED, UNUSABLE
from autograder.report.report import Extra, page
from autograder.report.similarity import Pair
from autograder.student.engine.verdict import CORRECT, WRONG, AspectVerdict, Verdict
from tests.grader.report.test_marking import marked_in

from .conftest import Quiet, Tab
from .sound import TAGS, told

EXERCISES = ("softmax", "gaussian_scores", "leave_one_out_mse", "KernelRegression")
EVIL = "<img src=x onerror=alert(1)>"
CUT = """[...document.querySelectorAll("svg text")].filter(text => {
    const [one, all] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
    return one.width && (one.left < all.left - 1 || one.right > all.right + 1);
}).map(text => text.textContent)"""  # what is written beyond a picture's edge, where it is not seen
START = datetime(2030, 3, 1, 12, tzinfo=UTC)


def a_class() -> str:
    """The report of a class of sixty in two chapters, every part of it with something to say."""
    rows, roster = [], Roster(due={"01_one": START + timedelta(days=3)})
    for n in range(60):
        student = f"s{n:02}"
        roster.names[student] = f"{'Åsa Ödegård' if n == 7 else EVIL if n == 8 else 'Ann'} Nr {n}"
        for chapter in ("01_one", "02_two")[: 1 + (n % 3 > 0)]:
            marks, verdicts = {}, {}
            for k, name in enumerate(EXERCISES):
                score = (n + n // 7 * k) % 5 / 2
                passed = score == 2
                aspect = AspectVerdict("the values", 2.0, passed, "Look.", None if passed else "x")
                kind = CORRECT if passed else WRONG
                mistake = None if passed or k else "max_not_subtracted"
                verdicts[name] = Verdict(
                    name, 2.0, score, kind, (aspect,), mistake, "It overflows."
                )
                marks[f"check_{name}"] = Mark(score, 2.0, blank=n % 11 == 0 and k == 3)
            marks["question_why"] = Mark(0.0, 2.0, by_hand=n % 4 == 0)
            total = sum(mark.score for mark in marks.values())
            rows.append(
                Row(student, chapter, GRADED, total, 10.25, 1.0, marks=marks, verdicts=verdicts,
                    notes=["A cell was put back."], penalty=0.5 * (n % 6 == 0))
            )  # fmt: skip
            roster.submissions[student, chapter] = f"id{n}"
            roster.attempts[student, chapter] = [
                Attempt(START + timedelta(days=d), total, 10.0) for d in range(1 + n % 3)
            ]
    rows.append(Row("s98", "01_one", UNUSABLE, 0.0, 0.0, None, "There is no notebook."))
    alike = {"01_one": [Pair("s07", "s09", 0.83, 21, ("softmax", "KernelRegression"))]}
    links = {("s07", "01_one"): "feedback/s07.html"}
    rows.sort(key=lambda row: (row.assignment, row.student))
    return page(rows, links, {"01_one": ["s99"]}, Extra(roster, alike))


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[str]:
    """In place of the book's: this needs none."""
    folder: Path = tmp_path_factory.mktemp("report")
    (folder / "report.html").write_text(a_class(), encoding="utf-8")
    shutil.copy(marked_in(folder / "course"), folder / "marking.html")
    handler = partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()


def without_icon(tab: Tab) -> list[str]:
    return [line for line in tab.wrong if "favicon" not in line and "404 (File" not in line]


def names(report: Page) -> list[str]:
    """The students whose rows of marks are to be seen."""
    rows = report.locator("table.marks:visible tbody tr:visible")
    return rows.evaluate_all("rows => rows.map(row => row.dataset.student)")


@pytest.mark.share(5)
@pytest.mark.parametrize("wide", ["light", "dark"])
@pytest.mark.parametrize("name", ["report.html", "marking.html"])
def test_everybody_can_read_it_in_light_and_dark_wide_and_narrow(open_tab, name, wide):
    tab = open_tab()
    report = tab.open(name)
    for width, scheme in ((1280, wide), (390, "dark" if wide == "light" else "light")):
        report.set_viewport_size({"width": width, "height": 900})
        report.emulate_media(color_scheme=scheme)
        for number in range(2):  # the third part is like the second
            report.locator("[role=tab]").nth(number).click()
            right = report.evaluate("document.documentElement.scrollWidth")
            assert right <= width, f"{right} pixels wide, part {number}"
            assert report.evaluate(CUT) == [], f"{width}, part {number}"
            axe = Axe().run(report, options={"runOnly": TAGS, "resultTypes": ["violations"]})
            assert told(axe) == [], f"{width} {scheme}, part {number}"
    assert without_icon(tab) == []  # no error, no other host, and nothing of the evil name's


def test_chapters_are_tabs_for_mouse_and_keyboard(open_tab):
    report = open_tab().open("report.html")
    assert report.locator("[role=tabpanel]:visible h2").all_inner_texts() == ["The class"]
    report.get_by_role("tab", name="01_one").click()
    assert report.locator("[role=tabpanel]:visible h2").all_inner_texts() == ["01_one"]
    report.keyboard.press("ArrowRight")
    assert report.locator("[role=tabpanel]:visible h2").all_inner_texts() == ["02_two"]
    assert report.get_by_role("tab", name="02_two").get_attribute("aria-selected") == "true"


def test_search_and_filter_find_students_by_name_and_state(open_tab):
    report = open_tab().open("report.html")
    report.get_by_role("tab", name="01_one").click()
    assert len(names(report)) == 62
    report.get_by_label("Search").fill("asa odegard")
    assert names(report) == ["s07"] and "1 of 62" in report.locator("#found").inner_text()
    report.get_by_label("Search").fill("")
    report.get_by_label("Show").select_option("waits")
    assert set(names(report)) == {f"s{n:02}" for n in range(0, 60, 4)}
    report.get_by_label("Show").select_option("absent")
    assert names(report) == ["s99"]


def test_a_column_sorts_both_ways(open_tab):
    report = open_tab().open("report.html")
    report.get_by_role("tab", name="01_one").click()
    total = report.locator("table.marks:visible thead th").last
    for direction, order in (("ascending", 1), ("descending", -1)):
        total.get_by_role("button").click()
        assert total.get_attribute("aria-sort") == direction
        cells = report.locator("table.marks:visible tbody td:last-child[data-sort]")
        totals = cells.evaluate_all("cells => cells.map(cell => Number(cell.dataset.sort))")
        assert totals == sorted(totals, reverse=order < 0) and len({*totals}) > 3


def test_without_a_script_everything_is_there(open_tab):
    report = open_tab(java_script_enabled=False).open("report.html")
    assert len(report.locator("[role=tabpanel]:visible").all()) == 3
    assert report.locator(".controls:visible, .tabs:visible").count() == 0
