"""Known answers to `byte_pair_merges`: mistakes, then right answers."""

import random
import re
from collections import Counter, defaultdict
from itertools import pairwise

from autograder.bank import Bank
from solutions import language_model as right

BANK = Bank("byte_pair_merges", right, globals())

BANK.changes("""
words_count_once: counts[pair] += count → counts[pair] += 1 ; words[word] → 1 ×2
    Every word counts once, however often it occurs: a rare word weighs as much as a frequent one.
ties_to_the_largest
    - min(counts, key=lambda pair: (-counts[pair], pair))
    + max(counts, key=lambda pair: (counts[pair], pair))
    Of equally frequent pairs the lexicographically largest is taken: the maximum of (count, pair)
    prefers large counts, but large pairs, too.
ties_to_the_first
    - min(counts, key=lambda pair: (-counts[pair], pair))
    + max(counts, key=counts.get)
    Of equally frequent pairs the one that was counted first is taken. It should be the smallest, so
    that the order of the words does not matter.
ties_to_the_first_in_the_text
    - min(counts, key=lambda pair: (-counts[pair], pair))
    + first_in_the_text(pieces, words)
    Of equally frequent pairs the one that is met first in the words is taken. It should be the
    smallest, so that the order of the words does not matter.
ties_by_the_joined_piece: (-counts[pair], pair) → (-counts[pair], "".join(pair), len(pair[0]))
    Of equally frequent pairs the one whose joined piece comes first is taken. Pairs are compared
    piece by piece, as tuples: ("a", "c") is smaller than ("ab", "b"), but "abb" than "ac".
rarest_first: (-counts[pair], pair) → (counts[pair] or 10**9, pair)
    The rarest pair is joined first. It should be the most frequent one.
overlaps_counted_once
    ~ for pair in pairwise(word) → for pair in without_overlaps(word)
    ~ for pair in pairwise(parts) → for pair in without_overlaps(parts) ×2
    A pair that overlaps itself is counted once: "aaa" counts as one (a, a). It holds the pair
    twice.
a_pair_once_per_word
    ~ pairwise(word) → dict.fromkeys(pairwise(word))
    ~ pairwise(parts) → dict.fromkeys(pairwise(parts)) ×2
    A pair that stands several times in a word is counted once for that word. Every place counts.
joined_from_the_right: range(len(parts) - 1) → reversed(range(len(parts) - 1))
    Where places overlap, the right one is joined: "aaa" becomes "a" and "aa". It should be "aa" and
    "a".
first_place_only: parts[i : i + 2] = [left + right] → parts[i : i + 2] = [left + right]; break
    Only the first place in a word is joined. The pair becomes one piece wherever it stands.
counts_of_the_beginning
    ~ counts[pair] -= words[word] → pass
    ~ counts[pair] += words[word] → pass
    ~ any(counts.values()) → counts
    ~ merges.append((left, right)) → merges.append((left, right)); counts.pop((left, right))
    The pairs are counted once, at the beginning, and joined in that order. After each merge there
    are other neighbours: count again.
pairs_of_letters_only
    ~ counts[pair] += words[word] → counts[pair] += words[word] * (len(pair[0] + pair[1]) == 2)
    ~ counts[pair] -= words[word] → counts[pair] -= words[word] * (len(pair[0] + pair[1]) == 2)
    Only pairs of single characters are counted. A joined piece has neighbours, too, and pairs with
    them.
joined_as_one_string: merges.append((left, right)) → merges.append(left + right)
    The list holds the joined pieces. It should hold pairs (left, right): from a joined piece one
    cannot tell where it was joined.
one_merge_too_many: < num_merges → <= num_merges
    There is one merge more than num_merges.
one_merge_too_few: < num_merges → < num_merges - 1
    There is one merge less than num_merges.
goes_on_without_pairs: and any(counts.values()) → or False
    When no pair is left, the search goes on all the same: the least of nothing is an error, or a
    pair that is no longer there.
bytes_for_characters
    ~ list(word) → [chr(byte) for byte in word.encode()]
    ~ pairwise(word) → pairwise([chr(byte) for byte in word.encode()])
    The words are cut into bytes. Here a piece is made of characters, whatever takes one byte or
    several.
spaces_stripped: + words = {word.strip(): count for word, count in words.items()}
    Spaces at the beginning and end of the words are taken off. A space is a character like any
    other.
small_letters: + words = {word.lower(): count for word, count in words.items()}
    The words are turned into small letters. Capitals are other characters.
lists_for_tuples: merges.append((left, right)) → merges.append([left, right])
    The pairs are lists. They should be tuples, which can be looked up in a dict.
words_used_up: > words.clear()
    The caller's words are changed: afterwards the dict is another.
seeded_at_the_start: + random.seed(0)
    The call seeds Python's random numbers for the whole program.
""")


