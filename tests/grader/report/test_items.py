"""What the report says of exercises, of people and of answers that are alike."""

import csv
import random
import re
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest

from autograder.gradebook.roster import Attempt, Roster, who_needs_help
from autograder.gradebook.rows import Mark, Row
from autograder.judge.judgement import FAILED, GRADED
from autograder.report.items import Item, correlation, items_of, write_items
from autograder.report.report import Extra, page
from autograder.report.similarity import LEAST, RUN, WINDOW, fingerprints, pairs_alike, tokens_in
from autograder.student.engine.verdict import CORRECT, Verdict

# --- Items ----------------------------------------------------------------------------------------


def row(student: str, assignment: str = "a", **marks: float | Mark) -> Row:
    """A submission; each mark is out of 2 points."""
    given = {
        f"check_{name}": mark if isinstance(mark, Mark) else Mark(mark, 2.0)
        for name, mark in marks.items()
    }
    score = sum(mark.score for mark in given.values())
    verdicts = {name: Verdict(name, 2.0, 0.0, CORRECT, ()) for name in marks}
    return Row(student, assignment, GRADED, score, 2.0 * len(given), marks=given, verdicts=verdicts)


def test_an_item_is_counted_by_how_it_was_done():
    left, open_ = Mark(0.0, 2.0, blank=True), Mark(0.0, 2.0, by_hand=True)
    rows = [row(f"s{n}", x=mark) for n, mark in enumerate([left, left, 0.0, 0.5, 1.5, 2.0, open_])]
    (item,) = items_of("a", [*rows, Row("late", "a", FAILED)])
    assert (item.submissions, item.blank, item.wrong, item.partial, item.full, item.waiting) == (
        7, 2, 1, 2, 1, 1
    )  # fmt: skip
    assert item.mean == pytest.approx(4.0 / 6) and item.share == pytest.approx(2.0 / 6)
    assert item.discrimination is None  # too few students, and nothing else to compare with


def test_discrimination_is_the_correlation_with_the_other_items():
    draw = np.random.default_rng(3)
    marks = draw.integers(0, 5, size=(40, 3)) / 2
    rows = [row(f"s{n:02}", x=a, y=b, z=c) for n, (a, b, c) in enumerate(marks.tolist())]
    found = {item.exercise: item.discrimination for item in items_of("a", rows)}
    for column, name in enumerate("xyz"):
        others = np.delete(marks, column, axis=1).sum(axis=1)
        assert found[name] == pytest.approx(np.corrcoef(marks[:, column], others)[0, 1])


def test_what_waits_for_a_person_is_in_nobodys_sum():
    """y is still open for one student: x is compared with z alone."""
    rows = [row(f"s{n:02}", x=n % 3, y=float(n % 2), z=n % 3) for n in range(12)]
    rows[0].marks["check_y"] = Mark(0.0, 2.0, by_hand=True)
    found = {item.exercise: item for item in items_of("a", rows)}
    assert found["x"].discrimination == pytest.approx(1.0) and found["y"].waiting == 1


def test_a_correlation_needs_ten_students_and_differences():
    assert correlation([(n, n) for n in range(9)]) is None
    assert correlation([(n, 1.0) for n in range(20)]) is None
    assert correlation([(n, -2 * n) for n in range(10)]) == pytest.approx(-1.0)


