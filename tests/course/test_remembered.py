"""Results and arguments that are kept from one call for the next cost marks."""

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from kept_arguments import keeping, verdict_on

from autograder.bank import banks
from autograder.judge.reference import expected, records, reference
from autograder.student.course import chapters, exercises_of, find_exercise
from autograder.student.engine.runs import KEPT, Array, Finding, Record, Step, StridedArray, call
from autograder.student.engine.verdict import decide
from autograder.student.expected import SEED, entry_of, fixed_runs
from autograder.student.table import table_text

EXERCISES = [(slug, e) for slug in chapters() for e in exercises_of(slug) if e.recorded]


def key(value: Any) -> Any:
    """Of arrays the shape and dtype alone, of anything else the name of its type."""
    if isinstance(value, np.ndarray | torch.Tensor):
        return tuple(value.shape), str(value.dtype)
    if isinstance(value, list | tuple):
        return (type(value), *map(key, value))
    return type(value).__name__


def recall(known: dict, shapes: Any, make: Callable, one_slot: bool) -> Any:
    """What is known for these shapes; in one slot, only as long as they stay the same."""
    if shapes not in known:
        value = make()  # which may raise
        if one_slot:
            known.clear()
        known[shapes] = value
    return known[shapes]


def remembering(function: Callable, of_an_object: bool, one_slot: bool = False) -> Callable:
    """The function, which gives the first result again for arguments of the same shapes."""
    kept: dict = {}

    @functools.wraps(function)
    def remembered(*args: Any, **kwargs: Any) -> Any:
        known = vars(args[0]).setdefault("_" + function.__name__, {}) if of_an_object else kept
        shapes = tuple(map(key, args)), tuple((n, key(v)) for n, v in sorted(kwargs.items()))
        return recall(known, shapes, lambda: function(*args, **kwargs), one_slot)

    return remembered


def forms(function: Callable, of_an_object: bool) -> Iterator[tuple[str, Callable]]:
    for one_slot, told in ((False, ""), (True, " in one slot")):
        yield f"the result{told}", remembering(function, of_an_object, one_slot)

        def of_this_shape(known: dict, value: Any, one_slot: bool = one_slot) -> Any:
            return recall(known, key(value), lambda: value, one_slot)

        for name in [*inspect.signature(function).parameters][of_an_object:]:
            yield f"{name}{told}", keeping(name, function, of_an_object, of_this_shape)


