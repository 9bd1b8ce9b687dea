"""What a pencil says of a wrong number is true of it: each is computed here once more."""

import math
from pathlib import Path

import pytest

from autograder.publishing import pencils
from autograder.publishing.bookindex import BookIndex, directive
from autograder.student import pencil

ROOT = Path(__file__).resolve().parents[2]
# table → (answer, what is wrong) → what comes out of the mistake that the sentence tells
MADE = {
    "first_average": {
        ("1.2 ± 0.03", "5.9"): 2.5 + 3.4,
        ("1.2 ± 0.03", "1.48"): (2.5 + 3.4) / 4,
        ("2.7 ± 0.03", "2.3"): 0.68 * 3.4,
        ("−0.9 ± 0.03", "−1.1"): 0.79 * -1.4,
    },
    "noon": {
        ("16/25", "16/24"): 16 / (16 + 8),
        ("8/25", "8/24"): 8 / (16 + 8),
        ("8/25", "1/2"): 8 / 16,
        ("15", "16"): (12 + 21 + 15) / 3,
        ("15", "23.44"): (16 * 12 + 8 * 21 + 1 * 15) / 16,
    },
    "two_more": {
        ("17.25", "16"): (12 + 21 + 15) / 3,
        ("16.33", "16.5"): (12 + 21) / 2,
    },
    "leave_each_out": {
        ("20.33", "18"): (21 + 15) / 2,
        ("−8.33", "8.33"): (8 * 21 + 15) / 9 - 12,
    },
    "fruit": {
        ("0.72", "1"): math.exp(7 - 7),
        ("0.27", "0.368"): math.exp(6 - 7),
        ("3.71 ± 0.02", "3"): (4 + 3 + 2) / 3,
    },
    "first_query": {
        ("0.063", "0.1353"): math.exp(2 - 4),
        ("(1.94, 6.68, 1.60)", "(1.67, 5.33, 2)"): (
            (1 + 2 + 2) / 3,
            (2 + 8 + 6) / 3,
            (3 + 0 + 3) / 3,
        ),
    },
    "jacobian_of_two": {
        ("0.2 ± 0.005", "0.73"): 1 / (1 + math.exp(-8 / 8)),
    },
    "views_of_a_sentence": {
        ("1/4", "1"): 2 * 1 + 1 * -1 + 1 * 0,
    },
    "views_of_the_cards": {
        ("8", "16"): 4 * 4,
    },
    "who_and_how": {
        ("3/4", "3"): math.exp(math.log(3)),
        ("12", "4"): 16 / 4,
    },
    "mixed": {
        ("(16, 8)", "(16, −8)"): (12 + 4, 4 - 12),
        ("(16, −8)", "(16, 8)"): (4 + 12, 12 - 4),
    },
    "same_letter": {
        ("4/10", "4/8"): 4 / (4 + 4),
    },
    "three_words": {
        ("1/4", "1/8"): 1 / (1 + 2 + 1 + 4),
        ("2/4", "2/8"): 2 / (1 + 2 + 1 + 4),
        ("16.5", "8.25"): (1 * 12 + 2 * 24 + 1 * 6) / 8,
    },
    "no_future": {
        ("20", "18"): (12 + 24) / 2,
        ("16.5", "23.25"): (1 * 12 + 2 * 24 + 1 * 6 + 4 * 30) / 8,
    },
    "deep_at_38": {
        ("16.5", "27.25"): (1 * 12 + 2 * 24 + 1 * 6 + 4 * 38) / 8,
        ("27.25", "31.25"): (1 * 12 + 2 * 24 + 1 * 6 + 4 * 30) / 8 + 8,
    },
    "one_place_on": {
        ("3", "4"): len(range(4)),
        ("4", "3"): len(range(3)),
    },
    "ten_calls": {
        ("55", "45"): sum(range(1, 10)),
        ("100", "10"): 10,
    },
    "what_well_asks": {
        ("7", "6"): 3 * 2,
    },
    "halved_by_each_step": {
        ("1/29", "1/8"): 1 / 8 * 1,
        ("16/29", "2"): 1 / 4 * 8,
        ("4/29", "1/2"): 1 / 2 * 1,
        ("128", "1024"): 2**10,
    },
    "three_layers": {
        ("3/2", "1/2"): 1 / 2,
        ("3/4", "1/4"): 1 / 2**2,
    },
    "two_cheaper_norms": {
        ("25", "100"): 1 + 49 + 1 + 49,
        ("25", "5"): math.sqrt((1 + 49 + 1 + 49) / 4),
        ("205", "820"): 121 + 289 + 121 + 289,
    },
    "two_alike": {
        ("50", "200"): 64 + 36 + 36 + 64,
        ("0.28", "0.04"): 2 / 50,
    },
    "one_layer": {
        ("(0, 2, 0, −2)", "(0, 4, 0, −4)"): (0, 4, 0, -4),
        ("(2, 2, 0, 0)", "(0, 2, 0, −2)"): (0 / 2, 4 / 2, 0 / 2, -4 / 2),
    },
    "the_bridge": {
        ("1/2", "3"): 3,
        ("(1/2, 1/2, −1/2, −1/2)", "(1, 1, −1, −1)"): (1, 1, -1, -1),
        ("1", "0"): 1 * 0.5 + 1 * -0.5,
    },
    "softer_truth": {
        ("1.25", "1"): -math.log2(1 / 2),
        ("1.25", "0.85"): (4 / 5 + 1 / 20) * 1,
    },
    "one_unit": {
        ("5", "4"): 4,
        ("5", "6"): 4 + 2,
    },
    "how_far": {
        ("7", "4"): 2**2,
    },
    "running_sums": {
        ("5", "15"): 2 * 6 + 1 * 3,
        ("7", "42"): 2 * 15 + 1 * 12,
    },
    "one_to_the_right": {
        ("6", "11"): -math.log2(1 / 8 * 1 / 8 * 1 / 8 * 1 / 4),
    },
    "two_rulers": {
        ("10.6", "11.56"): (17 / 5) ** 2,
    },
    "four_adjectives": {
        ("16/22", "1/4"): (1 / 2) ** 2,
        ("4/7", "1/2"): 1 / 2,
    },
    "what_it_takes": {
        ("7.44", "1.24"): 1.24e8 * 1e10 / 1e18,
        ("946 ± 1", "473 ± 1"): 4 * 1.24e8 / 2**20,
    },
    "making_blanks": {
        ("12 %", "80 %"): 0.8,
        ("12 %", "15 %"): 0.15,
        ("1.5 %", "10 %"): 0.1,
    },
    "both_neighbours": {
        ("4/9", "2"): 4 * 4 / 8,
        ("2/9", "1"): 2 * 2 / 4,
    },
    "without_a_head": {
        ("104", "96"): 8 * 12,
        ("108", "96"): 12 * 8,
        ("108", "104"): 12 * 8 + 8,
    },
    "counting_tokens": {
        ("197", "196"): (224 // 16) ** 2,
        ("768", "256"): 16 * 16,
        ("38809", "38416"): (224 // 16) ** 4,
    },
    "a_gap": {
        ("2", "6"): 1**2 + 1**2 + 2**2,
        ("8", "24"): 2**2 + 2**2 + 4**2,
        ("1/2", "1/4"): ((1 + 1 + 4) / 3) / ((4 + 4 + 16) / 3),
    },
    "another_width": {
        ("2/3", "8"): 2**3,
        ("2/7", "4"): 2**2,
    },
    "what_the_pair_costs": {
        ("4/13", "4/9"): 32 / (64 + 8),
        ("1.70", "1.40"): 2 * -math.log2(8 / 13),
        ("1.20", "2.40"): -math.log2(8 / 13) - math.log2(4 / 13),
    },
    "drawn_as_wrong": {
        ("4/5", "16/17"): 2**6 / (2**6 + 2**2),
        ("4/5", "3/4"): 3 / (3 + 1),
    },
    "what_is_scored": {
        ("1", "8/5"): (4 + 2 + 0 + 1 + 1) / 5,
        ("1", "2/3"): (0 + 1 + 1) / 3,
    },
}


def slips() -> dict[str, dict[str, list[pencil.Slip]]]:
    """For each page, its tables with known slips."""
    book, found = BookIndex(ROOT), {}
    for path in [ROOT / "book" / "intro.md", *sorted((ROOT / "book").glob("[01]*.md"))]:
        tables = {}
        for token in book.parser.parse(path.read_text(encoding="utf-8")):
            here = directive(token, path, 1) if token.map else None
            if here is not None and here.name == "pencil":
                tables[here.argument] = pencils.split_slips(here.body)[1]
        found[path.stem] = {name: known for name, known in tables.items() if known}
    return found


SLIPS = slips()
TABLES = {name: known for tables in SLIPS.values() for name, known in tables.items()}


def test_every_chapter_knows_slips_in_two_of_its_tables():
    assert len(SLIPS) == 13
    assert all(len(tables) >= 2 for page, tables in SLIPS.items() if page != "intro")


@pytest.mark.parametrize("name", TABLES)
def test_the_mistake_that_is_told_gives_that_number(name):
    known = {(slip.right, slip.wrong): slip.message for slip in TABLES[name]}
    assert known.keys() == MADE[name].keys()
    for (right, wrong), value in MADE[name].items():
        assert pencil.judge(wrong, pencil.as_written(value)) == "right", (right, wrong)


@pytest.mark.parametrize("name", TABLES)
def test_what_is_told_is_wrong_and_told_of_one_number_only(name):
    for slip in TABLES[name]:
        given = slip.wrong.partition(" ±")[0]
        assert pencil.judge(slip.right, given) == "wrong", slip
        same = [s for s in TABLES[name] if s.right == slip.right]
        assert [pencil.judge(s.wrong, given) for s in same].count("right") == 1, slip


def test_no_table_is_left_over():
    assert MADE.keys() == TABLES.keys()
