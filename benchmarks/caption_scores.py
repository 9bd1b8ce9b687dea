"""How chapter 12's captioner and its rivals are scored: names that are right, partners found."""

from collections.abc import Iterable

import torch.nn.functional as F
from torch import Tensor

from solutions.captioning import recall_at


def parsed(name: str) -> tuple[str, str]:
    """Letter with its case, and mark."""
    letter, _, mark = name.partition(" WITH ")
    return letter, mark


def marks_of(written: list[str], names: list[str], known: set[tuple[str, str]]) -> dict:
    """The share that is right and, of what is wrong, the share of names known from training."""
    pairs = [(parsed(w), parsed(n)) for w, n in zip(written, names, strict=True)]
    wrong = [w for w, n in pairs if w != n]
    words = [
        sum(a == b for a, b in zip(w.split()[1:], n.split()[1:], strict=False))
        for w, n in zip(written, names, strict=True)
    ]
    return {
        "exact": share(w == n for w, n in pairs),
        "words": round(sum(words) / sum(len(n.split()) - 1 for n in names), 4),
        "letter": share(w[0] == n[0] for w, n in pairs),
        "mark": share(w[1] == n[1] for w, n in pairs),
        "wrong, but known": share(w in known for w in wrong) if wrong else None,
    }


def share(found: Iterable[bool]) -> float:
    found = list(found)
    return round(sum(found) / len(found), 4)


def recalls(*vectors: Tensor) -> dict:
    """Recall at 1 and at 5, both ways, of the vectors of pictures and of their names."""
    images, texts = (F.normalize(v, dim=-1) for v in vectors)
    at = {f"at {k}": [round(r, 4) for r in recall_at(images @ texts.T, k)] for k in (1, 5)}
    return {"names": len(images)} | at
