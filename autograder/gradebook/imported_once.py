"""Imports what judging and making pages need: the fork server does it, once for all it forks."""

from contextlib import suppress
from importlib import import_module

from autograder.gradebook.fork_server import without_collecting

with without_collecting():
    for _name in ("autograder.gradebook.judging_process", "torch", "autograder.judge.reference"):
        with suppress(ImportError):  # a course may do without torch
            import_module(_name)
