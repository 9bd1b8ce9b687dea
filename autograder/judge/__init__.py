"""The instructor's side: one submission and whole classes, judged and recorded."""

import sys

from autograder.student import course

# Where this package is installed, jsonschema compiles a grammar of international addresses on
# import: half of the time that a command takes to start, for a format that no notebook has.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
course.package()  # so that its references can be imported
