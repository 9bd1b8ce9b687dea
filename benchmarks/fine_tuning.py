"""Chapter 10's small BERT, fine-tuned to find a typing error: which letter of a row is wrong?

Run: OMP_NUM_THREADS=1 python -m benchmarks.fine_tuning [--seeds 0 1 2 3 4] [--rows 80 320 1280]
[--steps 300] [--result fine_tuning.json], some minutes a seed; and, for the control with more
steps, --longer 3000 --rows 1280 --seeds 0 1. Letters, encoder, its pre-training, the errors and the
fine-tuning are those of the chapter's page, read from its cells. Each seed has an encoder of its
own, pre-trained as the page does it (seed 0 has the page's). It draws its own labelled rows from
the training text, its own first weights, and its own errors in all rows of the test. The numbers
are those of the errors found in each of the test's topics: by the model `tuned`; by the same `from
scratch`; by one whose output layer alone was tuned, its encoder `frozen`; by `letters`, logistic
regression on each letter and its neighbours, singly and as pairs. Each has that of three learning
rates, or penalties, with which it finds the most in the validation's topics (`best`). Three need no
labels: the model `untuned`, and the counts of `three` and of `five` letters in a row in the
training text. Seeds on file already are kept. `longer` is the share that `from scratch` finds with
more steps, at a rate of 0.001; rows and errors are those of `runs`.
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from attention_by_hand.models.checkpoints import load_or_train
from benchmarks.bert import page_definitions
from benchmarks.letter_runs import Counts
from benchmarks.results import made_by

PENALTIES = (1, 3, 10)  # of logistic regression: scikit-learn's C
RATES = {
    "frozen": (3e-4, 1e-3, 3e-3),
    "tuned": (1e-4, 3e-4, 1e-3),
    "from scratch": (3e-4, 1e-3, 3e-3),
}


def letters_of(rows: torch.Tensor) -> np.ndarray:
    """Each letter with two on each side, and the pairs that it is in, as categories."""
    a, b, c, d, e = (x.flatten() for x in F.pad(rows, (1, 1)).unfold(1, 5, 1).unbind(-1))
    return torch.stack([a, b, c, d, e, 100 * b + c, 100 * c + d], 1).numpy()


def by_letters(rows, places, c: float):
    """Guesses where logistic regression, fitted to labelled rows, is surest of an error."""
    wrong = F.one_hot(places - 1, rows.shape[1] - 2).flatten().numpy()
    one_hot = OneHotEncoder(handle_unknown="ignore")
    inputs = one_hot.fit_transform(letters_of(rows))
    fitted = LogisticRegression(C=c, max_iter=1000).fit(inputs, wrong)

    def guess(asked: torch.Tensor) -> torch.Tensor:
        scores = fitted.decision_function(one_hot.transform(letters_of(asked)))
        return 1 + torch.from_numpy(scores).view(len(asked), -1).argmax(1)

    return guess


@torch.no_grad()
def guessed(page: dict, bert, rows: torch.Tensor) -> torch.Tensor:
    """The place of each row's letter to which the output gives the least."""
    return 1 + page["unlikely"](bert, rows).argmax(-1)


def drawn(page: dict, seed: int) -> tuple:
    """A seed's rows and places of errors, to learn from and for the test; its first weights."""
    luck = torch.Generator().manual_seed(seed)
    rows = page["train"][torch.randperm(len(page["train"]), generator=luck)]
    learnt, asked = (page["mistyped"](part, luck) for part in (rows, page["test"]))
    torch.manual_seed(2000 + seed)
    return *learnt, *asked, page["Bert"](len(page["letters"]), 64, 4, 2)


