"""Judges one submission: its answers run in the sandbox, and the verdicts are made here."""

import sys

from autograder.student import course

# Where this package is installed, jsonschema compiles a grammar of international addresses on
# import: half of the time that a command takes to start, for a format that no notebook has.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
course.package()  # so that its references can be imported
