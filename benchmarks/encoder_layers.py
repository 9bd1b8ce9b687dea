"""What do the encoder's layers add? Chapter 7's model of dates, trained without them.

Run: python -m benchmarks.encoder_layers [--jobs 2]. As in `bugs.py`, with the same data, steps and
seeds; but the decoder looks at the bare characters of the source, each with its position. Once it
has the model's two layers, and once four, so that there are as many layers as in the whole model
and more parameters. What comes out is in benchmarks/transformer_encoder.json, beside the whole
model's runs, which are the right ones of transformer_bugs.json; the chapter's page prints it.
"""

from multiprocessing import get_context
from pathlib import Path

from torch import nn

from benchmarks import bugs
from benchmarks.command_line import options
from benchmarks.results import made_by, runs_in
from solutions.transformer import Transformer

RESULT = Path(__file__).with_name("transformer_encoder.json")
SEEDS, STEPS = (0, 1, 2), 2000


def take_encoder_layers(model: Transformer) -> None:
    model.encoder_layers = nn.ModuleList()


def parameters(encoder: int, decoder: int) -> int:
    """Of a model for dates with so many layers; the dates have 127 and 14 tokens."""
    model = Transformer(127, 14, **(bugs.SIZES | {"num_layers": max(encoder, decoder)}))
    model.encoder_layers = model.encoder_layers[:encoder]
    model.decoder_layers = model.decoder_layers[:decoder]
    return sum(p.numel() for p in model.parameters())


def train(job: tuple[int, int]) -> dict:
    """One training without encoder layers."""
    decoder, seed = job
    run = bugs.fit(take_encoder_layers, seed, STEPS, num_layers=decoder)
    return told(0, decoder, run)


def told(encoder: int, decoder: int, run: dict) -> dict:
    kept = {"seed": run["seed"], "test": run["test"], "loss": run["loss"][-1]}
    return {"encoder": encoder, "decoder": decoder, **kept, "cpu_seconds": run["cpu_seconds"]}


def store(runs: list[dict]) -> None:
    whole = runs_in(bugs.RESULT)
    right = [told(2, 2, run) for name, run in whole.items() if name.startswith("right")]
    runs = right + sorted(runs, key=lambda run: (run["decoder"], run["seed"]))
    sizes = dict.fromkeys((run["encoder"], run["decoder"]) for run in runs)
    counts = {f"{e} + {d}": parameters(e, d) for e, d in sizes}
    made = made_by("python -m benchmarks.encoder_layers", steps=STEPS, parameters=counts)
    store(RESULT, made, runs)


def main() -> None:
    args = options(__doc__, jobs=2, seeds=SEEDS, decoders=(2, 4))
    with get_context("spawn").Pool(args.jobs) as pool:
        runs = []
        jobs = [(layers, seed) for seed in args.seeds for layers in args.decoders]
        for run in pool.imap_unordered(train, jobs):
            runs.append(run)
            print(run, flush=True)
    store(runs)


if __name__ == "__main__":
    main()
