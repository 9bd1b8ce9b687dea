"""Chapter 8's bottleneck once more: digits copied by torch's GRU, with and without attention.

Run: python -m benchmarks.second copied_digits [SEED ...]
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BEGIN, END, PAD = 10, 11, 12


class Copier(nn.Module):
    """Reads with one GRU, writes with another; what it looks back at is all states or the last."""

    def __init__(self, d: int, looks: bool):
        super().__init__()
        self.looks, self.table = looks, nn.Embedding(13, 32)
        self.reader, self.cell = nn.GRU(32, d, batch_first=True), nn.GRUCell(32 + d, d)
        self.q, self.k, self.score = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, 1)
        self.out = nn.Linear(2 * d, 12)

    def forward(self, source: Tensor, target: Tensor | None = None) -> Tensor:
        """Logits for each step; without a target it reads what it wrote."""
        length = (source != PAD).sum(1)
        states, _ = self.reader(self.table(source))
        rows = torch.arange(len(source))
        s = states[rows, length - 1]
        memory = states if self.looks else s[:, None]
        keys, hidden = self.k(memory), (source == PAD)[:, : memory.shape[1]] & self.looks
        token, told = torch.full((len(source),), BEGIN), []
        for t in range(source.shape[1] + 1):
            scores = self.score((self.q(s)[:, None] + keys).tanh())[..., 0]
            weights = scores.masked_fill(hidden, -1e9).softmax(1)
            context = (weights[..., None] * memory).sum(1)
            s = self.cell(torch.cat([self.table(token), context], 1), s)
            told.append(self.out(torch.cat([s, context], 1)))
            token = told[-1].argmax(1) if target is None else target[:, t]
        return torch.stack(told, 1)


def drawn(size: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    """Sources and targets, padded; the target ends with END."""
    n = torch.randint(low, high + 1, (size, 1))
    digits, at = torch.randint(10, (size, n.max().item() + 1)), torch.arange(n.max().item() + 1)
    target = torch.where(at < n, digits, torch.where(at == n, END, PAD))
    return torch.where(at < n, digits, PAD)[:, :-1], target


def turned(source: Tensor) -> Tensor:
    """Each row's digits from right to left, padding still behind them."""
    n, at = (source != PAD).sum(1, keepdim=True), torch.arange(source.shape[1])
    return torch.where(at < n, source.gather(1, (n - 1 - at).clamp(min=0)), PAD)


def copied(
    d: int,
    longest: int,
    steps: int,
    looks: bool,
    seed: int,
    lengths: tuple,
    backwards: bool = False,
) -> str:
    """Shares copied whole at each length; `backwards` reads the source from its end."""
    read = turned if backwards else lambda source: source
    torch.manual_seed(seed)
    model = Copier(d, looks)
    adam = torch.optim.Adam(model.parameters(), 5e-3)
    rates = torch.optim.lr_scheduler.OneCycleLR(adam, 5e-3, steps)
    for _ in range(steps):
        source, target = drawn(64, 1, longest)
        told = model(read(source), target).flatten(0, 1)
        loss = F.cross_entropy(told, target.flatten(), ignore_index=PAD)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        rates.step()
    found = []
    with torch.no_grad():
        for n in lengths:
            source, target = drawn(500, n, n)
            found.append((model(read(source)).argmax(-1) == target).all(1).float().mean().item())
    return "  ".join(f"{n}: {share:.0%}" for n, share in zip(lengths, found, strict=True))


def main(*seeds: int) -> None:
    for seed in seeds or (21, 22):
        for d, longest, steps, lengths in (
            (64, 12, 450, (4, 8, 12)),
            (96, 20, 1500, (4, 8, 10, 12, 16, 20, 26)),
        ):
            for words, looks, backwards in (
                ("with attention", True, False),
                ("without", False, False),
                ("without, source backwards", False, True),
            ):
                told = copied(d, longest, steps, looks, seed, lengths, backwards)
                print(f"seed {seed}, state {d}, {steps} steps, {words}: {told}")
