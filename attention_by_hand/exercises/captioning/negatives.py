"""What `hard_negatives` has drawn, judged by what all right answers have in common."""

import numpy as np

from autograder.student.authoring import (
    Array,
    Draw,
    Record,
    Run,
    describe,
    part,
    plain,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import numbers_of

NAMES = ("text_of_image", "image_of_text")

_KINDS = 3
_SHARES = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])  # of the kinds of texts, of pictures
SHARP = np.array([[0.9, 0.07, 0.03], [0.03, 0.9, 0.07]])  # as told from flatter and sharper ones


def kinds(
    draw: Draw, B: int, order: np.ndarray, own: float = 2.0, shares: np.ndarray = _SHARES
) -> Array:
    """Similarities of pictures and texts of three kinds each: a row's softmax depends on the texts'
    kinds alone, and a column's on the pictures'. Partners are the most alike, by `own`. `order`
    says which kind has which share; drawn anew, it makes draws from another table misfits.
    """
    logs = np.log(shares[:, order])
    kind = np.arange(B) % _KINDS
    table = logs[1][kind][:, None] + logs[0][kind] + own * np.eye(B)
    return tensor(table + draw.normal(1), "float32")


def wrong_form(value: Value, B: int) -> str | None:
    """Why a result is not a pair of indices of others; None if it is."""
    found = [x for i in (0, 1) if (x := plain(part(value, i))) is not None]
    if len(value if isinstance(value, tuple | list) else ()) != 2 or len(found) != 2:
        return f"expected ({', '.join(NAMES)}), got {describe(value)}"
    for name, x in zip(NAMES, found, strict=True):
        if x.shape != (B,):
            return f"{name}: expected shape ({B},), got {x.shape}"
        strange = x[(x < 0) | (x >= B) | (x != np.round(x))]
        if strange.size:
            return f"{name}: expected indices from 0 to {B - 1}, got {strange[0]:g}"
    return None


def own_partner(run: Run, record: Record) -> str | None:
    """Somebody was given their own partner as a negative."""
    for value in record.values:
        B = run.steps[0].args[0].data.shape[0]
        misfit = wrong_form(value, B)
        if misfit:
            return misfit
        for name, x in zip(NAMES, value, strict=True):
            same = np.flatnonzero(plain(x) == np.arange(B))
            if same.size:
                return f"{name}[{same[0]}] is {same[0]}, the partner: expected another one"
    return None


def chances(table: np.ndarray) -> np.ndarray:
    """The softmax of each row without the diagonal."""
    without = np.where(np.eye(len(table), dtype=bool), -np.inf, table)
    e = np.exp(without - without.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def as_often(run: Run, record: Record) -> str | None:
    """What is wrong with the shares of the kinds that were drawn, or with how they hang together:
    farther from the chances than chance takes them in one of ten million cases."""
    if not run.random:  # carries no marks, but tells known mistakes apart
        return None
    table = numbers_of(run.steps[0].args[0])
    B, kind = len(table), np.arange(len(table)) % _KINDS
    misfit = next(filter(None, (wrong_form(value, B) for value in record.values)), None)
    if misfit:
        return misfit
    for which, (name, rows) in enumerate(zip(NAMES, (table, table.T), strict=True)):
        p = chances(rows.astype(float))
        drawn = [numbers_of(value[which]).astype(int) for value in record.values]
        if all((x == drawn[0]).all() for x in drawn[1:]):
            return f"{name}: two calls draw the same"
        for k in range(_KINDS):
            each = p[:, kind == k].sum(axis=1)
            number = sum(int((kind[x] == k).sum()) for x in drawn)
            wanted = len(drawn) * each.sum()
            spread = np.sqrt(len(drawn) * (each * (1 - each)).sum())
            if abs(number - wanted) > 5.4 * spread + 1:
                share, got = wanted / (B * len(drawn)), number / (B * len(drawn))
                return (
                    f"{name}: similarities of kind {k}, which have {share:.0%} of the softmax, are "
                    f"drawn {got:.0%} of the time"
                )
        most = max(int(np.bincount(x).max()) for x in drawn)
        if most > 0.15 * B:
            return f"{name}: one index is drawn {most} times in {B} draws; expected more variety"
    first, second = (numbers_of(x) for x in record.values[0])
    together = int((first == second).sum())
    if together > 0.1 * B:
        return f"text_of_image and image_of_text are the same at {together} of {B} places"
    return None


# --- for names -----------------------------------------------------------------------------------


def summary(hard_negatives: Value, seed: int) -> dict[str, object]:
    """What many draws have in common, without what is up to chance."""
    import torch

    B, calls = 300, 8
    kind = np.arange(B) % _KINDS
    logs = np.log(_SHARES)
    table = torch.tensor(logs[1][kind][:, None] + logs[0][kind] + 2.0 * np.eye(B)).float()
    torch.manual_seed(seed)
    pairs = [[numbers_of(x).astype(int) for x in hard_negatives(table)] for _ in range(calls)]
    told: dict[str, object] = {}
    for which, name in enumerate(NAMES):
        x = np.stack([pair[which] for pair in pairs])
        told[name] = [round(10 * float((kind[x] == k).mean())) for k in range(_KINDS)]
        told[f"{name}, own"] = bool((x == np.arange(B)).any())
        told[f"{name}, calls"] = bool((x == x[:1]).all())
        told[f"{name}, rows"] = bool((x == x[:, :1]).mean() > 0.5)
        told[f"{name}, twice"] = [len(np.unique(row)) == B for row in x].count(True) > 1
    told["together"] = bool((pairs[0][0] == pairs[0][1]).mean() > 0.5)
    generator = torch.Generator().manual_seed(seed)
    before = torch.random.get_rng_state()
    first, second = (hard_negatives(table, generator) for _ in range(2))
    again = hard_negatives(table, torch.Generator().manual_seed(seed))
    told["again"] = [bool((a == b).all()) for a, b in zip(first, again, strict=True)]
    told["the same"] = [bool((a == b).all()) for a, b in zip(first, second, strict=True)]
    told["alone"] = bool((before == torch.random.get_rng_state()).all())
    return told
