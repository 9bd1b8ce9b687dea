"""`moving_average`: neighbours averaged."""

from autograder.student.authoring import Declaration, Draw, Run, call

EXERCISE = Declaration("moving_average", "Neighbours averaged", ("values", "width"))


@EXERCISE.equals("random values", 1.0)
def _random(draw: Draw) -> list[Run]:
    """Entry i is the mean of `width` values, the first of which is number i."""
    return [call(draw.normal(8), 3), call(draw.normal(5), 2)]


@EXERCISE.equals("the narrowest and the widest window", 0.5)
def _edges(draw: Draw) -> list[Run]:
    """A window of 1 gives the values back; one as wide as all values gives a single mean."""
    return [call(draw.normal(4), 1), call(draw.normal(6), 6), call(draw.normal(1), 1)]


@EXERCISE.raises(
    "a width that cannot be", 0.5, ValueError, naming=lambda run: run.steps[0].args[1:]
)
def _impossible(draw: Draw) -> list[Run]:
    """A window holds one value at least, and no more than there are. Name the width."""
    return [call(draw.normal(4), 0), call(draw.normal(4), 5)]


@EXERCISE.keeps_dtypes(0.25)
def _dtypes(draw: Draw) -> list[Run]:
    """float32 stays float32, and integers become float64: do not fix a dtype."""
    return [call(draw.normal(5, dtype="float32"), 2), call(draw.integers(0, 9, 5), 2)]


EXERCISE.leaves_inputs_alone(0.25, _random)
