"""`causal_mask`: no looking into the future."""

from autograder.student.authoring import Declaration, Draw, Run, call
from autograder.student.engine.simulated_device import SIMULATED

EXERCISE = Declaration("causal_mask", "No looking into the future", ("n_q", "n_k", "device"))


@EXERCISE.equals("as many queries as keys", 0.9)
def _square(draw: Draw) -> list[Run]:
    """Query i sees the keys 0 … i, itself included: True on the diagonal and below it."""
    n = draw.integer(6, 25)
    return [call(5), call(n_q=draw.integer(6, 40)), call(1), call(n, n), call(70)]


@EXERCISE.equals("fewer queries than keys", 1.0)
def _chunk(draw: Draw) -> list[Run]:
    """The queries are the last n_q of n_k positions, so query i is at position i + n_k − n_q. The
    last row is True everywhere: align at the bottom right."""
    n_q = draw.integer(2, 9)
    return [call(n_q, n_q + draw.integer(2, 20)), call(1, 6), call(n_q=4, n_k=5), call(2, 70)]


@EXERCISE.equals("more queries than keys", 0.5)
def _long(draw: Draw) -> list[Run]:
    """The same rule holds: the last query is at the last key, and a query before the first key sees
    nothing."""
    n_k = draw.integer(2, 9)
    return [call(n_k + draw.integer(2, 20), n_k), call(4, 1), call(70, 2)]


@EXERCISE.equals("no keys at all", 0.1)
def _none(_: Draw) -> list[Run]:
    """An n_k of 0 is a number of keys, not a missing one: the mask has no columns."""
    return [call(3, 0), call(n_q=1, n_k=0)]


EXERCISE.keeps_dtypes(0.25, "The mask is boolean, not 0 and 1.", _square)


@EXERCISE.raises("on the requested device", 0.25, RuntimeError)
def _nowhere(_: Draw) -> list[Run]:
    """Pass `device` on to whatever creates the tensor. (The check uses a device that does not
    exist: torch must reject it with a RuntimeError.)"""
    return [call(3, 5, device="nowhere")]  # torch rejects it if it gets that far


EXERCISE.follows_its_inputs(lambda _: [call(3, 5, device=SIMULATED)])
