"""Numbers of chapters 8 and 12 that need no training: counted, drawn or summed once more."""

import re
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1]


def copied(model: str, length: int) -> list[int]:
    """How many of 100 sources of a length each seed copied, read off the file's text."""
    text = (FOLDER / "recurrence_convolution_models.json").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if f'"copying", "model": "{model}",' in line]
    return [int(re.search(rf'"{length}": \[(\d+), 100\]', line)[1]) for line in lines]


def sums_before(i: int) -> np.ndarray:
    """Output i of causal linear attention whose sums leave out position i."""
    x = 2 * np.eye(3) - 0.5
    phi = np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    weights = np.array([phi[i] @ phi[j] for j in range(i)])
    with np.errstate(invalid="ignore"):
        return sum((w * x[j] for j, w in enumerate(weights)), np.zeros(3)) / weights.sum()


def random_loss(pairs: int, features: int, temperature: float, draws: int = 400) -> float:
    """The contrastive loss of vectors drawn at random."""
    luck, losses = np.random.default_rng(0), []
    for _ in range(draws):
        u, w = luck.standard_normal((2, pairs, features))
        cosine = (u @ w.T) / np.outer(*(np.sqrt((v**2).sum(1)) for v in (u, w)))
        odds = np.exp((cosine - 1) / temperature)
        own = np.diag(odds)
        losses.append(-np.log(own / odds.sum(0)).mean() / 2 - np.log(own / odds.sum(1)).mean() / 2)
    return float(np.mean(losses))


def safe_keys(features: int) -> int:
    """The most keys that random positive features give more than half of their row's weight."""
    luck, most = np.random.default_rng(features), 0
    for sharpness in (1, 4, 16, 64):
        for _ in range(300):
            phi = luck.random((64, features)) ** sharpness
            table = phi @ phi.T
            most = max(most, int((2 * np.diag(table) > table.sum(1)).sum()))
    return most


def twins(size: int, draws: int = 100_000) -> tuple[float, float]:
    """Of a text that one pair in 1,000 has: the mean number in a batch, how often two or more."""
    counts = np.random.default_rng(0).binomial(size, 0.001, draws)
    return float(counts.mean()), float((counts > 1).mean())


def main() -> None:
    for length in (10, 12):
        print(f"{length} digits, one vector: {copied('GRU', length)} of 100")
    print("sum over j < i, outputs 0 and 2:", sums_before(0), sums_before(2).round(2))
    for features in (4, 16):
        print(f"{features} features: at most {safe_keys(features)} of 64 keys are safe")
    for settings in ((64, 256, 1.0), (64, 256, 0.07), (64, 32, 0.07), (2, 32, 0.07)):
        print(
            "random vectors, pairs, features, temperature",
            settings,
            f"{random_loss(*settings):.2f}",
        )
    print(f"a cosine of 1 at temperature 1: {np.e / (np.e + 63):.1%}")
    for size in (256, 4096):
        print(f"equal texts in a batch of {size}: {twins(size)}")