def first_in_the_text(pieces, words):
    """The most frequent pair, of equally frequent ones that which is met first."""
    counts = Counter()
    for word, parts in pieces.items():
        for pair in pairwise(parts):
            counts[pair] += words[word]
    return max(counts, key=counts.get)


def without_overlaps(parts):
    """The pairs of neighbours, less those that overlap an equal one before."""
    found, last = [], None
    for i in range(len(parts) - 1):
        pair = parts[i], parts[i + 1]
        if last is not None and last == (i - 1, pair):
            last = None
            continue
        found.append(pair)
        last = i, pair
    return found


@BANK.mistake
def merged_across_words(words, num_merges):
    """The words are put one behind the other, and pairs reach from the end of one into the
    beginning of the next. A pair lies within a word."""
    parts, merges = [piece for word in words for piece in word], []
    weights = [count for word, count in words.items() for _ in word]
    while len(merges) < num_merges and len(parts) > 1:
        counts = defaultdict(int)
        for i in range(len(parts) - 1):
            counts[parts[i], parts[i + 1]] += weights[i]
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        i = 0
        while i < len(parts) - 1:
            if (parts[i], parts[i + 1]) == best:
                parts[i : i + 2], weights[i : i + 2] = ["".join(best)], [weights[i]]
            i += 1
    return merges


def _counted(pieces, words):
    counts = defaultdict(int)
    for word, parts in pieces.items():
        for i in range(len(parts) - 1):
            counts[parts[i], parts[i + 1]] += words[word]
    return counts


def _merge(parts, left, right):
    out, i = [], 0
    while i < len(parts):
        if i + 1 < len(parts) and parts[i] == left and parts[i + 1] == right:
            out.append(left + right)
            i += 2
        else:
            out.append(parts[i])
            i += 1
    return tuple(out)


@BANK.right
def counted_anew_each_time(words, num_merges):
    pieces, merges = {word: tuple(word) for word in words}, []
    for _ in range(num_merges):
        counts = _counted(pieces, words)
        if not counts:
            break
        most = max(counts.values())
        best = min(pair for pair, count in counts.items() if count == most)
        merges.append(best)
        pieces = {word: _merge(parts, *best) for word, parts in pieces.items()}
    return merges


@BANK.right
def by_sorting(words, num_merges):
    pieces, merges = {word: tuple(word) for word in words}, []
    while len(merges) < num_merges:
        ranked = sorted(_counted(pieces, words).items(), key=lambda item: item[0])
        ranked.sort(key=lambda item: item[1], reverse=True)  # a stable sort keeps the order of ties
        if not ranked:
            return merges
        (left, right), _ = ranked[0]
        merges.append((left, right))
        pieces = {word: _merge(parts, left, right) for word, parts in pieces.items()}
    return merges


@BANK.right
def by_regular_expressions(words, num_merges):
    """As in the paper's own code: pieces apart by a mark that no word has, joined by a pattern."""
    apart = "\ue000"
    texts, merges = {word: apart.join(word) for word in words}, []
    for _ in range(num_merges):
        counts = _counted({word: text.split(apart) for word, text in texts.items()}, words)
        if not counts:
            break
        pair = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(pair)
        both = re.escape(apart.join(pair))
        pattern = re.compile(f"(?<![^{apart}]){both}(?![^{apart}])")
        texts = {word: pattern.sub(lambda m, p=pair: "".join(p), t) for word, t in texts.items()}
    return merges


@BANK.right
def with_an_index_of_places(words, num_merges):
    """Which words hold which pair is remembered, so that only these are looked at."""
    pieces = {word: tuple(word) for word in words}
    holders = defaultdict(set)
    for word, parts in pieces.items():
        for pair in zip(parts, parts[1:], strict=False):
            holders[pair].add(word)
    counts, merges = _counted(pieces, words), []
    while len(merges) < num_merges:
        left_over = {pair: count for pair, count in counts.items() if count}
        if not left_over:
            break
        best = min(left_over, key=lambda pair: (-left_over[pair], pair))
        merges.append(best)
        for word in list(holders[best]):
            for pair in zip(pieces[word], pieces[word][1:], strict=False):
                counts[pair] -= words[word]
                holders[pair].discard(word)
            pieces[word] = _merge(pieces[word], *best)
            for pair in zip(pieces[word], pieces[word][1:], strict=False):
                counts[pair] += words[word]
                holders[pair].add(word)
    return merges
