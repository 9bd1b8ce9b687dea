"""Does this bug hurt? The model of chapter 7, trained with mistakes of the bank built into it.

Run: python -m benchmarks.bugs [--jobs 2] [--only NAME …]. Each mistake is a known wrong answer to
some exercise, put in place of the part that the exercise asks for; nothing else changes. The right
model is trained with three seeds, so that a difference can be told from luck. Losses and the exact
match over time go to benchmarks/transformer_bugs.json, with how they were made; the chapter's page
draws them from there.
"""

import math
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import nn

from attention_by_hand.blocks import MultiHeadAttention, merge_heads, noam_rate
from attention_by_hand.data import dates
from autograder.bank import banks
from benchmarks.command_line import options
from benchmarks.results import made_by, runs_in, store
from solutions.multi_head import split_heads
from solutions.transformer import (
    Transformer,
    greedy_decode,
    label_smoothed_cross_entropy,
    shift_right,
)

RESULT = Path(__file__).with_name("transformer_bugs.json")
SIZES = {"d_model": 64, "num_heads": 4, "num_layers": 2, "d_ff": 256, "dropout": 0.0}
EVERY = 20  # a loss is the mean over so many steps


def mistake(slug: str, exercise: str, name: str):
    """A wrong answer of the bank."""
    return banks(slug)[exercise].mistakes[name]


class Misattention(MultiHeadAttention):
    """The block's projections and heads around a wrong attention."""

    def forward(self, query, key, value, mask=None, need_weights=True):
        inputs = (self.W_q(query), self.W_k(key), self.W_v(value))
        q, k, v = (split_heads(x, self.num_heads) for x in inputs)
        out, weights = mistake("masking", "masked_attention", "no_scale")(q, k, v, mask)
        return self.W_o(merge_heads(out)), weights


def wrong_scale(model: Transformer) -> None:
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            part.__class__ = Misattention


def mask_leaks(model: Transformer) -> None:
    model.__class__ = mistake("transformer", "Transformer", "causal_mask_leaks_one")


def cosine_exponent(model: Transformer) -> None:
    table = mistake("positional_encoding", "sinusoidal_encoding", "cosine_exponent_2i_plus_1")
    model.positions = table(*model.positions.shape)


def no_root_d_model(model: Transformer) -> None:
    wrong = mistake("transformer", "TokenEmbedding", "root_forgotten")
    for name in ("source_embedding", "target_embedding"):
        right = getattr(model, name)
        table = wrong(*right.weight.shape)
        table.load_state_dict(right.state_dict())
        setattr(model, name, table)


def no_residual(model: Transformer) -> None:
    for layer in model.encoder_layers:
        layer.__class__ = mistake("transformer", "EncoderLayer", "residual_forgotten")


def norm_over_the_sequence(model: Transformer) -> None:
    wrong = mistake("residual_layernorm", "LayerNorm", "over_the_sequence")
    for layer in (*model.encoder_layers, *model.decoder_layers):
        for name, part in list(layer.named_children()):
            if isinstance(part, nn.LayerNorm):
                setattr(layer, name, wrong(SIZES["d_model"]))


BUGS: dict[str, Callable[[Transformer], None] | None] = {
    "right": None,
    "right, another seed": None,
    "right, a third seed": None,
    "scores not divided by √d_k": wrong_scale,
    "embeddings not times √d_model": no_root_d_model,
    "cosine with its own exponent": cosine_exponent,
    "no residual in the encoder": no_residual,
    "mask leaks one step": mask_leaks,
    "norm over the sequence": norm_over_the_sequence,
}
SEEDS = {"right, another seed": 1, "right, a third seed": 2}


def train(job: tuple[str, int]) -> tuple[str, dict]:
    """Train one model, with the mistake of that name."""
    name, steps = job
    return name, fit(BUGS[name], SEEDS.get(name, 0), steps)


def train_on(batches: Iterator, model: Transformer, steps: int) -> Iterator[float]:
    """Train as the chapter does, and give each step's loss."""
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step, (source, target) in zip(range(1, steps + 1), batches, strict=False):
        loss = label_smoothed_cross_entropy(model(source, shift_right(target, dates.BOS)), target)
        optimiser.param_groups[0]["lr"] = noam_rate(step, SIZES["d_model"], warmup=400) * (
            1 - step / (steps + 1)
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        yield loss.item()


def fit(change: Callable[[Transformer], None] | None, seed: int, steps: int, **sizes: int) -> dict:
    """Train one model after a change; its losses, exact matches and time."""
    torch.set_num_threads(1)
    examples, valid = dates.examples("train", 40_000), dates.examples("valid", 500, seed=1)
    test = dates.examples("test", 1000, seed=2)
    source_vocabulary = dates.Vocabulary([e.text for e in examples])
    target_vocabulary = dates.Vocabulary([e.iso for e in examples])
    torch.manual_seed(seed)
    model = Transformer(len(source_vocabulary), len(target_vocabulary), **(SIZES | sizes))
    if change is not None:
        change(model)

    def exact(some: list[dates.Example]) -> float:
        right, ordered = 0, sorted(some, key=lambda e: len(e.text))
        for start in range(0, len(ordered), 250):
            group = ordered[start : start + 250]
            source = source_vocabulary.encode([e.text for e in group])
            ids = greedy_decode(model, source, dates.BOS, dates.EOS, 12)
            right += sum(
                target_vocabulary.decode(row) == e.iso for row, e in zip(ids, group, strict=True)
            )
        return right / len(some)

    batches = dates.batches(examples, source_vocabulary, target_vocabulary, 64, seed)
    began, losses, matches = time.process_time(), [], []
    for step, loss in enumerate(train_on(batches, model, steps), 1):
        losses.append(loss)
        if step % (10 * EVERY) == 0:
            matches.append(round(exact(valid), 4))
    means = [sum(losses[k : k + EVERY]) / EVERY for k in range(0, steps, EVERY)]
    return {
        "seed": seed,
        "loss": [round(x, 4) if math.isfinite(x) else None for x in means],
        "match": matches,
        "test": round(exact(test), 4),
        "cpu_seconds": round(time.process_time() - began),
    }


def floor(tokens: int, smoothing: float) -> float:
    """The least that the smoothed loss can be: the entropy of the smoothed truth, in nats."""
    top, rest = 1 - smoothing + smoothing / tokens, smoothing / tokens
    return round(-top * math.log(top) - (tokens - 1) * rest * math.log(rest), 6)


def main() -> None:
    args = options(__doc__, steps=2000, jobs=2, only=())
    jobs = [(name, args.steps) for name in args.only or BUGS]
    results = {}
    with get_context("spawn").Pool(args.jobs) as pool:
        for name, result in pool.imap_unordered(train, jobs):
            results[name] = result
            print(f"{name:32} loss {result['loss'][-1]}  test {result['test']:.1%}", flush=True)
    kept = dict(runs_in(RESULT))
    results = {name: run for name, run in kept.items() if name in BUGS} | results
    made = made_by(
        f"python -m benchmarks.bugs --steps {args.steps}",
        steps=args.steps,
        every=EVERY,
        match_every=10 * EVERY,
        floor=floor(14, 0.1),
        sizes=SIZES,
        train="40,000 texts; exact match on 500 (valid) while training, 1,000 (test) at the end",
    )
    store(RESULT, made, {n: results[n] for n in BUGS if n in results})


if __name__ == "__main__":
    main()
