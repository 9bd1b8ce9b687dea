"""Counted bytes that stay as they are while they read the test, and such as go on learning.

Run: python -m benchmarks.going_on; ten minutes. Bytes are counted after those before them and
smoothed as by Kneser and Ney: a shorter run counts a byte only where it is new after the longer
one. Length and discount are the best of TRIED on the validation topics of chapter 9's manual;
benchmarks/going_on.json has the bits per byte of both kinds, there and on the test.
"""

import math
from pathlib import Path

from attention_by_hand.data import python_manual
from benchmarks.pretrained_gpt import as_bytes
from benchmarks.results import write

RESULT = Path(__file__).with_suffix(".json")
TRIED = [(longest, discount) for longest in (6, 8, 16, 24) for discount in (0.8, 0.9, 0.95)]


class Counts:
    """What stood behind each run of bytes."""

    def __init__(self, longest: int, discount: float):
        self.longest, self.discount = longest, discount
        self.times: dict[bytes, int] = {}
        self.behind: dict[bytes, tuple[int, int]] = {}

    def bits(self, text: bytes, i: int) -> float:
        """What the byte at `i` costs after those before it."""
        p = 1 / 256
        for start in range(i, max(i - self.longest, 0) - 1, -1):
            if (found := self.behind.get(text[start:i])) is None:
                break
            times, (whole, kinds) = self.times.get(text[start : i + 1], 0), found
            p = (max(times - self.discount, 0) + self.discount * kinds * p) / whole
        return -math.log2(p)

    def learn(self, text: bytes, i: int) -> None:
        for start in range(max(i - self.longest, 0), i + 1):
            past, run = text[start:i], text[start : i + 1]
            times = self.times.get(run, 0)
            whole, kinds = self.behind.get(past, (0, 0))
            self.times[run], self.behind[past] = times + 1, (whole + 1, kinds + (not times))
            if times:
                break


def measure(learnt: bytes, new: bytes, longest: int, discount: float) -> list[float]:
    """Bits per byte of a new text: frozen, and going on."""
    counts, text, costs = Counts(longest, discount), learnt + new, []
    for i in range(len(learnt)):
        counts.learn(text, i)
    for goes_on in (False, True):
        cost = 0.0
        for i in range(len(learnt), len(text)):
            cost += counts.bits(text, i)
            if goes_on:
                counts.learn(text, i)
        costs.append(round(cost / len(new), 4))
    return costs


def joined(texts: dict[str, str]) -> bytes:
    return "".join(as_bytes(texts)).encode("latin-1")


def main() -> None:
    learnt, valid, test = map(joined, map(python_manual.documents, ("train", "valid", "test")))
    tried = []
    for one in TRIED:
        tried.append([*one, *measure(learnt, valid, *one)])
        print(*tried[-1], flush=True)
    longest, discount = min(tried, key=lambda row: row[3])[:2]
    found = {
        "tried": tried,
        "chosen": [longest, discount],
        "test": measure(learnt, test, longest, discount),
    }
    write(RESULT, **found)


if __name__ == "__main__":
    main()
