"""Does one vector hold a sentence? A GRU, a GRU with attention and a Transformer, side by side.

Run: python -m benchmarks.sequence_models. Two tasks: chapter 7's dates, and to copy digits. The
three models have the same number of parameters, to about one percent, and get the same processor
time: they take turns in one process, and each time the one that has used least continues, so
whatever else the machine does slows all three. What they write for unseen sources, by length, goes
to benchmarks/recurrence_convolution_models.json, which the chapter's page draws; what `--task` and
`--seed` leave out is left unchanged there.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_by_hand.blocks import Transformer
from attention_by_hand.data import dates
from benchmarks.results import made_by, runs_in, store
from solutions.recurrence_convolution import AttentionDecoder

RESULT = Path(__file__).with_name("recurrence_convolution_models.json")
SEEDS = (0, 1, 2)
D_EMBED, SIZES = 64, {"d_model": 64, "num_heads": 4, "num_layers": 2, "d_ff": 256}
SECONDS = {"copying": 40, "dates": 40}  # of processor time for each model
LONGEST, DIGITS = 20, 10  # of the training's sequences to copy, and how many symbols there are
COPIED = (*range(2, LONGEST + 1, 2), 24, 28)  # the lengths that are tested
# each one's highest rate, of 0.003 and 0.006 (and 0.0015 for the Transformer), that copied as well
# as any other, with a seed that is not used here
RATES = {"GRU": 0.006, "GRU with attention": 0.006, "Transformer": 0.003}
Batch = tuple[Tensor, Tensor]


class Recurrent(nn.Module):
    """A GRU reads the source, another writes the target, from the first one's last state.

    `model(source, target)` gives the logits `(B, n_t, V)`, as the Transformer does. With
    `attends`, the second also attends to all states of the first.
    """

    pad_id = dates.PAD

    def __init__(self, source_vocab: int, target_vocab: int, d_hidden: int, attends: bool):
        super().__init__()
        self.table = nn.Embedding(source_vocab, D_EMBED)
        self.reader = nn.GRU(D_EMBED, d_hidden, batch_first=True)
        if attends:
            self.writer = AttentionDecoder(target_vocab, D_EMBED, d_hidden, d_hidden)
        else:
            self.embedding = nn.Embedding(target_vocab, D_EMBED)
            self.writer = nn.GRU(D_EMBED, d_hidden, batch_first=True)
            self.output = nn.Linear(d_hidden, target_vocab)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        states, _ = self.reader(self.table(source))  # (B, n_s, d_hidden)
        real = source != self.pad_id
        last = states[torch.arange(len(source)), real.sum(1) - 1]  # (B, d_hidden)
        if isinstance(self.writer, AttentionDecoder):
            return self.writer(target, states, last, real)[0]
        return self.output(self.writer(self.embedding(target), last[None])[0])


def sized(attends: bool, tokens: tuple[int, int], wanted: int) -> int:
    """The hidden size with which a recurrent model has about as many parameters as wanted."""
    counts = {}
    for width in range(32, 257):
        with torch.device("meta"):
            model = Recurrent(*tokens, width, attends)
        counts[width] = abs(parameters(model) - wanted)
    return min(counts, key=counts.get)


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def models(tokens: tuple[int, int], seed: int) -> dict[str, nn.Module]:
    """The three models, of the same size."""
    made: dict[str, nn.Module] = {}
    for name, attends in (("GRU", False), ("GRU with attention", True), ("Transformer", None)):
        torch.manual_seed(seed)
        if attends is None:
            made[name] = Transformer(*tokens, **SIZES, dropout=0.0, pad_id=dates.PAD)
            continue
        with torch.device("meta"):
            wanted = parameters(Transformer(*tokens, **SIZES, dropout=0.0))
        made[name] = Recurrent(*tokens, sized(attends, tokens, wanted), attends)
    return made


class Training:
    """One model on its way: `forward()` takes a step and counts the processor time that it took."""

    def __init__(self, model: nn.Module, batches: Iterator[Batch], rate: float, budget: float):
        self.model, self.batches, self.rate, self.budget = model, batches, rate, budget
        self.adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
        self.used, self.steps = 0.0, 0

    def forward(self) -> None:
        """One step; the rate rises over a tenth of the time and falls to 0 over the rest."""
        source, target = next(self.batches)
        began, share = time.process_time(), self.used / self.budget
        self.adam.param_groups[0]["lr"] = self.rate * min(share / 0.1, (1 - share) / 0.9) + 1e-6
        logits = self.model(source, F.pad(target[:, :-1], (1, 0), value=dates.BOS))
        loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=dates.PAD)
        self.adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.adam.step()
        self.steps += 1
        self.used += time.process_time() - began


@torch.no_grad()
def right(model: nn.Module, source: Tensor, target: Tensor) -> list[bool]:
    """Which targets, up to their `EOS`, greedy decoding would write without an error.

    It does so if and only if each token is the likeliest after the right ones before it, so one
    pass suffices.
    """
    logits = model(source, F.pad(target[:, :-1], (1, 0), value=dates.BOS))
    return ((logits.argmax(-1) == target) | (target == dates.PAD)).all(1).tolist()


def copy_batches(seed: int) -> Iterator[Batch]:
    """Digits to copy: one length a batch, so that every batch holds about 1,536 of them."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        length = int(torch.randint(1, LONGEST + 1, (1,), generator=generator))
        yield to_copy(min(256, 1536 // length), length, generator)


def to_copy(count: int, length: int, generator: torch.Generator) -> Batch:
    digits = torch.randint(3, 3 + DIGITS, (count, length), generator=generator)
    return digits, F.pad(digits, (0, 1), value=dates.EOS)


def of_copying(seed: int) -> tuple:
    """Tokens, the training's batches, and the tests by length."""
    generator = torch.Generator().manual_seed(1000)
    tests = [(length, to_copy(100, length, generator)) for length in COPIED]
    return (3 + DIGITS, 3 + DIGITS), lambda: copy_batches(seed), tests


def of_dates(seed: int) -> tuple:
    """The same for chapter 7's dates: the tests are texts of one length each."""
    train, test = dates.examples("train", 40_000), dates.examples("test", 2000, seed=2)
    sources = dates.Vocabulary([example.text for example in train])
    targets = dates.Vocabulary([example.iso for example in train])
    groups: dict[int, list[dates.Example]] = {}
    for example in sorted(test, key=lambda example: len(example.text)):
        groups.setdefault(len(example.text), []).append(example)
    tests = [
        (
            length,
            (sources.encode([e.text for e in g]), targets.encode([e.iso for e in g], eos=True)),
        )
        for length, g in groups.items()
    ]
    return (
        (len(sources), len(targets)),
        lambda: dates.batches(train, sources, targets, size=64, seed=seed),
        tests,
    )


TASKS: dict[str, Callable[[int], tuple]] = {"copying": of_copying, "dates": of_dates}


def run(task: str, seed: int, seconds: float, points: int = 10) -> list[dict]:
    """Train the three models in turns; what each writes, on the way and at the end."""
    tokens, batches, tests = TASKS[task](seed)
    quick = [(length, (s[:30], t[:30])) for length, (s, t) in tests if length <= LONGEST]
    trainings = {
        name: Training(model, batches(), RATES[name], seconds)
        for name, model in models(tokens, seed).items()
    }
    curves: dict[str, list[tuple[int, float]]] = {name: [] for name in trainings}
    while True:
        name = min(trainings, key=lambda name: trainings[name].used)
        training = trainings[name]
        if training.used >= seconds:
            break
        training.forward()
        if training.used >= (len(curves[name]) + 1) * seconds / points:
            hits = [hit for _, batch in quick for hit in right(training.model, *batch)]
            curves[name].append((training.steps, round(sum(hits) / len(hits), 4)))
    results = []
    for name, training in trainings.items():
        by_length = {length: right(training.model, *batch) for length, batch in tests}
        results.append(
            {
                "task": task, "model": name, "seed": seed,
                "parameters": parameters(training.model),
                "steps": training.steps, "cpu_seconds": round(training.used, 1),
                "curve": curves[name],
                "by_length": {n: [sum(hits), len(hits)] for n, hits in by_length.items()},
            }
        )  # fmt: skip
        told = " ".join(f"{n}:{sum(hits) / len(hits):.2f}" for n, hits in by_length.items())
        print(f"{task} {name} seed {seed}: {training.steps} steps\n   {told}", flush=True)
        print("   on the way", curves[name], flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, help="of processor time for each model")
    parser.add_argument("--task", choices=[*TASKS], action="append")
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--result", type=Path, default=RESULT)
    args = parser.parse_args()
    torch.set_num_threads(1)
    made = made_by("python -m benchmarks.sequence_models", seconds=SECONDS, longest=LONGEST)
    kept = runs_in(args.result)
    for seed in args.seed or SEEDS:
        for task in args.task or TASKS:
            kept = [one for one in kept if (one["task"], one["seed"]) != (task, seed)]
            kept += run(task, seed, args.seconds or SECONDS[task])
            store(args.result, made, kept)


if __name__ == "__main__":
    main()
