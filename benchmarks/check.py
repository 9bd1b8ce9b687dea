"""How long `check` takes for each exercise: seconds for the reference, and for a wrong answer.

Run: python -m benchmarks.check. A wrong answer costs more, because every known mistake is compared.
"""

import io
import time
from contextlib import redirect_stdout

from autograder.bank import banks
from autograder.judge.reference import reference
from autograder.student.check import verdict_on
from autograder.student.course import chapters, exercises_of
from autograder.student.table import table_html


def seconds(answer, name: str, repeats: int = 5) -> float:
    """The median time in seconds of a verdict and its table."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        with redirect_stdout(io.StringIO()):
            table_html(verdict_on(answer, name))
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def main() -> None:
    print(f"{'exercise':32} {'right':>8} {'wrong':>8}   (seconds; aim: under 0.5)")
    slowest = 0.0
    for slug in chapters():
        for exercise in exercises_of(slug):
            name = exercise.name
            right = seconds(reference(slug, name), name)
            wrong = max(seconds(m, name, 1) for m in banks(slug)[name].mistakes.values())
            slowest = max(slowest, right, wrong)
            print(f"{name:32} {right:8.3f} {wrong:8.3f}")
    print(f"slowest: {slowest:.3f} s")


if __name__ == "__main__":
    main()
