"""The instructor's side: one submission and whole classes, judged and recorded."""

import sys

# jsonschema, where this is installed, compiles a grammar of international addresses when it is
# imported: half of all the time that a command takes to start, for a format that no notebook has.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
