"""Chapter 3's *Ann sings like Bob* once more, with scores and sums written out.

As on the page, both names are drawn from all six and the projections have biases; `strict` has two
different names and no biases, which a single head finds harder.
Run: python -m benchmarks.second two_names
"""

import random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NAMES = ("Ann", "Bob", "Cat", "Dan", "Eve", "Fay")
WORDS = ["", "sings", "like", "today", "here", *NAMES]  # eleven, the filler among them
N, D, STEPS = 6, 16, 300


def sentence(draw: random.Random, strict: bool) -> tuple[list[int], int, int]:
    """Six words, the place of *sings*, and how many stand before the singer."""
    before = draw.randrange(3)
    who, whom = draw.sample(NAMES, 2) if strict else draw.choices(NAMES, k=2)
    text = [draw.choice(WORDS[3:5]) for _ in range(before)] + [who, "sings", "like", whom]
    return [WORDS.index(w) for w in text + [""] * (N - len(text))], before, before + 1


def many(size: int, draw: random.Random, strict: bool) -> tuple[Tensor, Tensor]:
    """Sentences `(size, N)` and the places `(size, 3)` of singer, *sings* and model."""
    rows = [sentence(draw, strict) for _ in range(size)]
    start = torch.tensor([before for _, before, _ in rows])
    return torch.tensor([ids for ids, _, _ in rows]), torch.stack([start, start + 1, start + 3], 1)


class Singer(nn.Module):
    def __init__(self, heads: int, strict: bool):
        super().__init__()
        self.heads, self.table = heads, nn.Embedding(len(WORDS), D)
        self.places = nn.Parameter(torch.randn(N, D))
        self.q, self.k, self.v, self.o = (nn.Linear(D, D, bias=not strict) for _ in range(4))
        self.out = nn.Linear(D, 2 * len(NAMES))

    def forward(self, ids: Tensor, places: Tensor, exchange: bool = False):
        words, at = self.table(ids), self.places.expand(len(ids), -1, -1)
        row = torch.arange(len(ids))
        moved = at.clone()
        if exchange:
            moved[row, places[:, 0]], moved[row, places[:, 2]] = (
                at[row, places[:, 2]],
                at[row, places[:, 0]],
            )
        x = words + at
        q = self.q(x[row, places[:, 1]]).unflatten(-1, (self.heads, -1))
        k, v = (w.unflatten(-1, (self.heads, -1)) for w in (self.k(x), self.v(words + moved)))
        weights = ((q[:, None] * k).sum(-1) / (D / self.heads) ** 0.5).softmax(1)  # (B, N, H)
        gathered = self.o((weights[..., None] * v).sum(1).flatten(1))
        return self.out(gathered).unflatten(-1, (2, -1)), weights


def measured(heads: int, seed: int, strict: bool) -> str:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    model, caught = Singer(heads, strict), 0
    adam = torch.optim.Adam(model.parameters(), 0.01)
    test, where = many(1000, draw, strict)
    row = torch.arange(len(test))

    def names(ids: Tensor, places: Tensor) -> Tensor:
        return torch.stack([ids.gather(1, places[:, i, None])[:, 0] for i in (0, 2)], 1) - 5

    right = []
    for step in range(STEPS + 1):
        if step % 50 == 0:
            with torch.no_grad():
                told, weights = model(test, where)
            both = (told.argmax(-1) == names(test, where)).all(1)
            right.append(f"{both.float().mean():.0%}")
        ids, places = many(64, draw, strict)
        loss = F.cross_entropy(model(ids, places)[0].flatten(0, 1), names(ids, places).flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
    whos, whoms = weights[row, where[:, 0]], weights[row, where[:, 2]]  # (B, H)
    if heads == 2:
        favours = whos > whoms
        caught = (favours[:, 0] != favours[:, 1]).float().mean().item()
        return f"{right}; each name one head's favourite in {caught:.0%}"
    with torch.no_grad():
        deceived = model(test, where, exchange=True)[0].argmax(-1)
    swapped = (deceived == names(test, where).flip(1)).all(1).float().mean()
    louder, a = 0, names(test, where)
    for one in range(len(NAMES)):
        for two in range(one):
            ahead = whos[:, 0] > whoms[:, 0]
            first = ahead[(a[:, 0] == one) & (a[:, 1] == two)]  # `one` sings
            second = ~ahead[(a[:, 0] == two) & (a[:, 1] == one)]
            share = torch.cat([first, second]).float().mean().item()
            louder += max(share, 1 - share) / 15
    said = f"{right}; exchanged places exchange both in {swapped:.0%}"
    return f"{said}; the same name is the louder in {louder:.0%}"


def main(*seeds: int) -> None:
    for heads, strict in ((1, False), (1, True), (2, False)):
        for seed in seeds or range(60, 70):
            told = measured(heads, seed, strict)
            print(f"{heads} heads{', strict' if strict else ''}, seed {seed}: {told}")
