"""Counted runs beside chapter 9's GPT trained beforehand: Kneser-Ney over its tokens, and bytes.

Run: OMP_NUM_THREADS=1 python -m benchmarks.kneser_ney; three minutes. Text, parts and tokens are
those of `pretrained_gpt.py`. Runs are counted in the training text and smoothed as in S. F. Chen
and J. Goodman, "An empirical study of smoothing techniques" (1999): of each count, one of three
discounts is taken (for 1, 2, and more) and given to the shorter run, whose count is of how many
different symbols have stood before it. Discounts of each length are fitted to the validation text,
and the longest run is chosen there. Counts that are *going on* also learn from what they have read
of the new text, document after document; their discounts and length are chosen for that. What comes
out is in benchmarks/kneser_ney.json: bits per byte of the validation and test texts, and of each
document of the test, with GPT's for the same text.
"""

import gzip
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attention_by_hand.models import gpt
from benchmarks import english
from benchmarks.language_models import token_bits, topic_bits
from benchmarks.pretrained_gpt import Tokens, as_bytes
from benchmarks.results import made_by, write
from solutions.language_model import GPT

RESULT = Path(__file__).with_suffix(".json")
LONGEST = {"tokens": (2, 3, 4, 5, 6), "bytes": (4, 6, 8, 10, 12)}
MOST = torch.tensor([1.0, 2.0, 3.0])  # a discount is at most the count that it is taken from

Counts = tuple[Tensor, Tensor, Tensor]  # of each symbol, of its past, and 1, 2 or more behind that


