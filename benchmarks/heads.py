"""What do more heads buy? Chapter 3's letter guesser and its controls, trained longer as well.

Run: python -m benchmarks.heads [--steps 300 1500] [--only NAME …]. The models, the training loop
and the split are those of the chapter's page, read from its cells; here they are trained with ten
seeds for the page's 300 steps, and with five seeds for five times as many, each seed with another
tenth of the contexts kept back; the latter also on 2000 windows alone, to see them overfit. Beside
them, guesses by counting, and how well the importance of a head of eight says what masking it
costs. The shares of letters guessed right go to benchmarks/heads.json, with how they were made; the
page quotes them, and a test compares the two.
"""

import argparse
import math
import re
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand.blocks import merge_heads
from benchmarks.page_cells import run_cells
from benchmarks.results import made_by, runs_in, store
from solutions.multi_head import MultiHeadAttention, head_importance, split_heads

PAGE = Path(__file__).parents[1] / "book" / "03_multi_head.md"
RESULT = Path(__file__).with_name("heads.json")
SEEDS = {300: range(10), 1500: range(5)}  # by the number of steps; seed i keeps back part i
FEW = 2000  # windows, to be learnt by heart
DEFINED = ("alphabet", "class Guesser", "def trained", "class ValuesPerPlace", "class Scrambled")
DEFINED += ("class BlankAsks", "def slopes")


def page_definitions() -> dict:
    """What the page's cells with the models and the training loop define."""
    scope = {"math": math, "re": re, "topics": topics, "torch": torch, "F": F, "nn": nn}
    scope |= {"Tensor": torch.Tensor, "MultiHeadAttention": MultiHeadAttention}
    scope |= {"split_heads": split_heads, "merge_heads": merge_heads}
    scope |= {"head_importance": head_importance, "np": np}
    return run_cells(PAGE, DEFINED, scope)


def models(page: dict) -> dict[str, tuple[int, type[nn.Module]]]:
    """The models to compare: the number of heads, and the attention that the guesser uses."""

    class Even(page["ValuesPerPlace"]):
        """A value matrix for each place and no attention: every weight is 1/5."""

        def __init__(self, d_model: int, num_heads: int):
            super().__init__(d_model, num_heads)
            for parameter in self.W_q.parameters():
                nn.init.zeros_(parameter).requires_grad_(False)

    class ThenFeedForward(MultiHeadAttention):
        """What comes out of the heads goes through a feed-forward layer, x + F(x), as in chapter 6:
        it can let one letter's vote depend on another's without any attention."""

        def __init__(self, d_model: int, num_heads: int):
            super().__init__(d_model, num_heads)
            self.linear1, self.linear2 = nn.Linear(d_model, 128), nn.Linear(128, d_model)

        def forward(self, *args) -> tuple[torch.Tensor, torch.Tensor]:
            gathered, weights = super().forward(*args)
            return gathered + self.linear2(F.relu(self.linear1(gathered))), weights

    found = {heads(H): (H, MultiHeadAttention) for H in (1, 2, 4, 8, 16, 32)}
    found["1 head, W_v for each place"] = (1, page["ValuesPerPlace"])
    found["1 head, W_v for each place, even weights"] = (1, Even)
    found |= {f"{heads(H)}, blind": (H, page["Blind"]) for H in (1, 32)}
    found |= {f"{heads(H)}, then feed-forward": (H, ThenFeedForward) for H in (1, 32)}
    return found | {f"{heads(H)}, scrambled": (H, page["Scrambled"]) for H in (4, 8)}


def heads(number: int) -> str:
    return f"{number} head{'s' if number > 1 else ''}"


def keep_back(page: dict, part: int) -> None:
    page["learnt_from"], page["kept_back"] = page["split"](part)


def shares(page: dict, guesser: nn.Module, learnt: torch.Tensor) -> tuple[float, float]:
    """What is guessed right of the windows kept back, and of those learnt from."""
    found = page["accuracy"](guesser), page["accuracy"](guesser, windows=learnt)
    return round(found[0], 4), round(found[1], 4)


def by_windows(both: list[tuple[float, float]]) -> dict[str, list[float]]:
    kept_back, learnt = zip(*both, strict=True)
    return {"kept back": list(kept_back), "learnt": list(learnt)}


