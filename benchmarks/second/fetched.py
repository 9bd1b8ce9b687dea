"""Chapter 2's sensitive weights, queries that fetch, cards and kept bytes once more.

Run: python -m benchmarks.second fetched [SEED]; a minute. Slopes of the weights and of the queries
are written out in NumPy; only the cards learn in torch.
Seed 22: at 256 features a typical query's weights move a sixth as far as with the scale; of 1,000
sets of keys, the middle eight of ten lie between 0.08 and 0.22, with the median 0.13. A suit leads
by 5.5. Kept: 65.14, 1.12 and 0.25 MiB. Who fetches, and who ends above the average, is as told.
"""

import math

import numpy as np
import torch
from torch import nn

SIZES = (1, 4, 16, 64, 256, 1024, 4096)
DIVISORS = {"none": lambda d: 1.0, "root": math.sqrt, "d": float}


def softmax(scores: np.ndarray) -> np.ndarray:
    worth = np.exp(scores - scores.max(-1, keepdims=True))
    return worth / worth.sum(-1, keepdims=True)


def sensitivity(draw: np.random.Generator, d: int) -> None:
    keys, queries = draw.normal(size=(10, d)), draw.normal(size=(500, d))
    print(f"   {d:4} features", end="")
    for name, divisor in DIVISORS.items():
        by = divisor(d)
        weights = softmax(queries @ keys.T / by)
        norms = []
        for alpha in weights:  # of weight i by the query: its share of (key i less the mean key)
            slopes = alpha[:, None] * (keys - alpha @ keys) / by
            norms.append(np.linalg.norm(slopes))
        print(f"; {name}: largest {weights.max(1).mean():.2f},", end=" ")
        print(f"median {np.median(norms):.2g} (mean {np.mean(norms):.2g}),", end=" ")
        print(f"weights < 0.001 {(weights < 1e-3).mean():.0%}", end="")
    print()


def fetch(draw: np.random.Generator, d: int, name: str, way: str) -> tuple[np.ndarray, np.ndarray]:
    """32 queries, each after one value of ten: their squared errors, and the first weights."""
    keys, values, queries = (
        draw.normal(size=(10, d)),
        draw.normal(size=(10, 8)),
        draw.normal(size=(32, d)),
    )
    wanted, by = draw.integers(10, size=32), DIVISORS[name](d)
    rate = {"one": 30.0, "fit": 30 * by * by / d, "adam": 0.05}[way]
    mean, square = 0.0, 0.0
    for step in range(201):
        weights = softmax(queries @ keys.T / by)
        if not step:
            first = weights[np.arange(32), wanted]
        off = weights @ values - values[wanted]
        if step == 200:
            break
        by_weight = 2 * off @ values.T / off.size
        by_score = weights * (by_weight - (weights * by_weight).sum(1, keepdims=True))
        slope = by_score @ keys / by
        if way == "adam":
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
            t = step + 1
            slope = mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        queries = queries - rate * slope
    return (off**2).mean(1), first, ((values.mean(0) - values[wanted]) ** 2).mean()


def tell_fetched(seed: int) -> None:
    for d in (16, 64, 256, 1024):
        for name in DIVISORS:
            print(f"   {d:4} features, divisor {name:4}:", end="")
            for way in ("one", "fit", "adam"):
                runs = [fetch(np.random.default_rng([seed, d, i]), d, name, way) for i in range(3)]
                errors, first = (np.concatenate([run[i] for run in runs]) for i in (0, 1))
                faint = errors[first < 1e-2]
                print(
                    f" {way} {errors.mean():.3f} (faint {faint.mean() if faint.size else 0:.2f})",
                    end="",
                )
            print(f"; average {np.mean([run[2] for run in runs]):.2f}")


def play_cards(seed: int) -> None:
    torch.manual_seed(seed)
    ask, offer, show = (nn.Linear(5, n, bias=False) for n in (4, 4, 1))
    adam = torch.optim.Adam([each.weight for each in (ask, offer, show)], 0.03)
    for _ in range(501):
        suit, number = torch.randint(4, (64, 8)), torch.randint(-9, 10, (64, 8)) / 10
        cards = torch.cat([torch.eye(4)[suit], number[..., None]], 2)
        same = (suit[:, :, None] == suit[:, None, :]).float()
        truth = (same @ number[..., None])[..., 0] / same.sum(2)
        told = ((ask(cards) @ offer(cards).mT / 2).softmax(2) @ show(cards))[..., 0]
        loss = ((told - truth) ** 2).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    with torch.no_grad():
        meets = ask.weight.T @ offer.weight / 2
    lead = min((meets[i, i] - meets[i, j]).item() for i in range(4) for j in range(4) if i != j)
    guess = (truth**2).mean().sqrt()
    print(f"   cards, seed {seed}: off by {loss.sqrt():.3f} (0 would be by {guess:.2f});", end=" ")
    print(
        f"a suit leads by {lead:.1f} or more; values", np.round(show.weight.detach().numpy()[0], 2)
    )


def keep_bytes() -> None:
    kept = {}
    x, w = (torch.randn(n, 64, requires_grad=True) for n in (512, 64))

    def pack(x):
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    def additive():
        hidden = torch.tanh((x @ w)[:, None] + (x @ w)[None])
        return (hidden @ w[0]).softmax(1) @ x

    fused, one = nn.functional.scaled_dot_product_attention, x[None, None]
    ways = {"dot product": lambda: (x @ x.T / 8).softmax(1) @ x, "additive": additive}
    for name, way in {**ways, "fused": lambda: fused(one, one, one)}.items():
        kept.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            way()
        print(f"   {name} keeps {sum(kept.values()) / 2**20:.2f} MiB", end="")
    print()


def main(seed: int = 22) -> None:
    for d in SIZES:
        sensitivity(np.random.default_rng([seed, d]), d)
    for each in range(seed, seed + 3):
        play_cards(each)
    keep_bytes()
    tell_fetched(seed)
