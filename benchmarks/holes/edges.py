"""The edges of single contracts, and what does not apply to an exercise, each with the reason."""

from typing import Any

import numpy as np
import torch

from benchmarks.holes.kinds import Bound, Condition, Wrong, off_where


def _no_score(name: str) -> Condition:
    def condition(bound: Bound) -> bool:
        scores, mask = bound[name], bound.get("mask")
        if isinstance(scores, torch.Tensor):
            scores = scores.detach().double().numpy()
        if scores.dtype.kind != "f":
            return False
        seen = np.asarray(True if mask is None else mask)
        rows = np.broadcast_to(seen, scores.shape) & ~np.isneginf(scores)
        allowed = np.broadcast_to(seen, scores.shape).any(-1)
        return bool((allowed & ~rows.any(-1)).any())

    return condition


def _far(bound: Bound) -> bool:
    query, key = (np.asarray(bound[n], dtype=np.float64) for n in ("query", "key"))
    u = (query[:, None] - key[None, :]) * bound.get("w", 1.0)
    return bool((np.exp(-0.5 * u**2) == 0).all(-1).any())


def _another_width(bound: Bound, result: Any) -> Any:
    return result if result.shape == bound["x"].shape else result + 1


EDGES = {
    "softmax": [Wrong("edges", "a row of −inf only", off_where(_no_score("scores")))],
    "masked_softmax": [
        Wrong("edges", "allowed scores of −inf only", off_where(_no_score("scores")))
    ],
    "nadaraya_watson": [Wrong("edges", "everything underflows", off_where(_far))],
    "kernel_weights": [
        Wrong(
            "edges",
            "everything underflows, gaussian",
            off_where(lambda b: b["kernel"] == "gaussian" and _far(b)),
        )
    ],
    "KernelRegression": [
        Wrong(
            "edges",
            "a single point, excluded from itself",
            off_where(lambda b: bool(b.get("exclude_self")) and len(b["key"]) == 1),
        ),
    ],
    "chunked_feed_forward": [Wrong("edges", "an output of another width", _another_width)],
}

_OF_A_NORM = "a norm's result has size 1; a threshold of 1e-3 is within what one number may be off"
_EVEN = "the size is even"
_NEW = "a right answer may put new parameters there, and these are trained"

# By the exercise, and by what a wrong answer is called.
APART = {
    "load_torch_weights": {"a module passed in: attention unfrozen": _NEW},
    "leave_one_out_mse": {"of size 1: n": "there are at least two points"},
    "shift_matrix": {"of size 1: d_model": _EVEN},
    "rotary_embedding": {"of size 1: d": _EVEN},
    "rotary_attention": {"of size 1: d_k": _EVEN},
    "masked_softmax": {
        "edges: allowed scores of −inf only": "the docstring makes no promise for such a row"
    },
    "beam_search": {"flattened by view: source": "a single row can be flattened, however it lies"},
    "Residual": {"small differences: nothing below a thousandth": _OF_A_NORM},
    "EncoderLayer": {"small differences: nothing below a thousandth": _OF_A_NORM},
}
