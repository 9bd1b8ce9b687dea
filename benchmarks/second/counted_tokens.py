"""Chapter 9's counted runs of tokens and GPT, topic by topic, once more, token by token.

Run: OMP_NUM_THREADS=1 python -m benchmarks.second.counted_tokens [SEED ...]
"""

import math
import sys
from collections import defaultdict
from itertools import product

import numpy as np
import torch

from benchmarks.language_models import CONTEXT, streams, train


def counts(text, longest):
    """For each run of up to so many tokens, what followed it and how often."""
    after = defaultdict(lambda: defaultdict(int))
    for i, token in enumerate(text):
        for k in range(min(longest, i + 1)):
            after[tuple(text[i - k : i])][token] += 1
    return after


def cost(after, text, trusts, vocabulary):
    """The bits of each token but the first."""
    single = after[()]
    whole, bits = sum(single.values()) + vocabulary, []
    for i in range(1, len(text)):
        chance = (single.get(text[i], 0) + 1) / whole
        for k, trust in enumerate(trusts, 1):
            past = text[i - k : i] if i >= k else None
            seen = after.get(tuple(past)) if past else None
            if seen:
                chance = (seen.get(text[i], 0) + trust * chance) / (sum(seen.values()) + trust)
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


def main(seeds):
    torch.set_num_threads(1)
    ids, lengths = streams()
    learnt, known, new = (ids[part].tolist() for part in ("train", "valid", "test"))
    size = np.array([lengths[i].item() for i in new[1:]])
    topic = np.cumsum([i == 0 for i in new])[1:] - 1
    after, found = counts(learnt, 4), {}
    for k, name in enumerate(("pairs", "triples", "fours"), 1):
        tries = product((8, 16, 32, 64, 128), repeat=k)
        trusts = min(tries, key=lambda t: cost(after, known, t, len(lengths)).sum())
        found[name] = cost(after, new, trusts, len(lengths))
        print(name, trusts, f"{found[name].sum() / size.sum():.3f}", flush=True)
    for seed in seeds:
        ours = read_by(train(ids["train"], len(lengths), 128, 2, 1080, seed), new)
        print(f"GPT, seed {seed}: {ours.sum() / size.sum():.3f}")
        for name in ("pairs", "triples"):
            leads = np.bincount(topic, found[name] - ours)
            bytes_of = np.bincount(topic, size)
            drawn = np.random.default_rng(seed).integers(len(leads), size=(20_000, len(leads)))
            low, high = np.percentile(leads[drawn].sum(1) / bytes_of[drawn].sum(1), (2.5, 97.5))
            ahead = f"{leads.sum() / size.sum():+.3f}, in {(leads > 0).sum()} of {len(leads)}"
            print(
                f"   ahead of {name} by {ahead}; over topics {spread[0]:+.2f} to {spread[1]:+.2f}"
            )


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or [7])
