"""Chapter 1's comparison of kernels and its walks once more, on days and stops of their own."""

import math

import numpy as np
from matplotlib.cbook import get_sample_data

CLOCK = np.linspace(0, 24, 481)
KERNELS = {
    "gaussian": lambda u: np.exp(-u * u / 2),
    "boxcar": lambda u: 1.0 * (abs(u) <= 1),
    "epanechnikov": lambda u: np.maximum(0, 1 - u * u),
}


def warm(hour: np.ndarray) -> np.ndarray:
    return 13 - 6 * np.cos(math.pi * (hour - 3) / 12) + 2.5 * np.sin(math.pi * hour / 3)


def misses(kernel: str, w: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far each query's answer is from the truth; NaN where there is none."""
    counts = KERNELS[kernel]((CLOCK[:, None] - x) * w)
    with np.errstate(invalid="ignore"):
        return counts @ y / counts.sum(1) - warm(CLOCK)


def rms(errors: np.ndarray) -> float:
    return math.sqrt(np.nanmean(errors**2))


def day(seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    x = np.sort(draw.uniform(0, 24, 50))
    return x, warm(x) + draw.normal(0, 1, 50)


def beside_the_gaussian(x: np.ndarray, y: np.ndarray) -> dict[str, tuple[float, float]]:
    """Each kernel at its best on what it answers, and the Gaussian there at its best for all."""
    tried = {k: [misses(k, w, x, y) for w in np.geomspace(0.2, 10, 60)] for k in KERNELS}
    best = {kernel: min(errors, key=rms) for kernel, errors in tried.items()}
    return {
        k: (rms(e), rms(best["gaussian"][~np.isnan(e)])) for k, e in best.items() if k != "gaussian"
    }


def walked(seed: int, w: float) -> tuple[float, float]:
    """Squared errors of 80 stops, each left out in turn, and of all other places."""
    with np.load(get_sample_data("jacksboro_fault_dem.npz", asfileobj=False)) as survey:
        heights = survey["elevation"][len(survey["elevation"]) // 2].astype(float)
        turn = math.radians(float(survey["ymin"] + survey["ymax"]) / 2)
        km = float(survey["dx"]) * 111.2 * math.cos(turn) * np.arange(len(heights))
    stops = np.random.default_rng(seed).choice(len(km), 80, replace=False)
    found = {True: [], False: []}
    for i in range(len(km)):
        others = stops[stops != i]
        shares = KERNELS["gaussian"]((km[i] - km[others]) * w)
        guess = shares @ heights[others] / shares.sum() if shares.sum() else math.nan
        found[i in stops].append((guess - heights[i]) ** 2)
    return np.nanmean(found[True]), np.nanmean(found[False])


def main() -> None:
    for kernel, (own, gaussian) in beside_the_gaussian(*day(1964)).items():
        days = [beside_the_gaussian(*day(seed))[kernel] for seed in range(3000, 3050)]
        won = sum(theirs < its for its, theirs in days)
        print(
            f"{kernel}: {own:.2f}, the Gaussian there {gaussian:.2f}; it wins on {won} of 50 days"
        )
    errors = np.array([walked(seed, 3.21) for seed in range(50_000, 50_400)])
    ratio, more = np.sqrt(errors[:, 0] / errors[:, 1]), errors[:, 0] - errors[:, 1]
    half = 1.96 * more.std() / len(more) ** 0.5
    print(f"400 walks: promised {errors[:, 0].mean() ** 0.5:.1f} m,", end=" ")
    print(f"found {errors[:, 1].mean() ** 0.5:.1f} m, spread {ratio.std():.0%},", end=" ")
    print(f"promised² − found² {more.mean():.0f} ± {half:.0f}")
