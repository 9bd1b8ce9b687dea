"""A training step of our Transformer beside one of torch.nn.Transformer: tokens/s and peak memory.

Run: python -m benchmarks.training [--threads 2] [--rounds 7]. Both models have the same sizes, the
same weights and get the same padded batch; first it is checked that their losses and gradients
agree. Then they take turns, a few steps each, and the ratio of the medians is reported: what else
the machine does slows both. Peak memory is of a process of its own (CPU) or torch's count (GPU).
torch's layers also drop attention weights where dropout is on, so both are timed without, too.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from solutions.transformer import Transformer, label_smoothed_cross_entropy, shift_right

PAD, BOS = 0, 1
SIZES = {
    "cpu": {"vocab": 1000, "d_model": 256, "num_heads": 8, "num_layers": 3, "d_ff": 1024},
    "cuda": {"vocab": 8000, "d_model": 512, "num_heads": 8, "num_layers": 6, "d_ff": 2048},
}
BATCH = {"cpu": (16, 64, 48), "cuda": (64, 256, 192)}  # sequences, source and target tokens


class Torchs(nn.Module):
    """torch.nn.Transformer between our embeddings, with the weights of one of ours."""

    def __init__(self, ours: Transformer, num_heads: int, d_ff: int, dropout: float):
        super().__init__()
        self.ours = (ours,)  # in a tuple: no part of this module
        d_model, layers = ours.target_embedding.weight.shape[1], len(ours.encoder_layers)
        self.source = nn.Parameter(ours.source_embedding.weight.detach().clone())
        self.target = nn.Parameter(ours.target_embedding.weight.detach().clone())
        self.body = nn.Transformer(
            d_model, num_heads, layers, layers, d_ff, dropout, batch_first=True
        )
        self.body.encoder.norm = self.body.decoder.norm = None  # the paper has none there
        self.dropout = nn.Dropout(dropout)
        with torch.no_grad():
            for mine, its in (
                *zip(ours.encoder_layers, self.body.encoder.layers, strict=True),
                *zip(ours.decoder_layers, self.body.decoder.layers, strict=True),
            ):
                _copy_layer(mine, its)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        positions = self.ours[0].positions
        scale = self.source.shape[1] ** 0.5
        x, y = (
            self.dropout(nn.functional.embedding(ids, table) * scale + positions[: ids.shape[1]])
            for ids, table in ((source, self.source), (target, self.target))
        )
        n = target.shape[1]
        future = torch.ones(n, n, dtype=torch.bool, device=target.device).triu(1)
        hidden = self.body(
            x, y, tgt_mask=future, tgt_is_causal=True, src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target == PAD, memory_key_padding_mask=source == PAD,
        )  # fmt: skip
        return hidden @ self.target.T


def _copy_layer(mine: nn.Module, its: nn.Module) -> None:
    pairs = [(mine.self_attn, its.self_attn)]
    if hasattr(mine, "cross_attn"):
        pairs.append((mine.cross_attn, its.multihead_attn))
    for a, b in pairs:
        b.in_proj_weight.copy_(torch.cat([a.W_q.weight, a.W_k.weight, a.W_v.weight]))
        b.in_proj_bias.copy_(torch.cat([a.W_q.bias, a.W_k.bias, a.W_v.bias]))
        b.out_proj.load_state_dict(a.W_o.state_dict())
    for name in ("linear1", "linear2", "norm1", "norm2", "norm3"):
        if hasattr(mine, name):
            getattr(its, name).load_state_dict(getattr(mine, name).state_dict())


def models(kind: str, dropout: float) -> tuple[Transformer, Torchs]:
    """Ours and torch's, with equal weights."""
    size = SIZES[kind]
    torch.manual_seed(0)
    ours = Transformer(
        size["vocab"], size["vocab"], size["d_model"], size["num_heads"], size["num_layers"],
        size["d_ff"], dropout, PAD,
    )  # fmt: skip
    return ours, Torchs(ours, size["num_heads"], size["d_ff"], dropout)


