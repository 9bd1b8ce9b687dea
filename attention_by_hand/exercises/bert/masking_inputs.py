"""What `mask_tokens` has drawn, judged by what all right answers have in common."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograder.student.authoring import (
    Finding,
    Run,
    Trial,
    describe,
    part,
    plain,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import numbers_of

IGNORED = -100
NAMES = ("the inputs", "the labels")

Pair = tuple[np.ndarray, np.ndarray, np.ndarray]  # ids, inputs, labels
Settings = dict[str, Any]  # the arguments of a call, by name
Problem = Callable[[Settings, Sequence[Pair]], str | None]

_ORDER = ("ids", "mask_id", "vocab_size", "special_ids", "probability", "generator")


def settings(run: Run) -> Settings:
    """The arguments of the run's last call, by name."""
    step = run.steps[-1]
    given = dict(zip(_ORDER, step.args, strict=False)) | dict(step.kwargs)
    return {"special_ids": (), "probability": 0.15, "generator": None} | given


def in_draws(problem: Problem) -> Callable[[Trial], Finding]:
    """Judges by `problem(settings, pairs)`: what is wrong with the results of a random run."""

    def judge(trial: Trial) -> Finding:
        if not trial.run.random:  # carries no marks, but tells known mistakes apart
            return Finding(True)
        given = settings(trial.run)
        ids = numbers_of(given["ids"])
        pairs = []
        for value in trial.record.values:
            misfit = wrong_form(value, ids.shape)
            if misfit:
                return Finding(False, misfit, instructive=False)
            pairs.append((ids, numbers_of(value[0]), numbers_of(value[1])))
        line = problem(given, pairs)
        return Finding(False, line) if line else Finding(True)

    return judge


def wrong_form(value: Value, shape: tuple[int, ...]) -> str | None:
    """Why a result is not a pair of such arrays; None if it is."""
    found = [x for i in (0, 1) if (x := plain(part(value, i))) is not None]
    if len(value if isinstance(value, tuple | list) else ()) != 2 or len(found) != 2:
        return f"expected (inputs, labels), got {describe(value)}"
    named = zip(NAMES, found, strict=True)
    told = (f"{name}: expected shape {shape}, got {x.shape}" for name, x in named)
    return next((line for line, x in zip(told, found, strict=True) if x.shape != shape), None)


def unlike(what: str, where: np.ndarray, chance: float) -> str | None:
    """What is wrong with a share, if it is farther from `chance` than chance takes it in one of
    ten million cases."""
    spread = np.sqrt(max(where.size * chance * (1 - chance), 1.0))
    if abs(where.sum() - where.size * chance) <= 5.4 * spread + 1:
        return None
    return f"{what}: expected {chance:.1%}, got {where.mean() if where.size else 0.0:.1%}"


def unlike_fates(
    ids: np.ndarray, inputs: np.ndarray, labels: np.ndarray, mask_id: int, vocab: int
) -> str | None:
    """What is wrong with the shares of what becomes of the chosen tokens."""
    chosen = labels != IGNORED
    masked, kept = inputs == mask_id, inputs == ids
    return (
        unlike("chosen tokens that become mask_id", masked[chosen], 0.8 + 0.1 / vocab)
        or unlike("chosen tokens that stay", kept[chosen], 0.1 + 0.1 / vocab)
        or unlike("others among the chosen", ~(masked | kept)[chosen], 0.1 * (1 - 2 / vocab))
    )


def scattered(where: np.ndarray, axis: int) -> str:
    """How sums along an axis vary: as "independent" draws do, "more", or "less"."""
    sums, share = where.sum(axis), where.mean()
    wanted = max(where.shape[axis] * share * (1 - share), 1e-9)
    ratio, within = sums.var() / wanted, 6 * np.sqrt(2 / len(sums))
    return "independent" if abs(ratio - 1) < within else "more" if ratio > 1 else "less"


def hardly_varies(chosen: Sequence[np.ndarray]) -> bool:
    """Whether the number chosen of as many tokens in each of some calls varies by less than a tenth
    of what it does where each is drawn on its own: of 24 calls, in one of 80 million cases."""
    counts, share = [where.sum() for where in chosen], np.mean(chosen)
    return bool(np.var(counts, ddof=1) < 0.1 * chosen[0].size * share * (1 - share))


# --- for names -----------------------------------------------------------------------------------


