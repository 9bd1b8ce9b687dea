"""A chapter as a student sees it: every exercise's cell shows its stub, points and title.

The cell itself runs the reference, so that the outputs and figures below it are real. What it ran
is replaced before anything else reads the page: neither the HTML nor the search index gets it.
"""

import hashlib
import html
import os
import re
from collections.abc import Callable
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from autograder.notebook.stubs import clear, source
from autograder.publishing.chapter_runs import chapters_run, code_of, with_code_digest
from autograder.student import course
from autograder.student.course import exercises_of
from autograder.student.engine.runs import Exercise

ROOT = course.root()
course.package()  # so that its references can be imported


def as_html(text: str) -> str:
    """A title or a hint as a page shows it: names between backticks as code."""
    parts = re.split(r"`([^`]+)`", html.escape(text, quote=False))
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))


class Hints:
    """How hints are shown; the book's other extensions may replace `text`."""

    text: Callable[[str], str] = staticmethod(as_html)


def hints(exercise: Exercise) -> str:
    """The hints of an exercise's aspects; each unfolds inside the one before."""
    inner = ""
    count = len(exercise.aspects)
    for number, aspect in reversed(list(enumerate(exercise.aspects, 1))):
        summary = f"Hint {number} of {count}: {Hints.text(aspect.title)}"
        told = Hints.text(aspect.hint)
        inner = f"<details><summary>{summary}</summary><p>{told}</p>{inner}</details>"
    return f'<div class="hints">{inner}</div>'


def mark_version(app: Sphinx, docname: str, text: list[str]) -> None:
    """Add a digest to each exercise's cell: a changed reference makes the cached run stale.

    Nobody sees the mark, as the stub takes its place.
    """
    for path in code_of(ROOT, text[0]) if chapters_run(text[0]) else ():
        app.env.note_dependency(str(path))
    text[0] = with_code_digest(ROOT, text[0])


def show_stubs(app: Sphinx, doctree: nodes.document) -> None:
    """Put stubs, with a heading above, where exercises' cells import the reference."""
    for cell in list(doctree.findall(nodes.container)):
        if "tag_exercise" not in cell.get("classes", ()):
            continue
        block = next(cell.findall(nodes.literal_block))
        match = re.match(r"from solutions\.(\w+) import (\w+)", block.astext())
        if match is None:
            raise ExtensionError(f"{app.env.docname}: no exercise: {block.astext()!r}")
        slug, name = match.groups()
        exercise = next((e for e in exercises_of(slug) if e.name == name), None)
        if exercise is None:
            raise ExtensionError(f"{app.env.docname}: {slug} declares no exercise {name}")
        code = clear(source(slug, name)).rstrip()
        stub = nodes.literal_block(code, code, language="python", classes=["stub"])
        block.replace_self(stub)
        cell.insert(0, _heading(exercise))
        cell.append(nodes.raw("", hints(exercise), format="html"))


def _heading(exercise: Exercise) -> nodes.container:
    line = nodes.paragraph()
    line += nodes.strong("", exercise.title)
    worth = f"{exercise.points:g} point{'' if exercise.points == 1 else 's'}"
    line += nodes.inline("", worth, classes=["exercise-points"])
    lines = [line, *([nodes.paragraph("", exercise.allowance)] if exercise.allowance else [])]
    return nodes.container("", *lines, classes=["exercise-head"], ids=[f"exercise-{exercise.name}"])


def prepare(app: Sphinx, config) -> None:
    """Let the kernels find this repository, and keep their results in `build/`."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    config.nb_execution_cache_path = str(ROOT / config.nb_execution_cache_path)
    own = sorted({*Path(__file__).parent.glob("*.py"), *ROOT.glob("book/extensions/*.py")})
    config.extensions_digest = hashlib.sha256(b"".join(p.read_bytes() for p in own)).hexdigest()


def setup(app: Sphinx) -> dict:
    # Sphinx reads all pages again when this changes, and so when an extension has changed
    app.add_config_value("extensions_digest", "", "env")
    app.connect("config-inited", prepare, priority=100)
    app.connect("source-read", mark_version)
    app.connect("doctree-read", show_stubs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
