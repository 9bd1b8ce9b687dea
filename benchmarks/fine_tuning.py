"""Chapter 10's small BERT, fine-tuned on pairs: does the second text follow the first?

Run: OMP_NUM_THREADS=1 python -m benchmarks.fine_tuning [--seeds 0 1 2 3 4] [--pairs 320 1280 5120]
[--steps 300] [--pretraining 3000] [--weights FILE] [--result fine_tuning.json]. Letters, encoder,
its pre-training, the pairs and the fine-tuning are those of the chapter's page, read from its
cells. The encoder is pre-trained once (page's seed 0; `--weights` keeps it between runs). Each
seed draws its own labelled pairs from rows of the training text, its own first weights, and
its own pairs from all rows of the test (other topics), on which each `share` right is measured: the
encoder `tuned`; the same `from scratch`; `frozen`, logistic regression on its `[CLS]`; `letters`,
logistic regression on the letters on both sides of the seam, singly and as pairs. `counts` has no
encoder: how often letters follow each other in the training text, and a threshold fitted to the
labelled pairs. Seeds that are on file already are kept.
"""

import argparse
import datetime
import json
import platform
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from benchmarks.bert import page_definitions

REACH = 3  # letters on each side of the seam


def counted(lines: list[str]) -> Counter:
    """How often up to `2 REACH` letters stand in a row."""
    return Counter(
        line[i : i + size]
        for line in lines
        for size in range(1, 2 * REACH + 1)
        for i in range(len(line) - size + 1)
    )


def surprise(counts: Counter, total: int, before: str, letters: str) -> float:
    """Bits that letters cost after others, each after at most `REACH`, by smoothed counts."""
    bits = 0.0
    for i, letter in enumerate(letters):
        context, p = (before + letters[:i])[-REACH:], 1 / 70
        for size in range(len(context) + 1):
            seen = context[len(context) - size :]
            p = (counts[seen + letter] + 3 * p) / ((counts[seen] if seen else total) + 3)
        bits -= np.log2(p)
    return bits


def seam(ids: torch.Tensor) -> list[tuple[str, str]]:
    """The letters before and behind the seam of each pair."""
    return [("".join(map(chr, row[6:9])), "".join(map(chr, row[10:13]))) for row in ids.tolist()]


def by_counts(counts: Counter, total: int, ids: torch.Tensor) -> np.ndarray:
    """By how many bits A makes the first letters of B likelier: `(pairs, 1)`."""
    return np.array([
        [surprise(counts, total, "", b) - surprise(counts, total, a, b)] for a, b in seam(ids)
    ])  # fmt: skip


def letters_of(ids: torch.Tensor) -> np.ndarray:
    """The letters at the seam as categories, and the two that meet as one: `(pairs, 7)`."""
    return np.array([[*a, *b, a[-1] + b[0]] for a, b in seam(ids)])


def regression(x, y, x_test, y_test) -> float:
    """The share of the test that logistic regression tells right."""
    fitted = LogisticRegression(max_iter=1000).fit(x, y)
    return round(float((fitted.predict(x_test) == y_test).mean()), 3)


@torch.no_grad()
def classes(encoder, ids: torch.Tensor, segments: torch.Tensor) -> np.ndarray:
    """What an encoder gives at `[CLS]`."""
    return encoder.encode(ids, segments)[:, 0].numpy()


def measured(page: dict, encoder, counts, seed: int, sizes: list[int], steps: int) -> list[dict]:
    """The shares right of one seed, for each number of labelled pairs."""
    luck = torch.Generator().manual_seed(seed)
    rows = page["train"][torch.randperm(len(page["train"]), generator=luck)[: max(sizes)]]
    ids, segments, follows = page["pairs_of"](rows, luck)
    test, test_segments, test_follows = page["pairs_of"](page["test"], luck)
    y_test, found = test_follows.numpy(), []
    x_test = by_counts(*counts, test)
    for size in sizes:
        pairs = ids[:size], segments[:size], follows[:size]
        y, one_hot = follows[:size].numpy(), OneHotEncoder(handle_unknown="ignore")
        seen = one_hot.fit_transform(letters_of(ids[:size]))
        run = {
            "seed": seed,
            "pairs": size,
            "frozen": regression(
                classes(encoder, *pairs[:2]), y, classes(encoder, test, test_segments), y_test
            ),
            "letters": regression(seen, y, one_hot.transform(letters_of(test)), y_test),
            "counts": regression(by_counts(*counts, ids[:size]), y, x_test, y_test),
        }
        for name in ("tuned", "from scratch"):
            torch.manual_seed(1000 + seed)
            fresh = page["Bert"](len(page["letters"]), 64, 4, 2)
            answers = page["fine_tuned"](encoder if name == "tuned" else fresh, *pairs, steps)
            with torch.no_grad():
                right = (answers(test, test_segments) == test_follows).float().mean()
            run[name] = round(right.item(), 3)
        found.append(run)
        print(run, flush=True)
    return found


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    parser.add_argument("--pairs", type=int, nargs="+", default=(320, 1280, 5120))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--pretraining", type=int, default=3000)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--result", default="fine_tuning.json")
    args = parser.parse_args()
    torch.set_num_threads(1)
    page = page_definitions()
    encoder = pretrained(page, args.pretraining, args.weights)
    lines = [page["plain"](text) for text in page["manual"].documents("train").values()]
    lines = ["".join(map(chr, page["ids_of"](line).tolist())) for line in lines]
    counts = counted(lines), sum(map(len, lines))
    made = {
        "script": "benchmarks/fine_tuning.py",
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, CPU, one thread",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "pretraining": args.pretraining,
        "steps": args.steps,
        "test pairs": len(page["test"]),
        "share of gaps": round(page["filled"](encoder, page["test"])[0], 4),
    }
    result = Path(__file__).with_name(args.result)
    for seed in args.seeds:
        new = measured(page, encoder, counts, seed, args.pairs, args.steps)
        old = json.loads(result.read_text(encoding="utf-8"))["runs"] if result.exists() else []
        runs = [run for run in old if run["seed"] != seed] + new
        runs.sort(key=lambda run: (run["seed"], run["pairs"]))
        text = json.dumps({"made": made, "runs": runs}).replace('{"seed', '\n{"seed') + "\n"
        result.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
