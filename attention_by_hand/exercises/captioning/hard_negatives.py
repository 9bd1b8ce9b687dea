"""`hard_negatives`: wrong partners that are hard to tell from the right ones."""

from dataclasses import replace

import numpy as np

from attention_by_hand.exercises.captioning.negatives import (
    NAMES,
    SHARP,
    as_often,
    kinds,
    own_partner,
    summary,
    wrong_form,
)
from attention_by_hand.exercises.shared import generator_for, summed_up
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Previous,
    Record,
    Run,
    as_argument,
    call,
    tensor,
)
from autograder.student.engine.aspects import numbers_of

EXERCISE = Declaration(
    "hard_negatives",
    "Hard negatives",
    ("similarity", "generator"),
    returns=NAMES,
)


def _sure(draw: Draw, B: int, scale: float = 60.0, dtype: str = "float32") -> Array:
    """Similarities in which every row and every column has one that outshines all others, except
    for the partners, which outshine even these."""
    turned = np.roll(np.arange(B), draw.integer(1, B - 1) if B < 4 else draw.integer(1, B - 2))
    if B > 2 and (turned[turned] == np.arange(B)).all():
        turned = np.roll(np.arange(B), 1)
    table = scale / 60 * draw.normal(B, B)
    table[np.arange(B), turned] += scale
    return tensor(table + 2 * scale * np.eye(B), dtype)


@EXERCISE.equals("one that outshines all others", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """Row i has a picture's similarities to all texts: its own, at i, is left out of the softmax,
    and a text is drawn from the rest. Column j has a text's similarities to all pictures. Return
    the texts of the pictures first, then the pictures of the texts."""
    return [
        call(_sure(draw, 4)),
        call(generator=None, similarity=_sure(draw, 5)),
        call(_sure(draw, 3), None),
        call(_sure(draw, 6)).then(_sure(draw, 5)),
    ]


@EXERCISE.equals("a batch of two", 0.25)
def _two(draw: Draw) -> list[Run]:
    """With two pairs there is only one wrong partner, whatever the similarities."""
    return [call(draw.tensor(2, 2)), call(tensor(np.zeros((2, 2)), "float32"))]


@EXERCISE.holds("drawn from the softmax, each on its own", 1.0, as_often)
def _drawn(draw: Draw) -> list[Run]:
    """torch.multinomial draws an index for each row of a table of probabilities: give it the
    softmax of the similarities, with −∞ in the place of the partners. Every row and every column is
    a draw of its own."""
    order, other = draw.permutation(3), draw.permutation(3)
    table, sharp = kinds(draw, 240, order), call(kinds(draw, 240, order, shares=SHARP))
    return [
        call(table).then(table).at_random(draw),
        call(kinds(draw, 150, other, -2.0)).then(kinds(draw, 150, other, 5.0)).at_random(draw),
        replace(sharp, steps=sharp.steps * 6).at_random(draw),
        summed_up(draw, summary),
    ]


EXERCISE.draws_anew(with_torchs=True)


@EXERCISE.holds("never the partner", 0.5, own_partner, only_if_right=True)
def _others(draw: Draw) -> list[Run]:
    """The partners stand on the diagonal. They are most alike, and the softmax would draw them
    most of the time: set the diagonal to −∞ before it."""
    tables = (
        tensor(draw.normal(B, B) + own * np.eye(B), "float32")
        for B, own in ((5, 4.0), (30, 2.0), (3, 30.0), (40, 0.0))
    )
    return [call(table).then(table).at_random(draw) for table in tables]


@EXERCISE.raises("a batch of one", 0.4, ValueError)
def _alone(draw: Draw) -> list[Run]:
    """A single pair has no negatives: nobody is left to draw."""
    return [call(draw.tensor(1, 1)), call(tensor([[0.0]], "float64"))]


def _drawn_with_it(run: Run, record: Record) -> str | None:
    results = [v for v in record.values if isinstance(v, tuple | list)]
    B = run.steps[-1].args[0].data.shape[0]
    misfit = next(filter(None, (wrong_form(v, B) for v in results)), None)
    if misfit or len(results) != 3:
        return misfit or "expected a pair from each of three calls"
    for name, *drawn in zip(NAMES, *results, strict=True):
        first, second, again = map(numbers_of, drawn)
        if (first != again).any():
            return f"{name}: with two generators of the same seed, expected the same draws"
        if (first == second).all():
            return f"{name}: two calls with one generator: expected other draws the second time"
    return None


_GENERATOR = as_argument(generator_for)


@EXERCISE.holds("a generator", 0.4, _drawn_with_it, only_if_right=True)
def _generator(draw: Draw) -> list[Run]:
    """Pass generator to every function that draws. The same seed then gives the same negatives, and
    the next call goes on where this one has stopped."""
    seed, table = draw.integer(0, 10**6), draw.tensor(40, 40)
    run = Run(()).then_apply(_GENERATOR, table, seed).then_apply(_GENERATOR, table, seed)
    for made in (0, 0, 1):
        run = run.then(table, generator=Previous(made))
    return [run.at_random(draw)]


@EXERCISE.equals("similarities of ±10,000", 0.1)
def _large(draw: Draw) -> list[Run]:
    """torch.softmax stays finite however large the numbers are; exp alone does not."""
    return [call(_sure(draw, 4, 1e4)), call(tensor(_sure(draw, 3).data - 1e4, "float32"))]


EXERCISE.keeps_dtypes(
    0.1,
    "Indices are long.",
    lambda draw: [call(_sure(draw, 4, dtype="float64")), call(_sure(draw, 3))],
)
EXERCISE.leaves_inputs_alone(0.1, _runs, _two)


@EXERCISE.equals("non-contiguous views", 0.05)
def _strided(draw: Draw) -> list[Run]:
    """A view counts like any other tensor."""
    return [call(_sure(draw, 5)).as_views()]


def _seeded(draw: Draw) -> list[Run]:
    table = draw.tensor(6, 6)
    run = Run(()).then_apply(_GENERATOR, table, draw.integer(0, 10**6))
    return [run.then(table, Previous(0)).at_random(draw)]


EXERCISE.leaves_state_alone(0.1, _seeded)
EXERCISE.follows_its_inputs(_runs, _two)
