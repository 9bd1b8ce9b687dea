"""`recall_at`: how often the right partner is among the best."""

from functools import partial

import numpy as np

from attention_by_hand.exercises.shared import applied
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Previous,
    Record,
    Run,
    call,
    describe,
    part,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import same_results

NAMES = ("image → text", "text → image")
FLOAT64 = ("scalar", "float64")

EXERCISE = Declaration(
    "recall_at",
    "How often the partner is found",
    ("similarity", "k"),
    returns=NAMES,
)
# A share may be a mean in float32, which has 7 digits; a float otherwise has to have 8.
SHARES = partial(same_results, slack=20.0)


def _table(draw: Draw, n: int, ease: float = 0.7, dtype: str = "float32") -> Array:
    """Similarities in which partners are above the others, more or less."""
    return tensor(draw.normal(n, n) + ease * np.eye(n), dtype)


def _told_apart(draw: Draw, n: int, k: int, ease: float = 0.7) -> Array:
    """Similarities with another recall for rows than for columns, neither 0 nor 1."""
    while True:
        table = _table(draw, n, ease)
        own = np.diag(table.data)
        rows, columns = (
            (table.data > o).sum(axis) < k for o, axis in ((own[:, None], 1), (own, 0))
        )
        if rows.sum() != columns.sum() and {*rows} == {*columns} == {True, False}:
            return table


@EXERCISE.aspect("the share of rows, and that of columns", 1.0, SHARES)
def _runs(draw: Draw) -> list[Run]:
    """Row i's partner is in column i. Count the rows where it is among the k highest, and divide by
    n; then do the same with the columns. The first number is that of the rows."""
    return [
        call(_told_apart(draw, 5, 1), 1),
        call(k=2, similarity=_told_apart(draw, 6, 2)),
        call(_told_apart(draw, 8, 3, 0.0), 3),
        call(_told_apart(draw, 4, 2, 0.0), 2),
        call(_told_apart(draw, 66, 5), 5),
    ]


@EXERCISE.aspect("equal numbers", 0.6, SHARES)
def _ties(draw: Draw) -> list[Run]:
    """Of equal numbers, the one with the lower index comes first: a partner is passed by those that
    are higher, and by those that are as high and stand before it. torch.topk promises no order;
    argsort does with stable=True."""
    low = tensor(draw.integers(0, 1, 7, 7), "float32")
    return [
        call(tensor(np.ones((5, 5)), "float32"), 2),
        call(tensor(np.zeros((4, 4)), "float32"), 1),
        call(low, 2),
        call(low, 4),
        call(tensor(draw.integers(0, 2, 9, 9), "float32"), 3),
        call(tensor(draw.integers(0, 1, 40, 40), "float64"), 12),
    ]


@EXERCISE.aspect("one pair, as many as there are, and more", 0.4, SHARES)
def _ends(draw: Draw) -> list[Run]:
    """With k of n or more, every partner is among the best: both shares are 1."""
    return [
        call(_table(draw, 1), 1),
        call(_table(draw, 1), 3),
        call(_table(draw, 4), 4),
        call(_table(draw, 3), 9),
        call(_told_apart(draw, 4, 3, 0.0), 3),
        call(tensor(-10 * np.eye(3), "float32"), 2),
        call(tensor(np.eye(4), "float32"), 1),
    ]


@EXERCISE.aspect("numbers below 0, large ones, and ones that hardly differ", 0.25, SHARES)
def _sizes(draw: Draw) -> list[Run]:
    """Compare the similarities as they are: neither rounded nor by their absolute values."""
    near = draw.permutation(36).reshape(6, 6) + 100 * np.eye(6)
    return [
        call(tensor(_told_apart(draw, 6, 2).data - 9.0, "float32"), 2),
        call(tensor(_told_apart(draw, 6, 2).data * 1e4, "float32"), 2),
        call(tensor(1.0 + 1e-12 * near, "float64"), 2),
        call(tensor(1.0 + 1e-6 * near, "float32"), 2),
    ]


@EXERCISE.raises("k below 1", 0.4, ValueError, naming=lambda run: [_k(run)])
def _refused(draw: Draw) -> list[Run]:
    """Nothing is among the best 0. Raise a ValueError that names k, whatever the similarities."""
    return [
        call(_table(draw, 3), 0),
        call(_table(draw, 4), -2),
        call(similarity=_table(draw, 2), k=-17),
    ]


def _k(run: Run) -> int:
    step = run.steps[-1]
    return step.kwargs["k"] if "k" in step.kwargs else step.args[-1]


def in_a_graph(similarity: Value) -> Value:
    """The same numbers, as a model returns them in training."""
    return similarity.requires_grad_() * 1.0


@EXERCISE.aspect("similarities that still belong to a graph", 0.1, SHARES, only_if_right=True)
def _live(draw: Draw) -> list[Run]:
    """Similarities of a model in training know how they were made: .numpy() refuses such tensors,
    and so does any writing into them."""
    return [applied(in_a_graph, _told_apart(draw, 5, 2, 0.0)).then(Previous(0), 2)]


def _no_float(run: Run, record: Record) -> str | None:
    """A share that is no float, whatever its digits."""
    for value in record.values:
        for i, name in enumerate(NAMES):
            share = part(value, i)
            of_numpy = isinstance(share, Array) and (share.kind, share.dtype) == FLOAT64
            if not (isinstance(share, float) or of_numpy):
                return f"{name}: expected a float, got {describe(share)}"
    return None


EXERCISE.holds(
    "dtype",
    0.05,
    _no_float,
    "Both shares are numbers of Python, floats.",
    _runs,
    only_if_right=True,
)
EXERCISE.leaves_inputs_alone(0.1, _runs, _ties)


@EXERCISE.aspect("non-contiguous views", 0.05, SHARES)
def _strided(draw: Draw) -> list[Run]:
    """A view counts like any other tensor."""
    return [call(_told_apart(draw, 6, 2, 0.0), 2).as_views()]


EXERCISE.leaves_state_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs, _ties)
