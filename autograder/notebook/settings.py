"""nbgrader's configuration: what a course's `nbgrader_config.py` calls.

TRUST BOUNDARY. What a student handed in is rebuilt, judged in the sandbox and shown without active
content only because the preprocessors and filters named here are in these places.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nbgrader.converters import GenerateAssignment

from autograder.notebook.stubs import BEGIN, CODE_STUB, END, INSTRUCTOR, TEXT_STUB

if TYPE_CHECKING:
    from traitlets.config import Config

OURS = "autograder.gradebook.preprocessors"
NBGRADER = "nbgrader.preprocessors"
INERT = "autograder.notebook.inert"


def configure(c: "Config", root: Path) -> None:
    """Set up nbgrader's configuration `c` for the course in the folder `root`."""
    # nbgrader starts `alembic` by name: let it find the one beside this Python.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    # Where things are
    c.CourseDirectory.root = str(root)
    if os.environ.get("AUTOGRADER_DB"):  # a database server in place of gradebook.db
        c.CourseDirectory.db_url = os.environ["AUTOGRADER_DB"]
    # made by `autograder release`, with the solutions
    c.CourseDirectory.source_directory = "build/source"
    c.CourseDirectory.release_directory = "notebooks"  # what students get
    c.CourseDirectory.submitted_directory = "submitted"
    c.CourseDirectory.autograded_directory = "autograded"
    c.CourseDirectory.feedback_directory = "feedback"

    # Authoring: what stands where a solution stood
    c.ClearSolutions.begin_solution_delimeter = BEGIN
    c.ClearSolutions.end_solution_delimeter = END
    c.ClearSolutions.code_stub = {"python": CODE_STUB}
    c.ClearSolutions.text_stub = TEXT_STUB
    c.GenerateAssignment.preprocessors = [
        "nbconvert.preprocessors.TagRemovePreprocessor",
        *GenerateAssignment.preprocessors.default(),
    ]
    c.TagRemovePreprocessor.enabled = True
    c.TagRemovePreprocessor.remove_cell_tags = [INSTRUCTOR]

    # Grading
    c.Autograde.sanitize_preprocessors = [
        f"{OURS}.Rebuild",  # the released notebook with the student's answers and cells
        f"{NBGRADER}.ClearOutput",
        f"{NBGRADER}.DeduplicateIds",
        f"{NBGRADER}.OverwriteKernelspec",
        f"{NBGRADER}.OverwriteCells",
        f"{NBGRADER}.CheckCellMetadata",
    ]
    c.Autograde.autograde_preprocessors = [
        f"{OURS}.Judge",  # in place of Execute: in the sandbox, with fresh inputs
        f"{NBGRADER}.LimitOutput",
        f"{OURS}.SaveAutoGrades",
        f"{OURS}.SaveJudgement",
        f"{NBGRADER}.AssignLatePenalties",
        f"{NBGRADER}.CheckCellMetadata",
    ]
    c.Judge.isolation = "bwrap"
    c.Judge.device = "cpu"

    # What people see of it: feedback, formgrader, grades.csv
    c.GenerateFeedback.preprocessors = [
        f"{OURS}.ShowVerdicts",  # from the gradebook
        f"{NBGRADER}.GetGrades",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
    c.HTMLExporter.sanitize_html = True
    c.HTMLExporter.preprocessors = [f"{INERT}.NewPage"]
    # nbgrader's templates do not clean Markdown; nbconvert's filter drops tables
    c.HTMLExporter.filters = {
        "ansi2html": f"{INERT}.show_terminal",
        "clean_html": f"{INERT}.show_html",
        "highlight_code": f"{INERT}.highlight_code",
        "markdown2html": f"{INERT}.show_markdown",
        "strip_files_prefix": f"{INERT}.leave_unchanged",
    }
    c.ExportApp.plugin_class = "autograder.gradebook.export.SafeCsv"
