"""The parts of a result.

TRUST BOUNDARY. As in `locate`.
"""

from collections.abc import Iterator

from autograder.student.engine.arrays import Value


def leaves_of(value: Value) -> Iterator[Value]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from leaves_of(item)
    elif isinstance(value, dict):
        yield from leaves_of([value[key] for key in sorted(value)])
    else:
        yield value


def pairs_of(value: Value, expected: Value) -> Iterator[tuple[Value, Value]]:
    """The parts of a result, with what is expected of each; None where nothing corresponds."""
    both = isinstance(value, tuple | list) and isinstance(expected, tuple | list)
    if both and len(value) == len(expected):
        for one, other in zip(value, expected, strict=True):
            yield from pairs_of(one, other)
        return
    given, wanted = [*leaves_of(value)], [*leaves_of(expected)]
    same = len(given) == len(wanted)
    yield from zip(given, wanted if same else [None] * len(given), strict=True)
