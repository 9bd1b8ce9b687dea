"""Chapter 10's typing errors, found by counts of longer runs of letters, without and with labels.

Run: OMP_NUM_THREADS=1 python -m benchmarks.longer_counts [--seeds 0 1] [--rows 80 320 1280]; some
minutes a seed. From the training text come seven scores of each letter: how much likelier another
would make what stands around it, by runs of 2, 3, 4 and 5 letters, and by what stood between the
same one, two and three on each side. `no labels` is the share of errors found at the highest score.
With `labels`, a softmax over a row's places of a weighted sum of the scores there and up to two
places away is fitted to labelled rows, which are left out of the counts; in `counts and BERT`, how
little the untuned model gives to the letter is among the scores. Rows and errors are those of
`fine_tuning.py`.
"""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from attention_by_hand.models.checkpoints import load_or_train
from benchmarks.bert import page_definitions
from benchmarks.command_line import options
from benchmarks.fine_tuning import drawn
from benchmarks.letter_runs import Counts
from benchmarks.results import made_by, store

RESULT = Path(__file__).with_suffix(".json")
NAMES = [f"runs of {n}" for n in (2, 3, 4, 5)] + [f"between {r}" for r in (1, 2, 3)]


def with_neighbours(x: np.ndarray) -> np.ndarray:
    """The numbers of a place and of two on each side."""
    wide = np.pad(x, ((0, 0), (2, 2), (0, 0)))
    return np.concatenate([wide[:, k : k + x.shape[1]] for k in range(5)], -1)


def fit(x: np.ndarray, y: np.ndarray, weight: float) -> np.ndarray:
    """Weights of a sum of numbers, by a softmax over places; `weight` of their squares."""
    inputs, places = torch.from_numpy(x).float(), torch.as_tensor(y)
    w = torch.zeros(x.shape[-1], requires_grad=True)
    lbfgs = torch.optim.LBFGS([w], max_iter=100, line_search_fn="strong_wolfe")

    def cost():
        lbfgs.zero_grad()
        value = F.cross_entropy(inputs @ w, places, reduction="sum") + weight * (w**2).sum()
        value.backward()
        return value

    lbfgs.step(cost)
    return w.detach().numpy()


def by_labels(x: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Guessed places; a fifth of the labelled rows chooses the weight of the squares."""
    mean, size = x.mean((0, 1)), x.std((0, 1)) + 1e-6
    x, test = (x - mean) / size, (test - mean) / size
    cut, tried = len(x) * 4 // 5, []
    for weight in (0.1, 1, 10, 100):
        w = fit(x[:cut], y[:cut], weight)
        tried.append((-float(((x[cut:] @ w).argmax(1) == y[cut:]).mean()), weight))
    return (test @ fit(x, y, min(tried)[1])).argmax(1)


@torch.no_grad()
def by_bert(page: dict, model, rows: torch.Tensor) -> np.ndarray:
    """How little the untuned model gives to each letter: `(rows, places, 1)`."""
    return np.concatenate([page["unlikely"](model, part) for part in rows.split(200)])[..., None]


def measured(page: dict, model, seed: int, sizes: list[int]) -> dict:
    """The shares found of one seed."""
    train, size = page["train"], len(page["letters"])
    learnt, places, asked, true, _ = drawn(page, seed)
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))
    typed = torch.isin(train, torch.tensor([page["id_of"][x] for x in map(chr, range(97, 123))]))
    labelled = order[typed.any(1)[order]][: max(sizes)]  # rows of the text that got an error
    rest = torch.ones(len(train), dtype=torch.bool)
    rest[labelled] = False
    right = (true - 1).numpy()
    test = Counts(train, size).scores(asked)
    own = Counts(train[rest], size).scores(learnt[: max(sizes)])
    shares = (test.argmax(1) == right[:, None]).mean(0)
    found = {"seed": seed, "no labels": dict(zip(NAMES, shares.round(4).tolist(), strict=True))}
    told, asked_bert = by_bert(page, model, learnt[: max(sizes)]), by_bert(page, model, asked)
    found["labels"] = []
    for n in sizes:
        y, run = (places[:n] - 1).numpy(), {"rows": n}
        both = np.concatenate([own, told], -1)[:n], np.concatenate([test, asked_bert], -1)
        for name, (x, t) in {"counts": (own[:n], test), "counts and BERT": both}.items():
            guess = by_labels(with_neighbours(x), y, with_neighbours(t))
            run[name] = round(float((guess == right).mean()), 4)
        found["labels"].append(run)
    return found


def main() -> None:
    args = options(__doc__, seeds=(0, 1), rows=(80, 320, 1280))
    torch.set_num_threads(1)
    page = page_definitions()
    model = page["untrained"](0)
    load_or_train("encoder", model, lambda m: {})
    runs = []
    for seed in args.seeds:
        runs.append(measured(page, model.eval(), seed, args.rows))
        print(runs[-1], flush=True)
        store(RESULT, made_by("benchmarks/longer_counts.py"), runs)


if __name__ == "__main__":
    main()
