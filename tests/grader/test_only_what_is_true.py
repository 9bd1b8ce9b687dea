"""`check` says no name, cause or pointer that is not true of this answer."""

from types import SimpleNamespace

import numpy as np
import pytest
from pointed import pointed

from autograder.student import pointing
from autograder.student.engine.aspects import dtypes_kept, equals_reference
from autograder.student.engine.compare import in_fewer_digits
from autograder.student.engine.locator.counterfactual import _others
from autograder.student.engine.locator.signatures import signature
from autograder.student.engine.probe import probe
from autograder.student.engine.runs import Exercise, call
from autograder.student.engine.values import Array
from autograder.student.engine.verdict import Mistake, decide
from autograder.student.engine.words import describe


@pytest.fixture(autouse=True)
def plenty_of_time(monkeypatch):
    monkeypatch.setattr(pointing, "SECONDS", 60.0)


# --- guesses --------------------------------------------------------------------------------------


def _judged(exercise, answer, right, *known):
    runs = exercise.runs(b"true")
    records = {f: [[probe(f, run) for run in row] for row in runs] for f in (answer, right, *known)}
    bank = [Mistake(f.__name__, f.__doc__, records[f]) for f in known]
    return decide(exercise, runs, records[answer], records[right], lambda: bank)


def _exercise(name, *lengths):
    made = [
        equals_reference(f"{n} numbers", 1.0, "…", lambda draw, n=n: [call(draw.normal(n))])
        for n in lengths
    ]
    return Exercise(name, "Numbers", ("x",), tuple(made))


def squares(x):
    return x * x


def doubled(x):
    """Twice the square."""
    return 2 * x * x


@pytest.mark.parametrize(("alike", "likely"), [(2, ()), (3, ()), (4, ("doubled",))])
def test_a_guess_agrees_on_nearly_all_runs_that_tell_it_from_a_right_answer(alike, likely):
    def answer(x):
        return doubled(x) if len(x) <= alike else 3 * x * x

    exercise = _exercise("squares", 1, 2, 3, 4, 5)
    assert _judged(exercise, answer, squares, doubled).likely == likely


def test_numbers_that_are_a_right_answers_do_not_speak_for_a_mistake():
    def summed(x):
        return x * x, float(x.sum())

    def never_summed(x):
        """There is no sum."""
        return x * x, 0.0 if len(x) > 2 else float(x.sum())

    def given_up(x):
        if len(x) == 2:
            raise AttributeError("two")
        return x * x, 0.0

    exercise = _exercise("sums", 2, 3, 4)
    assert _judged(exercise, given_up, summed, never_summed).likely == ()


# --- digits and dtypes ----------------------------------------------------------------------------


def test_another_dtype_is_told_where_the_numbers_are_those_of_another():
    right = Array(np.linspace(0.1, 1.3, 7) ** 2)
    for dtype in ("float32", "float16"):
        assert in_fewer_digits(Array(right.data.astype(dtype).astype(float)), right)
    assert not in_fewer_digits(Array(right.data * (1 - 1e-8)), right)
    assert not in_fewer_digits(right, right)
    assert not in_fewer_digits(Array(np.ones(3)), Array(np.ones(3)))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda x: x * x + 1e-7, False),
        (lambda x: squares(x.astype(np.float32)).astype(x.dtype), True),
    ],
    ids=["a small number", "float32"],
)
def test_a_small_number_is_not_taken_for_another_dtype(answer, told):
    some = _exercise("squares", 3).aspects[0]
    rounded = lambda draw: [call(draw.normal(3, dtype="float32"))]  # noqa: E731
    first = equals_reference(some.title, 1.0, "…", rounded)
    exercise = Exercise("squares", "…", ("x",), (first, dtypes_kept(0.5, "…", some.runs)))
    (failed,) = [a for a in _judged(exercise, answer, squares).aspects if not a.passed]
    assert (failed.title == "dtype") == ("of another" in (failed.hint or "")) == told


def test_float32_is_charged_where_the_dtype_is_and_not_for_its_digits_as_well():
    def narrow(x):
        return squares(x.astype(np.float32))

    some = _exercise("squares", 3).aspects[0]
    rounded = lambda draw: [call(draw.normal(3, dtype="float32"))]  # noqa: E731
    first = equals_reference(some.title, 1.0, "…", rounded)
    aspects = (
        first,
        equals_reference("digits", 1.0, "…", some.runs),
        dtypes_kept(0.5, "…", some.runs),
    )
    exercise = Exercise("squares", "…", ("x",), aspects)
    lost = [a.title for a in _judged(exercise, narrow, squares).aspects if not a.passed]
    assert lost == ["dtype"]
    wrong = lambda x: narrow(x) + 1e-4  # noqa: E731
    assert not _judged(exercise, wrong, squares).aspects[1].passed


# --- pointers -------------------------------------------------------------------------------------

