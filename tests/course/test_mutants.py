"""The mutants: what each operator makes, a sample of them judged, and the score that is stored."""

import hashlib
from dataclasses import replace
from functools import cache

import pytest

from autograder.judge.reference import on_demand, reference
from autograder.student.course import chapters, exercises_of, find_exercise
from benchmarks.mutants import judging, listed, making
from benchmarks.mutants.judging import Judged, Outcome
from benchmarks.mutants.making import Mutant
from benchmarks.mutants.operators import OPERATORS

EXERCISES = [(slug, exercise.name) for slug in chapters() for exercise in exercises_of(slug)]
SAMPLE = 4  # mutants of each exercise

# --- what the operators make ----------------------------------------------------------------------

SOURCE = making.normal("""
def f(x, mask=None, eps=1e-5):
    if mask is not None and x.dim() > 2:
        x = x + mask
    scores = -x.transpose(-2, -1) / 2
    low, high = x.min(dim=-1, keepdim=True), eps
    for row in scores:
        total = row[1:x.dim()].clone()
    with torch.no_grad():
        x.sum(device=x.device, dtype=x.dtype)
    if x.isnan().any():
        raise ValueError(f"{x} is NaN")
    return scores.softmax(dim=-1), high if mask is None else low
""")
CHANGES = {
    "axis": ("x.min(dim=-1", "x.min(dim=-2"),
    "constant": ("x.dim() > 2", "x.dim() > 3"),
    "sign": ("x = x + mask", "x = x - mask"),
    "term dropped": ("x = x + mask", "x = mask"),
    "factor dropped": ("(-2, -1) / 2", "(-2, -1)"),
    "other operation": ("(-2, -1) / 2", "(-2, -1) * 2"),
    "comparison": ("x.dim() > 2", "x.dim() >= 2"),
    "boolean": ("None and x", "None or x"),
    "branch": ("high if mask is None else low", "low"),
    "call dropped": ("-x.transpose(-2, -1) / 2", "-x / 2"),
    "argument dropped": ("dim=-1, keepdim=True", "dim=-1"),
    "exchanged": ("(x.min(dim=-1, keepdim=True), eps)", "(eps, x.min(dim=-1, keepdim=True))"),
    "neighbour": ("x.min(", "x.max("),
    "name exchanged": ("high if mask is None else low", "low if mask is None else low"),
    "index": ("row[1:x.dim()]", "row[1:]"),
    "off by one": ("row[1:x.dim()]", "row[1:x.dim() - 1]"),
    "detached": ("x = x + mask", "x = x.detach() + mask"),
    "dtype": ("dtype=x.dtype", "dtype=torch.float32"),
    "device": ("device=x.device", "device='cpu'"),
    "in place": ("x = x + mask", "x += mask"),
    "statement deleted": ("    with torch.no_grad():\n        x.sum", "    x.sum"),
    "loop": ("for row in scores:", "for row in [*scores][1:]:"),
    "error": ("{x} is NaN", " is NaN"),
    "argument ignored": ("eps=1e-05):\n", "eps=1e-05):\n    eps = 1e-05\n"),
}


@pytest.mark.parametrize("operator", CHANGES)
def test_an_operator_makes_its_change(operator):
    old, new = CHANGES[operator]
    assert SOURCE.count(old) == 1, "the example is changed in one place"
    made = {m.source: m for m in making.mutants(SOURCE, "torch")}
    assert made[SOURCE.replace(old, new)].operator == operator


def test_every_operator_has_its_example():
    names = {operator.__name__.replace("_", " ") for operator in OPERATORS}
    assert names | {"argument ignored"} == CHANGES.keys()


def test_every_mutant_is_another_text_and_has_a_name_of_its_own():
    made = making.mutants(SOURCE, "torch")
    assert len({m.source for m in made} | {SOURCE}) == len(made) + 1
    assert len({m.name for m in made}) == len(made)


def test_numpy_code_gets_numpys_changes():
    made = making.mutants("def f(x, y):\n    x = x * y\n    return np.exp(x)", "numpy")
    lines = {m.after for m in made}
    assert {"x = np.multiply(x, y, out=x)", "return np.exp(x).astype(np.float32)"} <= lines
    assert not [line for line in lines if "detach" in line or "mul_" in line]


# --- what comes of them ---------------------------------------------------------------------------


def judged_as(source: str) -> Judged:
    mutant = Mutant("by hand", "", source, source)
    (found,) = judging.judged("kernel_regression", "gaussian_scores", [mutant])
    return found


def test_a_known_mistake_is_named_and_a_right_answer_survives():
    head = "def gaussian_scores(query, key, w=1.0):\n    distance = query[:, None] - key[None, :]\n"
    assert judged_as(head + "    return -0.5 * (w * distance) ** 2") == (Outcome.SURVIVED, None)
    outcome, mistake = judged_as(head + "    return 0.5 * (distance * w) ** 2")
    assert outcome == Outcome.CAUGHT
    assert mistake in judging.banks("kernel_regression")["gaussian_scores"].mistakes


