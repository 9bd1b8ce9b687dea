"""`causal_mask`: no look into the future."""

from collections.abc import Sequence

from autograder.engine.aspects import dtypes_kept, equals_reference, raises
from autograder.engine.runs import Draw, Exercise, Run, call


def _causal_square(draw: Draw) -> Sequence[Run]:
    n = draw.integer(6, 25)
    return [call(5), call(n_q=draw.integer(6, 40)), call(1), call(n, n)]


def _causal_chunk(draw: Draw) -> Sequence[Run]:
    n_q = draw.integer(2, 9)
    return [call(n_q, n_q + draw.integer(2, 20)), call(1, 6), call(n_q=4, n_k=5)]


def _causal_long(draw: Draw) -> Sequence[Run]:
    n_k = draw.integer(2, 9)
    return [call(n_k + draw.integer(2, 20), n_k), call(4, 1)]


def _causal_nowhere(_: Draw) -> Sequence[Run]:
    return [call(3, 5, device="nowhere")]  # torch refuses it, if it gets that far


CAUSAL_MASK = Exercise(
    "causal_mask",
    "No look into the future",
    ("n_q", "n_k", "device"),
    (
        equals_reference(
            "as many queries as keys",
            1.0,
            "Query i sees the keys 0 … i, itself included: True on the diagonal and below it.",
            _causal_square,
        ),
        equals_reference(
            "fewer queries than keys",
            1.0,
            "The queries are the last n_q of n_k positions, so query i stands at position "
            "i + n_k − n_q. The last row is True everywhere: align at the bottom right.",
            _causal_chunk,
        ),
        equals_reference(
            "more queries than keys",
            0.5,
            "The same rule holds: the last query stands at the last key, and a query before the "
            "first key sees nothing.",
            _causal_long,
        ),
        dtypes_kept(0.25, "Make a boolean mask: dtype=torch.bool.", _causal_square),
        raises(
            "on the device that is asked for",
            0.25,
            "Hand `device` on to whatever makes the tensor. (Tried with a device that does not "
            "exist: torch has to refuse it with a RuntimeError.)",
            _causal_nowhere,
            RuntimeError,
        ),
    ),
)
