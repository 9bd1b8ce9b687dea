"""`relative_positions`: how far apart?"""

from autograder.student.authoring import Declaration, Draw, Run, call

EXERCISE = Declaration("relative_positions", "How far apart?", ("n_q", "n_k", "max_distance"))


@EXERCISE.equals("as many queries as keys", 0.75)
def _runs(draw: Draw) -> list[Run]:
    """For query i and key j the distance is i − j, positive where the key lies in the past. Add
    max_distance, so that it counts from 0."""
    n = draw.integer(4, 6)
    return [call(n, n, n - 1), call(3, 3, 5), call(n_q=5, n_k=5, max_distance=draw.integer(5, 7))]


@EXERCISE.equals("distances beyond max_distance", 0.5)
def _cut(draw: Draw) -> list[Run]:
    """Clip the distance to −max_distance … max_distance, on both sides, before adding
    max_distance."""
    return [call(6, 6, 2), call(7, 7, draw.integer(3, 4)), call(5, 5, max_distance=1)]


@EXERCISE.equals("more keys than queries, and fewer", 0.5)
def _chunk(draw: Draw) -> list[Run]:
    """The last query is at the last key's position, as with a causal mask: query row r is at
    position r + n_k − n_q."""
    return [
        call(2, 6, 8),
        call(1, draw.integer(4, 7), 7),
        call(3, 8, 2),
        call(n_q=5, n_k=2, max_distance=6),
        call(2, 70, 68),
        call(70, 2, 90),
    ]


@EXERCISE.equals("max_distance 0, and a single position", 0.1)
def _ends(_: Draw) -> list[Run]:
    """With max_distance 0 the table has a single row: all entries are 0."""
    return [call(3, 4, 0), call(1, 1, 2), call(1, 1, 0)]


EXERCISE.keeps_dtypes(0.15, "Indices are integers: dtype torch.long.", _runs)
