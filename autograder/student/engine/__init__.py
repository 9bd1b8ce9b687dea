"""One engine for checking and grading: makes runs of an answer and judges what comes back."""
