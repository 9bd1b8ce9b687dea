"""Chapter 3's guesser: heads scrambled, weights even, few windows, a split by position, once more.

Run: python -m benchmarks.second letters_by_heart [STEPS] [SEED ...]; half a minute for each seed
with 300 steps. The model and the contexts kept back are those of `letters.py`. Seeds 71 and 73,
1,500 steps, right of the new contexts: weights learnt or even, with a matrix for each place, 44.3
43.0, 41.5 40.6%; four heads and four scrambled 46.7 43.6, 44.2 45.9. Masking one of eight costs 1.7
to 9.4 and 4.5 to 13.4 points. Split by position, one head and 32: 40.4 63.9, 39.3 62.9. On 2,000
windows, their own less the new: one head 14.4, 8.2, eight 41.3, 38.1, 32 heads 57.9, 57.8. Of the
last tenth of the text 92.8% stands in the first nine. How far 32 heads are ahead of eight: after
300 steps (seeds 80 to 87) by 4.5 ± 2.5 points, after 1,500 (71, 73 to 79) by 0.4 ± 2.6 and (80 to
85) by 1.9 ± 2.6, all 14 by 1.1 ± 1.6; the page's five seeds have 4.4 ± 4.8.
The page's code with parts 5 to 9: 4.57, 4.97, 3.37, -2.44, 0.36 points; with its five, 3.3 ± 2.5.
Scrambled, eight less 3.8 ± 6.0, four 0.8 ± 3.6.
"""

import math
import random
import re
from pydoc_data.topics import topics

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.second.letters import LETTERS, Blanks, cut, right, trained


class Scrambled(Blanks):
    """Keys and values are dealt out to the heads in the order of their numbers."""

    def gathered(self, windows: Tensor) -> Tensor:
        x = self.table(torch.where(torch.arange(5) == 2, 27, windows)) + self.places
        k, v = (each(x).reshape(len(x), self.heads, 5, -1) for each in (self.k, self.v[0]))
        q = self.q(x[:, 2]).reshape(len(x), self.heads, 1, -1)
        return ((q * k).sum(-1, True) / math.sqrt(q.shape[-1])).softmax(2).mul(v).sum(2)


class Even(Blanks):
    """Every weight is a fifth."""

    def gathered(self, windows: Tensor) -> Tensor:
        x = self.table(torch.where(torch.arange(5) == 2, 27, windows)) + self.places
        return torch.stack([self.v[j](x[:, j]) for j in range(5)], 1).mean(1)[:, None]


MODELS = (
    (1, "", Blanks),
    (1, "places", Blanks),
    (1, "places", Even),
    (4, "", Blanks),
    (4, "", Scrambled),
    (8, "", Scrambled),
    (8, "", Blanks),
    (32, "", Blanks),
    (32, "fed", Blanks),
)


def cut_by_position() -> tuple[Tensor, Tensor]:
    """All windows in their order: the first nine tenths, and the last."""
    text = re.sub("[^a-z]+", " ", " ".join(topics.values()).lower())
    windows = torch.tensor([LETTERS.index(c) for c in text]).unfold(0, 5, 1)
    return windows.tensor_split([len(windows) * 9 // 10])


def tell_heads(model: Blanks, learnt: Tensor, asked: Tensor) -> None:
    """What each of eight heads costs, which to mask first, and the slopes of the loss."""
    alone, some = 1.0 - torch.eye(8)[:, :, None], learnt[::90]
    lost = sorted(right(model, asked) - right(model, asked, gates) for gates in alone)
    print("   points lost without one head:", *(f"{each:.1f}" for each in lost))
    cheap = sorted(range(8), key=lambda h: -right(model, some, alone[h]))
    for which, kept in (("costliest", cheap[4:]), ("least costly", cheap[:4])):
        gates = torch.zeros(8, 1).index_fill(0, torch.tensor(kept), 1.0)
        print(f"   the four {which} left: {right(model, asked, gates):.1f}%")
    gates = torch.ones(len(some), 8, 1, requires_grad=True)
    F.cross_entropy(model(some, gates), some[:, 2], reduction="sum").backward()
    print("   mean slopes:", *(f"{each:.3f}" for each in gates.grad.mean(0)[:, 0]))
    print("   their mean sizes:", *(f"{each:.2f}" for each in gates.grad.abs().mean(0)[:, 0]))


def main(steps: int = 300, *seeds: int) -> None:
    first, last = cut_by_position()
    seen = set(map(tuple, first.tolist()))
    share = sum(tuple(w) in seen for w in last.tolist()) / len(last)
    print(f"of the last tenth of the text, {share:.1%} stands in the first nine tenths")
    for seed in seeds or (73,):
        learnt, asked = cut(seed)
        for heads, kind, make in MODELS:
            model = trained(learnt, heads, kind, seed, steps, make)
            print(
                f"{steps} steps, seed {seed}: {heads:2} heads {kind:6} {make.__name__:9}", end=" "
            )
            print(f"{right(model, asked):.1f}%, learnt {right(model, learnt[::9]):.1f}%")
            if (heads, make) == (8, Blanks):
                tell_heads(model, learnt, asked)
        for heads in (1, 32):
            model = trained(first, heads, "", seed, steps)
            print(f"   split by position, {heads:2} heads: {right(model, last):.1f}%")
        few = learnt[random.Random(seed).sample(range(len(learnt)), 2000)]
        for heads in (1, 8, 32):
            model = trained(few, heads, "", seed, steps)
            own, new = right(model, few), right(model, asked)
            print(f"   2,000 windows, {heads:2} heads: {own:.1f}%, kept back {new:.1f}%", end=", ")
            print(f"apart {own - new:.1f}")
