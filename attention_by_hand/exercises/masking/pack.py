"""`pack`: several sequences in one row."""

from collections.abc import Sequence

from autograder.student.authoring import Array, Declaration, Draw, Run, StridedArray, call, tensor
from autograder.student.engine.aspects import numbers_of

EXERCISE = Declaration(
    "pack",
    "Several sequences in one row",
    ("sequences", "length", "causal"),
    returns=("the tokens", "the positions", "the mask", "the places"),
)


def _texts(draw: Draw, *lengths: int, dtype: str = "int64") -> list[Array]:
    """Token ids of so many sequences; 0 is a token like any other."""
    return [tensor(draw.integers(0, 5, n), dtype) for n in lengths]


def _in_turn(draw: Draw) -> list[Run]:
    """Sequences that fit in the same way if only the last row is looked at."""
    longer = draw.integer(3, 5)
    return [
        call(_texts(draw, 3, 2, 1), 7),
        call(_texts(draw, 2, longer, 1, 8 - longer, 7), 9),
        call(sequences=_texts(draw, 4, 2, 5, 2, 6), length=7),
    ]


@EXERCISE.equals("tokens, row after row", 0.5, part=0)
def _rows(draw: Draw) -> list[Run]:
    """Each sequence stands in one piece, right behind the one before. Where the row has no room
    for all of it, the rest of the row is padding, 0, and the sequence begins the next row. The last
    row counts, too, full or not."""
    return _in_turn(draw)


@EXERCISE.equals("the first row that has room", 0.75, part=0)
def _first_fit(draw: Draw) -> list[Run]:
    """For each sequence, in the given order, look through all rows from the first on, and take the
    first one that has room, even if a later one would be filled better. Room for n tokens is n
    places or more."""
    return [
        call(_texts(draw, 6, 7, 3, 1, 2), 10),
        call(_texts(draw, 7, 6, 3, 4), 10),
        call(_texts(draw, 5, 6, 3, 3), 10),
        call(_texts(draw, 5, 4, 3, 2, 2, 6), 8),
        call(_texts(draw, *draw.permutation(8) + 1), 9),
        call(_texts(draw, *draw.permutation(9) + 1), 12),
    ]


@EXERCISE.equals("positions that begin anew", 0.5, part=1)
def _positions(draw: Draw) -> list[Run]:
    """A token's position is counted within its own sequence, from 0, wherever that stands in the
    row. At padding it is 0."""
    return _in_turn(draw)


@EXERCISE.equals("a mask within each sequence", 0.75, part=2)
def _mask(draw: Draw) -> list[Run]:
    """Query and key must belong to the same sequence: blocks along the diagonal, of shape
    (rows, 1, length, length), with room for the heads. Padding belongs to none, so its rows and
    columns are False; and a token with the id 0 is not padding."""
    return _in_turn(draw)


@EXERCISE.equals("a causal mask within each sequence", 0.5, part=2)
def _causal(draw: Draw) -> list[Run]:
    """With causal=True a query sees itself and what is before it, and still nothing of another
    sequence: combine both masks."""
    return [
        call(_texts(draw, 3, 2, 1), 7, True),
        call(_texts(draw, 2, 3, 4, 5), length=9, causal=True),
        call(_texts(draw, 2, 3, 4), 6, False),
    ]


@EXERCISE.equals("where each sequence has gone", 0.25, part=3)
def _places(draw: Draw) -> list[Run]:
    """A pair for each sequence, in the given order: its row, and the column of its first token."""
    return [*_in_turn(draw), *_first_fit(draw)[:3]]


def _one_empty(draw: Draw) -> list[Run]:
    return [
        call(_texts(draw, 3, 0, 2, 4, 0), 5),
        call(_texts(draw, 4, 3, 0, 1), 4),
        call(_texts(draw, 0, 2), 3),
        call(_texts(draw, 0, 0), 2),
    ]


@EXERCISE.equals("nothing to lay down, one token, full rows, many sequences", 0.25)
def _ends(draw: Draw) -> list[Run]:
    """An empty sequence goes where any would go, into the first row, and takes no room. A sequence
    as long as a row fills it."""
    return [
        *_one_empty(draw),
        call(_texts(draw, 1), 1),
        call(_texts(draw, 4, 4, 4), 4, True),
        call(_texts(draw, 10, 12, 4, *draw.integers(1, 9, 40)), 16),
        call([StridedArray(text) for text in _texts(draw, 4, 3, 2)], 6, True),
    ]


def _numbers(run: Run) -> Sequence[object]:
    texts, length = run.steps[0].args[:2]
    return max(len(numbers_of(text)) for text in texts), length


@EXERCISE.raises("a sequence longer than a row", 0.25, ValueError, naming=_numbers)
def _long(draw: Draw) -> list[Run]:
    """Raise ValueError where a sequence does not fit into an empty row, and name both numbers."""
    longest = draw.integer(31, 38)
    return [
        call(_texts(draw, 4, longest, 2), 9),
        call(_texts(draw, longest), longest - 1),
    ]


@EXERCISE.keeps_dtypes(0.15)
def _dtypes(draw: Draw) -> list[Run]:
    """The tokens keep their dtype; positions and places are long, whatever it is, and the mask is
    boolean."""
    return [call(_texts(draw, 3, 2, 2), 5), call(_texts(draw, 2, 4, dtype="int32"), 5, True)]


EXERCISE.leaves_inputs_alone(0.1, _in_turn, _one_empty)
EXERCISE.follows_its_inputs(_in_turn, _causal)
