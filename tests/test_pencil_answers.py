"""The answers of the tables to fill in, each computed again in `computed_tables`."""

from pathlib import Path

import pytest
from computed_tables import COMPUTED

from autograder import pencil
from autograder.publishing import pencils

TABLES = pencils.tables(Path(__file__).resolve().parents[1])


@pytest.mark.parametrize("name", sorted(TABLES))
def test_the_answers_are_what_a_computation_gives(name):
    assert name in COMPUTED, f"compute the table {name} in tests/computed_tables"
    rows = COMPUTED[name]()
    assert [len(row) for row in rows] == [len(row.answers) for row in TABLES[name].rows]
    for row, computed in zip(TABLES[name].rows, rows, strict=True):
        for answer, value in zip(row.answers, computed, strict=True):
            assert pencil.judge(answer, pencil.written(value)) == "right", (
                row.label,
                answer,
                value,
            )


def test_no_computation_is_left_over():
    assert sorted(COMPUTED) == sorted(TABLES)
