"""Induction heads: how they come to be, which heads they are, and what is lost without them.

Run: OMP_NUM_THREADS=1 python -m benchmarks.induction [--seeds 0 1 2], about 20 minutes of one core.
A text is made of phrases of random tokens, which come back at random places, so that no fixed place
or distance says what comes next: only what came after the same token the last time. Chapter 9's GPT
learns such texts, with one block and with two. A head's *induction score* is the mean weight with
which a token whose successor can be known so looks at the place behind its last occurrence; its
*previous-token score*, that with which it looks one place back. A head is cut by setting its
columns of `W_o` to 0. What comes out is in benchmarks/induction.json. Sources: Elhage et al.
(2021); Olsson et al. (2022).
"""

import argparse
import datetime
import json
import platform
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from solutions.language_model import GPT

RESULT = Path(__file__).with_suffix(".json")
VOCABULARY, LENGTH, PHRASES, BATCH, RATE, WARMUP = 64, 64, 4, 32, 3e-3, 50
SHORTEST, LONGEST = 5, 12  # tokens of a phrase
D_MODEL, HEADS, STEPS, EVERY, TESTED = 64, 4, 5000, 50, 256


def texts(count: int, luck: np.random.Generator) -> Tensor:
    """Ids `(count, LENGTH)`: a few random phrases, again and again, in random order."""
    rows = np.empty((count, LENGTH), dtype=np.int64)
    for row in rows:
        pool = luck.integers(VOCABULARY, size=(PHRASES, LONGEST))
        lengths = luck.integers(SHORTEST, LONGEST + 1, size=PHRASES)
        order = luck.integers(PHRASES, size=LENGTH // SHORTEST + 1)
        row[:] = np.concatenate([pool[i, : lengths[i]] for i in order])[:LENGTH]
    return torch.from_numpy(rows)


def last_before(ids: Tensor) -> Tensor:
    """For each token, the place where it stood the last time before; −1 if nowhere."""
    n = ids.shape[1]
    same = (ids[:, :, None] == ids[:, None, :]) & torch.ones(n, n).bool().tril(-1)
    return torch.where(same, torch.arange(n), -1).amax(-1)


def knowable(ids: Tensor) -> Tensor:
    """`(B, LENGTH)`: whether the next token is what came after this one the last time."""
    last = last_before(ids)
    after = ids.gather(1, (last + 1).clamp(max=LENGTH - 1))
    found = torch.zeros_like(ids, dtype=torch.bool)
    found[:, :-1] = (last[:, :-1] >= 0) & (after[:, :-1] == ids[:, 1:])
    return found


@torch.no_grad()
def loss_on_known(model: GPT, ids: Tensor) -> float:
    """Mean cost, in nats, of the tokens that can be known from what came the last time."""
    loss = F.cross_entropy(model(ids)[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
    return loss[knowable(ids)[:, :-1]].mean().item()


@torch.no_grad()
def weights(model: GPT, ids: Tensor) -> Tensor:
    """Those of all heads, `(blocks, B, heads, n, n)`."""
    n, found = ids.shape[1], []
    x, past = model.tokens(ids) + model.positions.weight[:n], torch.ones(n, n).bool().tril()
    for block in model.blocks:
        h = block.norm1(x)
        found.append(block.attn(h, h, h, mask=past)[1])
        x = block(x, past)
    return torch.stack(found)


def scores(model: GPT, ids: Tensor) -> dict[str, list]:
    """Of each head of each block: how it looks behind the last occurrence, and one place back."""
    looks, last = weights(model, ids), last_before(ids)
    row, query = knowable(ids).nonzero(as_tuple=True)
    found = {"induction": last[row, query] + 1, "previous": query - 1}
    return {name: looks[:, row, :, query, key].mean(0).tolist() for name, key in found.items()}


def loss_without(model: GPT, heads: list[tuple[int, int]], ids: Tensor) -> float:
    """The loss on what can be known if these heads (block, head) add nothing."""
    kept = {i: model.blocks[i].attn.W_o.weight.detach().clone() for i, _ in heads}
    d_head = D_MODEL // HEADS
    with torch.no_grad():
        for i, h in heads:
            model.blocks[i].attn.W_o.weight[:, h * d_head : (h + 1) * d_head] = 0
        loss = loss_on_known(model, ids)
        for i, weight in kept.items():
            model.blocks[i].attn.W_o.weight.copy_(weight)
    return loss


def run(seed: int, blocks: int) -> dict:
    """Train one model, and measure it on the way and at the end."""
    torch.manual_seed(seed)
    luck, drawn = (np.random.default_rng([k, seed]) for k in (1, 2))
    ids = texts(TESTED, drawn)
    model = GPT(VOCABULARY, LENGTH, D_MODEL, HEADS, blocks)
    adam = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.1)
    curve = []
    for step in range(STEPS + 1):
        if step % EVERY == 0:
            best = max(max(row) for row in scores(model, ids)["induction"])
            curve.append([step, round(loss_on_known(model, ids), 4), round(best, 4)])
        read = texts(BATCH, luck)
        loss = F.cross_entropy(model(read)[:, :-1].flatten(0, 1), read[:, 1:].flatten())
        adam.param_groups[0]["lr"] = RATE * min((step + 1) / WARMUP, 1)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
    return {
        "seed": seed, "blocks": blocks, "curve": curve,
        "loss": round(loss_on_known(model, ids), 4),
        **{k: [[round(x, 4) for x in r] for r in v] for k, v in scores(model, ids).items()},
        "without": [
            [round(loss_without(model, [(i, h)], ids), 4) for h in range(HEADS)]
            for i in range(blocks)
        ],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--blocks", type=int, nargs="+", default=(1, 2))
    parser.add_argument("--result", type=Path, default=RESULT)
    args = parser.parse_args()
    torch.set_num_threads(1)
    runs = [run(seed, blocks) for blocks in args.blocks for seed in args.seeds]
    made = {
        "script": "benchmarks/induction.py",
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, CPU, one thread",
        "torch": torch.__version__,
    }
    text = json.dumps({"made": made, "runs": runs})
    args.result.write_text(text.replace('{"seed"', '\n{"seed"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
