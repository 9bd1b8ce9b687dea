"""Chapter 9's counted runs of tokens and GPT, topic by topic, once more, token by token.

Run: python -m benchmarks.second counted_tokens [SEED ...]
"""

import math
from collections import Counter, defaultdict

import numpy as np
import torch

from benchmarks.language_models import CONTEXT, streams, train

DISCOUNT = 0.9


def counts(text, longest):
    """For each run of up to so many tokens: what stood behind it, and how often.

    Behind the longest, each time counts; behind the others, each different token before the run.
    """
    after = defaultdict(Counter)
    for i, token in enumerate(text):
        if i >= longest:
            after[tuple(text[i - longest : i])][token] += 1
    for k in range(longest):
        ends = range(k, len(text))
        for run in {tuple(text[max(i - k - 1, 0) : i + 1]) for i in ends}:
            after[run[len(run) - 1 - k : -1]][run[-1]] += 1
    return after


def cost(after, text, longest, vocabulary):
    """The bits of each token but the first, by Kneser and Ney's rule with one discount."""
    bits = []
    for i in range(1, len(text)):
        chance = 1 / vocabulary
        for k in range(longest + 1):
            seen = after.get(tuple(text[i - k : i])) if i >= k else None
            if seen:
                left = DISCOUNT * len(seen) * chance
                chance = (max(seen[text[i]] - DISCOUNT, 0) + left) / seen.total()
        bits.append(-math.log2(chance))
    return np.array(bits)


def read_by(model, text):
    """GPT's bits of each token but the first: one window for each half, one token at a time."""
    half, ids, bits = CONTEXT // 2, torch.tensor(text), []
    with torch.no_grad():
        for start in range(0, len(text), half):
            begin = max(0, start - half)
            chances = model(ids[None, begin : start + half])[0].softmax(-1)
            for i in range(max(1, start), min(start + half, len(text))):
                bits.append(-math.log2(chances[i - 1 - begin, text[i]].item()))
    return np.array(bits)


def main(*seeds: int) -> None:
    ids, lengths = streams()
    learnt, new = (ids[part].tolist() for part in ("train", "test"))
    size = np.array([lengths[i].item() for i in new[1:]])
    topic = np.cumsum([i == 0 for i in new])[1:] - 1
    found = {}
    for k, name in enumerate(("pairs", "triples", "fours"), 1):
        found[name] = cost(counts(learnt, k), new, k, len(lengths))
        print(name, f"{found[name].sum() / size.sum():.3f}")
    for seed in seeds or (7,):
        ours = read_by(train(ids["train"], len(lengths), 128, 2, 1080, seed), new)
        print(f"GPT, seed {seed}: {ours.sum() / size.sum():.3f}")
        for name in ("pairs", "triples"):
            leads = np.bincount(topic, found[name] - ours)
            bytes_of = np.bincount(topic, size)
            drawn = np.random.default_rng(seed).integers(len(leads), size=(20_000, len(leads)))
            low, high = np.percentile(leads[drawn].sum(1) / bytes_of[drawn].sum(1), (2.5, 97.5))
            ahead = f"{leads.sum() / size.sum():+.3f}, in {(leads > 0).sum()} of {len(leads)}"
            print(f"   ahead of {name} by {ahead} topics; over topics {low:+.2f} to {high:+.2f}")
