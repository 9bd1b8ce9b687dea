"""`head_importance`: which heads matter?"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    compare,
    dtypes_kept,
    each,
    equals_reference,
    has_property,
    inputs_untouched,
    no_side_effects,
    plain,
    worst,
)
from autograder.engine.runs import (
    Aspect,
    Draw,
    Exercise,
    Finding,
    Previous,
    Recipe,
    Record,
    Run,
    Trial,
    call,
    tensor,
)
from autograder.exercises.multi_head.shared import attention_state, our_attention

_HERE = "autograder.exercises.multi_head:"


def _importance_runs(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(1, 4, 8)
    return [
        call(our_attention(6, 3, attention_state(draw, 6)), draw.tensor(2, 5, 6)),
        call(attention=our_attention(8, 4, attention_state(draw, 8)), x=x),
        call(our_attention(8, 2, attention_state(draw, 8)), draw.tensor(3, 2, 8)),
    ]


def _importance_ends(draw: Draw) -> Sequence[Run]:
    return [
        call(our_attention(5, 1, attention_state(draw, 5)), draw.tensor(2, 3, 5)),
        call(
            our_attention(6, 2, attention_state(draw, 6, bias=False), bias=False),
            draw.tensor(1, 1, 6),
        ),
    ]


def _importance_idle(draw: Draw) -> Sequence[Run]:
    state = attention_state(draw, 6)
    silent = state["W_o.weight"].data.copy()
    silent[:, 2:4] = 0.0  # head 1 of 3 is not listened to
    return [
        call(
            our_attention(6, 3, state | {"W_o.weight": tensor(silent, "float32")}),
            draw.tensor(2, 4, 6),
        )
    ]


def _importance_is_zero(run: Run, record: Record) -> str | None:
    found = plain(record.value)
    if found is None or found.shape != (3,):
        return "the result has not one number per head"
    if np.abs(found[1]) > 1e-5:
        return f"a head that W_o ignores has importance {found[1]:.3g}, not 0"
    return None if found[[0, 2]].min() > 1e-3 else "a head that W_o listens to has importance 0"


def in_training(thing: Any) -> Any:
    """A module, switched to training mode."""
    return thing.train()


def _importance_again(draw: Draw) -> Sequence[Run]:
    """Dropout 1 shows the mode: in training mode, nothing but the bias of W_o comes out."""
    x, runs = draw.tensor(2, 3, 6), []
    for start, num_heads in (("itself", 2), ("in_training", 3)):
        attention = our_attention(6, num_heads, attention_state(draw, 6))
        attention = replace(attention, kwargs={**attention.kwargs, "dropout": 1.0})
        run = Run(()).then_apply(Recipe(_HERE + start), attention)
        run = run.then(Previous(0), x).then(Previous(0), x)
        runs.append(run.then_apply(Previous(0), x, x, x))
    return runs


def _attention_as_it_was(trial: Trial) -> Finding:
    """The importances twice, and what the attention then gives. What is important to a module in
    training mode is a matter of taste."""
    training = trial.run.steps[0].args[0].name.endswith("in_training")
    judged = (3,) if training else (1, 2, 3)
    found = worst([compare(trial.record.values[i], trial.expected.values[i]) for i in judged])
    if found.passed or found.error is None:
        return found
    after = compare(trial.record.values[3], trial.expected.values[3])
    return found if after.passed else replace(after, message="the attention is not as it was")


def _importance_double(draw: Draw) -> Sequence[Run]:
    state = attention_state(draw, 6, dtype="float64")
    return [call(our_attention(6, 2, state), draw.tensor(2, 3, 6, dtype="float64"))]


HEAD_IMPORTANCE = Exercise(
    "head_importance",
    "Which heads matter?",
    ("attention", "x"),
    (
        equals_reference(
            "one number per head",
            1.5,
            "Run attention(x, x, x) once in full and once per head with a head_mask that is 0 for "
            "this head and 1 for the others (pass it by its name). The length of the difference, "
            "over the features, is one number per position; take their mean.",
            _importance_runs,
        ),
        equals_reference(
            "one head, one position, no bias",
            0.5,
            "With its only head masked, the output is the bias of W_o, or 0 without one.",
            _importance_ends,
        ),
        has_property(
            "a head that is not listened to has importance 0",
            0.5,
            "Compare outputs, after W_o, with and without the head.",
            _importance_idle,
            _importance_is_zero,
        ),
        Aspect(
            "twice the same, and the attention as it was",
            0.25,
            "Mask through head_mask; do not write into the module's parameters. If you change its "
            "train/eval mode, put it back.",
            _importance_again,
            each(_attention_as_it_was),
        ),
        dtypes_kept(0.1, "float64 in, float64 out; a tensor, not a list.", _importance_double),
        inputs_untouched(0.05, _importance_runs),
        no_side_effects(0.1, _importance_runs),
    ),
    uses=("MultiHeadAttention",),
)
