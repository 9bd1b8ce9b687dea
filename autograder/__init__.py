"""What a student imports: `check`, `check_pencil`, the `device` to run on, a `Progress` bar."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  (a notebook's kernel may be older than what pip saw)
    raise ImportError("this course needs Python 3.11 or later; this is " + sys.version.split()[0])

from autograder.student.check import check
from autograder.student.device import device
from autograder.student.old_names import keep_old_names
from autograder.student.overview import check_all, hint, shorten_missing_name_errors
from autograder.student.pencil import check_pencil, show_pencil
from autograder.student.progress import Progress

vars(check).update(all=check_all, hint=hint)
shorten_missing_name_errors()
keep_old_names()

__all__ = ["Progress", "check", "check_pencil", "device", "show_pencil"]
