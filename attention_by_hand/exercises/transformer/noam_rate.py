"""`noam_rate`: warm up, then cool down."""

from autograder.student.authoring import Declaration, Draw, Run, call

EXERCISE = Declaration("noam_rate", "Warm up, then cool down", ("step", "d_model", "warmup"))


@EXERCISE.equals("before and after the peak", 0.4)
def _runs(draw: Draw) -> list[Run]:
    """The smaller of two curves, step · warmup^−3/2 and step^−1/2, divided by √d_model."""
    warmup = draw.integer(80, 120)
    return [
        call(draw.integer(2, 70), 512, warmup),
        call(draw.integer(130, 400), 512, warmup),
        call(step=draw.integer(3, 60), d_model=256, warmup=warmup),
        call(draw.integer(1000, 9000), 64, warmup=warmup),
        call(draw.integer(40, 70), 16, 3),
    ]


@EXERCISE.equals("the first steps and the peak", 0.2)
def _marks(draw: Draw) -> list[Run]:
    """Step 1 is the first, step 2 has twice its rate, and the two curves meet at warmup."""
    warmup = draw.integer(80, 120)
    return [
        call(1, 128, warmup),
        call(2, 128, warmup),
        *(call(warmup + shift, 128, warmup) for shift in (-1, 0, 1)),
        call(1, 32, 1),
        call(1, 1, warmup),
    ]


@EXERCISE.equals("4000 warmup steps by default", 0.15)
def _default(draw: Draw) -> list[Run]:
    """As in the paper."""
    return [call(draw.integer(100, 3000), 512), call(draw.integer(5000, 99999), 1024)]


@EXERCISE.raises("a step before the first", 0.15, ValueError)
def _early(draw: Draw) -> list[Run]:
    """Raise ValueError for a step below 1."""
    return [call(0, 512), call(-draw.integer(1, 9), d_model=64, warmup=10)]


EXERCISE.keeps_dtypes(0.1, "The rate is a float.", _runs)
