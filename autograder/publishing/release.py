"""Chapters → the instructor's notebooks → nbgrader → `notebooks/`, what students get.

`instructor_notebook` translates one chapter; `release` runs nbgrader on the result, which
enters the assignment into the gradebook, and writes only what has changed.
"""

import hashlib
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import nbformat
from jupytext.myst import myst_to_notebook
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import capture_log
from traitlets.config.loader import PyFileConfigLoader

from autograder.notebook import stubs
from autograder.publishing import pencils
from autograder.publishing.bookindex import (
    CHAPTER,
    BookError,
    BookIndex,
    Directive,
    chapter_number,
    directive,
)
from autograder.publishing.bundle import download
from autograder.publishing.cell_names import libraries, names_bound, names_read
from autograder.publishing.measured_tables import MeasuredTables
from autograder.publishing.plain_markdown import Page
from autograder.student.course import exercises_of, package

KINDS = {"exercise", "check", "draw", "page-only", "hide-input", "question", "outcome"}
_MAY_FAIL = "raises-exception"  # the tag that lets *Run All* go on
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}


@dataclass(frozen=True)
class Source:
    """A cell of a chapter, its tags, the line of the file where its text begins, and what stands
    in the place of one that only the page runs, where that is known."""

    cell: NotebookNode
    tags: frozenset[str]
    line: int
    table: list[NotebookNode]


def chapter_files(root: Path, wanted: Sequence[str] | None = None) -> list[Path]:
    """The sources of the chapters given by slug or by file name; None means all of them.

    Raises `ValueError`, which lists the chapters that exist.
    """
    pages = {p.stem: p for p in sorted((root / "book").glob("*.md")) if CHAPTER.fullmatch(p.stem)}
    slugs = {match[2]: p for stem, p in pages.items() if (match := CHAPTER.fullmatch(stem))}
    if wanted is None:
        return list(pages.values())
    missing = [name for name in wanted if name not in {*pages, *slugs}]
    if missing:
        raise ValueError(f"no chapter {', '.join(missing)}; there are {', '.join(slugs)}")
    return [pages.get(name) or slugs[name] for name in wanted]


def release(root: Path, wanted: Sequence[str] | None = None) -> list[Path]:
    """Write the student notebooks of some chapters (None: of all) and return their paths.

    Raises `BookError` for a source that cannot be translated, `RuntimeError` if nbgrader fails.
    """
    root = root.resolve()
    book = BookIndex(root)
    written = []
    for path in chapter_files(root, wanted):
        name = path.stem
        source = root / "build" / "source" / name / f"{name}.ipynb"
        _write(source, nbformat.writes(instructor_notebook(path, book)) + "\n")
        released = root / "notebooks" / name / f"{name}.ipynb"
        with tempfile.TemporaryDirectory(dir=root / "build") as folder:
            made = _generate_assignment(root, name, Path(folder))
            _write(released, made.read_text(encoding="utf-8"))
        written.append(released)
    return written


def instructor_notebook(path: Path, book: BookIndex | None = None) -> NotebookNode:
    """The chapter at `path` as a notebook for nbgrader: solutions, model answers and points inside.

    Raises `BookError`, which gives file and line, for anything that cannot be translated.
    """
    path = path.resolve()
    book = book or BookIndex(path.parent.parent)
    match = CHAPTER.fullmatch(path.stem)
    if match is None:
        raise ValueError(f"{path.name} is not a chapter: expected a name like 01_slug.md")
    page, slug = Page(book, path), match[2]
    declared = {exercise.name: exercise for exercise in exercises_of(slug)}
    cells: list[NotebookNode] = []
    bound: set[str] = set()
    unsolved = set(declared)  # names that are not there while an exercise is not written
    posed: list[str] = []
    checked: list[str] = []
    for number, source in enumerate(_sources(path, page)):
        cell, line = source.cell, source.line
        unknown = source.tags - KINDS
        if unknown:
            raise BookError(page.name, line, f"unknown tag {', '.join(sorted(unknown))}")
        if number == 0:
            cells += _head(page, cell, line)
        elif "page-only" in source.tags:
            cells += source.table or _elsewhere(page, source, cells)
        elif "question" in source.tags:
            cells.append(_question(page, cell, line))
        elif cell.cell_type == "markdown":
            cells += pencils.cells(page, cell.source, line)
        elif "exercise" in source.tags:
            name = _name(rf"from solutions\.{slug} import (\w+)", cell, page, line)
            if name not in declared or name in posed:
                raise BookError(page.name, line, f"{name} is not declared, or appears twice")
            posed.append(name)
            cells += _exercise(page, slug, declared[name], bound, line)
        elif "check" in source.tags:
            name = _name(r"check\((\w+)\)", cell, page, line)
            if not posed or name != posed[-1] or name in checked:
                raise BookError(page.name, line, f"check({name}) does not follow its exercise")
            checked.append(name)
            cells.append(_check(name, declared[name].points))
        elif cell.cell_type == "code":
            if re.search(
                r"\b(solutions|autograder\.(?:bank|grader|publishing|cli))\b", cell.source
            ):
                raise BookError(page.name, line, "students do not have what this cell imports")
            cells += _code(page, source, unsolved)
        else:
            raise BookError(page.name, line, f"a {cell.cell_type} cell cannot be translated")
        bound |= names_bound(cell.source) if cell.cell_type == "code" else set()
    missing = [name for name in declared if name not in checked]
    if missing:
        raise BookError(page.name, 1, f"no exercise and check for {', '.join(missing)}")
    first = next((i for i, cell in enumerate(cells) if cell.cell_type == "code"), len(cells))
    cells.insert(first, _guard(page.book))
    cells += _overview() if posed else []
    return _finish(pencils.in_order(page, cells))


