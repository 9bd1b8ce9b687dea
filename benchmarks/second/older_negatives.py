"""Chapter 12's older wrong answers once more: other encoders, other seeds, another font held out.

`mixed` is an arm that the page has not: the batch's vectors from the encoders, the older ones from
the slow copy.
Run: python -m benchmarks.second older_negatives [SEED ...]
"""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_by_hand.data.glyphs import glyphs, held_out, picture
from benchmarks.second.noisy_captions import moved, strides

GLYPHS, OUT, FONT = glyphs(), held_out(0), "DejaVuSerif-Italic"
NAMES = sorted({g.name for g in GLYPHS})
WORDS = ["", *sorted({word for name in NAMES for word in name.split()})]
ARMS = {
    "the batch": {},
    "queue from the encoders": {"queue": 20},
    "slow copy": {"slow": True},
    "queue from the slow copy": {"queue": 20, "slow": True},
    "batch of 64": {"size": 64},
    "mixed": {"queue": 20, "slow": True, "mixed": True},
}


class Pair(nn.Module):
    """Three strides of convolution for pictures, one layer of attention and a mean for names."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.see = nn.Sequential(*strides(1, 16, 32, 64), nn.Flatten(), nn.Linear(1024, width))
        self.words = nn.Embedding(len(WORDS), 48, padding_idx=0)
        self.places = nn.Parameter(torch.randn(8, 48) * 0.1)
        self.layer = nn.TransformerEncoderLayer(48, 4, 96, 0.0, batch_first=True)
        self.end = nn.Linear(48, width)
        self.log_temperature = nn.Parameter(torch.tensor(0.07).log())

    def forward(self, pictures: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        there = (words > 0)[..., None]
        x = self.words(words) + self.places[: words.shape[1]]
        x = self.layer(x, src_key_padding_mask=~there[..., 0]) * there
        texts = self.end(x.sum(1) / there.sum(1))
        return F.normalize(self.see(pictures), dim=-1), F.normalize(texts, dim=-1)


def one_way(queries: Tensor, keys: Tensor, mine: Tensor, theirs: Tensor, by: Tensor) -> Tensor:
    """Key i belongs to query i; other keys of the same name do not count."""
    alike = mine[:, None] == theirs
    alike.fill_diagonal_(False)
    scores = (queries @ keys.T / by).masked_fill(alike, -torch.inf)
    return F.cross_entropy(scores, torch.arange(len(queries)))


def measured(seed, data, queue=0, slow=False, mixed=False, size=16, steps=800, rate=2e-3) -> str:
    pictures, words, name, train, tests = data
    torch.manual_seed(seed)
    model = Pair()
    slowly, draw = copy.deepcopy(model), torch.Generator().manual_seed(seed)
    adam, old = torch.optim.Adam(model.parameters()), ([], [], [])
    for step in range(steps):
        adam.param_groups[0]["lr"] = rate * min(1, (step + 1) / 50, 1.25 * (1 - step / steps))
        i = train[torch.randint(len(train), (size,), generator=draw)]
        seen, named = moved(pictures[i], draw), name[i]
        p, t = model(seen, words[named])
        keys, older = (p, t), (p.detach(), t.detach())
        if slow:
            with torch.no_grad():
                for ours, new in zip(slowly.parameters(), model.parameters(), strict=True):
                    ours.lerp_(new, 0.01)
                older = slowly(seen, words[named])
            keys = keys if mixed else older
        by, theirs = model.log_temperature.exp(), torch.cat([named, *old[2]])
        loss = one_way(p, torch.cat([keys[1], *old[1]]), named, theirs, by)
        loss = loss + one_way(t, torch.cat([keys[0], *old[0]]), named, theirs, by)
        adam.zero_grad()
        loss.backward()
        adam.step()
        for line, new in zip(old, (*older, named), strict=True):
            line[:] = [new, *line][:queue]
    found = []
    for i in tests:
        with torch.no_grad():
            p, t = model(pictures[i], words[name[i]])
        first = name[i][(p @ t.T).argmax(1)], name[i][(t @ p.T).argmax(1)]
        right = sum((each == name[i]).float().mean() for each in first) / 2
        found.append(f"{right:.0%}")
    return " ".join(found)


def main(*seeds: int) -> None:
    pictures = torch.from_numpy(np.stack([picture(g) for g in GLYPHS]))[:, None]
    spelt = [[WORDS.index(word) for word in each.split()] for each in NAMES]
    words = torch.tensor([row + [0] * (8 - len(row)) for row in spelt])
    name = torch.tensor([NAMES.index(g.name) for g in GLYPHS])
    unseen = torch.tensor([g.pair in OUT for g in GLYPHS])
    font = torch.tensor([g.font == FONT for g in GLYPHS])
    train = (~unseen & ~font).nonzero()[:, 0]
    tests = (unseen & ~font).nonzero()[:, 0], (~unseen & font).nonzero()[:, 0]
    print("recall at 1, mean of both ways: unseen pairs, unseen font")
    for seed in seeds or (1, 2):
        for arm, how in ARMS.items():
            told = measured(seed, (pictures, words, name, train, tests), **how)
            print(f"seed {seed}, {arm}: {told}")
