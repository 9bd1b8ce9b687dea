"""Models that say how often each token comes next, as integers."""

from collections.abc import Callable, Sequence

from autograder.student.authoring import Recipe
from autograder.student.engine.runs import made_by

Frequencies = Callable[[list[int]], list[int]]


def always(counts: Sequence[int]) -> Frequencies:
    """A model that gives the same numbers, whatever comes before."""
    return lambda past: [*counts]


def by_the_past(vocab: int, most: int) -> Frequencies:
    """A model whose numbers, from 1 to `most`, depend on every token before, and on their order."""

    def frequencies(past: list[int]) -> list[int]:
        key = sum((token + 1) * (2 * place + 1) for place, token in enumerate(past)) + 7 * len(past)
        return [1 + (key * (2 * token + 3) + 5 * token * token) % most for token in range(vocab)]

    return frequencies


def same(*counts: int) -> Recipe:
    return made_by(always, counts)


def varied(vocab: int, most: int) -> Recipe:
    return made_by(by_the_past, vocab, most)
