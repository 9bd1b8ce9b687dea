"""Arguments that are kept by their identity, though their numbers have changed, cost marks."""

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from kept_arguments import keeping, verdict_on

from autograder.judge.reference import expected, records, reference
from autograder.student.course import chapters, exercises_of
from autograder.student.engine.runs import KEPT, Array
from autograder.student.engine.values import StridedArray
from autograder.student.engine.verdict import decide

EXERCISES = [(slug, e) for slug in chapters() for e in exercises_of(slug) if e.recorded]
NOT_BY_VALUES = {  # no results of theirs are the same in every right answer, or hardly any
    *("load_torch_weights", "prune_heads", "training_step", "load_gpt2"),
    *("beam_search", "bits_per_byte", "recall_at", "mask_tokens", "hard_negatives"),
}


def copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return [*map(copied, value)] if isinstance(value, list) else value.copy()


def trained(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def first_seen(known: dict, value: Any) -> Any:
    """What an object was when it was first seen."""
    if isinstance(value, np.ndarray | torch.Tensor | list) and not trained(value):
        return known.setdefault(id(value), (value, copied(value)))[1]
    return value


def in_one_array(answer: Any) -> Iterator[tuple[str, Any]]:
    """The answers that keep an argument by its identity, by the argument's name."""
    if isinstance(answer, type):
        for method, function in vars(answer).items():
            if callable(function) and not method.startswith("_"):
                for name in [*inspect.signature(function).parameters][1:]:
                    form = keeping(name, function, True, first_seen)
                    yield f"{method}, {name}", type(answer.__name__, (answer,), {method: form})
        return
    for name in inspect.signature(answer).parameters:
        yield name, keeping(name, answer, False, first_seen)


@pytest.mark.share(24)
@pytest.mark.parametrize(("slug", "exercise"), EXERCISES, ids=[e.name for _, e in EXERCISES])
def test_what_is_kept_by_identity_costs_marks_once_the_numbers_change(slug, exercise):
    if exercise.name in NOT_BY_VALUES:
        return
    runs = exercise.runs(b"identity")
    wanted = expected(slug, exercise.name, runs)
    given = [value for s in runs[-1][-1].steps for value in (*s.args, *s.kwargs.values())]
    writable = any(isinstance(v, Array | StridedArray | np.ndarray | list) for v in given)
    harmed = [
        what
        for what, variant in in_one_array(reference(slug, exercise.name))
        if not decide(exercise, runs, records(variant, runs), wanted).aspects[-1].passed
    ]
    assert bool(harmed) == writable


@pytest.mark.parametrize("name", ["memory", "x", "mask"])
def test_a_memory_that_is_kept_by_its_identity_is_told_as_that(name):
    answer = reference("captioning", "CrossAttention")
    form = keeping(name, answer.forward, True, first_seen)
    variant = type("CrossAttention", (answer,), {"forward": form})
    verdict = verdict_on("CrossAttention", variant, b"told")
    (failed,) = [a for a in verdict.aspects if not a.passed]
    assert failed.title == "further calls" and failed.kind == KEPT
    assert failed.message.startswith("right with new arguments, wrong with those of an earlier")


def test_what_is_kept_with_the_version_of_a_tensor_is_right():
    answer = reference("captioning", "CrossAttention")

    class CrossAttention(answer):  # type: ignore[misc, valid-type]
        def forward(self, x, memory, mask=None):
            kept = vars(self).setdefault("_kept", (None, 0, None))
            if kept[0] is not memory or kept[1] != memory._version:
                self._kept = memory, memory._version, memory.clone()
            return super().forward(x, memory if memory.requires_grad else self._kept[2], mask)

    verdict = verdict_on("CrossAttention", CrossAttention, b"told")
    assert verdict.score == verdict.points
