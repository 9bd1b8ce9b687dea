"""`head_importance`: which heads matter?"""

from dataclasses import replace

import numpy as np

from attention_by_hand.exercises.shared import State, attention_state, itself, our_attention, used
from autograder.student.authoring import (
    Declaration,
    Draw,
    Finding,
    Previous,
    Record,
    Run,
    StridedArray,
    Trial,
    as_argument,
    call,
    plain,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import compare, worst

EXERCISE = Declaration(
    "head_importance", "Which heads matter?", ("attention", "x"), uses=("MultiHeadAttention",)
)


def _faint(draw: Draw) -> State:
    """Parameters of an attention whose output hardly depends on its heads."""
    return attention_state(draw, 2) | {"W_o.weight": draw.tensor(2, 2, scale=3e-4)}


@EXERCISE.equals("one number per head", 1.5)
def _runs(draw: Draw) -> list[Run]:
    """Run attention(x, x, x) once in full and once per head with a head_mask, passed by name, that
    is 0 for this head and 1 for the others. The length of the difference, over the features, is one
    number per position; take their mean."""
    x = draw.tensor(1, 4, 8)
    return [
        call(our_attention(6, 3, attention_state(draw, 6)), draw.tensor(2, 5, 6)),
        call(attention=our_attention(8, 4, attention_state(draw, 8)), x=x),
        call(our_attention(8, 2, attention_state(draw, 8)), draw.tensor(3, 2, 8)),
        call(our_attention(4, 2, attention_state(draw, 4)), StridedArray(draw.tensor(2, 3, 4))),
        call(our_attention(2, 2, attention_state(draw, 2)), draw.tensor(1, 70, 2)),
        call(our_attention(2, 2, _faint(draw)), draw.tensor(2, 3, 2)),
    ]


@EXERCISE.equals("one head, one position, no bias", 0.5)
def _ends(draw: Draw) -> list[Run]:
    """With its only head masked, the output is the bias of W_o, or 0 without one."""
    return [
        call(our_attention(5, 1, attention_state(draw, 5)), draw.tensor(2, 3, 5)),
        call(
            our_attention(6, 2, attention_state(draw, 6, bias=False), bias=False),
            draw.tensor(1, 1, 6),
        ),
        call(our_attention(1, 1, attention_state(draw, 1)), draw.tensor(2, 3, 1)),
    ]


def _is_zero(run: Run, record: Record) -> str | None:
    found = plain(record.value)
    if found is None or found.shape != (3,):
        return "the result does not have one number per head"
    if np.abs(found[1]) > 1e-5:
        return f"the importance of a head that W_o ignores: expected 0, got {found[1]:.3g}"
    return None if found[[0, 2]].min() > 1e-3 else "a head that W_o uses has importance 0"


@EXERCISE.holds("a head that W_o ignores has importance 0", 0.5, _is_zero)
def _idle(draw: Draw) -> list[Run]:
    """Compare the outputs, after W_o, with and without the head."""
    state = attention_state(draw, 6)
    silent = state["W_o.weight"].data.copy()
    silent[:, 2:4] = 0.0  # W_o ignores head 1 of 3
    return [
        call(
            our_attention(6, 3, state | {"W_o.weight": tensor(silent, "float32")}),
            draw.tensor(2, 4, 6),
        )
    ]


def _attention_as_it_was(trial: Trial) -> Finding:
    """The importances twice, and what the attention then returns. For a module in training mode
    the importances are not defined, and only the last part counts."""
    training = trial.run.steps[0].args[0].name.endswith("in_training")
    judged = (3,) if training else (1, 2, 3)
    found = worst([compare(trial.record.values[i], trial.expected.values[i]) for i in judged])
    if found.passed or found.error is None:
        return found
    after = compare(trial.record.values[3], trial.expected.values[3])
    return found if after.passed else replace(after, message="the attention has changed")


def in_training(thing: Value) -> Value:
    """A module, switched to training mode."""
    return thing.train()


@EXERCISE.aspect("repeatable, and leaves the attention unchanged", 0.25, _attention_as_it_was)
def _again(draw: Draw) -> list[Run]:
    """Mask through head_mask; do not write into the module's parameters. If you change its
    train/eval mode, restore it."""
    # p = 1 shows the mode: in training mode, only the bias of W_o comes out.
    x, runs = draw.tensor(2, 3, 6), []
    for start, num_heads in ((itself, 2), (in_training, 3)):
        attention = our_attention(6, num_heads, attention_state(draw, 6))
        attention = replace(attention, kwargs={**(attention.kwargs or {}), "dropout": 1.0})
        run = Run(()).then_apply(as_argument(start), attention)
        run = run.then(Previous(0), x).then(Previous(0), x)
        runs.append(run.then_apply(Previous(0), x, x, x))
    return runs


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """float64 in, float64 out, and float32 for float32; return a tensor, not a list."""
    state = attention_state(draw, 6, dtype="float64")
    return [call(our_attention(6, 2, state), draw.double(2, 3, 6))]


EXERCISE.leaves_inputs_alone(0.05, _runs)


def _in_use(draw: Draw) -> list[Run]:
    runs = used(Run(()), our_attention(6, 2, attention_state(draw, 6)))
    return [run.then(Previous(0), draw.tensor(2, 3, 6)) for run in runs]


EXERCISE.leaves_state_alone(0.1, _runs, _in_use)
EXERCISE.follows_its_inputs(_runs)
