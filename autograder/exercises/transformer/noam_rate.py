"""`noam_rate`: warm up, then cool down."""

from collections.abc import Sequence

from autograder.engine.aspects import dtypes_kept, equals_reference, raises
from autograder.engine.runs import Draw, Exercise, Run, call


def _noam_runs(draw: Draw) -> Sequence[Run]:
    warmup = draw.integer(80, 120)
    return [
        call(draw.integer(2, 70), 512, warmup),
        call(draw.integer(130, 400), 512, warmup),
        call(step=draw.integer(3, 60), d_model=256, warmup=warmup),
        call(draw.integer(1000, 9000), 64, warmup=warmup),
        call(draw.integer(40, 70), 16, 3),
    ]


def _noam_marks(draw: Draw) -> Sequence[Run]:
    warmup = draw.integer(80, 120)
    return [
        call(1, 128, warmup),
        call(2, 128, warmup),
        *(call(warmup + shift, 128, warmup) for shift in (-1, 0, 1)),
        call(1, 32, 1),
    ]


def _noam_default(draw: Draw) -> Sequence[Run]:
    return [call(draw.integer(100, 3000), 512), call(draw.integer(5000, 99999), 1024)]


def _noam_early(draw: Draw) -> Sequence[Run]:
    return [call(0, 512), call(-draw.integer(1, 9), d_model=64, warmup=10)]


NOAM_RATE = Exercise(
    "noam_rate",
    "Warm up, then cool down",
    ("step", "d_model", "warmup"),
    (
        equals_reference(
            "on the way up and on the way down",
            0.4,
            "The smaller of two curves, step · warmup^−3/2 and step^−1/2, over √d_model.",
            _noam_runs,
        ),
        equals_reference(
            "the first steps and the peak",
            0.2,
            "Step 1 is the first, step 2 has twice its rate, and the two curves meet at warmup.",
            _noam_marks,
        ),
        equals_reference("4000 steps by default", 0.15, "As in the paper.", _noam_default),
        raises(
            "a step before the first",
            0.15,
            "Raise ValueError for a step below 1.",
            _noam_early,
            ValueError,
        ),
        dtypes_kept(0.1, "The rate is a float.", _noam_runs),
    ),
)
