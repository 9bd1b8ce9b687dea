"""Wrong answers by kind: what each kind does to a reference, and that every one loses marks."""

import numpy as np
import pytest
import torch
from torch import nn

from autograder.judge.reference import reference
from autograder.student.course import chapters, exercises_of, find_exercise
from benchmarks.holes import kinds
from benchmarks.holes.edges import APART, EDGES
from benchmarks.holes.judging import all_wrong, caught, outcomes, problems

EXERCISES = [
    (slug, exercise.name)
    for slug in chapters()
    for exercise in exercises_of(slug)
    if exercise.recorded  # in the others, the answer is an input
]
SAMPLE = [
    ("kernel_regression", "kernel_weights"),
    ("multi_head", "split_heads"),
    ("multi_head", "head_importance"),
    ("positional_encoding", "permutation_gap"),
    ("residual_layernorm", "chunked_feed_forward"),
]


def lost(slug: str, name: str) -> list[str]:
    return problems(name, outcomes(slug, find_exercise(name)[1]))


@pytest.mark.share(5)
@pytest.mark.parametrize(("slug", "name"), SAMPLE)
def test_every_kind_of_wrong_answer_loses_marks(slug: str, name: str) -> None:
    assert lost(slug, name) == []


@pytest.mark.share(5)
@pytest.mark.nightly
@pytest.mark.parametrize(("slug", "name"), [e for e in EXERCISES if e not in SAMPLE])
def test_every_kind_of_wrong_answer_loses_marks_everywhere(slug: str, name: str) -> None:
    assert lost(slug, name) == []


@pytest.mark.share(8)
@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_each_wrong_answer_has_a_name_of_its_own_and_what_is_set_apart_is_one(slug, name) -> None:
    names = [f"{wrong.kind}: {wrong.name}" for wrong in all_wrong(slug, name)]
    assert len(set(names)) == len(names)
    assert bool(names) == (name not in {"byte_pair_merges", "byte_pair_encode", "ArithmeticCoder"})
    assert set(APART.get(name, ())) <= set(names)


def test_a_right_answer_is_not_caught() -> None:
    exercise = find_exercise("kernel_weights")[1]
    assert not caught("kernel_regression", exercise, reference("kernel_regression", exercise.name))


def wrong_one(slug: str, name: str, title: str):
    right = reference(slug, name)
    known = {f"{w.kind}: {w.name}": w for w in (*kinds.wrong_answers(right), *EDGES.get(name, ()))}
    return right, kinds.answer(right, known[title])


def test_one_size_is_wrong_and_no_other() -> None:
    right, wrong = wrong_one("multi_head", "split_heads", "more than 64: n")
    for n, same in ((64, True), (65, False)):
        x = torch.randn(1, n, 2)
        assert torch.equal(right(x, 2), wrong(x, 2)) is same


def test_one_branch_is_widened_and_no_other() -> None:
    title = "float32 widened: kernel boxcar"
    _, wrong = wrong_one("kernel_regression", "kernel_weights", title)
    points = np.zeros(3, "float32")
    assert wrong(points, points, "boxcar").dtype == np.float64
    assert wrong(points, points, "gaussian").dtype == np.float32


def test_what_is_flattened_by_view_refuses_what_has_no_such_view() -> None:
    _, wrong = wrong_one("residual_layernorm", "LayerNorm", "flattened by view: x")
    assert wrong(3)(torch.zeros(2, 3)).shape == (2, 3)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        wrong(3)(torch.zeros(3, 2).T)


def test_a_module_is_left_with_a_hook_in_one_mode_only() -> None:
    title = "a module passed in: feed_forward a hook left in training"
    _, wrong = wrong_one("residual_layernorm", "chunked_feed_forward", title)
    for training in (False, True):
        layer = nn.Linear(2, 2).train(training)
        wrong(layer, torch.zeros(1, 2, 2), 0)
        assert len(layer._forward_hooks) == training
