"""`layers_to_see_all`: how many layers it takes until every output depends on every input."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Record, Run, StridedArray, call, tensor

EXERCISE = Declaration("layers_to_see_all", "How many layers it takes", ("reads",))


def _window(n: int, *steps: int) -> np.ndarray:
    """Each output reads the inputs that are these steps away."""
    away = np.arange(n) - np.arange(n)[:, None]
    return np.isin(away, steps)


def _cycle(n: int, *chords: tuple[int, int]) -> np.ndarray:
    """Each output reads the next input, the last one the first, and some read one more."""
    reads = np.eye(n, dtype=bool)[:, (np.arange(n) - 1) % n]
    for i, j in chords:
        reads[i, j] = True
    return reads


def _mixed(draw: Draw, reads: np.ndarray) -> np.ndarray:
    """The same with its positions in another order."""
    order = draw.permutation(len(reads))
    return reads[order][:, order]


def _told(*tables: np.ndarray) -> list[Run]:
    return [call(tensor(reads)) for reads in tables]


@EXERCISE.equals("attention, convolution, a single position", 0.5)
def _runs(draw: Draw) -> list[Run]:
    """In one layer, output i depends on what row i marks. One layer more, and it depends on all
    that those depend on. Where a layer reads everything, one is enough."""
    n = draw.integer(6, 12)
    return [
        *_told(np.ones((n, n), bool), _window(n, -1, 0, 1), _window(7, -2, -1, 0, 1, 2)),
        *_told(np.ones((1, 1), bool), _window(2, -1, 0, 1), _window(19, -1, 0, 1)),
        call(reads=tensor(_window(11, -3, 0, 3, 1, -1))),
        call(StridedArray(tensor(_window(6, -1, 0, 1)))),
    ]


@EXERCISE.equals("one way is longer than the other", 0.6)
def _uneven(draw: Draw) -> list[Run]:
    """Who reads whom need not go both ways: keep rows and columns apart, layer after layer, and
    wait for the last pair of an output and an input."""
    some = draw.integers(0, 1, 7, 7).astype(bool)
    some |= _cycle(7) | np.eye(7, dtype=bool)
    star = np.eye(6, dtype=bool)
    star[0], star[:, 0] = True, True
    return [
        *_told(_window(7, 0, 1) | _cycle(7), _window(8, -1, 0, 3), _mixed(draw, some), star),
        *_told(_mixed(draw, _window(9, -1, 0, 1) & _window(9, *range(-1, 9)))),
        *_told(_cycle(6) | np.eye(6, dtype=bool), _mixed(draw, _window(10, 0, 1, 2, -5))),
    ]


@EXERCISE.equals("outputs that do not read their own input", 0.5)
def _without_themselves(draw: Draw) -> list[Run]:
    """An output may depend on an input after one layer, and no longer after two. Count layers that
    are all alike, with no residual path around them, and look at the result of the last one alone.
    """
    n = draw.integer(4, 6)
    hub = np.zeros((5, 5), bool)  # 10 pairs after one layer, then 20, 19, 25
    hub[:, 3], hub[3], hub[[0, 2], 0] = True, [True, True, True, False, True], True
    neighbours = _window(7, -1, 1)
    neighbours[0, 0] = True
    return [
        *_told(_cycle(3, (2, 1)), _cycle(n, (n - 1, 1)), ~np.eye(4, dtype=bool)),
        *_told(_mixed(draw, _cycle(5, (0, 3))), neighbours, _mixed(draw, hub)),
        *_told(_mixed(draw, _cycle(7, (6, 1)))),
    ]


@EXERCISE.raises("never", 0.4, ValueError)
def _never(draw: Draw) -> list[Run]:
    """Raise a ValueError where no number of layers is enough: an input that nobody reads, two
    groups that do not read each other, outputs that take turns. It has to come to an end, too."""
    alone = np.ones((5, 5), bool)
    alone[:, 2] = False
    halves = np.kron(np.eye(2, dtype=bool), np.ones((3, 3), bool))
    return _told(
        *(np.tri(5, dtype=bool), np.eye(4, dtype=bool), np.zeros((1, 1), bool), alone),
        *(_mixed(draw, halves), _cycle(5), _window(6, -1, 1), np.zeros((4, 4), bool)),
    )


def _is_an_int(run: Run, record: Record) -> str | None:
    kind = type(record.value).__name__
    return None if type(record.value) is int else f"expected an int, got {kind}"


EXERCISE.holds(
    "an int",
    0.15,
    _is_an_int,
    "The result is Python's int: a tensor becomes one with .item().",
    lambda draw: _runs(draw)[:2],
    only_if_right=True,
)
EXERCISE.leaves_inputs_alone(0.1, _runs, _without_themselves)
EXERCISE.leaves_state_alone(0.1, lambda draw: _runs(draw)[:1])
EXERCISE.follows_its_inputs(_runs)


@EXERCISE.equals("many positions", 0.15)
def _many(draw: Draw) -> list[Run]:
    """There are more ways through the layers than a whole number of 64 bits can count: ask after
    each layer whether there is a way, and forget how many."""
    return _told(_window(44, -1, 0, 1))  # last, since loops over a tensor take long
