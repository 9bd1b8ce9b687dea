"""`byte_pair_encode`: a word, cut into the pieces that were learnt."""

from attention_by_hand.exercises.language_model.words import (
    draw_letters,
    some_merges,
    word,
    word_of,
)
from autograder.student.authoring import Declaration, Draw, Record, Run, call

EXERCISE = Declaration("byte_pair_encode", "A word in pieces", ("word", "merges"))


def _several(draw: Draw, letters: str, number: int, words: int) -> Run:
    merges = some_merges(draw, letters, number)
    run = Run(())
    for _ in range(words):
        run = run.then(word_of(draw, merges, draw.integer(3, 7)), merges)
    return run


@EXERCISE.equals("the earliest merge first", 1.05)
def _runs(draw: Draw) -> list[Run]:
    """Begin with the characters. Of all pairs of neighbours, find the one that stands earliest in
    `merges`, join it everywhere, and look again, until no pair of neighbours is a merge."""
    merges = some_merges(draw, "eilnost", 12)
    return [
        call(word_of(draw, merges, 5), merges),
        call(merges=merges, word=word_of(draw, merges, 6)),
        _several(draw, "abcd", 9, 6),
        _several(draw, "xyz", 30, 6),
    ]


@EXERCISE.equals("the order of the merges, not of the places", 0.5)
def _ranked(draw: Draw) -> list[Run]:
    """In "abc" with the merges (b, c), (a, b) the b goes to the c, although (a, b) comes first in
    the word. Neither does the longest piece win. A pair that is listed twice counts where it comes
    first.
    """
    a, b, c, d = draw_letters(draw, 4)
    return [
        call(a + b + c, [(b, c), (a, b)]),
        call(a + b + c + a + b, [(b, c), (a, b)]),
        call(a + b + c + d, [(c, d), (b, c), (a, b), (b + c, d), (a + b, c)]),
        call(a + b + c, [(b, c), (a, b), (b, c)]),
    ]


@EXERCISE.equals("a merge that a later one makes possible", 0.4)
def _possible_again(draw: Draw) -> list[Run]:
    """After each merge, look from the beginning of the list again: a new piece may be part of a
    pair that stands earlier."""
    a, b, c, d = draw_letters(draw, 4)
    return [
        call(a + b + c + a + b + c, [(a + b, c), (a, b)]),
        call(a + b + c + d, [(a + b + c, d), (a + b, c), (a, b), (c, d)]),
    ]


@EXERCISE.equals("all places, from left to right", 0.4)
def _everywhere(draw: Draw) -> list[Run]:
    """A pair is joined wherever it stands. Where places overlap, the left one is joined: "aaa"
    becomes "aa" and "a"."""
    a, b = draw_letters(draw, 2)
    return [
        call(3 * a, [(a, a)]),
        call(7 * a + b, [(a, a), (2 * a, 2 * a)]),
        call(4 * (a + b) + a, [(a, b), (a + b, a)]),
        call(2 * (a + b), [(a + b, a), (a, b)]),
        call(40 * (2 * a + b), [(a, a), (2 * a, b)]),
    ]


@EXERCISE.equals("nothing to join", 0.35)
def _ends(draw: Draw) -> list[Run]:
    """An empty word has no pieces, a single character is one, and without merges every character
    stays alone."""
    letters = word(draw, "abcdef", 5)
    return [
        call("", [("a", "b")]),
        call("a", [("a", "b")]),
        call(letters, []),
        call("é🙂 1", [("a", "b"), ("b", "é")]),
        call("née🙂🙂", [("n", "é"), ("🙂", "🙂"), ("né", "e")]),
    ]


def _other_merges(draw: Draw) -> list[Run]:
    """The same words with other merges, as many or more."""
    a, b, c = draw_letters(draw, 3)
    run = Run(())
    for merges in ([(a, b), (b, c)], [(b, c), (a, b)], [(b, a)], [(c, a), (a, b)]):
        run = run.then(2 * (a + b + c), merges).then(b + c + a + b, merges)
    return [run]


EXERCISE.called_again(_other_merges)


def _list_of_strings(run: Run, record: Record) -> str | None:
    found = record.value
    return None if isinstance(found, list) else f"expected a list, got a {type(found).__name__}"


@EXERCISE.holds("a list", 0.1, _list_of_strings, only_if_right=True)
def _form(draw: Draw) -> list[Run]:
    """Return a list of strings."""
    merges = some_merges(draw, "abcd", 4)
    return [call(word_of(draw, merges, 5), merges)]


EXERCISE.leaves_inputs_alone(0.15, _runs)
EXERCISE.leaves_state_alone(0.05, _runs)
