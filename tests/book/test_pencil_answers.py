"""The answers of the tables to fill in, each computed again in `computed_tables`."""

from pathlib import Path

import pytest
from computed_tables import COMPUTED

from autograder.publishing import pencils
from autograder.student import pencil


@pytest.fixture(scope="module")
def tables() -> dict[str, pencil.PencilAnswers]:
    return pencils.tables(Path(__file__).resolve().parents[2])


@pytest.mark.parametrize("name", sorted(COMPUTED))
def test_the_answers_are_what_a_computation_gives(tables, name):
    rows = COMPUTED[name]()
    assert [len(row) for row in rows] == [len(row.answers) for row in tables[name].rows]
    for row, computed in zip(tables[name].rows, rows, strict=True):
        for answer, value in zip(row.answers, computed, strict=True):
            assert pencil.judge(answer, pencil.as_written(value)) == "right", (
                row.label,
                answer,
                value,
            )


def test_each_table_is_computed_and_no_computation_is_left_over(tables):
    """What a table lacks belongs into tests/computed_tables."""
    assert sorted(COMPUTED) == sorted(tables)
