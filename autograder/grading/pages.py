"""Feedback pages: nbgrader's page of an autograded notebook, made fast.

TRUST BOUNDARY. What students wrote stands in the notebook; nbconvert's `sanitize_html` and the
filters of `nbgrader_config.py` take everything out of it that could act.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import NotebookNode
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config


@dataclass(frozen=True)
class Marked:
    """What the gradebook says about a submission, as its page shows it, by grade id."""

    scores: Mapping[str, tuple[float, float]]
    comments: Mapping[str, str | None]
    score: float
    points: float
    penalty: float


class Pages:
    """Makes feedback pages."""

    def __init__(self, config: Config):
        converter = GenerateFeedback(coursedir=CourseDirectory(config=config), config=config)
        self.exporter = _Page(parent=converter, config=converter.config)
        self.exporter.register_preprocessor(CSSHTMLHeaderPreprocessor, enabled=True)

    def page(self, notebook: NotebookNode, assignment: str, student: str, marked: Marked) -> str:
        """The page of an autograded notebook, which is changed."""
        for cell in notebook.cells:
            mark = cell.metadata.get("nbgrader", {})
            if mark.get("solution") or mark.get("task"):
                mark["comment"] = marked.comments.get(mark["grade_id"])
            if mark.get("grade") or mark.get("task"):
                mark["score"], mark["points"] = marked.scores[mark["grade_id"]]
        whose = {"student": student, "assignment": assignment, "notebook": assignment}
        total = {"score": marked.score - marked.penalty, "max_score": marked.points}
        resources = {
            "metadata": {"name": assignment, "path": ""},
            "unique_key": assignment,
            "output_files_dir": f"{assignment}_files",
            "nbgrader": whose | total | {"late_penalty": marked.penalty},
        }
        page, _ = self.exporter.from_notebook_node(notebook, resources)
        return page


class _Compiled(BytecodeCache):
    """nbconvert's templates, compiled once for all pages that this process writes."""

    known: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.known:
            bucket.bytecode_from_string(self.known[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.known[bucket.key] = bucket.bytecode_to_string()


class _Page(HTMLExporter):
    """nbconvert's page without its last step, which parses the page to name pictures without alt.

    That took half of the time; here the pictures without one get the same words by their tag.
    """

    def _create_environment(self) -> Environment:
        environment = super()._create_environment()
        environment.bytecode_cache = _Compiled()
        return environment

    def from_notebook_node(
        self, nb: NotebookNode, resources: dict | None = None, **more: Any
    ) -> tuple[str, dict]:
        language = nb.metadata.get("language_info", {})
        lexer = language.get("pygments_lexer", language.get("name", "python3"))
        self.register_filter("highlight_code", _Highlighter(lexer))
        resources = self._init_resources(resources)
        known = {"notebook_metadata": self._nb_metadata, "parent": self, "resources": resources}
        self.register_filter("filter_data_type", WidgetsDataTypeFilter(**known))
        page, resources = super(HTMLExporter, self).from_notebook_node(nb, resources, **more)
        return _PICTURE.sub(rf'<img alt="{_NO_ALT}"', page), resources


class _Highlighter:
    """nbconvert's highlighter; most cells are the release's, and coloured once for all students."""

    def __init__(self, lexer: str):
        self.lexer = lexer

    def __call__(self, source: str, language: str | None = None, metadata: Any = None) -> str:
        return _coloured(source, self.lexer, language or (metadata or {}).get("magics_language"))


@lru_cache(maxsize=1024)
def _coloured(source: str, lexer: str, language: str | None) -> str:
    return Highlight2HTML(pygments_lexer=lexer)(source, language)


_PICTURE = re.compile(r"<img(?=[\s/>])(?![^>]*\salt\s*=)", re.IGNORECASE)
_NO_ALT = "No description has been provided for this image"
