"""Checks every reference with what students have, on a machine that has nothing else of ours.

    python other_system.py SOLUTIONS

Run in the folder of the unpacked archive; the references come from SOLUTIONS. Ends with status 1
if one loses a point, or if an answer that returns None gets all.
"""

import sys
from importlib import import_module
from pathlib import Path

from autograder.student.check import verdict_on
from autograder.student.course import chapters, exercises_of


def main(solutions: Path) -> int:
    sys.path.insert(0, str(solutions.parent))
    wrong = []
    for slug in chapters():
        references = import_module(f"solutions.{slug}")
        for exercise in exercises_of(slug):
            right = verdict_on(getattr(references, exercise.name), exercise.name)
            nothing = verdict_on(lambda *_, **__: None, exercise.name)
            told = f"{exercise.name}: {right.score:g} of {exercise.points:g}"
            print(told, flush=True)
            if right.score < exercise.points or nothing.score == exercise.points:
                wrong.append(told)
    print(*wrong, f"{len(wrong)} not as they should be", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
