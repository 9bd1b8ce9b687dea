"""Does a deep post-norm stack need a warm-up? Chapter 6's experiment, longer and with three seeds.

Run: python -m benchmarks.warm_up [--jobs 2]. Stacks of twelve layers learn to name the digit
before, as in the chapter: post-norm at the full rate, with a warm-up and at three smaller rates,
pre-norm at the full rate, and residual connections without a norm. The losses go to
benchmarks/warm_up.json; a test compares the page's table with them.
"""

from multiprocessing import get_context
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_by_hand.blocks import MultiHeadAttention
from benchmarks.command_line import options
from benchmarks.results import made_by, runs_in, store
from solutions.residual_layernorm import FeedForward, Residual

RESULT = Path(__file__).with_name("warm_up.json")
SEEDS, EVERY = (0, 1, 2), 10
RUNS = {
    "post-norm": {"kind": "post"},
    "post-norm, warm-up": {"kind": "post", "warm_up": 100},
    "post-norm, rate ÷ 3": {"kind": "post", "rate": 1e-3},
    "post-norm, rate ÷ 10": {"kind": "post", "rate": 3e-4},
    "post-norm, rate ÷ 30": {"kind": "post", "rate": 1e-4},
    "pre-norm": {"kind": "pre"},
    "no norm": {"kind": "none"},
    "no norm, rate ÷ 10": {"kind": "none", "rate": 3e-4},
}


class SelfAttention(nn.Module):
    """Attention from x to itself: one tensor in, one tensor out."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.heads = MultiHeadAttention(d_model, num_heads)

    def forward(self, x: Tensor) -> Tensor:
        return self.heads(x, x, x, need_weights=False)[0]


class Plain(nn.Module):
    """x + F(x), without a norm."""

    def __init__(self, sublayer: nn.Module):
        super().__init__()
        self.sublayer = sublayer

    def forward(self, x: Tensor) -> Tensor:
        return x + self.sublayer(x)


class Stack(nn.Module):
    """Layers of attention and feed-forward, and ten classes on top; as in the chapter."""

    def __init__(self, layers: int, d: int, kind: str):
        super().__init__()

        def wrap(sublayer: nn.Module) -> nn.Module:
            if kind == "none":
                return Plain(sublayer)
            return Residual(sublayer, d, norm_first=kind == "pre")

        self.gather = nn.ModuleList(wrap(SelfAttention(d, 2)) for _ in range(layers))
        self.think = nn.ModuleList(wrap(FeedForward(d, 4 * d)) for _ in range(layers))
        self.final = nn.LayerNorm(d) if kind == "pre" else nn.Identity()
        self.out = nn.Linear(d, 10)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        for gather, think in zip(self.gather, self.think, strict=True):
            x = think(gather(x))
        return self.out(self.final(x))


def losses(
    kind: str, seed: int, steps: int, layers: int = 12, d: int = 32,
    rate: float = 3e-3, warm_up: int = 1,
) -> list[float]:  # fmt: skip
    """The losses of one training, each the mean of `EVERY` steps."""
    torch.manual_seed(seed)
    model, digit = Stack(layers, d, kind), nn.Embedding(10, d)
    place = nn.Parameter(torch.randn(8, d))
    parameters = [*model.parameters(), *digit.parameters(), place]
    optimiser = torch.optim.Adam(parameters, lr=rate, betas=(0.9, 0.98))
    found = []
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate * min(1, (step + 1) / warm_up)
        digits = torch.randint(10, (16, 8))
        guess = model(digit(digits) + place).flatten(0, 1)
        loss = F.cross_entropy(guess, digits.roll(1, 1).flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append(loss.item())
    return [round(sum(found[k : k + EVERY]) / EVERY, 4) for k in range(0, steps, EVERY)]


def train(job: tuple[str, int, int]) -> tuple[str, int, list[float]]:
    name, seed, steps = job
    torch.set_num_threads(1)
    return name, seed, losses(seed=seed, steps=steps, **RUNS[name])


def main() -> None:
    args = options(__doc__, steps=400, jobs=2, only=())
    wanted = args.only or [*RUNS]
    jobs = [(name, seed, args.steps) for name in wanted for seed in SEEDS]
    runs: dict[str, list[list[float]]] = {}
    if args.only:
        runs = runs_in(RESULT)
    runs |= {name: [] for name in wanted}
    with get_context("spawn").Pool(args.jobs) as pool:
        for name, seed, found in pool.imap(train, jobs):
            runs[name].append(found)
            print(f"{name:24} seed {seed}: {found[14]:.2f} … {found[-1]:.2f}", flush=True)
    script = f"python -m benchmarks.warm_up --steps {args.steps}"
    store(RESULT, made_by(script, steps=args.steps, every=EVERY, seeds=SEEDS), runs)


if __name__ == "__main__":
    main()
