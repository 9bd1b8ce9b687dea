"""Marking by question: all answers beside the model answer, inert, with links to formgrader."""

import re
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from terms import NAME, QUESTION, RELEASED, hand_in, mark, release, run, with_stand_in

from autograder.notebook.stubs import TEXT_STUB
from autograder.report.marking import marking_page, model_answer, own_words

MODEL = "It is the mean of the values. Two sentences. One point for the mean, one for the reason."
EVIL = "**Mine** <script>alert(1)</script><img src=x onerror=alert(1)> http://spy.example/"


def marked_in(root: Path) -> Path:
    """The page of a course in which Ann waits for a mark, Bob has one and Zoë wrote nothing."""
    release(root)
    source = nbformat.reads(RELEASED, as_version=4)
    for cell in source.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == QUESTION:
            solved = f"### BEGIN SOLUTION\n{MODEL}\n### END SOLUTION"
            cell.source = cell.source.replace(TEXT_STUB, solved)
    path = root / "build" / "source" / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(source, path)
    names = '[students.ann]\nfirst_name = "Ann"\nlast_name = "<b>Lee"\n'
    (root / "course.toml").write_text(names, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        with_stand_in(patch)
        for student, answer in (("ann", EVIL), ("bob", "The mean."), ("zoe", "")):
            hand_in(root, student, **{QUESTION: answer, "rest": "return 1" if answer else ""})
        run(root)
    mark(root, "bob", QUESTION, 1.5)
    return marking_page(root, "kernel_regression", root / "out" / "marking.html")


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> BeautifulSoup:
    made = marked_in(tmp_path_factory.mktemp("marking"))
    return BeautifulSoup(made.read_text(encoding="utf-8"), "html.parser")


def part(page: BeautifulSoup, name: str) -> BeautifulSoup:
    (found,) = [a for a in page.find_all("article") if name in a.h2.text]
    return found


def test_each_question_is_a_part_with_model_answer_and_rubric(page):
    assert len(page.find_all("article")) == 2
    model = part(page, "w of zero").find(class_="model")
    told = [heading.text for heading in model.find_all("h3")]
    assert told == ["Question", "Model answer", "Rubric"]
    text = " ".join(model.get_text(" ").split())
    assert "It is the mean of the values. Two sentences. Rubric One point for the mean" in text
    assert "BEGIN SOLUTION" not in part(page, "even spacing").find(class_="model").text


def test_answers_stand_without_the_question_those_that_wait_first(page):
    answers = part(page, "w of zero").find_all("li")
    assert [li["data-who"] for li in answers] == ["Ann <b>Lee ann", "bob", "zoe"]
    states = [li.find(class_="label").find_all("b")[-1].text for li in answers]
    assert states == ["waits for a mark", "1.5 of 2", "left unchanged"]
    texts = [" ".join(li.find(class_="answer").text.split()) for li in answers]
    assert texts[1:] == ["The mean.", "–"] and texts[0].startswith("Mine")
    assert [li["data-flags"] for li in answers] == ["waits", "", ""]


def test_answers_and_names_are_inert(page):
    assert len(page.find_all("script")) == 1 and not page.find_all("img")
    assert not [tag for tag in page.find_all(True) for name in tag.attrs if name.startswith("on")]
    assert part(page, "w of zero").find(class_="answer").strong.text == "Mine"
    assert "default-src 'none'" in str(page)


def test_each_answer_leads_to_formgrader(page):
    links = [a["href"] for a in part(page, "w of zero").select(".label a")]
    assert len(links) == 3
    for link in links:
        assert re.fullmatch(rf"http://localhost:8888/formgrader/submissions/\w+/#{QUESTION}", link)


def test_a_model_answer_is_taken_apart_at_its_points():
    cell = f"Why?\n\n### BEGIN SOLUTION\n{MODEL}\n### END SOLUTION"
    plain, rubric = model_answer(cell)
    assert plain == "It is the mean of the values. Two sentences."
    assert rubric == "One point for the mean, one for the reason."
    assert model_answer("### BEGIN SOLUTION\nA point is near.\n### END SOLUTION") == (
        "A point is near.", ""
    )  # fmt: skip


def test_only_the_question_itself_is_left_out_of_an_answer():
    question = f"Why?\n\n{TEXT_STUB}"
    assert own_words("Why?\n\nBecause.", question) == "Because."
    assert own_words("Because. Why?", question) == "Because. Why?"


def test_a_chapter_that_nobody_handed_in_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="no gradebook"):
        marking_page(tmp_path, NAME, tmp_path / "m.html")
