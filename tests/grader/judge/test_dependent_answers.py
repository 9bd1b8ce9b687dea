"""Which verdicts are made where an answer builds on others, and which of them counts."""

from dataclasses import replace

import pytest

from autograder.judge.dependent_answers import judge_with
from autograder.student.course import find_exercise
from autograder.student.engine.verdict import CORRECT, MISSING, WRONG, no_marks

EXERCISE = find_exercise("masked_attention")[1]
BLOCKS = {"causal_mask": "blocks:causal_mask", "masked_softmax": "blocks:masked_softmax"}


def verdict(outcome, score):
    return replace(no_marks(EXERCISE, outcome, ""), score=score)


RIGHT, HALF, NOTHING = verdict(CORRECT, 3.0), verdict(WRONG, 1.5), verdict(WRONG, 0.0)


@pytest.mark.parametrize(
    ("known", "helped", "own", "counts", "made"),
    [
        ({"causal_mask": RIGHT}, None, RIGHT, "own", ["own"]),
        ({"causal_mask": HALF}, RIGHT, RIGHT, "helped", ["causal_mask"]),
        ({"causal_mask": HALF}, HALF, NOTHING, "helped", ["causal_mask", "own"]),
        ({"causal_mask": HALF}, HALF, HALF, "own", ["causal_mask", "own"]),
        ({"causal_mask": HALF}, verdict(MISSING, 0.0), None, "neither", ["causal_mask"]),
    ],
)
def test_the_better_counts_and_no_more_is_run_than_is_needed(known, helped, own, counts, made):
    runs = []

    def judged(name, instead):
        runs.append(", ".join(instead) or "own")
        return helped if instead else own

    others = {"masked_softmax": RIGHT}
    found = judge_with(BLOCKS, "masked_attention", known | others, judged)
    assert runs == made
    assert found.score == (own if counts == "own" else helped).score
    assert (found.remark or "").count("causal_mask") == (counts == "helped")


@pytest.mark.parametrize(("own", "looked_at"), [(RIGHT, set()), (NOTHING, BLOCKS.keys())])
def test_answers_outside_the_file_are_judged_only_if_this_one_is_wrong(own, looked_at):
    known = {}

    def judged(name, instead):
        if name != "masked_attention":
            return NOTHING if name == "causal_mask" else RIGHT
        return RIGHT if instead else own

    found = judge_with(BLOCKS, "masked_attention", known, judged)
    assert known.keys() == looked_at
    assert found.score == RIGHT.score
