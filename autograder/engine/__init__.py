"""One engine for checking and grading: makes runs of an answer, judges what comes back."""