def overfitted(page: dict, steps: int) -> dict[str, dict[str, list[float]]]:
    """Trained on a few windows only: the share guessed right of those, and of those kept back."""
    found: dict[str, dict[str, list[float]]] = {}
    for H in (1, 8, 32):
        both = []
        for seed in SEEDS[steps]:
            keep_back(page, seed)
            few = page["learnt_from"]
            page["learnt_from"] = few = few[:: len(few) // FEW][:FEW]
            both.append(shares(page, page["trained"](H, seed, steps), few))
        found[heads(H)] = by_windows(both)
        print(f"{steps:5} steps on {FEW} windows, {heads(H):9}", found[heads(H)], flush=True)
    return found


def counted(learnt: torch.Tensor, asked: torch.Tensor, places: tuple[int, ...]) -> torch.Tensor:
    """How often each letter stood between what stands at these places of each window, (n, 27)."""
    learnt_key, asked_key = (
        sum((w[:, j] * 28**i for i, j in enumerate(places)), torch.zeros_like(w[:, 0]))
        for w in (learnt, asked)
    )
    table = torch.zeros(28 ** len(places), 27)
    table.index_put_((learnt_key, learnt[:, 2]), torch.ones(len(learnt)), accumulate=True)
    return table[asked_key]


def smoothed(learnt: torch.Tensor, asked: torch.Tensor) -> torch.Tensor:
    """Probabilities (n, 27) from counts of one, of two and of three neighbours, in turn.

    Those of fewer neighbours count like two windows more; two tables of a size are averaged.
    """
    known = F.normalize(counted(learnt, asked, ()), p=1, dim=1)
    for tables in (((1,), (3,)), ((1, 3),), ((0, 1, 3), (1, 3, 4))):
        counts = [counted(learnt, asked, places) for places in tables]
        found = [(c + 2 * known) / (c.sum(1, keepdim=True) + 2) for c in counts]
        known = torch.stack(found).mean(0)
    return known


def by_counting(page: dict) -> dict[str, list[float]]:
    """The share of the windows kept back that is guessed right without a network."""
    ways = {
        "always a space": lambda learnt, asked: counted(learnt, asked, ()),
        "both neighbours": lambda learnt, asked: counted(learnt, asked, (1, 3)),
        "one to three neighbours": smoothed,
    }
    found: dict[str, list[float]] = {way: [] for way in ways}
    for part in SEEDS[300]:
        learnt, asked = page["split"](part)
        for way, guess in ways.items():
            right = (guess(learnt, asked).argmax(1) == asked[:, 2]).float().mean()
            found[way].append(round(right.item(), 4))
    return found


def guides(page: dict) -> dict[str, list[float]]:
    """Correlations over the heads of eight, a model for each seed, with what masking one costs."""
    found: dict[str, list[float]] = {"the blank asks": [], "all places ask": [], "slopes": []}
    for seed in SEEDS[300]:
        keep_back(page, seed)
        eight = page["trained"](8, seed).eval()
        blank, everywhere, lost = page["measure_heads"](eight)
        costs, _, sizes = page["slopes"](eight)
        for guide, a, b in zip(found, (blank, everywhere, sizes), (lost, lost, costs), strict=True):
            found[guide].append(round(float(np.corrcoef(a, b)[0, 1]), 3))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, nargs="+", choices=SEEDS, default=[*SEEDS])
    parser.add_argument("--only", nargs="+", help="train these models again and keep the rest")
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    page = page_definitions()
    compared = models(page)
    runs: dict[str, dict[str, dict[str, list[float]]]] = {name: {} for name in compared}
    if wanted.only:
        runs |= runs_in(RESULT)
    for steps in wanted.steps:
        for name in wanted.only or compared:
            num_heads, kind = compared[name]
            both = []
            for seed in SEEDS[steps]:
                keep_back(page, seed)
                guesser = page["trained"](num_heads, seed, steps, kind=kind)
                both.append(shares(page, guesser, page["learnt_from"][::9]))
            runs[name][str(steps)] = by_windows(both)
            print(f"{steps:5} steps, {name:42}", *map(str, both), flush=True)
    seeds = {str(steps): list(seeds) for steps, seeds in SEEDS.items()}
    more = {"counted": by_counting(page), "guides": guides(page)}
    more["on few windows"] = overfitted(page, max(SEEDS))
    store(RESULT, made_by("benchmarks/heads.py", seeds=seeds), runs, **more)


if __name__ == "__main__":
    main()
