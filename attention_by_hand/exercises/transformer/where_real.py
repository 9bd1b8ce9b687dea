"""Compares logits wherever there is a token."""

from dataclasses import replace

import numpy as np

from attention_by_hand.exercises.parameters import padded
from autograder.student.authoring import Array, Draw, Finding, Run, Step, Trial, plain
from autograder.student.engine.aspects import compare, worst

DEEP = 3.0  # times the tolerance: rounding of positions in float32 grows from layer to layer


def _written(step: Step) -> np.ndarray | None:
    """The ids for each of which a call has a result."""
    if step.method:
        return plain(step.args[0]) if step.method in ("encode", "decode") else None
    return plain(step.kwargs.get("target", step.args[-1] if step.args else None))


def found_where_real(trial: Trial, slack: float = DEEP) -> list[Finding]:
    """Of each call: the results equal the reference's wherever there is a token; padding may hold
    anything."""
    pad_id = trial.run.constructor.kwargs.get("pad_id", 0)
    findings: list[Finding] = []
    for step, value, expected in zip(
        trial.run.steps, trial.record.values, trial.expected.values, strict=True
    ):
        ids, shown = _written(step), value
        if ids is not None and isinstance(value, Array) and value.data.shape == expected.data.shape:
            real = (ids != pad_id)[..., None]
            shown = replace(value, data=np.where(real, value.data, expected.data))
        findings.append(replace(compare(shown, expected, slack=slack), step=len(findings)))
    return findings


def padded_anew(draw: Draw, run: Run) -> Run:
    """Other padding in texts of the same lengths, of source and target; then another memory in the
    same tensor."""
    for longest in (4, 4, 6, 6, 3, 3, 4):
        shorter = draw.permutation(longest)[:2] + 1
        source = padded(draw, (longest, *shorter), 7)
        run = run.then(source, padded(draw, (longest, *shorter[::-1]), 6))
    for memory in (draw.tensor(3, 4, 6), draw.tensor(3, 4, 6)):
        source, target = padded(draw, (4, 2, 3), 7), padded(draw, (3, 2, 1), 6)
        run = run.then_method("decode", target, memory, source)
    return run.in_place()


def right_where_real(trial: Trial) -> Finding:
    return worst(found_where_real(trial))