def batch(kind: str) -> tuple[Tensor, Tensor]:
    """Source and target ids, padded at the right: lengths from half to all of the width."""
    generator = torch.Generator().manual_seed(1)
    count, *widths = BATCH[kind]
    made = []
    for width in widths:
        ids = torch.randint(3, SIZES[kind]["vocab"], (count, width), generator=generator)
        lengths = torch.randint(width // 2, width + 1, (count, 1), generator=generator)
        lengths[0] = width
        made.append(ids.masked_fill(torch.arange(width) >= lengths, PAD))
    return made[0], made[1]


def stepper(model: nn.Module, source: Tensor, target: Tensor):
    """A function that takes one training step and returns the loss."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step() -> Tensor:
        logits = model(source, shift_right(target, BOS))
        loss = label_smoothed_cross_entropy(logits, target, 0.1, PAD)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss

    return step


def check_parity(ours: Transformer, torchs: Torchs, source: Tensor, target: Tensor) -> float:
    """The largest difference of loss and embedding gradients in float64, without dropout."""
    results = []
    for model in (ours, torchs):
        model.double().eval()
        loss = label_smoothed_cross_entropy(model(source, shift_right(target, BOS)), target)
        tables = (
            (model.source_embedding.weight, model.target_embedding.weight)
            if isinstance(model, Transformer)
            else (model.source, model.target)
        )
        results.append([loss, *torch.autograd.grad(loss, tables)])
        model.float().train()
    off = max((a - b).abs().max().item() for a, b in zip(*results, strict=True))
    assert off < 1e-10, f"the two models differ by {off}"
    return off


def interleaved(steps, rounds: int, each: int, device: str) -> list[float]:
    """Median seconds a step of each, in turns."""
    times: list[list[float]] = [[] for _ in steps]
    for number in range(rounds + 1):
        for step, its in zip(steps, times, strict=True):
            if device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(each):
                step()
            if device == "cuda":
                torch.cuda.synchronize()
            if number:  # the first round warms up
                its.append((time.perf_counter() - start) / each)
    return [sorted(its)[len(its) // 2] for its in times]


def peak_mb(which: int, kind: str, dtype: torch.dtype, dropout: float) -> float:
    """What training adds to the memory: the peak of some steps above that before the first."""
    model = models(kind, dropout)[which].to(kind, dtype).train()
    step = stepper(model, *(ids.to(kind) for ids in batch(kind)))
    if kind == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        for _ in range(3):
            step()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    before = _status_mb("VmRSS")
    for _ in range(3):
        step()
    return _status_mb("VmHWM") - before


def _status_mb(field: str) -> float:
    """Memory of this process: VmRSS is what it has now, VmHWM the most that it ever had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 2**10
    raise OSError(f"/proc/self/status has no {field}")


def measure(kind: str, dtype: torch.dtype, dropout: float, args: argparse.Namespace) -> None:
    ours, torchs = models(kind, dropout)
    source, target = batch(kind)
    check_parity(ours, torchs, source, target)
    tokens = int((source != PAD).sum() + (target != PAD).sum())
    source, target = source.to(kind), target.to(kind)
    # torch's wrapper reads our table of positions, so both move
    ours, torchs = ours.to(kind, dtype).train(), torchs.to(kind, dtype).train()
    steps = [stepper(model, source, target) for model in (ours, torchs)]
    mine, its = interleaved(steps, args.rounds, args.each, kind)
    memory = []
    for which in (0, 1):
        call = [sys.executable, "-m", "benchmarks.training", "--peak", str(which), "--device", kind]
        call += ["--dtype", str(dtype).removeprefix("torch."), "--dropout", str(dropout)]
        call += ["--threads", str(args.threads)]
        done = subprocess.run(call, capture_output=True, text=True, check=True)
        memory.append(json.loads(done.stdout))
    print(
        f"{kind:5} {str(dtype).removeprefix('torch.'):9} dropout {dropout:<4}"
        f"{tokens / mine:12,.0f}{tokens / its:12,.0f}{its / mine:9.2f}"
        f"{memory[0]:11,.0f}{memory[1]:10,.0f}{memory[0] / memory[1]:9.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--each", type=int, default=2, help="steps of one model before the other")
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cpu", help=argparse.SUPPRESS)
    parser.add_argument("--dtype", default="float32", help=argparse.SUPPRESS)
    parser.add_argument("--dropout", type=float, default=0.1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.peak is not None:
        dtype = getattr(torch, args.dtype)
        print(json.dumps(peak_mb(args.peak, args.device, dtype, args.dropout)))
        return
    print(f"torch {torch.__version__}, {args.threads} threads; the same batch, in turns")
    print(
        f"{'':27}{'tokens/s':>12}{'torch':>12}{'ratio':>9}{'peak MB':>11}{'torch':>10}{'ratio':>9}"
    )
    for dropout in (0.0, 0.1):
        measure("cpu", torch.float32, dropout, args)
    if torch.cuda.is_available():
        for dtype in (torch.float32, torch.bfloat16):
            for dropout in (0.0, 0.1):
                measure("cuda", dtype, dropout, args)
    else:
        print("no CUDA device here: nothing to say about one")


if __name__ == "__main__":
    main()
