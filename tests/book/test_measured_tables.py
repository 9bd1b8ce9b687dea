"""Tables of measurements, which notebooks have as text."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import nbformat
import pytest
from jupytext.myst import myst_to_notebook
from nbformat.v4 import new_code_cell

from autograder.publishing.cell_names import names_read
from autograder.publishing.measured_tables import DRAWS, MeasuredTables
from autograder.publishing.release import chapter_files

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = chapter_files(ROOT)
NEED_THE_PAGE = {  # how cells begin that compute with what the chapter has made
    "08_recurrence_convolution": ["from torch.utils._python_dispatch import TorchDispatchMode"],
    "09_language_model": ["def given_to_what_came_next(", "for name, cost in list(costs.items())"],
    "10_bert": ["rows_in = "],
    "11_vision_transformer": ["from solutions.bert import attention_relevance"],
}


@cache
def tables(path: Path) -> list[tuple[str, str]]:
    """The cells that only the page has and that print but do not draw, and the texts of these."""

    def found() -> Iterator[tuple[str, str]]:
        measured = MeasuredTables()
        for cell in myst_to_notebook(path.read_text(encoding="utf-8")).cells:
            text = "".join(table.source for table in measured.show(cell))
            if "page-only" in cell.metadata.get("tags", ()) and "print(" in cell.source:
                assert not names_read(cell.source) & DRAWS, "a table with a figure is lost"
                yield cell.source, text

    return [*found()]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_notebook_has_every_table_that_needs_measurements_alone(path):
    lost = [code for code, text in tables(path) if not text]
    begin = NEED_THE_PAGE.get(path.stem, [])
    assert [code for code in lost if not code.startswith(tuple(begin))] == []
    assert len(lost) == len(begin)
    released = ROOT / "notebooks" / path.stem / f"{path.stem}.ipynb"  # see `test_release`
    sources = {cell.source for cell in nbformat.read(released, 4).cells}
    assert {text for _, text in tables(path) if text} <= sources


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_notebook_s_table_is_what_the_page_shows(path, pages):
    shown = {pre.get_text().strip() for pre in pages[f"book/{path.stem}.html"].select("pre")}
    texts = [text.removeprefix("```text\n").removesuffix("\n```") for _, text in tables(path)]
    assert [text for text in texts if text and text.strip() not in shown] == []


def told(*cells: str) -> str:
    """What the last of some cells that only the page has prints; `made` is the chapter's own."""
    measured, texts = MeasuredTables(), []
    for code in cells:
        tags = [] if code.startswith("made") else ["page-only"]
        texts = measured.show(new_code_cell(code, metadata={"tags": tags}))
    return "".join(text.source for text in texts)


def test_what_a_figure_s_cell_reads_is_there_for_the_next_table():
    figure = "from json import loads\nrows = loads('[1, 2]')  # of.json\nplots.draw(rows)"
    assert told(figure, "print(*rows)") == "```text\n1 2\n```"


def test_a_name_that_the_chapter_binds_again_is_no_measurement():
    read = "import json\nruns, made = json.loads('[1, 2]')  # of.json\nprint(runs)"
    assert told(read, "print(runs, made)") == "```text\n1 2\n```"
    assert told(read, "made = train()", "print(runs, made)") == ""
    assert told(read, "made = train()", "print(runs)") == "```text\n1\n```"
