"""Known answers to `byte_pair_encode`: mistakes, then right answers."""

import random
from itertools import pairwise

from autograder.bank import Bank
from solutions import language_model as right

BANK = Bank("byte_pair_encode", right, globals())

BANK.changes("""
in_the_order_of_the_places: min(known, key=lambda pair: rank[pair]) → known[0]
    The first pair in the word that is a merge is joined, wherever it stands in `merges`. The
    earliest merge comes first, wherever it stands in the word.
latest_merge_first: min(known → max(known
    The pair that stands last in `merges` is joined first. The earliest merge comes first.
last_place_of_a_pair: reversed([*enumerate(merges)]) → enumerate(merges)
    Of a pair that stands in `merges` twice, the last place counts. It should be the first: a dict
    keeps what was stored last.
longest_pair_first: key=lambda pair: rank[pair] → key=lambda pair: -len("".join(pair))
    The pair that makes the longest piece is joined first. What counts is its place in `merges`.
first_place_only: pieces[i : i + 2] = ["".join(first)] → pieces[i : i + 2] = ["".join(first)]; break
    One place is joined, and then the search begins anew. Of several places of the best pair all are
    joined, and here that makes a difference once pieces overlap.
joined_from_the_right: range(len(pieces) - 1) → reversed(range(len(pieces) - 1))
    Where places overlap, the right one is joined: "aaa" becomes "a" and "aa". It should be "aa" and
    "a".
one_merge_only: while known := → if known :=
    One merge is made, and no more. Go on until no pair of neighbours is a merge.
ids_for_pieces: > result = [rank.get((p[:1], p[1:]), -1) for p in result]
    The places of merges are returned. It should be the pieces themselves, as strings.
tuple_for_list: > result = tuple(result)
    The pieces are returned as a tuple. It should be a list.
pieces_in_one_string: > result = " ".join(result)
    The pieces are returned as one string with spaces between them. It should be a list of strings.
empty_word_has_a_piece: > result = result or [""]
    An empty word gets one empty piece. It has none.
unknown_characters_dropped
    > known = {letter for pair in merges for letter in "".join(pair)}
    > result = [piece for piece in result if set(piece) <= known]
    Characters that occur in no merge are left out. Joined, the pieces must give the word.
bytes_for_characters: list(word) → [chr(byte) for byte in word.encode()]
    The word is cut into bytes. Here a piece is made of characters, whatever takes one byte or
    several.
merges_used_up: > merges.clear()
    The caller's list of merges is changed: afterwards it is another.
merges_sorted_in_place: + merges.sort()
    merges.sort() changes the caller's list, and with it the order in which pairs are joined.
seeded_at_the_start: + random.seed(0)
    The call seeds Python's random numbers for the whole program.
""")


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