def test_what_never_runs_is_no_test_of_the_grader():
    for body in ("return query + nothing", "return return"):
        assert judged_as(f"def gaussian_scores(query, key, w=1.0):\n    {body}")[0] == "broken"


def test_what_does_not_end_ends_and_those_after_it_are_judged(monkeypatch):
    monkeypatch.setattr(judging, "CPU_SECONDS", 0.2)
    head = "def gaussian_scores(query, key, w=1.0):\n    "
    bodies = ("while True: pass", "import os; os._exit(0)", "return 0.0 * query[:, None] + key")
    mutants = [Mutant("by hand", "", body, head + body) for body in bodies]
    found = [*judging.judged("kernel_regression", "gaussian_scores", mutants)]
    assert [j.outcome for j in found] == [Outcome.ENDLESS, Outcome.ENDLESS, Outcome.CAUGHT]


# --- a sample, and the score that is stored -------------------------------------------------------


@cache
def mutants_of(slug: str, name: str) -> list[Mutant]:
    return making.mutants_of(reference(slug, name))


def lot(mutant: Mutant) -> bytes:
    return hashlib.sha256(f"{mutant.operator} {mutant.name}".encode()).digest()


@pytest.mark.share(24)
@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_a_sample_loses_marks_or_is_listed(slug, name):
    known = listed.equivalents().get(name, {})
    sample = sorted(mutants_of(slug, name), key=lot)[:SAMPLE]
    for mutant, (outcome, _) in zip(sample, judging.judged(slug, name, sample), strict=True):
        kept = outcome is Outcome.SURVIVED
        assert not kept or listed.reason(mutant, known), f"keeps full marks: {mutant.name}"
        assert kept or mutant.name not in known, f"is listed, and loses marks: {mutant.name}"


@pytest.mark.share(12)
@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_the_stored_score_is_of_these_mutants(slug, name):
    """After a change of a reference or an operator, `make mutants` has to run again."""
    row = listed.read().get(name)
    assert row, f"no score is stored: run `python -m benchmarks.mutants --only {name}`"
    assert row["digest"] == listed.digest(mutants_of(slug, name))
    assert row["made"] + row["broken"] == len(mutants_of(slug, name))
    assert row["made"] == row["caught"] + row["equivalent"]
    assert row["survived"] == 0
    assert sum(row["as"].values()) == row["named"] <= row["caught"]


@pytest.mark.share(0)
def test_the_list_is_of_mutants_that_are_made():
    made = {name: mutants_of(slug, name) for slug, name in EXERCISES}
    for name, known in listed.equivalents().items():
        names = {m.name for m in made[name]} | {listed.EVERY + m.operator for m in made[name]}
        assert not known.keys() - names


def test_a_grader_without_an_aspect_lets_a_mutant_through():
    slug, name = "multi_head", "MultiHeadAttention"
    title = "d_model not divisible by num_heads"
    (mutant,) = (
        m
        for m in mutants_of(slug, name)
        if m.operator == "statement deleted" and m.before.startswith("raise ")
    )
    answer, exercise = judging.answer_of(slug, name, mutant), find_exercise(name)[1]
    given = judging.inputs(slug, name)[0]
    assert judging.loses_marks(exercise, given, on_demand(answer, given.runs))
    kept = [i for i, aspect in enumerate(exercise.aspects) if aspect.title != title]
    blind = replace(exercise, aspects=tuple(exercise.aspects[i] for i in kept))
    less = given._replace(
        runs=[given.runs[i] for i in kept], expected=[given.expected[i] for i in kept]
    )
    assert not judging.loses_marks(blind, less, on_demand(answer, less.runs))


def test_an_unlisted_survivor_and_a_listed_mutant_that_is_caught_are_problems():
    mutants = making.mutants(SOURCE, "torch")[:3]
    found = [Judged(Outcome.SURVIVED), Judged(Outcome.CAUGHT, "a_mistake"), Judged(Outcome.BROKEN)]
    first, second, _ = (m.name for m in mutants)
    assert [*listed.problems(mutants, found, {first: "…"})] == []
    every = {listed.EVERY + mutants[0].operator: "…"}
    assert [*listed.problems(mutants, found, every)] == []
    for known, words in (
        ({}, "keeps full marks"),
        ({first: "…", second: "…"}, "loses marks"),
        ({first: "…", "x → y": "…"}, "is not a mutant"),
    ):
        (problem,) = listed.problems(mutants, found, known)
        assert words in problem
    counts = listed.counts(mutants, found, {first: "…"})
    assert counts == {
        "made": 2, "caught": 1, "named": 1, "equivalent": 1, "survived": 0, "broken": 1
    }  # fmt: skip
