"""Known answers to `byte_pair_merges`: mistakes, then right answers."""

import random
import re
from collections import Counter, defaultdict
from itertools import pairwise

from autograder.bank import Bank
from solutions import language_model as right

BANK = Bank("byte_pair_merges", right, globals())
BANK.read()


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