def variants(answer: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(answer, type):
        yield from forms(answer, False)
        return
    for name, method in vars(answer).items():
        if callable(method) and not name.startswith("_"):
            for what, form in forms(method, True):
                yield f"{name}, {what}", type(answer.__name__, (answer,), {name: form})


def slug_of(name: str) -> str:
    return find_exercise(name)[0]


JUDGED_ON_THEIR_OWN = {  # no results of theirs are the same in every right answer
    *("load_torch_weights", "prune_heads", "training_step", "load_gpt2"),
    *("beam_search", "bits_per_byte", "recall_at"),
}


def key_of(step: Step, sizes: bool = False) -> Any:
    """The shapes of a call that is yet to be made, and `sizes` that are numbers."""

    def shapes(value: Any) -> Any:
        value = value.array if isinstance(value, StridedArray) else value
        if sizes and isinstance(value, int | dict):
            return value if isinstance(value, int) else len(value)
        return key(value.data if isinstance(value, Array) else value)

    return step.method, *map(shapes, [*step.args, *step.kwargs.values()])


@pytest.mark.share(24)
@pytest.mark.parametrize(("slug", "exercise"), EXERCISES, ids=[e.name for _, e in EXERCISES])
def test_what_is_kept_by_shape_from_one_call_to_the_next_costs_marks(slug, exercise):
    runs = exercise.runs(b"remembered")
    wanted = expected(slug, exercise.name, runs)
    unharmed = {
        what
        for what, variant in variants(reference(slug, exercise.name))
        if decide(exercise, runs, records(variant, runs), wanted).score == exercise.points
    }
    # There is only one device to ask for.
    assert not {what for what in unharmed if not what.startswith("device")}


def by_words(answer: Any) -> Callable:
    """The function, which gives the first result again for the same words."""
    kept: dict = {}

    @functools.wraps(answer)
    def remembered(*args: Any, **kwargs: Any) -> Any:
        words = inspect.signature(answer).bind(*args, **kwargs).args[0]
        return [*kept.setdefault(tuple(words), answer(*args, **kwargs))]

    return remembered


def first_of_its_length(mask_of: str) -> type:
    """A Transformer that keeps the padding of the first texts of each length."""
    answer = reference("transformer", "Transformer")

    class Keeping(answer):  # type: ignore[misc, valid-type]
        def kept(self, ids: torch.Tensor) -> torch.Tensor:
            pads = vars(self).setdefault("_pads", {}).setdefault(ids.shape, ids == self.pad_id)
            word = (self.pad_id + 1) % 2
            return torch.where(pads, self.pad_id, ids.masked_fill(ids == self.pad_id, word))

        def encode(self, source: torch.Tensor) -> torch.Tensor:
            return super().encode(self.kept(source) if mask_of == "source" else source)

        def decode(self, target: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            kept = self.kept(target) if mask_of == "target" else target
            return super().decode(kept, *args, **kwargs)

    return Keeping


def cut_for_good() -> type:
    """Positions from a table that is cut to the text, and stays cut."""
    answer = reference("positional_encoding", "PositionalEncoding")

    class Cut(answer):  # type: ignore[misc, valid-type]
        def forward(self, x: torch.Tensor, offset: int = 0) -> torch.Tensor:
            if not offset and x.shape[-2] <= len(self.pe):
                self.most = min(x.shape[-2], vars(self).get("most", len(self.pe)))
                rows = x[..., : self.most, :] + self.pe[: self.most].to(x.dtype)
                return self.dropout(torch.cat([rows, x[..., self.most :, :]], dim=-2))
            return super().forward(x, offset)

    return Cut


STATES: dict[str, tuple[str, Callable]] = {
    "pieces by word": ("byte_pair_encode", by_words),
    "merges by words": ("byte_pair_merges", by_words),
    "padding of the source": ("Transformer", lambda _: first_of_its_length("source")),
    "padding of the target": ("Transformer", lambda _: first_of_its_length("target")),
    "a table that is cut": ("PositionalEncoding", lambda _: cut_for_good()),
}


@pytest.mark.parametrize("what", STATES)
def test_what_else_is_kept_costs_marks(what):
    name, made = STATES[what]
    verdict = verdict_on(name, made(reference(slug_of(name), name)), b"kept")
    assert [a.title for a in verdict.aspects if a.kind == KEPT] == ["further calls"]


def numbers_of(value: Any) -> Any:
    """A key made of a value's numbers."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), str(value.dtype), str(value.tolist())
    return tuple(map(numbers_of, value)) if isinstance(value, list | tuple) else str(value)


def remembering_by_value(method: Callable) -> Callable:
    """The method, which gives a result again for the same numbers, whatever its object's
    parameters have become."""

    @functools.wraps(method)
    def remembered(self: Any, *args: Any, **kwargs: Any) -> Any:
        known = vars(self).setdefault("_known", {})
        given = numbers_of([method.__name__, args, sorted(kwargs.items()), self.training])
        if given not in known:
            known[given] = method(self, *args, **kwargs)
        return known[given]

    return remembered


TRAINED = [(slug, e) for slug, e in EXERCISES if any(run.state for run in e.runs(b"trained")[-1])]


@pytest.mark.share(8)
@pytest.mark.parametrize(("slug", "exercise"), TRAINED, ids=[e.name for _, e in TRAINED])
def test_results_that_outlast_the_parameters_cost_marks(slug, exercise):
    answer = reference(slug, exercise.name)
    forms = {
        name: remembering_by_value(method)
        for name, method in vars(answer).items()
        if callable(method) and not name.startswith("_")
    }
    verdict = verdict_on(exercise.name, type(answer.__name__, (answer,), forms), b"trained")
    assert "further calls" in [a.title for a in verdict.aspects if not a.passed]


class OneArray(reference("vision_transformer", "PatchEmbedding")):  # type: ignore[misc]
    """Patches that are written into one tensor again and again."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out = super().forward(images)
        kept = vars(self).setdefault("_kept", {}).setdefault(out.shape, torch.empty_like(out))
        with torch.no_grad():
            return kept.copy_(out)


@pytest.mark.parametrize(("slug", "exercise"), EXERCISES, ids=[e.name for _, e in EXERCISES])
def test_calls_of_the_same_shapes_follow_each_other_and_others_come_between(slug, exercise):
    rows = [run for run in exercise.runs(b"rows")[-1] if len(run.steps) > 2]
    shapes, sizes = (
        [[key_of(step, sizes) for step in run.steps] for run in rows] for sizes in (False, True)
    )
    if not exercise.runs(b"rows")[-1][0].init and exercise.name in JUDGED_ON_THEIR_OWN:
        return
    assert all(any(a == b for a, b in pairwise(row)) for row in shapes)
    assert any(len(set(row)) > 1 for row in sizes)


@pytest.mark.share(24)
@pytest.mark.parametrize("name", ["shift_right", "masked_loss", "GRUCell"])
def test_what_is_kept_is_told_first(name):
    what, variant = next(variants(reference(slug_of(name), name)))
    assert what.endswith("the result")
    verdict = verdict_on(name, variant, b"told")
    first = next(line for line in table_text(verdict).splitlines() if line.startswith("  ✗"))
    assert first.startswith("  ✗ further calls")
    assert "right alone, wrong after other calls" in table_text(verdict)


def test_what_a_later_call_changes_is_told_as_that():
    verdict = verdict_on("PatchEmbedding", OneArray, b"told")
    (failed,) = [a for a in verdict.aspects if a.title == "further calls"]
    assert failed.message.startswith("right when it came back, changed by a later call: ")
    assert failed.kind == KEPT and failed.hint is None


@pytest.mark.share(6)
@pytest.mark.parametrize("slug", chapters())
def test_a_mistake_is_put_down_to_earlier_calls_only_if_its_call_alone_is_right(slug):
    told = {}
    for exercise in filter(lambda exercise: exercise.recorded, exercises_of(slug)):
        runs, kept = fixed_runs(exercise), entry_of(slug, exercise)
        for mistake in kept.mistakes:
            answer = banks(slug)[exercise.name].mistakes[mistake.name]
            verdict = decide(
                *(exercise, runs, mistake.records, kept.reference),
                make=lambda run, answer=answer: records(answer, [[run]])[0][0],
            )
            if any(aspect.kind == KEPT for aspect in verdict.aspects):
                told.setdefault(exercise.name, set()).add(mistake.name)
    assert told == {name: KEEPING[name] for name in KEEPING if slug_of(name) == slug}


KEEPING = {  # the bank's mistakes that keep something, and are right in a first call
    "LayerNorm": {"running_statistics"},
    "TokenEmbedding": {"weight_scaled_in_place"},
    "GRUCell": {"state_kept_in_the_cell"},
    "GroupedQueryAttention": {"mask_kept_by_its_shape"},
    "ArithmeticCoder": {"past_is_kept", "numbers_are_kept"},
}
ONCE = {  # a mistake that has nothing to do with state, nor with dtypes
    "KernelRegression": "exclude_self_ignored",
    "BertLayer": "eps_too_large",
    "PositionalEncoding": "full_length_refused",
    "GroupedQueryAttention": "mask_inverted",
    "causal_mask": "shift_has_the_wrong_sign",  # right for as many queries as keys
    "sinusoidal_encoding": "base_ignored",
    "kernel_weights": "boxcar_half_as_wide",
    "greedy_decode": "stops_with_the_first_row",  # right where all rows end together
    "layers_to_see_all": "adds_themselves",  # right for the first tables
}


@pytest.mark.parametrize("name", ONCE)
def test_a_fault_that_is_not_about_state_is_not_charged_as_if_it_were(name):
    mistake = banks(slug_of(name))[name].mistakes[ONCE[name]]
    verdict = verdict_on(name, mistake, SEED + name.encode())
    passed = {aspect.title: aspect.passed for aspect in verdict.aspects}
    assert not all(passed.values())
    assert passed["further calls"] and passed.get("dtype", True)


def test_what_fails_only_in_aspects_about_something_else_is_charged_there():
    exercise = find_exercise("LayerNorm")[1]
    own = [aspect for aspect in exercise.aspects if aspect.own]
    assert [aspect.title for aspect in own] == ["dtype", "further calls"]
    fails = [
        replace(aspect, judge=lambda _: Finding(False, "wrong", kind="value")) for aspect in own
    ]
    first = replace(exercise.aspects[0], judge=lambda _: Finding(True))
    for others, passed in (
        ([], [False, False]),
        ([replace(fails[0], own=())], [True, True, False]),
    ):
        tried = replace(exercise, aspects=(first, *fails, *others))
        records = [[Record((np.float64(i),))] * len(tried.aspects) for i in (1, 2)]
        rows = ([[one] for one in column] for column in ([call(1)] * len(tried.aspects), *records))
        assert [aspect.passed for aspect in decide(tried, *rows).aspects] == [True, *passed]
