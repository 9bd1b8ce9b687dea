"""The introduction's *muddy* and *closed* banks once more, in NumPy, with slopes written out.

Run: python -m benchmarks.second two_senses [SEED ...]. A grammar of its own, built from the words
of the page: places that keep their sense whatever is said of them, and a bank that the other word
decides, or nobody can tell; neither sentence of the picture is among what is learnt.
"""

import numpy as np

WET, RICH = ("shore", "lake", "beach"), ("shop", "office", "market")
SAID = {"muddy": 0, "sandy": 0, "flooded": 0, "closed": 1, "solvent": 1, "open": 1,
        "old": 2, "large": 2, "far": 2}  # fmt: skip
ASKED = ("the bank is muddy .", "the bank is closed .")
DIM, KEYS, VALUES, STEPS, RATE, DECAY = 4, 2, 2, 800, 0.02, 0.01


def grammar() -> list[tuple[list[str], int, int]]:
    """Words, the place of the noun, and what it is: 0 by the water, 1 money, 2 unknown."""
    found = []
    for noun in (*WET, *RICH, "bank"):
        for word, hint in SAID.items():
            sense = hint if noun == "bank" else int(noun in RICH)
            for text in (f"the {noun} is {word} .", f"she sees the {word} {noun} .",
                         f"is the {noun} {word} ?", f"a {word} {noun} it is ."):  # fmt: skip
                words = text.split()
                if text not in ASKED:
                    found.append((words, words.index(noun), sense))
    return found


def attend(p: dict, ids: np.ndarray, at: np.ndarray) -> tuple:
    """Probabilities, and what the slopes need; ids −1 are padding."""
    x = p["table"][ids]
    query = x[np.arange(len(ids)), at] @ p["q"]
    scores = np.einsum("bk,bnk->bn", query, x @ p["k"]) / KEYS**0.5
    scores = np.where(ids < 0, -np.inf, scores)
    w = np.exp(scores - scores.max(1, keepdims=True))
    w /= w.sum(1, keepdims=True)
    mean = np.einsum("bn,bnd->bd", w, x @ p["v"])
    told = mean @ p["o"] + p["b"]
    said = np.exp(told - told.max(1, keepdims=True))
    return said / said.sum(1, keepdims=True), w, mean, x, query


def slopes(p: dict, ids: np.ndarray, at: np.ndarray, right: np.ndarray) -> dict:
    said, w, mean, x, query = attend(p, ids, at)
    rows = np.arange(len(ids))
    d_told = said.copy()
    d_told[rows, right] -= 1
    d_told /= len(ids)
    d_mean = d_told @ p["o"].T
    d_w = np.einsum("bd,bnd->bn", d_mean, x @ p["v"])
    d_s = w * (d_w - (w * d_w).sum(1, keepdims=True)) / KEYS**0.5
    d_query = np.einsum("bn,bnk->bk", d_s, x @ p["k"])
    d_x = np.einsum("bn,bd->bnd", w, d_mean) @ p["v"].T
    d_x += np.einsum("bn,bk->bnk", d_s, query) @ p["k"].T
    d_x[rows, at] += d_query @ p["q"].T
    table = np.zeros_like(p["table"])
    np.add.at(table, ids[ids >= 0], d_x[ids >= 0])
    return {
        "table": table, "q": x[rows, at].T @ d_query,
        "k": np.einsum("bnd,bn,bk->dk", x, d_s, query),
        "v": np.einsum("bnd,bn,be->de", x, w, d_mean), "o": mean.T @ d_told, "b": d_told.sum(0),
    }  # fmt: skip


def packed(texts: list[list[str]], words: list[str]) -> np.ndarray:
    most = max(map(len, texts))
    return np.array([[*map(words.index, t), *[-1] * (most - len(t))] for t in texts])


def learn(seed: int) -> list[tuple[float, bool, int]]:
    """For each sentence: the weight of its fourth word, whether it is the largest, the answer."""
    texts, places, senses = zip(*grammar(), strict=True)
    words = sorted({word for text in texts for word in text})
    ids, at, right = packed(list(texts), words), np.array(places), np.array(senses)
    draw = np.random.default_rng(seed)
    shapes = {"q": (DIM, KEYS), "k": (DIM, KEYS), "v": (DIM, VALUES), "o": (VALUES, 3)}
    p = {name: draw.uniform(-1, 1, shape) / shape[0] ** 0.5 for name, shape in shapes.items()}
    p |= {"table": draw.normal(size=(len(words), DIM)), "b": np.zeros(3)}
    m, s = ({name: np.zeros_like(a) for name, a in p.items()} for _ in range(2))
    for step in range(1, STEPS + 1):
        for name, g in slopes(p, ids, at, right).items():
            m[name] = 0.9 * m[name] + 0.1 * g
            s[name] = 0.999 * s[name] + 0.001 * g**2
            p[name] *= 1 - RATE * DECAY
            p[name] -= RATE * m[name] / (1 - 0.9**step) / (
                (s[name] / (1 - 0.999**step)) ** 0.5 + 1e-8
            )  # fmt: skip
    said, w, *_ = attend(p, packed([text.split() for text in ASKED], words), np.array([1, 1]))
    return [(w[i, 3], w[i].argmax() == 3, int(said[i].argmax())) for i in (0, 1)]


def check_slopes() -> None:
    """The slopes are those of small steps."""
    draw, h = np.random.default_rng(0), 1e-6
    p = {"table": draw.normal(size=(5, DIM)), "q": draw.normal(size=(DIM, KEYS)),
         "k": draw.normal(size=(DIM, KEYS)), "v": draw.normal(size=(DIM, VALUES)),
         "o": draw.normal(size=(VALUES, 3)), "b": draw.normal(size=3)}  # fmt: skip
    ids, at, right = np.array([[0, 1, 2], [3, 0, -1]]), np.array([1, 0]), np.array([2, 0])
    exact = slopes(p, ids, at, right)
    for name, numbers in p.items():
        for place in np.ndindex(numbers.shape):
            losses = []
            for sign in (1, -1):
                numbers[place] += sign * h
                losses.append(-np.log(attend(p, ids, at)[0][[0, 1], right]).mean())
                numbers[place] -= sign * h
            assert abs((losses[0] - losses[1]) / 2 / h - exact[name][place]) < 1e-6, name


def main(*seeds: int) -> None:
    check_slopes()
    runs = [learn(seed) for seed in seeds or range(60, 70)]
    for (muddy, first, a), (closed, second, b) in runs:
        print(f"muddy {muddy:.2f} {first}, closed {closed:.2f} {second}; answers {a}, {b}")
    print("both named:", sum([run[i][2] for i in (0, 1)] == [0, 1] for run in runs), end="; ")
    print("both times most on the word:", sum(run[0][1] and run[1][1] for run in runs), end="; ")
    print("above one half:", sum(min(run[0][0], run[1][0]) > 0.5 for run in runs))
