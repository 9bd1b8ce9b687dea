"""Chapter 7's mistakes and beams once more: another Transformer, other seeds, other dates.

Run: python -m benchmarks.second six_bugs [SEED] [MISTAKE ...]; minutes for each.
"""

import itertools
import math
import random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_by_hand.data import dates

MISTAKES = ("right", "no scale", "small tokens", "cosine", "no residual", "leak", "norm over rows")
TOKENS = "0123456789-"  # 0 pad, 1 bos, 2 eos, then these
STEPS, D, H = 2000, 64, 4


def positions(n: int, cosine: bool) -> Tensor:
    """Sinusoids `(n, D)`; the mistake gives each cosine an exponent of its own."""
    at, column = torch.arange(n)[:, None], torch.arange(D)
    turned = column if cosine else column - column % 2
    angle = at / 10000 ** (turned / D)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


class Mixed(nn.Module):
    """Attention of x to y, then add and norm."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind
        self.q, self.k, self.v, self.o = (nn.Linear(D, D, bias=False) for _ in range(4))
        self.norm = Norm(kind)

    def forward(self, x: Tensor, y: Tensor, seen: Tensor, add: bool = True) -> Tensor:
        q, k, v = (
            w(t).view(*t.shape[:2], H, -1).transpose(1, 2)
            for w, t in ((self.q, x), (self.k, y), (self.v, y))
        )
        scores = q @ k.mT / (1 if self.kind == "no scale" else math.sqrt(D / H))
        weights = scores.masked_fill(~seen[:, None], -1e9).softmax(-1)
        z = self.o((weights @ v).transpose(1, 2).flatten(2))
        return self.norm(x + z if add else z)


class Norm(nn.Module):
    def __init__(self, kind: str):
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(D)), nn.Parameter(torch.zeros(D))
        self.axis = 1 if kind == "norm over rows" else 2

    def forward(self, x: Tensor) -> Tensor:
        away = x - x.mean(self.axis, keepdim=True)
        return self.gain * away / (away.square().mean(self.axis, keepdim=True) + 1e-5).sqrt() + (
            self.shift
        )


class Fed(nn.Module):
    def __init__(self, kind: str):
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(D, 4 * D), nn.Linear(4 * D, D), Norm(kind)

    def forward(self, x: Tensor, add: bool = True) -> Tensor:
        y = self.down(self.up(x).relu())
        return self.norm(x + y if add else y)


class Translator(nn.Module):
    def __init__(self, letters: int, kind: str):
        super().__init__()
        self.kind = kind
        self.read, self.write = nn.Embedding(letters, D), nn.Embedding(len(TOKENS) + 3, D)
        self.encoder = nn.ModuleList(nn.ModuleList([Mixed(kind), Fed(kind)]) for _ in range(2))
        self.decoder = nn.ModuleList(
            nn.ModuleList([Mixed(kind), Mixed(kind), Fed(kind)]) for _ in range(2)
        )
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
        for table in (self.read, self.write):
            nn.init.normal_(table.weight, std=D**-0.5)

    def placed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        factor = 1 if self.kind == "small tokens" else math.sqrt(D)
        return factor * table(ids) + positions(ids.shape[1], self.kind == "cosine")

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        seen, x, add = (source != 0)[:, None], self.placed(self.read, source), True
        add = self.kind != "no residual"
        for mixed, fed in self.encoder:
            x = fed(mixed(x, x, seen, add), add)
        return x, seen

    def decode(self, target: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        n = target.shape[1]
        past = torch.ones(n, n).tril(int(self.kind == "leak")).bool()[None]
        x = self.placed(self.write, target)
        for own, cross, fed in self.decoder:
            x = fed(cross(own(x, x, past), memory, seen))
        return x @ self.write.weight.T


def padded(rows: list[list[int]]) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def target_ids(iso: str) -> list[int]:
    return [1, *(3 + TOKENS.index(c) for c in iso), 2]


def batches(pairs: list, draw: random.Random):
    """Texts of about one length, some 64 × 24 letters at a time, without end."""
    while True:
        order = sorted(pairs, key=lambda pair: (len(pair[0]), draw.random()))
        chunks, at = [], 0
        while at < len(order):
            size = max(1, 64 * 24 // len(order[at][0]))
            chunks.append(order[at : at + size])
            at += size
        draw.shuffle(chunks)
        yield from chunks


def trained(pairs: list, letters: int, kind: str, seed: int) -> tuple[Translator, list[float]]:
    torch.manual_seed(seed)
    model, losses = Translator(letters, kind), []
    adam = torch.optim.Adam(model.parameters(), 1.0, betas=(0.9, 0.98), eps=1e-9)
    rates = torch.optim.lr_scheduler.LambdaLR(
        adam, lambda s: D**-0.5 * min((s + 1) ** -0.5, (s + 1) * 400**-1.5) * (1 - s / STEPS)
    )
    for chunk in itertools.islice(batches(pairs, random.Random(seed)), STEPS):
        source, target = padded([p[0] for p in chunk]), padded([p[1] for p in chunk])
        logits = model.decode(target[:, :-1], *model.encode(source))
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), label_smoothing=0.1)
        adam.zero_grad()
        loss.backward()
        adam.step()
        rates.step()
        losses.append(loss.item())
    return model, losses


@torch.no_grad()
def beams(model: Translator, source: list[int], width: int) -> list[str]:
    """The best dates, best first: width 1 is greedy. Scores end up divided by ((5 + l) / 6)^0.6."""
    memory, seen = model.encode(torch.tensor([source]))
    alive, done = [(0.0, [1])], []
    for _ in range(14):
        ids = torch.tensor([row for _, row in alive])
        n = len(alive)
        after = model.decode(ids, memory.expand(n, -1, -1), seen.expand(n, -1, -1))[:, -1]
        told = after.log_softmax(-1).tolist()
        longer = [
            (p + q, [*row, c])
            for (p, row), t in zip(alive, told, strict=True)
            for c, q in enumerate(t)
        ]
        best = sorted(longer, reverse=True)[:width]
        done += [one for one in best if one[1][-1] == 2]
        alive = [one for one in best if one[1][-1] != 2]
        if not alive:
            break
    done += alive
    done.sort(key=lambda one: -one[0] / ((5 + len(one[1]) - 1) / 6) ** 0.6)
    return ["".join(TOKENS[c - 3] for c in row if c > 2) for _, row in done[:width]]


@torch.no_grad()
def greedy(model: Translator, sources: list[list[int]]) -> list[str]:
    memory, seen = model.encode(padded(sources))
    ids = torch.ones(len(sources), 1, dtype=torch.long)
    for _ in range(12):
        last = model.decode(ids, memory, seen)[:, -1].argmax(-1)
        ids = torch.cat([ids, last[:, None]], 1)
    rows = [row[1 : row.index(2)] if 2 in row else row[1:] for row in ids.tolist()]
    return ["".join(TOKENS[c - 3] if c > 2 else "?" for c in row) for row in rows]


def main(seed: int = 7, *kinds: str) -> None:
    examples = dates.examples("train", 40_000, seed=100 + seed)
    test = dates.examples("test", 1000, seed=200 + seed)
    letters = {c: i + 3 for i, c in enumerate(sorted({c for e in examples for c in e.text}))}

    def source_ids(text: str) -> list[int]:
        return [letters[c] for c in text] + [2]

    pairs = [(source_ids(e.text), target_ids(e.iso)) for e in examples]
    for kind in kinds or MISTAKES:
        model, losses = trained(pairs, len(letters) + 3, kind, seed)
        model.eval()
        written = greedy(model, [source_ids(e.text) for e in test])
        exact = sum(w == e.iso for w, e in zip(written, test, strict=True)) / len(test)
        early, late = (sum(losses[at - 25 : at]) / 25 for at in (500, STEPS))
        print(f"seed {seed}, {kind}: loss {early:.3f}, {late:.3f}; {exact:.1%} exact")
        if kind != "right":
            continue
        some = list(zip(written, test, strict=True))[:300]
        other = [(beams(model, source_ids(e.text), 4)[0], w, e.iso) for w, e in some]
        print("  four beams instead of one:", sum(a != w for a, w, _ in other), "of 300 differ;")
        print("  right:", sum(w == e for _, w, e in other), sum(a == e for a, _, e in other))
        counts = [0, 0, 0]
        for a in range(1, 13):
            for b in range(1, 13):
                if a != b:
                    found = beams(model, source_ids(f"{a}/{b}/27"), 4)
                    meant = {f"2027-{a:02}-{b:02}", f"2027-{b:02}-{a:02}"}
                    counts[0] += found[0] in meant
                    counts[1] += bool(meant & set(found))
                    counts[2] += meant <= set(found)
        print("  two readings, of 132: first, any, both among four beams", counts)