def number_runs(ids: np.ndarray, longest: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """For each length from 0: the number of the run ending at each place; its first place."""
    numbers, firsts = [np.zeros_like(ids)], [np.array([0])]
    for _ in range(longest):
        both = np.roll(numbers[-1], 1) * (ids.max() + 1) + ids
        _, first, number = np.unique(both, return_index=True, return_inverse=True)
        numbers.append(number)
        firsts.append(first)
    return numbers, firsts


def count(texts: list[np.ndarray], longest: int, goes_on: bool = False) -> list[list[list[Counts]]]:
    """Of each text but the first, in which runs are counted: for each length, two kinds of counts.

    First how often a run stood there, then of how many different symbols it stood behind. If it
    `goes_on`, what was read of the text itself is counted as well.
    """
    edge = np.zeros(longest, dtype=texts[0].dtype)
    numbers, firsts = number_runs(np.concatenate([x for t in texts for x in (edge, t)]), longest)
    ends = np.cumsum([longest + len(text) for text in texts])
    read, *asked = (np.arange(end - len(text), end) for end, text in zip(ends, texts, strict=True))
    seen = [np.bincount(n[read], minlength=len(f)) for n, f in zip(numbers, firsts, strict=True)]
    found: list[list[list[Counts]]] = [[[] for _ in range(longest)] for _ in asked]
    for k in range(1, longest + 1):
        past, pasts = numbers[k - 1][firsts[k] - 1], len(firsts[k - 1])
        kinds, told = [seen[k]], [asked]
        if k < longest:
            suffixes = numbers[k][firsts[k + 1][seen[k + 1] > 0]]
            kinds.append(np.bincount(suffixes, minlength=len(firsts[k])))
            told.append([at[new_runs(numbers[k + 1][at], seen[k + 1])] for at in asked])
        for times, more in zip(kinds, told, strict=True):
            whole = np.bincount(past, times, pasts)
            rare = [times == 1, times == 2, times > 2]
            behind = np.stack([np.bincount(past[at], minlength=pasts) for at in rare], -1)
            for text, at, learnt in zip(found, asked, more, strict=True):
                run, before = numbers[k][at], numbers[k - 1][at - 1]
                if goes_on:
                    new = np.isin(at, learnt)
                    of = [x[1:] for x in grown(times, whole, behind, run, before, new)]
                else:
                    of = [x[1:] for x in (times[run], whole[before], behind[before])]
                of = [torch.from_numpy(x).double() for x in of]
                text[k - 1].append((of[0], of[1], of[2]))
    return found


def new_runs(runs: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Where a run stands for the first time, in this text and in the one read before."""
    first = np.zeros(len(runs), dtype=bool)
    first[np.unique(runs, return_index=True)[1]] = True
    return first & (seen[runs] == 0)


def grown(times, whole, behind, runs, pasts, counted) -> list[np.ndarray]:
    """The counts at each place of a text, of which the places before it are `counted`, or not."""
    times, whole, behind = (
        dict(zip(keys.tolist(), table[keys].tolist(), strict=True))
        for keys, table in ((runs, times), (pasts, whole), (pasts, behind))
    )
    rows = []
    for run, past, more in zip(runs.tolist(), pasts.tolist(), counted.tolist(), strict=True):
        rows.append((times[run], whole[past], tuple(behind[past])))
        if more:
            if times[run]:
                behind[past][min(times[run], 3) - 1] -= 1
            times[run] += 1
            whole[past] += 1
            behind[past][min(times[run], 3) - 1] += 1
    return [np.array(column) for column in zip(*rows, strict=True)]


def bits(counts: list[list[Counts]], discounts: Tensor, symbols: int) -> Tensor:
    """The bits of each symbol but the first; the discounts are those of each length `(n, 3)`."""
    p = torch.tensor(1 / symbols).double()
    for k, taken in enumerate(discounts):
        times, whole, behind = counts[k][k + 1 < len(discounts)]
        less = torch.where(times > 0, taken[times.clamp(1, 3).long() - 1], 0)
        p = torch.where(whole > 0, (times - less + behind @ taken * p) / whole.clamp(1), p)
    return -p.log2()


def fit(counts: list[list[Counts]], longest: int, symbols: int) -> Tensor:
    """The three discounts of each length that cost this text the fewest bits."""
    free = torch.zeros(longest, 3, dtype=torch.double, requires_grad=True)
    newton = torch.optim.LBFGS([free], max_iter=40, line_search_fn="strong_wolfe")

    def cost() -> Tensor:
        newton.zero_grad()
        mean = bits(counts, free.sigmoid() * MOST, symbols).mean()
        mean.backward()
        return mean

    newton.step(cost)
    return (free.sigmoid() * MOST).detach()


def measure(
    texts: list[Tensor], symbols: int, lengths: tuple[int, ...], sizes: list[int], goes_on: bool
) -> dict:
    """Bits per byte for each longest run; of the best on validation, the bits of each document."""
    valid, test = count([text.numpy() for text in texts], max(lengths), goes_on)
    tried = []
    for longest in lengths:
        discounts = fit(valid, longest, symbols)
        costs = [bits(text, discounts, symbols) for text in (valid, test)]
        rates = [round((c.sum() / s).item(), 4) for c, s in zip(costs, sizes, strict=True)]
        print(longest, *rates, flush=True)
        tried.append((rates, longest, discounts, costs[1]))
    rates, longest, discounts, cost = min(tried, key=lambda one: one[0])
    return {
        "longest": longest,
        "valid": rates[0],
        "test": rates[1],
        "discounts": [[round(x, 3) for x in row] for row in discounts.tolist()],
        "tried": {longest: rates for rates, longest, *_ in tried},
        "documents": by_document(cost, texts[-1]),
    }


def by_document(cost: Tensor, ids: Tensor) -> list[float]:
    return [round(bits, 1) for bits in topic_bits(cost, ids).tolist()]


def main() -> None:
    torch.set_num_threads(1)
    parts = english.split(english.documents())
    texts = [as_bytes(parts[part]) for part in ("train", "valid", "test")]
    sizes = [sum(map(len, text)) for text in texts[1:]]
    tokens = Tokens(gpt.merges())
    in_tokens = [tokens.encode(text) for text in texts]
    in_bytes = [
        torch.tensor([i for t in text for i in (0, *(byte + 1 for byte in t.encode("latin-1")))])
        for text in texts
    ]
    model = GPT(len(tokens.tokens), **gpt.SIZES).eval()
    model.load_state_dict(gpt.weights())
    cost = token_bits(model, in_tokens[-1])
    kept = "".join(texts[-1]).encode("latin-1")
    about = {
        "bytes": dict(zip(("train", "valid", "test"), map(len, map("".join, texts)), strict=True)),
        "gzip -9": round(8 * len(gzip.compress(kept, 9, mtime=0)) / len(kept), 4),
    }
    found = {
        "made": made_by("benchmarks/kneser_ney.py", **about),
        "sizes": [len(text) for text in texts[-1]],
        "GPT": {
            "test": round(cost.sum().item() / len(kept), 4),
            "documents": by_document(cost, in_tokens[-1]),
        },
    }
    for name, ids, symbols in (
        ("tokens", in_tokens, len(tokens.tokens)),
        ("bytes", in_bytes, 257),
        ("tokens, going on", in_tokens, len(tokens.tokens)),
    ):
        lengths = LONGEST[name.partition(",")[0]]
        found[name] = measure(ids, symbols, lengths, sizes, goes_on="going on" in name)
    write(RESULT, **found)


if __name__ == "__main__":
    main()
