"""Solutions are released when nobody may hand in any more, and not before."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import nbformat
import pytest

from autograder.publishing.solved_chapters import release_solved

ROOT = Path(__file__).resolve().parents[3]
NAME = "01_kernel_regression"
COURSE = f"""
[due]
{NAME} = 2030-03-01T12:00:00

[students.ada]
extension = {{ {NAME} = 2 }}
"""
LAST = datetime(2030, 3, 3, 12, tzinfo=UTC)  # with the extension


@pytest.fixture
def course(tmp_path) -> Path:
    sample = ROOT / "tests" / "sample_book"
    shutil.copytree(sample / "book", tmp_path / "book")
    shutil.copy(sample / "_toc.yml", tmp_path)
    shutil.copy(ROOT / "_config.yml", tmp_path)
    (tmp_path / "course.toml").write_text(COURSE, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("wanted", [None, [NAME]])
def test_before_the_last_extension_is_over_nothing_is_written(course, wanted):
    with pytest.raises(ValueError, match="until 2030-03-03 12:00"):
        release_solved(course, wanted, LAST.replace(hour=11))
    assert not (course / "build").exists()


def test_without_a_deadline_nothing_is_written(course):
    (course / "course.toml").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="no deadline"):
        release_solved(course)


def test_afterwards_the_notebook_has_solutions_and_model_answers(course):
    (path,) = release_solved(course, None, LAST)
    notebook = nbformat.read(path, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert path.name == f"{NAME}.ipynb"
    assert "SOLUTION" not in text and "NotImplementedError`" in text
    assert "raise NotImplementedError\n" not in text and "Write your answer here" not in text
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    scope: dict = {}
    exec("import numpy as np\nfrom jaxtyping import Float, Num", scope)
    exec(next(source for source in code if source.startswith("def softmax")), scope)
    assert scope["softmax"](scope["np"].zeros(4)).tolist() == [0.25] * 4
    assert not any("nbgrader" in cell.metadata for cell in notebook.cells)