def rows_of_topics(page: dict) -> list[int]:
    """How many rows each topic of the test has; all of them hold a letter to mistype."""
    texts = page["manual"].documents("test").values()
    return [len(page["plain"](text)) // (page["LENGTH"] - 2) for text in texts]


def longer(page: dict, seed: int, size: int, steps: int) -> dict:
    """The share that the model from scratch finds after so many steps."""
    rows, places, test, true, fresh = drawn(page, seed)
    torch.manual_seed(1000 + seed)
    tuned = page["fine_tuned"](fresh, rows[:size], places[:size], steps=steps)
    found = round((guessed(page, tuned, test) == true).float().mean().item(), 3)
    return {"seed": seed, "rows": size, "steps": steps, "from scratch": found}


def measured(page: dict, encoder, counts: Counts, seed: int, sizes: list[int], steps: int) -> list:
    """The errors of one seed that are found in each topic, for each number of labelled rows."""
    all_rows, all_places, test, true, fresh = drawn(page, seed)
    luck = torch.Generator().manual_seed(3000 + seed)
    valid, valid_places = page["mistyped"](page["valid"], luck)
    runs = 1 + torch.from_numpy(counts.scores(test)).argmax(1)
    no_labels = {
        "three": runs[:, 1],
        "five": runs[:, 3],
        "untuned": guessed(page, encoder, test),
    }
    made = []
    for size in sizes:
        rows, places = all_rows[:size], all_places[:size]
        tried = {("letters", c): by_letters(rows, places, c) for c in PENALTIES}
        for name, start, stays in (
            ("frozen", encoder, ("embeddings", "layers")),
            ("tuned", encoder, ()),
            ("from scratch", fresh, ()),
        ):
            for rate in RATES[name]:
                torch.manual_seed(1000 + seed)
                tuned = page["fine_tuned"](start, rows, places, stays, steps, rate)
                tried[name, rate] = partial(guessed, page, tuned)
        found, best = dict(no_labels), {}
        for (name, setting), guess in tried.items():
            right = (guess(valid) == valid_places).sum().item()
            if right > best.get(name, (-1,))[0]:
                best[name], found[name] = (right, setting), guess(test)
        run = {"seed": seed, "rows": size, "best": {name: each[1] for name, each in best.items()}}
        for name, guess in found.items():
            topics = (guess == true).split(rows_of_topics(page))
            run[name] = [int(topic.sum()) for topic in topics]
        made.append(run)
        print(run, flush=True)
    return made


def pretrained(page: dict, seed: int):
    """A seed's encoder after its pre-training."""
    if seed:
        return page["trained"](seed)
    model = page["untrained"](0)
    load_or_train("encoder", model, lambda model: {})
    return model.eval()


def keep(result: Path, part: str, new: list, **others) -> None:
    """Put new records into a part of the file, in place of those of the same place there."""
    old = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    records = {
        (record["seed"], record["rows"], record.get("steps", 0)): record
        for record in [*old.get(part, []), *new]
    }
    held = old | others | {part: [records[key] for key in sorted(records)]}
    text = json.dumps(held).replace('{"seed', '\n{"seed').replace("}], ", "}],\n") + "\n"
    result.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    parser.add_argument("--rows", type=int, nargs="+", default=(80, 320, 1280))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--longer", type=int)
    parser.add_argument("--result", default="fine_tuning.json")
    args = parser.parse_args()
    torch.set_num_threads(1)
    page = page_definitions()
    result = Path(__file__).with_name(args.result)
    if args.longer:
        for seed in args.seeds:
            new = [longer(page, seed, size, args.longer) for size in args.rows]
            print(new, time.process_time(), flush=True)
            keep(result, "longer", new)
        return
    made = made_by("benchmarks/fine_tuning.py", steps=args.steps)
    counts = Counts(page["train"], len(page["letters"]), reach=0)
    for seed in args.seeds:
        encoder = pretrained(page, seed)
        print(f"seed {seed}: {page['filled'](encoder, page['test'])[0]:.1%} of the gaps right")
        new = measured(page, encoder, counts, seed, args.rows, args.steps)
        keep(result, "runs", new, made=made, topics=rows_of_topics(page))


if __name__ == "__main__":
    main()
