"""Chapter 8's dates through one vector once more: GRUs whose gates are written out, own seeds.

Run: python -m benchmarks.second one_vector_dates [SECONDS] [SEED ...]. As on the page: texts of
dates, each model for so many seconds of processor time (40), right by length.
"""

import random
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_by_hand.data import dates

LETTERS = "0123456789-"  # 0 pad, 1 begin, 2 end, then these
GROUPS = ((0, 8), (9, 11), (12, 17), (18, 25), (26, 99))
RATE, WIDE = 0.006, 64


class Gates(nn.Module):
    """One step of a GRU (Cho et al., 2014): a reset gate, an update gate, a candidate."""

    def __init__(self, inputs: int, state: int):
        super().__init__()
        self.read, self.back = nn.Linear(inputs, 3 * state), nn.Linear(state, 3 * state)

    def forward(self, read: Tensor, h: Tensor) -> Tensor:
        """What has been `read` of the input already `(B, 3h)`, the state `(B, h)` → the next."""
        (a, b, c), (d, e, f) = read.chunk(3, -1), self.back(h).chunk(3, -1)
        update = (b + e).sigmoid()
        return update * h + (1 - update) * (c + (a + d).sigmoid() * f).tanh()


class Pair(nn.Module):
    """One network reads, the other writes, from the first one's last state; it may look back."""

    def __init__(self, letters: int, looks: bool, state: int):
        super().__init__()
        self.state, self.looks = state, looks
        self.sources = nn.Embedding(letters, WIDE)
        self.targets = nn.Embedding(len(LETTERS) + 3, WIDE)
        self.reader = Gates(WIDE, state)
        self.writer = Gates(WIDE + state * looks, state)
        self.out = nn.Linear(state * (1 + looks), len(LETTERS) + 3)
        if looks:
            self.query, self.key = nn.Linear(state, state), nn.Linear(state, state, bias=False)
            self.score = nn.Linear(state, 1, bias=False)

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All states `(B, n, h)`, what may be looked at `(B, n)`, and the last state `(B, h)`."""
        read, there = self.reader.read(self.sources(source)), source != 0
        h, states = torch.zeros(len(source), self.state), []
        for t in range(source.shape[1]):
            h = torch.where(there[:, t, None], self.reader(read[:, t], h), h)
            states.append(h)
        return torch.stack(states, 1), there, h

    def step(self, token: Tensor, h: Tensor, memory: tuple) -> tuple[Tensor, Tensor]:
        states, keys, there = memory
        x, more = self.targets(token), []
        if self.looks:
            scores = self.score((self.query(h)[:, None] + keys).tanh())[..., 0]
            weights = scores.masked_fill(~there, -1e9).softmax(-1)
            more = [(weights[..., None] * states).sum(1)]
        h = self.writer(self.writer.read(torch.cat([x, *more], -1)), h)
        return self.out(torch.cat([h, *more], -1)), h

    def remember(self, source: Tensor) -> tuple[Tensor, tuple]:
        states, there, h = self.encode(source)
        return h, (states, self.key(states) if self.looks else states, there)

    def forward(self, source: Tensor, shifted: Tensor) -> Tensor:
        h, memory = self.remember(source)
        said = []
        for t in range(shifted.shape[1]):
            told, h = self.step(shifted[:, t], h, memory)
            said.append(told)
        return torch.stack(said, 1)

    @torch.no_grad()
    def write(self, source: Tensor) -> list[str]:
        """The likeliest letter each time, until the end."""
        h, memory = self.remember(source)
        token, rows = torch.ones(len(source), dtype=torch.long), []
        for _ in range(12):
            told, h = self.step(token, h, memory)
            token = told.argmax(-1)
            rows.append(token)
        texts = torch.stack(rows, 1).tolist()
        ends = [row.index(2) if 2 in row else len(row) for row in texts]
        return ["".join(LETTERS[c - 3] if c > 2 else "?" for c in row[:end])
                for row, end in zip(texts, ends, strict=True)]  # fmt: skip


def padded(rows: list[list[int]]) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def learn(looks: bool, seed: int, seconds: float) -> tuple[int, int, dict]:
    """Parameters, steps, and right answers of all by group of lengths."""
    train, test = dates.examples("train", 40_000, 300 + seed), dates.examples("test", 2000, 400)
    letters = {c: i + 3 for i, c in enumerate(sorted({c for e in train for c in e.text}))}
    pairs = [([letters[c] for c in e.text], [3 + LETTERS.index(c) for c in e.iso]) for e in train]
    torch.manual_seed(seed)
    model = Pair(len(letters) + 3, looks, 128 if looks else 168)  # as many parameters
    adam, draw, steps = torch.optim.Adam(model.parameters(), RATE), random.Random(seed), 0
    began = time.process_time()
    order: list[list] = []
    while (spent := time.process_time() - began) < seconds:
        if not order:
            some = sorted(draw.sample(pairs, len(pairs)), key=lambda pair: len(pair[0]))
            order = [some[i : i + 64] for i in range(0, len(some), 64)]
            draw.shuffle(order)
        batch = order.pop()
        target = padded([[1, *t, 2] for _, t in batch])
        loss = F.cross_entropy(
            model(padded([s for s, _ in batch]), target[:, :-1]).flatten(0, 1),
            target[:, 1:].flatten(),
        )
        for group in adam.param_groups:
            group["lr"] = RATE * min(1, (steps + 1) / 100, 1.02 - spent / seconds)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        steps += 1
    found = {group: [0, 0] for group in GROUPS}
    test.sort(key=lambda e: len(e.text))
    for i in range(0, len(test), 100):
        some = test[i : i + 100]
        written = model.write(padded([[letters[c] for c in e.text] for e in some]))
        for text, e in zip(written, some, strict=True):
            group = next(g for g in GROUPS if g[0] <= len(e.text) <= g[1])
            found[group][0] += text == e.iso
            found[group][1] += 1
    return sum(p.numel() for p in model.parameters()), steps, found


def main(seconds: int = 40, *seeds: int) -> None:
    for seed in seeds or (31, 32, 33):
        for looks in (False, True):
            size, steps, found = learn(looks, seed, seconds)
            told = ", ".join(f"{a}–{b}: {r / n:.1%}" for (a, b), (r, n) in found.items() if n)
            everything = sum(r for r, _ in found.values()) / sum(n for _, n in found.values())
            how = "looking back" if looks else "one vector"
            print(
                f"seed {seed}, {how}, {size:,} parameters, {steps} steps: {everything:.1%} right;"
            )
            print(f"  by length {told}")
