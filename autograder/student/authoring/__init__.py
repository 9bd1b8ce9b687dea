"""What declares an exercise. `autograder.student.authoring` is all that an author imports."""

from autograder.student.authoring.declaration import Declaration, exercises
from autograder.student.engine.aspects import describe, part, plain
from autograder.student.engine.compare import wrong
from autograder.student.engine.runs import (
    Array,
    Aspect,
    Draw,
    Finding,
    Previous,
    Recipe,
    Record,
    Run,
    Step,
    StridedArray,
    Trial,
    as_argument,
    call,
    module,
    tensor,
)

__all__ = [
    "Array", "Aspect", "Declaration", "Draw", "Finding", "Previous", "Recipe", "Record", "Run",
    "Step", "StridedArray", "Trial", "as_argument", "call", "describe", "exercises", "module",
    "part", "plain", "tensor", "wrong",
]  # fmt: skip
