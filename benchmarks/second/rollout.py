"""Chapter 10's rank correlations with occlusion, once more: a model, a pair of weights at a time.

Run: python -m benchmarks.second rollout [SEED ...]
"""

import numpy as np
import torch
from scipy.stats import spearmanr

from benchmarks.bert import page_definitions


def looks(model, ids, place):
    """The weights (layers, heads, n, n) of one row, and the slopes of the likeliest answer."""
    kept = []

    def keep(_, inputs, output):
        output[1].retain_grad()
        kept.append(output[1])

    handles = [layer.attention.register_forward_hook(keep) for layer in model.layers]
    model(ids[None])[0, place].log_softmax(0).max().backward()
    for handle in handles:
        handle.remove()
    return tuple(
        np.stack([w[0].double().numpy() for w in ws])
        for ws in ([w.detach() for w in kept], [w.grad for w in kept])
    )


def through(layers, row):
    """What a row of the last layer draws from each token: down path by path, layer by layer."""
    shares = np.zeros(layers.shape[-1])
    shares[row] = 1.0
    for heads in layers[::-1]:
        below = shares / 2
        for to, share in enumerate(shares):
            below = below + share * heads[:, to].mean(0) / 2
        shares = below
    return shares


def relevance(layers, slopes):
    R = np.eye(layers.shape[-1])
    for heads, slope in zip(layers, slopes, strict=True):
        R = R + np.maximum(heads * slope, 0).mean(0) @ R
    return R


def falls(model, ids, place, mask):
    with torch.no_grad():
        before = model(ids[None])[0, place].log_softmax(0)
        answer = before.argmax()
        found = {}
        for j in range(1, len(ids) - 1):
            if j != place:
                covered = ids.clone()
                covered[j] = mask
                after = model(covered[None])[0, place].log_softmax(0)
                found[j] = (before[answer] - after[answer]).item()
    return found


def main(*seeds: int) -> None:
    page = page_definitions()
    rows = page["test"][3::21][:50]  # other rows than the page's
    for seed in seeds or (7,):
        model, found = page["trained"](seed), {}
        draw = np.random.default_rng(seed)
        for row in rows:
            place = int(draw.integers(8, len(row) - 8))
            ids = row.clone()
            ids[place] = page["MASK"]
            weights, slopes = looks(model, ids, place)
            fall = falls(model, ids, place, page["MASK"])
            others = list(fall)
            told = {
                "rollout": through(weights, place),
                "last layer": weights[-1].mean(0)[place],
                "relevance": relevance(weights, slopes)[place],
                "nearness": -np.abs(np.arange(len(ids)) - place),
            }
            for name, numbers in told.items():
                for how in (np.abs, np.array):
                    r = spearmanr(numbers[others], how(list(fall.values()))).statistic
                    found.setdefault((name, "moves" if how is np.abs else "falls"), []).append(r)
        for key, r in found.items():
            half = 1.96 * np.std(r, ddof=1) / len(r) ** 0.5
            print(seed, *key, f"{np.mean(r):.2f} ± {half:.2f}")
