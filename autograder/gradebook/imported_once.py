"""Imports what judging and making pages need: the fork server does it, once for all it forks."""

import atexit
import os
from contextlib import suppress
from importlib import import_module

from autograder.gradebook.fork_server import without_collecting
from autograder.student.course import chapters, exercises_of

with without_collecting():
    for _name in ("autograder.gradebook.judging_process", "torch", "autograder.judge.reference"):
        with suppress(ImportError):  # a course may do without torch
            import_module(_name)
    with suppress(Exception):  # those who need it will say what is wrong
        for _slug in chapters():
            exercises_of(_slug)

atexit.register(os._exit, 0)  # to take all this apart takes longer than to end
