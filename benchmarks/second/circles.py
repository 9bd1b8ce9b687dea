"""Chapter 9's eight circles once more: which head looks at what followed, layers written out.

Run: python -m benchmarks.second circles [TOKENS] [SEED]; so many are written after each beginning.
"""

import random
from collections import defaultdict

import torch
import torch.nn.functional as F

from attention_by_hand.models import gpt
from benchmarks.pretrained_gpt import Tokens

STARTS = (
    "The well is",
    "If the object is",
    "The value of the",
    "The name of the",
    "A function that",
    "Return the",
    "The first",
    "If the",
)
Weights = dict[str, torch.Tensor]
Looks = dict[tuple[int, int], torch.Tensor]


def read(w: Weights, ids: list[int]) -> tuple[torch.Tensor, Looks]:
    """The logits of what comes next, and the looks `(n, n)` of each layer and head."""
    n, d = len(ids), gpt.SIZES["d_model"]
    x, looks = w["tokens.weight"][ids] + w["positions.weight"][:n], {}
    for layer in range(gpt.SIZES["num_layers"]):
        of = f"blocks.{layer}."

        def linear(x: torch.Tensor, name: str, of: str = of) -> torch.Tensor:
            return x @ w[f"{of}{name}.weight"].T + w[f"{of}{name}.bias"]

        h = F.layer_norm(x, (d,), w[f"{of}norm1.weight"], w[f"{of}norm1.bias"])
        heads = (linear(h, f"attn.W_{name}").chunk(gpt.SIZES["num_heads"], 1) for name in "qkv")
        told = []
        for head, (q, k, v) in enumerate(zip(*heads, strict=True)):
            scores = (q @ k.T / q.shape[1] ** 0.5).masked_fill(torch.ones(n, n).triu(1) > 0, -1e9)
            looks[layer, head] = scores.softmax(1)
            told.append(looks[layer, head] @ v)
        x = x + linear(torch.cat(told, 1), "attn.W_o")
        h = F.layer_norm(x, (d,), w[f"{of}norm2.weight"], w[f"{of}norm2.bias"])
        x = x + linear(F.gelu(linear(h, "linear1")), "linear2")
    x = F.layer_norm(x, (d,), w["norm.weight"], w["norm.bias"])
    return x[-1] @ w["tokens.weight"].T, looks


def followed(ids: list[int], looks: Looks, begin: int) -> dict[str, list[tuple[float, str]]]:
    """Mean weight on what followed the present token, the last time or each time, by head."""
    given: dict[tuple[str, str], list[float]] = defaultdict(list)
    for i in range(begin, len(ids)):
        before = [j + 1 for j in range(i) if ids[j] == ids[i]]
        for which, places in (("last time", before[-1:]), ("each time", before)):
            if before:
                given[which, "even"].append(len(places) / (i + 1))
                for name, look in looks.items():
                    given[which, f"{name}"].append(look[i, places].sum().item())
    means: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for (which, name), shares in given.items():
        means[which].append((sum(shares) / len(shares), name))
    return means


def told(means: dict[str, list[tuple[float, str]]]) -> None:
    for which, shares in means.items():
        even = next(share for share, name in shares if name == "even")
        most = sorted((pair for pair in shares if pair[1] != "even"), reverse=True)[:2]
        print(f"  {which}: even {even:.3f};", *(f"{name} {share:.3f}" for share, name in most))


@torch.no_grad()
def main(count: int = 60, seed: int = 5) -> None:
    w, tokens = gpt.weights(), Tokens(gpt.merges())
    for start in STARTS:
        ids = tokens.encode([start]).tolist()
        begin = len(ids)
        while len(ids) < begin + count:
            ids.append(int(read(w, ids)[0].argmax()))
        rounds = next((p for p in range(1, count // 2) if ids[-2 * p : -p] == ids[-p:]), None)
        print(f"{tokens.decode(ids)!r:.150}; round of {rounds} tokens")
        told(followed(ids, read(w, ids)[1], begin))
    draw, half = random.Random(seed), 50
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for _ in range(8):
        ids = draw.sample(range(1, len(tokens.tokens)), half) * 2
        for which, shares in followed(ids, read(w, ids)[1], half).items():
            for share, name in shares:
                sums[which][name] += share / 8
    print("random tokens, twice")
    told({which: [(s, name) for name, s in shares.items()] for which, shares in sums.items()})