PACK = """
    def pack(sequences, length, causal=False):
        for s in sequences:
            if len(s) > length:
                raise ValueError(len(s))
        used, places = [], []
        for s in sequences:
            r = next((r for r, n in enumerate(used) if n + len(s) <= length), len(used))
            used += [0] * (r == len(used))
            places.append([r, used[r]])
            used[r] += len(s)
        tokens = sequences[0].new_zeros((len(used), length))
        positions = torch.zeros_like(tokens, dtype=torch.long)
        owner = torch.full_like(positions, -1)
        for i, s in enumerate(sequences):
            r, c = places[i]
            tokens[r, c : c + len(s)] = s
            positions[r, c : c + len(s)] = torch.arange(len(s))
            owner[r, c : c + len(s)] = i
        real = owner >= 0
        mask = real[:, None, :, None] & real[:, None, None, :]
        if causal:
            mask = mask & (positions[:, None, :, None] >= positions[:, None, None, :])
        else:
            mask = mask & (owner[:, None, :, None] == owner[:, None, None, :])
        return tokens, positions, mask, torch.tensor(places)
"""


def test_another_axis_of_one_is_not_where_a_mask_goes_wrong():
    line = pointed(PACK, "pack").splitlines()
    assert "real[:, None, :, None]" not in line[0]
    shown = line[2].index("^"), len(line[2])
    assert line[1][slice(*shown)] != "real[:, None, :, None]"


FILL = """
    def fill_gaps(model, ids, mask_id, steps):
        ids = ids{cloned}
        for left in range(steps, 0, -1):
            logits = model(ids).clone()
            logits[..., mask_id] = -torch.inf
            probs = logits.softmax(-1)
            p, token = probs.max(-1)
            {token}
            for b in range(len(ids)):
                gaps = (ids[b] == mask_id).nonzero(){gaps}
                k = math.ceil(len(gaps) / left)
                best = gaps[p[b, gaps].argsort(descending=True)[:k]]
                ids[b, best] = token[b, best]
        return ids
"""


def test_a_part_of_an_array_is_not_what_an_exception_follows_from():
    source = FILL.format(cloned=".clone()", token="", gaps=".squeeze()")
    first = pointed(source, "fill_gaps").splitlines()[0]
    assert first == "The TypeError comes from here:"


def test_leading_axes_that_become_one_are_no_other_order():
    drawn = "token = torch.multinomial(probs.flatten(0, 1), 1).view_as(ids)"
    found = pointed(FILL.format(cloned=".clone()", token=drawn, gaps=".flatten()"), "fill_gaps")
    assert "another order" not in found and "with the call of `multinomial`" in found


@pytest.mark.parametrize("axis", ["7", "-7"])
def test_a_number_as_written_is_not_what_an_exception_follows_from(axis):
    source = f"""
        def cosine_scores(query, key, eps=1e-8):
            query = query / query.norm(dim=-1, keepdim=True).clamp_min(eps)
            key = key / key.norm(dim={axis}, keepdim=True).clamp_min(eps)
            return (query @ key.mT).clamp(-1.0, 1.0)
        """
    said, line, carets = pointed(source, "cosine_scores").splitlines()
    assert said == "The IndexError comes from here:"
    assert line[carets.index("^") : len(carets)] == f"key.norm(dim={axis}, keepdim=True)"


def test_what_the_caller_gives_is_no_other_number():
    """With 1 for k, 2 happens to give what is right: the sum runs over the wrong axis."""
    source = """
        def recall_at(similarity, k):
            if k < 1:
                raise ValueError(f"k = {k}")
            own = similarity.diagonal()
            rows = (similarity > own[:, None]).sum(1) < k
            columns = (similarity > own[None]).sum(1) < k
            return rows.double().mean().item(), columns.double().mean().item()
        """
    said, line, carets = pointed(source, "recall_at").splitlines()
    assert "with another number here" in said
    assert (line[: carets.index("^")][-5:], carets.count("^")) == (".sum(", 1)


def test_no_number_far_above_its_own_is_tried_in_its_place():
    """Where it is k of 2**k, nothing stops the power once it has begun."""
    place = SimpleNamespace(kind="name")
    assert [how(0, 3) for how in _others(place, 3, [7, 10**9])] == [4, 2, 7]
    assert 10**9 in [how(0, 10**9 + 5) for how in _others(place, 10**9 + 5, [10**9])]


def test_a_long_value_is_shown_as_cut():
    assert describe("1" * 90) == f"'{'1' * 57}…'"
    assert describe("1" * 58) == f"'{'1' * 58}'"


def test_zeros_and_ones_are_recognised():
    for table in (np.eye(3, 9), np.tril(np.ones((4, 4))), np.zeros(3), np.array([[True, False]])):
        assert signature(table).binary
    for table in (np.arange(3.0), np.eye(3) / 2, np.array([0.0, 0.5, 1.0]), -np.eye(3)):
        assert not signature(table).binary
