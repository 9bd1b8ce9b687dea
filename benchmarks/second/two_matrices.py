"""Chapter 12's search once more, behind a picture encoder and a text side that were never trained.

Run: python -m benchmarks.second two_matrices [REACH] [SEED ...]; half a minute. The page's matrices
learn from pictures as they stand (REACH 0). Seed 0 then finds at once, picture to name and name to
picture: from the mean 31.9% and 39.1, from all places 88.4 and 91.3. From three copies of each
picture, moved by up to 2 pixels: 37.7 and 30.4, 66.7 and 71.0.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_by_hand.data import glyphs as drawn
from benchmarks.second.eyes import UNSEEN_FONT, Eyes

STEPS, BATCH = 1500, 48


class Reader(nn.Module):
    """Names to the vectors at their first token, `[CLS]`, by two layers of width 48."""

    def __init__(self, words: int):
        super().__init__()
        self.words, self.places = nn.Embedding(words, 48), nn.Parameter(0.1 * torch.randn(9, 48))
        how = {"batch_first": True, "norm_first": True}
        layer = nn.TransformerEncoderLayer(48, 4, 96, 0.0, "gelu", **how)
        self.layers = nn.TransformerEncoder(layer, 2, nn.LayerNorm(48), enable_nested_tensor=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.places[: ids.shape[1]]
        return self.layers(x, src_key_padding_mask=ids == 0)[:, 0]


def recall(cosines: Tensor) -> str:
    """Of pictures and their names on the diagonal: percent found at once, both ways."""
    best = torch.arange(len(cosines))
    return " / ".join(f"{(c.argmax(1) == best).float().mean():.1%}" for c in (cosines, cosines.T))


def measured(reach: int, seed: int) -> None:
    every = drawn.glyphs()
    images = torch.from_numpy(np.stack([drawn.picture(g) for g in every]))
    names = sorted({g.name for g in every})
    word = {w: i for i, w in enumerate(sorted({w for n in names for w in n.split()}), 2)}
    rows = [torch.tensor([1, *(word[w] for w in name.split())]) for name in names]  # 1: [CLS]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    name = torch.tensor([names.index(g.name) for g in every])
    out = drawn.held_out(seed)
    new = torch.tensor([g.pair in out for g in every])
    learnt = (~new & torch.tensor([g.font != UNSEEN_FONT for g in every])).nonzero()[:, 0]

    torch.manual_seed(400 + seed)
    eyes, reader = Eyes("convolutions", 1, 1), Reader(len(word) + 2)
    move = lambda: torch.randint(-reach, reach + 1, (2,)).tolist()  # noqa: E731
    see = lambda x: eyes.norm(eyes.blocks(eyes.stem(x[:, None]).flatten(2).mT + eyes.places))  # noqa: E731
    with torch.no_grad():
        for _ in range(50):  # batch norm gathers
            eyes.stem(images[learnt[torch.randint(len(learnt), (BATCH,))], None])
        eyes.eval(), reader.eval()
        told, shown = reader(ids), learnt.repeat(3 if reach else 1)
        parts = [images[i].roll(move(), (1, 2)) for i in shown.split(16)]
        seen = torch.cat([see(x) for x in parts])
    looks = {"mean": lambda y: y.mean(1), "all places": lambda y: y.flatten(1)}
    ends = [nn.ModuleList([nn.Linear(n, 32, bias=False), nn.Linear(48, 32)]) for n in (64, 4096)]
    warmth = nn.Parameter(torch.full((2,), 0.07).log())
    adam = torch.optim.AdamW([*nn.ModuleList(ends).parameters(), warmth], weight_decay=0.01)
    rates = torch.optim.lr_scheduler.OneCycleLR(adam, 2e-3, STEPS)

    def compared(y: Tensor, t: Tensor) -> list[Tensor]:
        pairs = zip(looks.values(), ends, strict=True)
        both = [(end[0](look(y)), end[1](t)) for look, end in pairs]
        return [F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T for a, b in both]

    for _ in range(STEPS):
        which = torch.randint(len(shown), (BATCH,))
        y, i = seen[which], shown[which]
        twice = (name[i, None] == name[i]).fill_diagonal_(False)  # not wrong, and not counted
        loss = 0
        for cosines, by in zip(compared(y, told[name[i]]), warmth.exp(), strict=True):
            scores = (cosines / by).masked_fill(twice, -torch.inf)
            loss = loss + sum(F.cross_entropy(s, torch.arange(BATCH)) for s in (scores, scores.T))
        adam.zero_grad()
        loss.backward()
        adam.step()
        rates.step()
    order = new.nonzero()[:, 0][torch.randperm(int(new.sum()))]
    chosen = torch.tensor(list({int(name[i]): int(i) for i in order}.values()))
    with torch.no_grad():
        found = compared(see(images[chosen]), told[name[chosen]])
    for words, cosines in zip(looks, found, strict=True):
        print(f"seed {seed}, of {len(chosen)}, {words}: {recall(cosines)}")


def main(reach: int = 0, *seeds: int) -> None:
    for seed in seeds or (0,):
        measured(reach, seed)
