"""Chapter 10's small BERT, fine-tuned to find a typing error: which letter of a row is wrong?

Run: OMP_NUM_THREADS=1 python -m benchmarks.fine_tuning [--seeds 0 1 2 3 4] [--rows 80 320 1280]
[--steps 300] [--pretraining 3000] [--weights FILE] [--result fine_tuning.json], and, for the
control with more steps, --longer 3000 --rows 1280 --seeds 0 1. Letters, encoder, its pre-training,
the errors and the fine-tuning are those of the chapter's page, read from its cells. The encoder is
pre-trained once (page's seed 0; `--weights` keeps it between runs). Each seed draws its own
labelled rows from the training text, its own first weights, and its own errors in all rows of the
test (other topics), in which the share of errors found is measured: by the model `tuned`; by the
same `from scratch`; by one whose output layer alone was tuned, its encoder
`frozen`; by `letters`, logistic regression on each letter and its neighbours, singly and as pairs.
Two need no labels: the model `untuned`, and `counts` of three letters in a row in the training
text. Seeds on file already are kept. `longer` is `from scratch` with more steps; rows and errors
are those of `runs`.
"""

import argparse
import datetime
import json
import platform
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from benchmarks.bert import page_definitions


def counted(rows: torch.Tensor, size: int) -> torch.Tensor:
    """The logarithm of each letter's share after each two, from rows: `(size, size, size)`."""
    three = torch.zeros(size, size, size)
    places = rows[:, :-2], rows[:, 1:-1], rows[:, 2:]
    three.index_put_(places, torch.tensor(1.0), accumulate=True)
    shares = (three.sum((0, 1)) + 1) / (three.sum() + size)
    for counts in (three.sum(0), three):  # the more letters were seen before, the more they say
        shares = (counts + 3 * shares) / (counts.sum(-1, keepdim=True) + 3)
    return shares.log()


def by_counts(log_shares: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The place where some other letter would make a row likeliest: `(B, n)` → `(B,)`."""
    size, best = len(log_shares), []
    for place in range(1, rows.shape[1] - 1):
        around = F.pad(rows, (1, 1))[:, place - 1 : place + 4]  # two on each side
        window = around[:, None].repeat(1, size, 1)
        window[:, :, 2] = torch.arange(size)
        three = window.unfold(2, 3, 1).unbind(-1)
        likely = log_shares[three].sum(-1)
        best.append(likely.logsumexp(1) - likely.gather(1, around[:, 2:3])[:, 0])
    return 1 + torch.stack(best, 1).argmax(1)


def letters_of(rows: torch.Tensor) -> np.ndarray:
    """Each letter with two on each side, and the pairs that it is in, as categories."""
    a, b, c, d, e = (x.flatten() for x in F.pad(rows, (1, 1)).unfold(1, 5, 1).unbind(-1))
    return torch.stack([a, b, c, d, e, 100 * b + c, 100 * c + d], 1).numpy()


def by_letters(rows, places, test) -> torch.Tensor:
    """Where logistic regression, fitted to labelled rows, is surest of an error."""
    wrong = F.one_hot(places - 1, rows.shape[1] - 2).flatten().numpy()
    one_hot = OneHotEncoder(handle_unknown="ignore")
    fitted = LogisticRegression(max_iter=1000).fit(one_hot.fit_transform(letters_of(rows)), wrong)
    scores = fitted.decision_function(one_hot.transform(letters_of(test)))
    return 1 + torch.from_numpy(scores).view(len(test), -1).argmax(1)


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


def longer(page: dict, seed: int, size: int, steps: int) -> dict:
    """The share that the model from scratch finds after so many steps."""
    rows, places, test, true, fresh = drawn(page, seed)
    torch.manual_seed(1000 + seed)
    tuned = page["fine_tuned"](fresh, rows[:size], places[:size], steps=steps)
    found = round((guessed(page, tuned, test) == true).float().mean().item(), 3)
    return {"seed": seed, "rows": size, "steps": steps, "from scratch": found}


def measured(page: dict, encoder, log_shares, seed: int, sizes: list[int], steps: int) -> list:
    """The shares found of one seed, for each number of labelled rows."""
    all_rows, all_places, test, true, fresh = drawn(page, seed)
    made = []
    for size in sizes:
        rows, places = all_rows[:size], all_places[:size]
        found = {
            "counts": by_counts(log_shares, test),
            "letters": by_letters(rows, places, test),
        }
        for name, start, stays in (
            ("frozen", encoder, ("embeddings", "layers")),
            ("tuned", encoder, ()),
            ("from scratch", fresh, ()),
        ):
            torch.manual_seed(1000 + seed)
            tuned = page["fine_tuned"](start, rows, places, stays, steps)
            found[name] = guessed(page, tuned, test)
        found["untuned"] = guessed(page, encoder, test)
        run = {"seed": seed, "rows": size}
        for name, guess in found.items():
            run[name] = round((guess == true).float().mean().item(), 3)
        made.append(run)
        print(run, flush=True)
    return made


def pretrained(page: dict, steps: int, kept: Path | None):
    """The page's encoder after its pre-training, from the file where it is kept if it is there."""
    if kept and kept.exists():
        encoder = page["Bert"](len(page["letters"]), 64, 4, 2)
        encoder.load_state_dict(torch.load(kept, weights_only=True))
        return encoder.eval()
    encoder = page["trained"](0, steps)
    if kept:
        torch.save(encoder.state_dict(), kept)
    return encoder


def keep(result: Path, part: str, new: list, **others) -> None:
    """Put new records into a part of the file, in place of those of the same place there."""
    old = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    records = {
        (record["seed"], record["rows"], record.get("steps", 0)): record
        for record in [*old.get(part, []), *new]
    }
    held = old | others | {part: [records[key] for key in sorted(records)]}
    text = json.dumps(held).replace('{"seed', '\n{"seed').replace("], ", "],\n") + "\n"
    result.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    parser.add_argument("--rows", type=int, nargs="+", default=(80, 320, 1280))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--pretraining", type=int, default=3000)
    parser.add_argument("--longer", type=int)
    parser.add_argument("--weights", type=Path)
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
    encoder = pretrained(page, args.pretraining, args.weights)
    log_shares = counted(page["train"], len(page["letters"]))
    made = {
        "script": "benchmarks/fine_tuning.py",
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, CPU, one thread",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "pretraining": args.pretraining,
        "steps": args.steps,
        "share of gaps": round(page["filled"](encoder, page["test"])[0], 4),
    }
    for seed in args.seeds:
        new = measured(page, encoder, log_shares, seed, args.rows, args.steps)
        keep(result, "runs", new, made=made)


if __name__ == "__main__":
    main()