def test_the_table_of_items_is_read_by_a_spreadsheet_without_harm(tmp_path):
    items = [
        Item("=a()", "check_x", 2.0, 4, 1, 1, 1, 1, 0, 1.25, None),
        Item("b", "question_y", 2.0, 4, 0, 0, 0, 0, 4, None, None),
    ]
    write_items(tmp_path / "items.csv", items)
    with (tmp_path / "items.csv").open(encoding="utf-8", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert first["assignment"] == "'=a()" and first["item"] == "x" and first["kind"] == "exercise"
    assert (first["mean"], first["mean_share"], first["discrimination"]) == ("1.25", "0.625", "")
    assert second["kind"] == "question" and second["waiting"] == "4" and second["mean"] == ""


# --- People ---------------------------------------------------------------------------------------


def test_who_needs_help_and_why():
    rows = [
        *(row(f"s{n}", "a", x=2.0) for n in range(4)),
        row("low", "a", x=0.5),
        row("fell", "a", x=2.0),
        row("fell", "b", x=1.2),
        row("open", "a", x=Mark(0.0, 2.0, by_hand=True)),
    ]
    told = dict(who_needs_help(rows, {"a": ["gone"], "b": ["s0", "s1", "gone"]}))
    assert told == {
        "low": ["25% of the points of a"],
        "fell": ["b: 60%, after 100% before"],
        "gone": ["a not handed in"],  # b is not under way: one of four has handed it in
    }


def test_names_attempts_and_links_stand_on_the_page():
    moments = [datetime(2030, 3, day, 12, tzinfo=UTC) for day in (1, 1, 3)]
    attempts = {
        ("ann", "a"): [Attempt(moments[0], 1.0, 4.0), Attempt(moments[2], 4.0, 4.0)],
        ("bob", "a"): [Attempt(moments[1], 2.0, 4.0)],
    }
    roster = Roster(
        {"ann": "Ann <Lee>", "bob": ""}, {"a": moments[2]}, {("ann", "a"): "f00"}, attempts
    )
    rows = [row("ann", x=2.0, y=Mark(0.0, 2.0, by_hand=True)), row("bob", x=1.0, y=1.0)]
    text = page(rows, None, None, Extra(roster, {}, "http://host:1/formgrader/"))
    assert 'data-who="Ann &lt;Lee&gt; ann" data-flags="waits' in text
    assert "<b>" in text and "Ann <Lee>" not in text
    assert 'href="http://host:1/formgrader/submissions/f00/"' in text
    assert 'href="http://host:1/formgrader/gradebook/a/a/"' in text
    assert "2030-03-01: 2 first and 0 later, 2030-03-03: 0 first and 1 later" in text
    assert "1 handed in more than once: on average 25% of the points at first, 100% in" in text
    assert re.search(r"<td>2</td><td data-sort=\"2\"><b>2</b>", text)  # Ann's attempts, and total


# --- Answers that are alike -----------------------------------------------------------------------


def answer(seed: int, lines: int = 14) -> str:
    """A function that nobody else writes."""
    draw = random.Random(seed)
    names = [f"name{n}" for n in range(5)]
    operators = ["+", "-", "*", "@", "/", "%", "**", "<", ">=", "and", "or", "^"]
    body = []
    for _ in range(lines):
        parts = [draw.choice([*names, str(draw.randrange(9)), f"f({draw.choice(names)})"])]
        for _ in range(draw.randrange(1, 5)):
            parts += [draw.choice(operators), draw.choice(names)]
        body.append(f"    {draw.choice(names)} = {' '.join(parts)}")
    return "def f(x):\n" + "\n".join(body) + "\n    return name0\n"


def disguised(source: str) -> str:
    """The same with other names, other layout, a docstring and comments."""
    renamed = re.sub(r"name(\d)", r"other_\1", source).replace(
        "def f(x):", 'def f(x):\n    """!"""'
    )
    return "\n".join(
        f"{line}  # {n}" for n, line in enumerate(renamed.replace(" = ", "=").split("\n"))
    )


def test_names_layout_and_comments_do_not_count():
    assert tokens_in(answer(1)) == tokens_in(disguised(answer(1)))
    assert tokens_in("x = 'a' + 2  # b") == ["V", "=", "S", "+", "N"]


def test_a_shared_passage_is_found_wherever_it_stands():
    """Whatever has as many tokens as run and window together is noticed: the paper's guarantee."""
    passage = " + ".join(["f(a, b)", "c * d", "-e[0]", "g ** h", "i % j"])
    assert len(tokens_in(passage)) >= RUN + WINDOW - 1
    for before, after in ((1, 2), (3, 4), (5, 6)):
        one = answer(before) + f"\ny = {passage}\n"
        other = f"if z:\n    y = {passage}\n" + answer(after)
        assert fingerprints(one) & fingerprints(other)
    assert not fingerprints(answer(1)) & fingerprints(answer(2))


def test_a_copy_in_disguise_is_found_and_nobody_else():
    answers = {f"s{n}": {"e": answer(n), "d": answer(100 + n)} for n in range(12)}
    answers["copy"] = {"e": disguised(answers["s3"]["e"]), "d": answer(99)}
    (pair,) = pairs_alike(answers)
    assert {pair.first, pair.second} == {"copy", "s3"} and pair.exercises == ("e",)
    assert 0.5 <= pair.share < 1 and pair.shared >= 8


def test_what_was_handed_out_or_is_usual_is_nobodys():
    handed_out, usual = answer(50, 30), answer(51, 30)
    answers = {f"s{n}": {"e": answer(n) + handed_out, "d": usual} for n in range(12)}
    assert len(pairs_alike(answers)) == 0  # all have it: it is usual
    three = {name: answers[name] for name in ("s0", "s1")}
    assert len(pairs_alike(three)) == 1 and LEAST == 3
    assert pairs_alike(three, [handed_out, usual]) == []


@pytest.mark.parametrize("text", ["", "def f(", "'''", "\0", "  x\n y", "(" * 5000, "é" * 30_000])
def test_any_text_has_fingerprints(text):
    assert isinstance(fingerprints(text), set)


def test_pairs_come_in_order_and_once():
    answers = {f"s{n}": {"e": answer(n // 2)} for n in range(16)}
    found = pairs_alike(answers)
    assert len({(pair.first, pair.second) for pair in found}) == len(found) == 8
    assert all(one.share >= other.share for one, other in pairwise(found))
