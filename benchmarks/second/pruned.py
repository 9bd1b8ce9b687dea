"""Chapter 10's heads cut out once more: torch's encoder, masked instead of cut, its own seed.

Run: python -m benchmarks.second pruned [SEED ...]; two minutes for each.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.bert import page_definitions

D, H, ROW = 64, 4, 46


class Filler(nn.Module):
    """Two post-norm layers over letters; `open` (2, H) multiplies what each head brings."""

    def __init__(self, letters: int):
        super().__init__()
        self.letters, self.norm = nn.Embedding(letters, D), nn.LayerNorm(D)
        nn.init.normal_(self.letters.weight, std=0.3)
        turn = torch.arange(ROW)[:, None] / 10000 ** (torch.arange(0, D, 2) / D)
        self.places = nn.Parameter(torch.stack([turn.sin(), turn.cos()], -1).flatten(1))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(D, H, 4 * D, 0.0, "gelu", batch_first=True) for _ in (0, 1)
        )
        self.head = nn.Sequential(nn.Linear(D, D), nn.GELU(), nn.LayerNorm(D))
        self.shift = nn.Parameter(torch.zeros(letters))

    def forward(self, ids: Tensor, open: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
        x, maps = self.norm(self.letters(ids) + self.places), []
        for i, layer in enumerate(self.layers):
            a = layer.self_attn
            q, k, v = F.linear(x, a.in_proj_weight, a.in_proj_bias).chunk(3, -1)
            q, k, v = (t.unflatten(-1, (H, -1)).transpose(1, 2) for t in (q, k, v))
            weights = (q @ k.mT / (D / H) ** 0.5).softmax(-1)
            found = weights @ v
            if open is not None:
                found = found * open[i, :, None, None]
            x = layer.norm1(x + a.out_proj(found.transpose(1, 2).flatten(2)))
            x = layer.norm2(x + layer.linear2(F.gelu(layer.linear1(x))))
            maps.append(weights)
        return self.head(x) @ self.letters.weight.T + self.shift, maps


def trained(text: Tensor, letters: int, blank: int, plain: Tensor, seed: int, steps: int) -> Filler:
    torch.manual_seed(seed)
    model = Filler(letters)
    adam = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.01)
    rates = torch.optim.lr_scheduler.OneCycleLR(adam, 3e-3, steps, pct_start=0.1)
    flat = text.flatten()
    for _ in range(steps):
        starts = torch.randint(len(flat) - ROW, (20, 1))
        rows = flat[starts + torch.arange(ROW)]
        asked, luck = torch.rand(rows.shape) < 0.3, torch.rand(rows.shape)
        other = plain[torch.randint(len(plain), rows.shape)]
        shown = torch.where(asked & (luck < 0.8), blank, rows)
        shown = torch.where(asked & (luck >= 0.9), other, shown)
        loss = F.cross_entropy(model(shown)[0][asked], rows[asked])
        adam.zero_grad()
        loss.backward()
        adam.step()
        rates.step()
    return model.eval()


def main(*seeds: int) -> None:
    page = page_definitions()
    letters, test, learnt = page["letters"], page["test"], page["train"]
    blank = letters.index("[MASK]")
    test, learnt = (t[:, (t[0] >= 5).nonzero()[:, 0]] for t in (test, learnt))  # no [CLS], [SEP]
    plain = learnt.unique()
    for seed in seeds or (17,):
        model = trained(learnt, len(letters), blank, plain, seed, page["STEPS"])
        shown, asked = test.clone(), torch.zeros_like(test, dtype=torch.bool)
        for row in range(len(test)):
            asked[row, (row % 7) :: 7] = True
        shown[asked] = blank

        @torch.no_grad()
        def right(open: Tensor) -> float:
            told = model(shown, open)[0].argmax(-1)  # noqa: B023
            return (told == test)[asked].float().mean().item()  # noqa: B023

        whole = torch.ones(2, H)
        with torch.no_grad():
            maps = model(shown[:200])[1]
        base, lost, sharp = right(whole), [], []
        print(f"seed {seed}: {base:.1%} right")
        for layer in (0, 1):
            for head in range(H):
                one = whole.clone()
                one[layer, head] = 0
                by_distance = {
                    d: maps[layer][:, head].diagonal(d, -2, -1).mean().item() for d in range(-4, 5)
                }
                d = max(by_distance, key=by_distance.get)
                lost.append(100 * (base - right(one)))
                sharp.append(by_distance[d])
                print(f"   layer {layer}, head {head}: {d:+} has {sharp[-1]:.2f};", end=" ")
                print(f"without it {lost[-1]:.1f} points less")
        print(f"   correlation of the two: {np.corrcoef(sharp, lost)[0, 1]:.2f}")
        for word, choose in (("cheapest", min), ("dearest", max)):
            open, shares = whole.clone(), []
            while open.sum() > 2:
                tries = {}
                for layer in (0, 1):
                    for head in range(H):
                        if open[layer, head] and open[layer].sum() > 1:
                            one = open.clone()
                            one[layer, head] = 0
                            tries[layer, head] = base - right(one)
                open[choose(tries, key=tries.get)] = 0
                shares.append(f"{right(open):.1%}")
            print(f"   {word} first: {' '.join(shares)}")
