"""Inputs that several exercises of the chapter share."""

from typing import Any

from autograder.student.authoring import Draw


def qkv_inputs(draw: Draw, B: int, n_q: int, n_k: int, d: int, **kwargs: Any) -> tuple:
    return tuple(draw.tensor(B, n, d, **kwargs) for n in (n_q, n_k, n_k))
