"""Known answers to `byte_pair_encode`: mistakes, then right answers."""

import random
from itertools import pairwise

from autograder.bank import Bank
from solutions import language_model as right

BANK = Bank("byte_pair_encode", right, globals())
BANK.read()


@BANK.mistake
def leftmost_pair_first(word, merges):
    """Of the pairs that are merges, the leftmost is joined, again and again. It should be the one
    that stands earliest in `merges`."""
    pieces, known, i = list(word), set(merges), 0
    while i < len(pieces) - 1:
        if (pieces[i], pieces[i + 1]) in known:
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
            i = 0
        else:
            i += 1
    return pieces


@BANK.mistake
def each_merge_once(word, merges):
    """The merges are gone through once, in their order. A merge that a later one makes possible is
    missed: look from the beginning again after each."""
    pieces = [*word]
    for pair in merges:
        pieces = _merged(pieces, pair)
    return pieces


@BANK.mistake
def longest_piece_first(word, merges):
    """From the left, the longest piece that the merges know is taken. The pieces should come about
    by merging, in the order of `merges`: the longest need not."""
    known, found = {"".join(pair) for pair in merges}, []
    while word:
        ends = [n for n in range(len(word), 1, -1) if word[:n] in known] or [1]
        found.append(word[: ends[0]])
        word = word[ends[0] :]
    return found


def _merged(pieces, pair):
    out, i = [], 0
    while i < len(pieces):
        if tuple(pieces[i : i + 2]) == tuple(pair):
            out.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            out.append(pieces[i])
            i += 1
    return out


@BANK.right
def by_search_in_the_list(word, merges):
    pieces = list(word)
    while True:
        pairs = set(pairwise(pieces))
        first = next((pair for pair in merges if pair in pairs), None)
        if first is None:
            return pieces
        pieces = _merged(pieces, first)


@BANK.right
def by_recursion(word, merges, pieces=None):
    pieces = list(word) if pieces is None else pieces
    for pair in merges:
        joined = _merged(pieces, pair)
        if len(joined) < len(pieces):
            return by_recursion(word, merges, joined)
    return pieces


@BANK.right
def with_ranks_of_all_pairs(word, merges):
    ranks = {}
    for place, pair in enumerate(merges):
        ranks.setdefault(tuple(pair), place)
    pieces = [*word]
    while len(pieces) > 1:
        best, left = min((ranks.get(p, len(merges)), p) for p in pairwise(pieces))
        if best == len(merges):
            break
        pieces = _merged(pieces, left)
    return pieces


@BANK.right
def by_starting_over(word, merges):
    """After a merge that joins something, from the beginning of the list."""
    pieces, place = list(word), 0
    while place < len(merges):
        joined = _merged(pieces, merges[place])
        place = place + 1 if len(joined) == len(pieces) else 0
        pieces = joined
    return pieces
