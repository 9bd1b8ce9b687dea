"""Chapter 10's slope × change, weights × slopes and rollout with its bug, on other rows.

Run: python -m benchmarks.second slope_times_change [ROWS] [SEED]; a minute.
The page's weights, other rows and gaps. Each letter is replaced by `[MASK]`, then by eight letters
drawn from the text: the answer falls by the mean of the eight, and moves by the size of that mean
(*mean size*: by the mean of the eight sizes). 80 rows, seed 93: slope × change agrees with the fall
by 0.48 ± 0.04, weights × slopes by 0.16 ± 0.04; with other letters 0.43 and relevance 0.41. With
its bug, rollout agrees with how far the answer moves by 0.32 instead of 0.72.
"""

import numpy as np
import torch
from scipy.stats import spearmanr

from attention_by_hand.models.checkpoints import load_or_train
from benchmarks.bert import page_definitions
from benchmarks.second.rollout import looks, relevance, through


def with_bug(layers, row):
    """After the first layer, every entry gets the half that belongs on the diagonal."""
    n = layers.shape[-1]
    product = np.eye(n)
    for i, heads in enumerate(layers):
        product = (heads.mean(0) / 2 + (np.full((n, n), 0.5) if i else np.eye(n) / 2)) @ product
    return product[row], product.sum(1).mean()


def times_change(model, ids, place, mask):
    """How far the answer would fall by its slope, a straight line from each letter to the blank."""
    kept = []  # the sums of embedding and position: their slopes are the embeddings'
    handle = model.embeddings.norm.register_forward_pre_hook(lambda _, given: kept.append(*given))
    answer = model(ids[None])[0, place].log_softmax(0).max()
    handle.remove()
    (slope,) = torch.autograd.grad(answer, kept)
    table = model.embeddings.tokens.weight
    change = table[ids] - table[mask]
    return (slope * change).sum(-1)[0].detach().numpy()


@torch.no_grad()
def replaced(model, ids, place, others, letters):
    """How far the answer falls for each other letter `(others, letters)`; these are given alike."""
    before = model(ids[None])[0, place].log_softmax(0)
    rows = ids.repeat(len(others) * letters.shape[1], 1)
    rows[torch.arange(len(rows)), others.repeat_interleave(letters.shape[1])] = letters.flatten()
    after = model(rows)[:, place].log_softmax(1)[:, before.argmax()]
    return (before.max() - after).view(letters.shape).numpy()


def main(count: int = 80, seed: int = 93) -> None:
    page, draw = page_definitions(), np.random.default_rng(seed)
    model = page["untrained"](0)
    load_or_train("encoder", model, lambda _: {})
    model.eval()
    text, mask, sums = page["train"][:, 1:-1].flatten().numpy(), page["MASK"], set()
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in page["test"][5::13][:count]:
        place, ids = int(draw.integers(8, len(row) - 8)), row.clone()
        ids[place] = mask
        weights, slopes = looks(model, ids, place)
        others = torch.tensor([j for j in range(1, len(ids) - 1) if j != place])
        wrong, total = with_bug(weights, place)
        sums.add(round(float(total), 2))
        told = {
            "last layer's weights": weights[-1].mean(0)[place],
            "last weights × slopes": (weights[-1] * slopes[-1]).mean(0)[place],
            "slope × change": times_change(model, ids, place, mask),
            "relevance": relevance(weights, slopes)[place],
            "rollout": through(weights, place),
            "rollout with its bug": wrong,
        }
        some = torch.from_numpy(draw.choice(text, (len(others), 8)))
        for by, letters in (("[MASK]", torch.full((len(others), 1), mask)), ("letters", some)):
            falls = replaced(model, ids, place, others, letters)
            mean, mean_size = falls.mean(1), np.abs(falls).mean(1)
            for how, moved in (("falls", mean), ("moves", np.abs(mean)), ("mean size", mean_size)):
                for name, numbers in told.items():
                    said = numbers[others] if how == "falls" else np.abs(numbers[others])
                    r = spearmanr(said, moved).statistic
                    found.setdefault((by, how, name), []).append(float(r))
    print(f"row sums with the bug, after two layers: {sums}")
    for by in ("[MASK]", "letters"):
        one, other = (np.array(found[by, "falls", n]) for n in ("slope × change", "relevance"))
        found[by, "falls", "the first − relevance"] = list(one - other)
    for key, r in found.items():
        print(
            f"{' '.join(key):40}{np.mean(r):.2f} ± {1.96 * np.std(r, ddof=1) / len(r) ** 0.5:.2f}"
        )
