"""nbgrader's configuration: `nbgrader generate_assignment`, `autograde`, `formgrader` … read it.

What is yours to change goes below the last line; nbgrader's documentation says what there is.
"""

from pathlib import Path

from autograder.notebook.settings import configure

c = get_config()  # noqa: F821  (traitlets defines it)
configure(c, Path(__file__).resolve().parent)
