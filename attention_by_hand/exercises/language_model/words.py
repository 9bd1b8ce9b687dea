"""Words and merges to cut them with."""

from itertools import pairwise

from autograder.student.authoring import Draw


def word(draw: Draw, letters: str, length: int) -> str:
    return "".join(letters[i] for i in draw.integers(0, len(letters) - 1, length))


def some_words(draw: Draw, letters: str, number: int, longest: int = 5) -> dict[str, int]:
    """Words without a letter twice in a row or a pair twice, and how often each occurs."""
    found: dict[str, int] = {}
    while len(found) < number:
        drawn = word(draw, letters, draw.integer(2, longest))
        pairs = [*pairwise(drawn)]
        if all(a != b for a, b in pairs) and len(set(pairs)) == len(pairs):
            found[drawn] = draw.integer(1, 10**6)
    return found


def some_merges(draw: Draw, letters: str, number: int) -> list[tuple[str, str]]:
    """Merges of pieces that are there, letters or earlier merges; none twice."""
    pieces = [*letters]
    found: list[tuple[str, str]] = []
    while len(found) < number:
        left, right = (pieces[draw.integer(0, len(pieces) - 1)] for _ in range(2))
        if left + right not in pieces and len(left + right) < 6:
            found.append((left, right))
            pieces.append(left + right)
    return found


def word_of(draw: Draw, merges: list[tuple[str, str]], number: int) -> str:
    """Joined pieces in a row."""
    pieces = ["".join(pair) for pair in merges]
    return "".join(pieces[draw.integer(0, len(pieces) - 1)] for _ in range(number))


def draw_letters(draw: Draw, number: int) -> list[str]:
    """Different letters, in the order of the alphabet: of equal pairs, the same comes first."""
    return [chr(ord("a") + int(i)) for i in sorted(draw.permutation(14)[:number])]
