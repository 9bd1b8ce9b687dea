"""Feedback pages: nbgrader's page of an autograded notebook, made fast.

The tables of verdicts and the marks on a page come from the gradebook, not from the notebook.

TRUST BOUNDARY. The notebook contains what students wrote; nbconvert's `sanitize_html` and the
filters of `nbgrader_config.py` remove all active content. `serve` makes one page after another
within limits of CPU time and memory; its process (`feedback.PageMaker`) dies when one exceeds them.
"""

import gc
import re
import resource
import time
from collections.abc import Mapping
from html import escape
from multiprocessing.connection import Connection
from pathlib import Path

import nbformat
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.widgetsdatatypefilter import WidgetsDataTypeFilter
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import NotebookNode
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder.gradebook.feedback import CPU_SECONDS, MEMORY_MB, MarkedNotebook
from autograder.judge.marks import show_verdicts
from autograder.notebook.given_away import given_away
from autograder.notebook.reading import CHECK
from autograder.notebook.settings import configure
from autograder.student.engine.verdict import Verdict


class Pages:
    """Makes feedback pages."""

    def __init__(self, config: Config):
        converter = GenerateFeedback(coursedir=CourseDirectory(config=config), config=config)
        self.exporter = _Page(parent=converter, config=converter.config)
        self.exporter.register_preprocessor(CSSHTMLHeaderPreprocessor, enabled=True)

    def page(
        self, notebook: NotebookNode, assignment: str, student: str, marked: MarkedNotebook
    ) -> str:
        """The page of an autograded notebook, which is modified."""
        show_verdicts(notebook, marked.verdicts)
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
        page, _ = self.exporter.from_notebook_node(given_away(notebook), resources)
        return named(page, marked.verdicts)


def named(page: str, verdicts: Mapping[str, Verdict]) -> str:
    """The page whose list of marks names exercises, their known mistakes, and questions."""

    def entry(found: re.Match) -> str:
        grade_id, rest = found.groups()
        name = grade_id.removeprefix(CHECK)
        verdict = verdicts.get(name)
        told = f": {escape(verdict.cause)}" if verdict and verdict.mistake and verdict.cause else ""
        label = name if verdict else name.replace("_", " ")
        return f'<a href="#{grade_id}">{label}</a>{rest}{told}'

    head, mark, after = page.partition('<div id="toc">')
    entries, end, body = after.partition("</ol>")
    return head + mark + _ENTRY.sub(entry, entries) + end + body


_ENTRY = re.compile(
    r'<a href="#(\w+)">(?:Test cell|Coding free-response|Written response)</a>'
    r"( \(Score: [^)]{0,60}\))"
)


class _Compiled(BytecodeCache):
    """nbconvert's templates, compiled once for all pages that this process writes."""

    known: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self.known:
            bucket.bytecode_from_string(self.known[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.known[bucket.key] = bucket.bytecode_to_string()


class _Page(HTMLExporter):
    """nbconvert's page without two steps that took most of the time.

    The last one parses the page to name pictures without alt: here a regular expression adds the
    same text. Another copies the notebook and validates it after each preprocessor: it is one of
    ours, of which nothing else is made.
    """

    def _preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        for preprocessor in self._preprocessors:
            nb, resources = preprocessor(nb, resources)
        return nb, resources

    def _create_environment(self) -> Environment:
        environment = super()._create_environment()
        environment.bytecode_cache = _Compiled()
        return environment

    def from_notebook_node(  # type: ignore[override]  # as all of nbconvert's that write text
        self, nb: NotebookNode, resources: dict | None = None, **more: object
    ) -> tuple[str, dict]:
        resources = self._init_resources(resources)
        known = {"notebook_metadata": self._nb_metadata, "parent": self, "resources": resources}
        self.register_filter("filter_data_type", WidgetsDataTypeFilter(**known))
        page, resources = super(HTMLExporter, self).from_notebook_node(nb, resources, **more)
        return _PICTURE.sub(rf'<img alt="{_NO_ALT}"', page), resources


_PICTURE = re.compile(r"<img(?=[\s/>])(?![^<>]*\salt\s*=)", re.IGNORECASE)
_NO_ALT = "No description has been provided for this image"


def config_of(root: Path) -> Config:
    """The project's configuration of nbgrader, for the course at `root`."""
    config = Config()
    configure(config, root)
    return config


def serve(pipe: Connection) -> None:
    """Make the requested pages until the other end closes the pipe."""
    pages = Pages(config_of(Path(pipe.recv())))
    _limit_memory()
    gc.freeze()  # so that a collection does not go through all that was imported
    while True:
        try:
            notebook, assignment, student, marked = pipe.recv()
        except EOFError:
            return
        _limit_time()
        try:
            node = nbformat.v4.reads(notebook.decode())
            answer = True, pages.page(node, assignment, student, marked)
        except Exception as error:  # noqa: BLE001  (it concerns this page only)
            answer = False, f"{type(error).__name__}: {error}"[:500]
        pipe.send(answer)


def _limit_memory() -> None:
    with open("/proc/self/statm", encoding="ascii") as stream:
        pages = int(stream.read().split()[0])
    limit = pages * resource.getpagesize() + (MEMORY_MB << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _limit_time() -> None:
    """Give this page its CPU time; beyond it, the kernel kills the process."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + CPU_SECONDS, hard))
