"""`byte_pair_merges`: which pieces of words to join."""

from attention_by_hand.exercises.language_model.words import draw_letters, some_words
from autograder.student.authoring import Declaration, Draw, Record, Run, call

EXERCISE = Declaration("byte_pair_merges", "Which pieces to join", ("words", "num_merges"))


@EXERCISE.equals("the most frequent pair, again and again", 1.45)
def _runs(draw: Draw) -> list[Run]:
    """Cut every word into its characters. Count the pairs of neighbours, each as often as its word
    occurs; join the most frequent one, everywhere; then count again, with the joined pieces."""
    return [
        call(some_words(draw, "aeinrst", 60), 4),
        call(words=some_words(draw, "abcdefgh", 90), num_merges=6),
        call(some_words(draw, "lower", 40), 1),
        call(some_words(draw, "xyz", 24), 8),
    ]


@EXERCISE.equals("a word counts as often as it occurs", 0.5)
def _weighted(draw: Draw) -> list[Run]:
    """One word that occurs a thousand times outweighs ten that occur once."""
    a, b, c, d, e = draw_letters(draw, 5)
    rare = {a + b + letter: draw.integer(1, 3) for letter in "pqrstuvw"}
    often = {c + d: 1000 + draw.integer(0, 99), d + e: 400 + draw.integer(0, 99)}
    return [call(rare | often, 2), call(often | rare, 3)]


@EXERCISE.equals("ties: the smallest pair first", 0.5)
def _tied(draw: Draw) -> list[Run]:
    """Compare equally frequent pairs as Python compares tuples of strings: by the left piece, and
    only then by the right one. Capitals come before small letters."""
    a, b, c, d = draw_letters(draw, 4)
    once = dict.fromkeys(some_words(draw, "abcDE-", 8, longest=5), 3)
    return [
        call({a + b + c + d: 2, d + c + b + a: 2}, 3),
        call(once, 9),
        call({a + b: 9, a + b + b: 2, a + c: 2}, 2),
        call({"abc": 1, "xaB": 1, "Xab": 1, "b-a": 1}, 7),
        call({"aab": 4, "abab": 2, "bbaa": 2}, 6),
    ]


@EXERCISE.equals("a pair that overlaps itself", 0.5)
def _overlapping(draw: Draw) -> list[Run]:
    r""" "aaa" holds the pair (a, a) twice, and counts twice; only one of the two can be joined, the
    left one. "aaaa" becomes two pieces."""
    a, b, c, d = draw_letters(draw, 4)
    return [
        call({3 * a: 3, b + c: 5}, 1),
        call({3 * a: 5, b + c + d: 1}, 2),
        call({4 * a: 2, 7 * a: 2, b + 5 * a + c: 2}, 3),
        call({3 * (a + b): 2, 2 * a + 3 * (b + a): 3}, 4),
    ]


@EXERCISE.equals("no pair is left", 0.4)
def _ends(draw: Draw) -> list[Run]:
    """Stop when every word is one piece. A word of one letter has no pair, and no pair reaches from
    one word into the next."""
    a, b, c, d = draw_letters(draw, 4)
    return [
        call({a + b: 3, c + d: 2}, 10),
        call({a: 9, b: 8, c: 7}, 3),
        call({}, 5),
        call({c: 4, a + b: 1}, 2),
        call({a + b + c: 2}, 0),
    ]


@EXERCISE.equals("any characters, and a long word", 0.35)
def _any(draw: Draw) -> list[Run]:
    """A piece is a string, whatever it holds: spaces, digits, accents, emoji. A character is what
    `list(word)` has, however many bytes it takes."""
    a, b, c, d = draw_letters(draw, 4)
    long = 30 * (a + b + c) + 20 * (a + b + d) + 9 * (c + d)
    return [
        call({" né": 3, " ne": 2, "éé🙂": 4, "🙂🙂": 2}, 5),
        call({"10 000": 3, "1 000": 4, "\n\n": 2}, 4),
        call({long: 1}, 2),
    ]


def _other_counts(draw: Draw) -> list[Run]:
    """The same words with other counts, and more merges of them or fewer."""
    words, run = [*some_words(draw, "abcdef", 20)], Run(())
    for number in (3, 3, 5, 2):
        run = run.then({word: draw.integer(1, 10**6) for word in words}, number)
    return [run]


EXERCISE.called_again(_other_counts)


def _pairs_of_strings(run: Run, record: Record) -> str | None:
    found = record.value
    if not isinstance(found, list):
        return f"expected a list of pairs, got a {type(found).__name__}"
    right = all(isinstance(pair, tuple) and len(pair) == 2 for pair in found)
    return None if right else "expected tuples (left, right) in the list"


@EXERCISE.holds("a list of tuples", 0.1, _pairs_of_strings, only_if_right=True)
def _form(draw: Draw) -> list[Run]:
    """Return a list, and in it a tuple (left, right) for each merge."""
    return [call(some_words(draw, "abcd", 8), 3)]


EXERCISE.leaves_inputs_alone(0.15, _runs)
EXERCISE.leaves_state_alone(0.05, _runs)
