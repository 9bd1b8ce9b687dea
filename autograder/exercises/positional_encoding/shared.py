"""An input that several exercises of the chapter share."""

from autograder.engine.runs import Array, Draw


def float64_tensor(draw: Draw, *shape: int) -> Array:
    return draw.tensor(*shape, dtype="float64")
