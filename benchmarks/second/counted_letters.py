"""Chapter 3's hidden letters, guessed by counting alone, once more: dictionaries, other contexts.

Run: python -m benchmarks.second counted_letters [SEED ...]; seconds for each. Right of the windows
kept back, seeds 71 to 74: by both neighbours 33.7, 39.2, 40.5 and 40.0%, by one to three 52.9,
53.1, 57.2 and 59.5; where what the tables say is multiplied instead of averaged, 47.3, 46.3, 52.4
and 52.9. After 1,500 steps, 32 heads with a feed-forward layer guess 56.2% on seed 71, 55.6 on 73.
"""

from collections import Counter, defaultdict

from benchmarks.second.letters import cut

TABLES = ((1,), (3,), (1, 3), (0, 1, 3), (1, 3, 4))  # where in a window a neighbour stands


class Counts:
    """How often each letter stood between which neighbours."""

    def __init__(self, windows: list[list[int]]):
        self.found = {places: defaultdict(Counter) for places in TABLES}
        self.any = Counter(window[2] for window in windows)
        for window in windows:
            for places, counts in self.found.items():
                counts[tuple(window[i] for i in places)][window[2]] += 1

    def known(self, window: list[int], places: tuple[int, ...]) -> Counter:
        return self.found[places].get(tuple(window[i] for i in places), Counter())

    def share(self, window: list[int], letter: int, levels: tuple, more: float = 2.0) -> float:
        """The letter's: in the tables of each level, the level below counts as so many windows."""
        if not levels:
            return self.any[letter] / self.any.total()
        *below, tables = levels
        before, parts = more * self.share(window, letter, tuple(below)), []
        for places in tables:
            counts = self.known(window, places)
            parts.append((counts[letter] + before) / (counts.total() + more))
        return sum(parts) / len(parts)

    def multiplied(self, window: list[int], letter: int) -> float:
        """Another way to combine: how much more often than elsewhere, table by table."""
        product = alone = self.any[letter] / self.any.total()
        for places in TABLES:
            counts = self.known(window, places)
            product *= (counts[letter] / alone + 20) / (counts.total() + 20)
        return product


def tell(seed: int) -> None:
    """Of every tenth window kept back, the share that each way guesses right."""
    learnt, asked = (part.tolist() for part in cut(seed))
    counts, asked = Counts(learnt), asked[::10]
    levels = (TABLES[:2], TABLES[2:3], TABLES[3:])
    ways = {
        "always the same": lambda w, letter: counts.any[letter],
        "both neighbours": lambda w, letter: counts.known(w, (1, 3))[letter],
        "one to three neighbours": lambda w, letter: counts.share(w, letter, levels),
        "multiplied": counts.multiplied,
    }
    for way, worth in ways.items():
        right = [max(range(27), key=lambda c: worth(w, c)) == w[2] for w in asked]  # noqa: B023
        print(f"seed {seed}, {way}: {sum(right) / len(right):.1%}")


def main(*seeds: int) -> None:
    for seed in seeds or (71, 72, 73, 74):
        tell(seed)
