"""Chapter 5's longest experiment: what the page says of it holds for the stored trainings."""

import json
import math
import re

import pytest
import torch

from attention_by_hand.blocks import sinusoidal_encoding
from benchmarks import distances

pytestmark = pytest.mark.share(0)  # takes long


@pytest.fixture(scope="module")
def page():
    return distances.page_definitions()


@pytest.fixture(scope="module")
def stored():
    return json.loads(distances.RESULT.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def text():
    return distances.PAGE.read_text(encoding="utf-8")


@pytest.mark.share(1)
def test_a_turn_takes_as_many_positions_as_the_page_says(text):
    for d, hands, told in (
        (
            512,
            (0, 255),
            "In tokens of 512 numbers, a full turn takes the fastest hand $2\\pi \\approx {}$ "
            "positions and the slowest about {},",
        ),
        (64, (4, 8), "The bars mark one turn in columns 8 and 16: {} positions, and {}."),
    ):
        angles = torch.outer(torch.arange(3.0), 1e4 ** (-torch.arange(d // 2) * 2 / d))
        table = sinusoidal_encoding(3, d)
        torch.testing.assert_close(table[:, ::2], angles.sin())
        turns = (2 * math.pi / angles[1, list(hands)]).tolist()
        shown = [f"{round(turn, -4) or round(turn):,.0f}" for turn in turns]
        assert told.format(*shown) in " ".join(text.split())


def test_the_stored_result_is_of_every_way_and_of_all_seeds(page, stored):
    assert stored["made"]["seeds"] == list(distances.SEEDS)
    divided = [f"rotary ÷ {s}" for s in distances.DIVISORS]
    assert sorted(stored["runs"]) == sorted([*distances.WAYS, *divided])
    assert stored["trials"] == [list(trial) for trial in page["trials"]]
    for runs in stored["runs"].values():
        assert [len(shares) for shares in runs] == [len(stored["trials"])] * len(distances.SEEDS)


def test_the_pages_tables_are_what_is_stored(stored, text):
    names = {"rotary": ("rotary", "positions ÷ 1")}
    for way, runs in stored["runs"].items():
        ranges = [(min(column), max(column)) for column in zip(*runs, strict=True)]
        for name in names.get(way, (way.replace("rotary ÷", "positions ÷"),)):
            (row,) = re.findall(rf"^\| {name} \|(.*)\|$", text, re.M)
            assert [cell.strip() for cell in row.split("|")] == [
                f"{100 * low:.0f}–{100 * high:.0f}%" for low, high in ranges
            ]


def test_the_nearer_of_two_marks_is_the_answer(page):
    torch.manual_seed(3)
    text, digit = page["two_marks"](32, 5, 9, 50)
    assert text[:, -1].eq(20).all()
    for row, wanted in zip(text, digit, strict=True):
        first, second = (row[:-1] >= 10).nonzero().flatten().tolist()[::-1]
        assert 5 <= 31 - first <= 9 and 1 <= first - second <= 8
        assert row[first] - 10 == wanted != row[second] - 10


def test_a_step_costs_what_the_prediction_says(text):
    """Slope 1/8: 31 places and 100 places, as factors of a weight."""
    assert "divides its weight by 48" in text and round(math.exp(31 / 8)) == 48
    assert "by more than 250,000" in text and math.exp(100 / 8) > 250_000


def test_dividing_by_one_changes_nothing(page):
    torch.manual_seed(1)
    for batch in (1, 3):
        head, (texts, _) = (
            page["Finder"]("rotary", n=32, d=64, tokens=21),
            page["two_marks"](32, 1, 23, batch),
        )
        same = page["with_squeezed_positions"](head, 1)(texts)
        torch.testing.assert_close(same, head(texts), atol=1e-4, rtol=1e-4)


def test_the_stored_shares_are_those_of_the_pages_training(page, stored):
    """One head again. Another machine rounds otherwise, and far beyond the training's length that
    is another model: its shares of right answers are among those of all seeds."""
    torch.set_num_threads(1)
    head = page["trained"]("rotary", seed=0)
    torch.manual_seed(0)
    found = page["tested"](page["with_squeezed_positions"](head, 4))
    for share, seeds in zip(found, zip(*stored["runs"]["rotary ÷ 4"], strict=True), strict=True):
        assert min(seeds) - 0.1 <= share <= max(seeds) + 0.1