def _sources(path: Path, page: Page) -> Iterator[Source]:
    """The chapter's cells with their line numbers. The first one holds the title."""
    text = path.read_text(encoding="utf-8")
    try:
        notebook = myst_to_notebook(text, add_source_map=True)
    except Exception as error:
        raise BookError(page.name, 1, str(error)) from error
    rows = text.split("\n")
    measured = MeasuredTables()
    for cell, start in zip(notebook.cells, notebook.metadata["source_map"], strict=True):
        blank = 0
        while cell.cell_type == "markdown" and not rows[start + blank].strip():
            blank += 1
        tags = frozenset(cell.metadata.get("tags", ()))
        yield Source(cell, tags, start + blank + 1, measured.show(cell))


def _head(page: Page, cell: NotebookNode, line: int) -> list[NotebookNode]:
    """The title, instructions for the notebook, and the rest of the chapter's first cell."""
    match = re.match(r"((?:\([\w-]+\)=\s*)*# (.+)\n?)", cell.source)
    if cell.cell_type != "markdown" or match is None:
        raise BookError(page.name, line, "a chapter must begin with its title")
    url, name = page.book.url(page.path), page.book.config["title"]
    chapter = int(chapter_number(page.path))
    head = f"""\
# {page.plain(match[2], line)}

Chapter {chapter} of *{name}*. The same text with its pictures: [{url}]({url})

1. Replace each `{stubs.CODE_STUB}` by your own code; leave names and arguments as they are.
2. Run the `check(…)` cell below it. It shows what is right, what is not, and by how much.
3. Answer the written questions, run all cells once more, save, and hand in this file.

Tables to fill in, predictions and hard problems (★) are for yourself: they earn no points."""
    rest = cell.source[match.end() :]
    body = page.plain(rest, line + match[0].count("\n"))
    return [new_markdown_cell(head), *([new_markdown_cell(body)] if body else [])]


def _guard(book: BookIndex) -> NotebookNode:
    """A cell that says what to install when the notebook was opened on its own, as in Colab."""
    code = f"""\
from importlib.util import find_spec

if find_spec("autograder") is None:
    raise ImportError(
        "the checks are not installed. Run this in a cell of its own:"
        " %pip install {book.base}/{download()}"
    )"""
    return new_code_cell(code, metadata={"tags": ["draw"]})  # not run when grading


def _elsewhere(page: Page, source: Source, before: list[NotebookNode]) -> list[NotebookNode]:
    """A line in place of what only the page can show; one for several cells in a row."""
    anchor = source.cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "")
    line = page.link_to(anchor)
    if not before or not before[-1].source.startswith(line.split("(", maxsplit=1)[0]):
        return [new_markdown_cell(line)]
    if anchor:
        before[-1].source = line
    return []


def _name(pattern: str, cell: NotebookNode, page: Page, line: int) -> str:
    """The name in a cell whose whole text must match `pattern`."""
    match = re.fullmatch(pattern, cell.source.strip())
    if match is None:
        form = pattern.replace(r"(\w+)", "NAME").replace("\\", "")
        raise BookError(page.name, line, f"the cell must be exactly `{form}`")
    return match[1]


def _exercise(page: Page, slug: str, exercise, bound: set[str], line: int) -> list[NotebookNode]:
    """The exercise's heading, and the reference's source as an nbgrader solution cell."""
    text = stubs.source(slug, exercise.name)
    needed = names_read(text) & set(vars(import_module(f"solutions.{slug}")))
    absent = sorted(needed - bound - {exercise.name})
    if absent:
        raise BookError(page.name, line, f"{exercise.name} needs {', '.join(absent)} imported")
    heading = f"**{exercise.title}** ({points(exercise.points)})"
    heading += f"  \n{exercise.allowance}" if exercise.allowance else ""
    cell = _graded(new_code_cell(text), exercise.name, solution=True)
    return [new_markdown_cell(heading), cell]


def _check(name: str, value: float) -> NotebookNode:
    cell = new_code_cell(f"check({name})")
    return _graded(cell, f"check_{name}", grade=True, locked=True, points=value)


def _overview() -> list[NotebookNode]:
    """The last cells: how far the notebook is."""
    text = (
        "**How far are you?** Points so far, what is next, and what is not written yet. "
        "`check.hint(…)` tells one hint more for the answer in its parentheses."
    )
    code = "from autograder import check\n\ncheck.all()"
    return [new_markdown_cell(text), new_code_cell(code, metadata={"tags": ["draw"]})]


