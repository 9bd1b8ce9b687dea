"""Chapter 9's counted runs beside the GPT trained beforehand, once more, token by token.

Run: python -m benchmarks.second counted_english [LONGEST_TOKENS LONGEST_BYTES]; four minutes. Bits
per byte, validation and test: tokens 1.3797 and 1.3756, going on 1.3388 and 1.3089, bytes 1.4160
and 1.4134. Those that go on, with the discounts of kneser_ney.json: the GPT is ahead by 0.009, over
documents drawn anew -0.012 to 0.028, in 40 of 73 documents.
"""

import json
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from attention_by_hand.models import gpt
from benchmarks import english
from benchmarks.second.weights_in_numpy import Cutter


def runs(text, longest):
    """For each length, and each place, a number for the run that ends there."""
    found = [np.zeros(len(text), int)]
    for _ in range(longest):
        before = np.concatenate(([-1], found[-1][:-1])) + 1
        found.append(np.unique(before * (text.max() + 1) + text, return_inverse=True)[1])
    return found


def statistics(known, new, longest, going_on):
    """Of each new symbol, for contexts of 0 to `longest` - 1: its count, their sum, how many have
    1, 2 and more. The longest runs are counted; of the others, what has stood before them."""
    text = np.concatenate((known, new))
    split, ids = len(known), runs(text, longest)
    table = np.zeros((longest, len(new), 5))
    for k in range(longest):
        context = np.concatenate(([-1], ids[k][:-1]))
        wanted = np.zeros(ids[k].max() + 1, bool)
        wanted[context[split:]] = True
        places = np.arange(1, split)
        longer = ids[k + 2] if k + 1 < longest else None
        if longer is not None:
            places = np.unique(longer[:split], return_index=True)[1]
        places = places[(places > k) & wanted[context[places]]]
        seen = set(longer[:split].tolist()) if longer is not None else set()
        after = {}

        def count(i, after=after, context=context):
            row = after.setdefault(context[i], ({}, [0, 0, 0, 0]))
            symbols, sums = row
            old = symbols.get(text[i], 0)
            symbols[text[i]] = old + 1
            sums[0] += 1
            if old < 3:
                sums[old + 1] += 1
                if old:
                    sums[old] -= 1

        for i in places.tolist():
            count(i)
        for i in range(split, len(text)):
            symbols, sums = after.get(context[i], ({}, (0, 0, 0, 0)))
            table[k, i - split] = (symbols.get(text[i], 0), *sums)
            if going_on and (longer is None or longer[i] not in seen):
                count(i)
                if longer is not None:
                    seen.add(longer[i])
    return table


def bits(table, discounts, size):
    """The bits of each new symbol: what is taken from the counts goes to the shorter context."""
    chance = np.full(table.shape[1], 1 / size)
    for (one, two, more), rows in zip(discounts.reshape(-1, 3), table, strict=True):
        count, total, n1, n2, n3 = rows.T
        taken = np.array([0, one, two, more])[np.minimum(count, 3).astype(int)]
        left = one * n1 + two * n2 + more * n3
        mixed = (np.maximum(count - taken, 0) + left * chance) / np.maximum(total, 1)
        chance = np.where(total > 0, mixed, chance)
    return -np.log2(chance)


def of_documents(symbols, costs):
    """The sum over each document; it begins with a 0, and the very first symbol costs nothing."""
    return np.bincount(np.cumsum(symbols == 0)[1:] - 1, costs)


def told(counted, texts):
    """How far the GPT is ahead; its bits of a document are those that `weights_in_numpy.py` finds.

    Documents drawn anew, by how often each is drawn.
    """
    stored = json.loads(Path("benchmarks/kneser_ney.json").read_text("utf-8"))["GPT"]["documents"]
    lead, sizes = counted - stored, np.array([*map(len, texts)])
    even = np.full(len(texts), 1 / len(texts))
    drawn = np.random.default_rng(91).multinomial(len(texts), even, 20_000)
    low, high = np.percentile(drawn @ lead / (drawn @ sizes), (2.5, 97.5))
    ahead = f"{lead.sum() / sizes.sum():.3f}, {low:.3f} to {high:.3f}"
    print(f"   GPT ahead by {ahead}, in {(lead > 0).sum()} of {len(texts)} documents")


def main(*lengths: int) -> None:
    parts = english.split(english.documents())
    texts = {part: [text.encode() for text in parts[part].values()] for part in parts}
    cutter = Cutter(gpt.WEIGHTS)
    for kind, longest in zip(("tokens", "bytes"), lengths or (6, 12), strict=True):
        row = {
            part: np.concatenate(
                [cutter(t) if kind == "tokens" else [0, *(b + 1 for b in t)] for t in found]
            )
            for part, found in texts.items()
        }
        size = len(cutter.tokens) if kind == "tokens" else 257
        length = {part: sum(map(len, found)) for part, found in texts.items()}
        for going_on in (False, True) if kind == "tokens" else (False,):
            tables = {
                part: statistics(row["train"], row[part], longest, going_on)[:, 1:]
                for part in ("valid", "test")
            }
            cost = lambda d, p: bits(tables[p], d, size).sum() / length[p]  # noqa: B023, E731
            best = minimize(
                cost,
                np.tile((0.7, 1.1, 1.4), longest),
                "valid",
                bounds=[(0, 1), (0, 2), (0, 3)] * longest,
            )
            name = f"{kind} up to {longest}{', going on' * going_on}"
            print(f"{name}: valid {best.fun:.4f}, test {cost(best.x, 'test'):.4f}")
            if kind == "tokens":
                told(of_documents(row["test"], bits(tables["test"], best.x, size)), texts["test"])