def summary(mask_tokens: Value, seed: int) -> dict[str, object]:
    """What many draws have in common, without what is up to chance."""
    import torch

    def drawn(ids: Value, *others: Value) -> Pair:
        inputs, labels = mask_tokens(ids, *others)
        return numbers_of(ids), numbers_of(inputs), numbers_of(labels)

    def seeded() -> torch.Generator:
        return torch.Generator().manual_seed(seed)

    if _takes_long(mask_tokens):
        return {}
    torch.manual_seed(seed)
    many = torch.stack([(torch.arange(400) * 5 // 2).roll(i) for i in range(240)])
    zeros = torch.zeros(100, 300, dtype=torch.long)
    _, inputs, labels = drawn(zeros, 9, 4, [3], 0.5)
    told: dict[str, object] = {
        "rows": scattered(labels == 0, 1),
        "columns": scattered(labels == 0, 0),
    }
    kinds = [_steps(inputs[labels == 0] == i, 0.025) for i in (-1, 0, 1, 2, 3, 4, 9)]
    told["repeats"] = bool((drawn(zeros, 9, 4, [3], 0.5)[2] == labels).all())
    ids, inputs, labels = drawn(many, 500, 1000, [*range(250)], 0.5)
    chosen, special = labels != IGNORED, ids < 250
    blank = chosen & ~special & (ids != 500)
    other = (inputs != ids) & (inputs != 500)
    fates = [_steps(x[blank], 0.045) for x in (inputs == 500, inputs == ids, other)]
    told["whole"] = "more" in (told["rows"], told["columns"])
    if not told["whole"]:  # shares of few draws are up to chance
        told["chosen"], told["special"] = _steps(chosen[~special]), _steps(chosen[special])
        told["default"] = _steps(drawn(zeros, 1, 2)[2] == 0)
    told["labels"] = bool((labels[chosen] == ids[chosen]).all())
    told["elsewhere"] = bool((inputs[~chosen] == ids[~chosen]).all())
    some = [drawn(zeros[:5, :20], 9, 1, (), 1.0)[1] == 9 for _ in range(40)]
    few = [where.mean() for where in some]
    half = [drawn(zeros[:5, :20], 9, 4, (), 0.5)[2] == 0 for _ in range(40)]
    told["counts"] = hardly_varies(half), 0 < np.mean(few) < 1 and hardly_varies(some)
    masked = drawn(zeros, 1, 2, (), 1.0)[1] == 1
    told["one fate"] = {*few} == {0.0, 1.0}
    told["fate's rows"], told["fate's columns"] = (scattered(masked, axis) for axis in (1, 0))
    if not told["one fate"] and "more" not in (told["fate's rows"], told["fate's columns"]):
        number = len(np.unique(inputs[blank & other]))
        lots = drawn(zeros.new_full((240, 300), 7), 3, 100, (), 1.0)
        told["shares"] = unlike_fates(*lots, 3, 100) is None
        told["fates"], told["different"] = fates, sum(number > n for n in (1, 250, 500))
        told["ids"] = kinds if number > 250 else []
        told["two ids"] = _steps(masked) if number > 250 else -1
    generator = seeded()
    before = torch.random.get_rng_state()
    first, second = (drawn(many, 5, 1000, (), 0.5, generator)[1:] for _ in range(2))
    again = drawn(many, 5, 1000, (), 0.5, seeded())[1:]
    told["again"] = [bool((a == b).all()) for a, b in zip(first, again, strict=True)]
    told["the same"] = [bool((a == b).all()) for a, b in zip(first, second, strict=True)]
    told["alone"] = bool((before == torch.random.get_rng_state()).all())
    drew = []
    for own in (seed, seed + 1, seed):
        torch.manual_seed(own)
        drew.append(drawn(many[:12], 5, 1000, (), 0.5)[2])
    told["of the seed"] = [bool((drew[0] == other).all()) for other in drew[1:]]
    return told


def _takes_long(mask_tokens: Value) -> bool:
    """Whether 600,000 tokens, as are drawn for a summary, would take over two seconds.

    So it is with a loop over each token, and nobody should wait that long for a name. The best of
    three times is far from it on either side: what a processor does beside does not count.
    """
    import torch

    few, took = torch.zeros(10, 300, dtype=torch.long), []
    for _ in range(3):
        start = time.process_time()
        mask_tokens(few, 9, 4, [3], 0.5)
        took.append(time.process_time() - start)
    return min(took) > 2 * few.numel() / 6e5


def _steps(where: np.ndarray, step: float = 0.05) -> int:
    """A share, as a number of steps."""
    return int(np.round(where.mean() / step)) if where.size else -1
