"""The grader tested by mutation: standard changes to every line of every reference, each judged.

A *mutant* is a reference with one standard change. Most are wrong answers, so most must lose marks;
one that keeps full marks either computes the same as before (it is equivalent, and listed with the
reason in `equivalent.toml`) or shows a hole in the exercise.

Run: python -m benchmarks.mutants [--only EXERCISE …] [--jobs 1], or `make mutants`.
"""