def _code(page: Page, source: Source, unsolved: set[str]) -> list[NotebookNode]:
    """An ordinary code cell and the caption of the figure it draws.

    One that needs `unsolved` names, to which its own are added, may fail before these are there:
    *Run All* goes on behind it.
    """
    cell = new_code_cell(source.cell.source)
    tags: list[str] = [tag for tag in ("draw", "hide-input", "outcome") if tag in source.tags]
    if unsolved & names_read(cell.source):
        unsolved |= names_bound(cell.source)
        tags.append(_MAY_FAIL)
    else:
        unsolved -= names_bound(cell.source)
    if tags:
        cell.metadata["tags"] = tags
    if "hide-input" in tags:
        cell.metadata["jupyter"] = {"source_hidden": True}
    figure = source.cell.metadata.get("mystnb", {}).get("figure", {})
    if "caption" not in figure:
        return [cell]
    caption = page.caption(figure["caption"], figure.get("name", ""), source.line)
    return [cell, new_markdown_cell(caption)]


def _let_fail(cells: Iterable[NotebookNode]) -> None:
    """Tag those that need a library which nothing above the first exercise imports, so that *Run
    All* goes on where it is not installed: what stands above needs none."""
    there, absent, posed = {*sys.stdlib_module_names, "autograder", package()}, set[str](), False
    for cell in cells:
        posed = posed or cell.metadata.get("nbgrader", {}).get("solution", False)
        late = libraries(cell.source) - there if posed else set()
        there |= set() if posed else libraries(cell.source)
        if late or absent & names_read(cell.source):
            if late or "nbgrader" in cell.metadata:
                absent |= names_bound(cell.source)
            cell.metadata.tags = [*dict.fromkeys([*cell.metadata.get("tags", ()), _MAY_FAIL])]


def _question(page: Page, cell: NotebookNode, line: int) -> NotebookNode:
    """A question graded by hand; nbgrader replaces the model answer with its text stub."""
    fences = [t for t in page.book.parser.parse(cell.source) if t.level == 0]
    found = directive(fences[0], page.name, line) if len(fences) == 1 else None
    if found is None or found.name != "question" or "points" not in found.options:
        raise BookError(page.name, line, "the cell must hold one {question} with :points:")
    text, answer = split_question(page, found, line)
    value = float(found.options["points"])
    source = (
        f"**Question** ({points(value)})\n\n{text}\n\n### {stubs.BEGIN}\n{answer}\n### {stubs.END}"
    )
    grade_id = f"question_{found.argument}"
    return _graded(new_markdown_cell(source), grade_id, grade=True, solution=True, points=value)


def split_question(page: Page, found: Directive, line: int) -> tuple[str, str]:
    """The text of a question and its model answer, both in plain Markdown."""
    lines = found.body.split("\n")
    for token in page.book.parser.parse(found.body):
        start, end = token.map or (0, 0)
        first = found.body_line + start
        answer = directive(token, page.name, first)
        if answer is not None and answer.name == "model-answer":
            if any(row.strip() for row in lines[end:]):
                raise BookError(page.name, first, "text after the model answer")
            text = page.plain("\n".join(lines[:start]), found.body_line)
            return text, page.plain(answer.body, answer.body_line)
    raise BookError(page.name, line, "a question without a {model-answer}")


def _graded(cell: NotebookNode, grade_id: str, **what: object) -> NotebookNode:
    """Mark a cell for nbgrader; its id is its grade id."""
    cell.id = grade_id[:64]
    cell.metadata["nbgrader"] = {
        "schema_version": 3,
        "grade_id": grade_id,
        "grade": False,
        "solution": False,
        "locked": False,
        "task": False,
        **what,
    }
    return cell


def _finish(cells: list[NotebookNode]) -> NotebookNode:
    """Give every cell an id that depends only on its content: a second run changes nothing."""
    _let_fail(cell for cell in cells if cell.cell_type == "code")
    seen: dict[str, int] = {}
    for cell in cells:
        if "nbgrader" not in cell.metadata:
            digest = hashlib.blake2b(cell.source.encode(), digest_size=6).hexdigest()
            seen[digest] = seen.get(digest, 0) + 1
            cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    notebook = new_notebook(cells=cells, metadata=METADATA)
    nbformat.validate(notebook)
    return notebook


def points(value: float) -> str:
    """3.0 → "3 points"."""
    return f"{value:g} point" + ("" if value == 1 else "s")


def _generate_assignment(root: Path, name: str, folder: Path) -> Path:
    """Have nbgrader make the student's version in `folder` and enter it into the gradebook."""
    config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    config.CourseDirectory.release_directory = str(folder)
    config.CourseDirectory.assignment_id = name
    coursedir = CourseDirectory(config=config)
    generate = GenerateAssignment(coursedir=coursedir, config=config, force=True)
    result = capture_log(generate)
    if not result["success"]:
        raise RuntimeError(f"nbgrader could not make {name}:\n{result.get('log', '')}")
    return folder / name / f"{name}.ipynb"


def _write(path: Path, text: str) -> None:
    """Write `text` unless the file holds it already."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
