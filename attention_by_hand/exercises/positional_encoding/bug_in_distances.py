"""`bug_in_distances`: two inputs for an attention that counts its queries from 0."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, call
from autograder.student.authoring.counterexample import Arrays, Bug

EXERCISE = Declaration("bug_in_distances", "Find the bug: the distances", ("n_k",), recorded=False)


def _more_queries_than_keys(arrays: Arrays) -> str | None:
    query, key, _ = arrays
    if len(query) > len(key):
        return f"expected at most as many queries as keys, {len(key)}, got {len(query)}"
    return None


def _values_alike(arrays: Arrays) -> str | None:
    if np.ptp(arrays[2], axis=0).max() < 0.1:
        return "all values are alike, so every average is the same: expected them to differ"
    return None


BUG = Bug(
    names=("query", "key", "value"),
    shapes=lambda n_k: [("n_q", "d_k"), (n_k, "d_k"), (n_k, "d_v")],
    function="distances",
    dull=_values_alike,
    unfit=_more_queries_than_keys,
)


def _sizes(draw: Draw) -> list[Run]:
    return [call(draw.integer(3, 5)), call(draw.integer(6, 9)), call(draw.integer(10, 30))]


BUG.declare(
    EXERCISE,
    _sizes,
    shows="The last query stands at the last key's position. Where does the function put it? Think "
    "of a model that writes: it brings one new query, and finds all earlier keys in its "
    "cache.",
    hides="With how many queries is the first one at position 0, as the function believes?",
)
