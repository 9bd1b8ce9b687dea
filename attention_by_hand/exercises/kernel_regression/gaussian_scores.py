"""`gaussian_scores`: a score for every query and key."""

from autograder.student.authoring import Declaration, Draw, Run, StridedArray, call

EXERCISE = Declaration("gaussian_scores", "A score for every query and key", ("query", "key", "w"))


@EXERCISE.equals("scores of random queries and keys", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """Every query meets every key, so the shape is (n_q, n_k): give both arrays an axis of length 1
    so that they broadcast to it. The score is −½((x − x_i) w)²: w multiplies the distance before it
    is squared."""
    return [
        call(draw.normal(3), draw.normal(5), draw.number(1.5, 3.0)),
        call(draw.normal(4), draw.normal(2), draw.number(0.2, 0.7)),
        call(key=draw.normal(4), query=draw.normal(3)),
        call(draw.normal(2), draw.normal(3), 300.0),
        call(draw.normal(70), draw.normal(2), 0.01),
        call(draw.normal(2), draw.normal(70), w=0.5),
    ]


@EXERCISE.equals("as many queries as keys", 0.5)
def _square(draw: Draw) -> list[Run]:
    """With n queries and n keys the scores have shape (n, n), not (n,): subtracting (n,) from (n,)
    pairs the i-th query with the i-th key only."""
    return [
        call(draw.normal(4), draw.normal(4), draw.number(1.5, 3.0)),
        call(draw.normal(1), draw.normal(1), w=draw.number(1.5, 3.0)),
        call(StridedArray(draw.normal(5)), StridedArray(draw.normal(5)), draw.number(0.2, 0.7)),
    ]


@EXERCISE.equals("integers", 0.3)
def _integers(draw: Draw) -> list[Run]:
    """Integers give floating-point scores: −½ times an odd number is not an integer."""
    query, key = draw.permutation(9)[:3] - 4, draw.permutation(9)[:5] - 4
    return [call(query, key, 3.0), call(query, key + 1)]


@EXERCISE.keeps_dtypes(0.1)
def _dtypes(draw: Draw) -> list[Run]:
    """float32 stays float32: an array made by np.zeros is float64, unless it is told otherwise.
    Integers give float64."""
    single = draw.normal(3, dtype="float32"), draw.normal(4, dtype="float32")
    return [
        call(*single, 0.7),
        call(*single),
        call(draw.integers(-3, 3, 2), draw.integers(0, 4, 3)),
    ]


EXERCISE.leaves_inputs_alone(0.1, _runs)
