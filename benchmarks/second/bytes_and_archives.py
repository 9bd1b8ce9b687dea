"""Chapter 9's byte pairs, counted bytes and compressors once more: pair by pair, byte by byte.

Run: python -m benchmarks.second bytes_and_archives [PART ...]; the parts are *pairs*, *bytes* and
*archives*. The compressors are the programs of the command line. Tokens, their lengths, the first
and last pairs and all compressors are the page's to its digits; bytes after up to 0, 1, 12 and 24
others 4.82, 3.61, 2.14 and 2.14 frozen, the last 1.61 going on.
"""

import subprocess
from collections import Counter, defaultdict
from itertools import groupby

import numpy as np

from attention_by_hand.data import python_manual

TEXTS = {
    part: [t.encode().decode("latin-1") for t in python_manual.documents(part).values()]
    for part in ("train", "valid", "test")
}
END = "\u0100"  # of a text; no byte


def words_of(text: str) -> list[str]:
    """Runs of letters, of marks and of white space; a space before one of the first two joins it.

    If more than one stands there, all are a word of their own.
    """
    kind = lambda c: 0 if c.isspace() else 1 if c.isalnum() or c == "_" else 2  # noqa: E731
    found: list[str] = []
    for of, letters in groupby(text, kind):
        run = "".join(letters)
        if of and found and found[-1] == " ":
            found[-1] += run
        else:
            found.append(run)
    return found


def joined(pieces: list[str], pair: tuple[str, str]) -> list[str]:
    found: list[str] = []
    for piece in pieces:
        if found and (found[-1], piece) == pair:
            found[-1] += piece
        else:
            found.append(piece)
    return found


def pairs() -> None:
    times = {
        part: Counter(word for text in texts for word in words_of(text))
        for part, texts in TEXTS.items()
    }
    cut = {word: [*word] for words in times.values() for word in words}
    common = [word for word, _ in times["train"].most_common(1500)]
    print(f"pairs: {len(times['train']):,} different words")
    names = []
    for step in range(1001):
        if step in (0, 100, 300, 1000):
            once = sum(map(len, common)) / sum(len(cut[w]) for w in common)
            often = [times["train"][word] for word in common]
            size = sum(n * len(word) for n, word in zip(often, common, strict=True))
            often = sum(n * len(cut[word]) for n, word in zip(often, common, strict=True))
            print(f"{step:5} merges: {once:.2f}, as often as they occur {size / often:.2f}")
        counts: Counter[tuple[str, str]] = Counter()
        for word, number in times["train"].items():
            for pair in zip(cut[word], cut[word][1:], strict=False):
                counts[pair] += number
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        if step < 1000:
            names.append("".join(best))
            cut = {word: joined(pieces, best) for word, pieces in cut.items()}
    print(names[:24], names[-9:])
    for part, texts in TEXTS.items():
        tokens = len(texts) + sum(n * len(cut[word]) for word, n in times[part].items())
        print(f"{part}: {tokens:,} tokens, {sum(map(len, texts)) / tokens:.2f} bytes each")


def bits(known: str, new: str, longest: int, discount: float, going_on: bool) -> float:
    """Kneser and Ney's bits of a text, an order at a time, shortest run first.

    Behind the longest run each time counts; behind a shorter one, each different symbol before it.
    """
    chance, text, begin = np.full(len(new), 1 / 257), known + new, len(known)
    for k in range(longest + 1):
        wanted = {text[i - k : i] for i in range(begin, len(text))}
        after: dict[str, Counter[str]] = defaultdict(Counter)
        totals: Counter[str] = Counter()
        longer: set[str] = set()
        for i in range(k, len(text)):
            run, symbol = text[i - k : i], text[i]
            if run not in wanted:
                continue
            if i >= begin and totals[run]:
                seen, place = after[run], i - begin
                passed_on = discount * len(seen) * chance[place]
                kept = max(seen[symbol] - discount, 0) if symbol in seen else 0
                chance[place] = (kept + passed_on) / totals[run]
            if i < begin or going_on:
                if k < longest:
                    if i == k or (wider := text[i - k - 1 : i + 1]) in longer:
                        continue
                    longer.add(wider)
                after[run][symbol] += 1
                totals[run] += 1
    return float(-np.log2(chance).sum())


def counted_bytes() -> None:
    known, new = ("".join(END + text for text in TEXTS[part]) for part in ("train", "test"))
    size = sum(map(len, TEXTS["test"]))
    for longest, discount in ((0, 0.9), (1, 0.9), (12, 0.95), (24, 0.95)):
        for going_on in (False, True):
            found = bits(known, new, longest, discount, going_on) / size
            print(f"bytes after up to {longest}{', going on' * going_on}: {found:.3f}")


def archives() -> None:
    known, new = ("".join(TEXTS[part]).encode("latin-1") for part in ("train", "test"))
    for program in ("gzip", "bzip2", "xz"):
        alone, both, before = (
            len(subprocess.run([program, "-9c"], input=text, stdout=-1, check=True).stdout)
            for text in (new, known + new, known)
        )
        per_byte = [8 * length / len(new) for length in (alone, both - before)]
        print(f"{program} -9: {per_byte[0]:.2f}, primed {per_byte[1]:.2f}")


def main(*parts: str) -> None:
    for part in parts or ("archives", "pairs", "bytes"):
        {"pairs": pairs, "bytes": counted_bytes, "archives": archives}[part]()
