"""nbgrader's configuration: `nbgrader generate_assignment`, `autograde`, `formgrader` … read it."""

import os
import sys
from pathlib import Path

from autograder.grading.stubs import BEGIN, CODE_STUB, END, TEXT_STUB

c = get_config()  # noqa: F821  (traitlets defines it)

# nbgrader starts `alembic` by name: let it find the one beside this Python.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

# --- Where things are -----------------------------------------------------------------------------
c.CourseDirectory.root = str(Path(__file__).resolve().parent)
c.CourseDirectory.source_directory = "build/source"  # made by `autograder release`; has solutions
c.CourseDirectory.release_directory = "notebooks"  # what students get
c.CourseDirectory.submitted_directory = "submitted"
c.CourseDirectory.autograded_directory = "autograded"
c.CourseDirectory.feedback_directory = "feedback"

# --- Authoring: what stands where a solution stood ------------------------------------------------
c.ClearSolutions.begin_solution_delimeter = BEGIN
c.ClearSolutions.end_solution_delimeter = END
c.ClearSolutions.code_stub = {"python": CODE_STUB}
c.ClearSolutions.text_stub = TEXT_STUB

# --- Grading --------------------------------------------------------------------------------------
