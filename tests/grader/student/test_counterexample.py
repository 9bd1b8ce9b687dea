"""Exercises whose answer is an input: what is shown, what is judged, and what hostile data does."""

import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from attention_by_hand.course import CHAPTERS
from attention_by_hand.exercises import bugs
from attention_by_hand.exercises.kernel_regression.bug_in_softmax import BUG
from autograder.bank import banks
from autograder.judge.reference import reference
from autograder.student.authoring.counterexample import LONGEST, Bug
from autograder.student.check import verdict_on
from autograder.student.course import exercises_of, find_exercise
from autograder.student.engine.runs import Record, Trial, call
from autograder.student.engine.values import Array, Opaque, decode, encode
from autograder.student.engine.verdict import CORRECT, WRONG, decide

BOOK = Path(__file__).resolve().parents[3] / "book"
BUGS = {
    slug: next(e for e in exercises_of(slug) if e.name.startswith("bug_in_")) for slug in CHAPTERS
}


def function_of(slug: str) -> str:
    """The end of the names of a chapter's wrong and right function."""
    return sys.modules[f"attention_by_hand.exercises.{slug}.{BUGS[slug].name}"].BUG.function


# --- what is shown ------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", CHAPTERS)
def test_a_chapter_shows_the_wrong_function_as_it_is_judged(slug):
    (page,) = BOOK.glob(f"??_{slug}.md")
    source = inspect.getsource(getattr(bugs, f"wrong_{function_of(slug)}"))
    cells = re.findall(
        r"^```\{code-cell\} ipython3\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S
    )
    assert sum(source in cell for cell in cells) == 1


@pytest.mark.parametrize("slug", CHAPTERS)
def test_no_answer_is_on_file_for_students(slug):
    assert not BUGS[slug].recorded
    assert [e.name for e in exercises_of(slug) if not e.recorded] == [BUGS[slug].name]


def table(n_q: int, n_k: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n_q, n_k, generator=torch.Generator().manual_seed(seed)).double()


def shifted(n_q: int, n_k: int) -> torch.Tensor:
    """The distances of the bank's mistake, as attention biases."""
    wrong = banks("positional_encoding")["relative_positions"].mistakes["top_left_aligned"]
    return -0.5 * (wrong(n_q, n_k, 99) - 99).abs().double()


def patch_means(patches: torch.Tensor, channels: int) -> torch.Tensor:
    """`(B, patches, C·p·p)` → `(B, C, patches)`: the mean of each patch, channel by channel."""
    return patches.unflatten(-1, (channels, -1)).mean(dim=-1).mT


def test_the_wrong_functions_have_the_bugs_of_the_bank_and_the_right_ones_are_right():
    """Each as the bank's mistake or the reference, on numbers that tell the two apart."""

    def both(slug, name, mistake, made=lambda answer: answer):
        """The mistake and the reference."""
        return [made(one) for one in (banks(slug)[name].mistakes[mistake], reference(slug, name))]

    scores, x = table(4, 4), table(6, 8).reshape(2, 3, 8)
    query, key, value = table(2, 4), table(5, 4, 1), table(5, 6, 2)
    logits, target = 3 * table(6, 5).reshape(2, 3, 5), torch.tensor([[1, 0, 0], [2, 3, 4]])
    mask = table(4, 4, 3) > 0
    mask[:, 0] = True
    text = torch.tensor([[1, 0, 3], [2, 3, 4]])
    bias = -0.5 * (torch.arange(3, 5)[:, None] - torch.arange(5)).abs()
    distances = [torch.softmax(query @ key.T / 2 + b, -1) @ value for b in (shifted(2, 5), bias)]
    kernel = table(4, 24, 5).reshape(4, 8, 3)
    maps = torch.softmax(table(12, 3, 6), -1).reshape(2, 2, 3, 3)
    slopes = 3 * table(12, 3, 7).reshape(2, 2, 3, 3)
    pictures = table(12, 12, 8).reshape(2, 3, 4, 6)
    vectors = table(4, 3, 9), table(4, 3, 16)
    softmax = both("kernel_regression", "softmax", "normalised_over_queries_and_max_not_subtracted")
    scale = both("attention_scoring", "scaled_dot_product_attention", "divided_by_root_d_v")
    split = both("multi_head", "split_heads", "split_by_view_unchecked")
    masked = both("masking", "masked_softmax", "scores_multiplied")
    norm = both(
        "residual_layernorm", "LayerNorm", "over_positions_and_features", lambda c: c(8).double()
    )
    loss = both("transformer", "label_smoothed_cross_entropy", "mean_of_the_rows")
    shift = both("language_model", "next_token_loss", "not_shifted")
    flipped = both("recurrence_convolution", "convolution_by_heads", "kernel_flipped")
    averaged = both("bert", "attention_relevance", "mean_before_the_positive_part")
    columns = both("vision_transformer", "patchify", "columns_before_rows")
    one_way = both("captioning", "contrastive_loss", "only_images_to_texts")
    pairs = {
        "softmax": ((scores.numpy(),), [f(scores.numpy()) for f in softmax]),
        "scale": ((query, key, value), [f(query, key, value)[0] for f in scale]),
        "split": ((x, 2), [f(x, 2) for f in split]),
        "masking": ((scores, mask), [f(scores, mask) for f in masked]),
        "distances": ((query, key, value), distances),
        "norm": ((x,), [f(x).detach() for f in norm]),
        "loss": ((logits, target), [f(logits, target, smoothing=0.0) for f in loss]),
        "next_token_loss": ((logits, text), [f(logits, text) for f in shift]),
        "convolution": ((x, kernel), [f(x, kernel)[0] for f in flipped]),
        "relevance": ((maps, slopes), [f([maps], [slopes]) for f in averaged]),
        "patch_means": ((pictures, 2), [patch_means(f(pictures, 2), 3) for f in columns]),
        "contrast": (vectors, [f(*vectors, 1.0) for f in one_way]),
    }  # fmt: skip
    assert pairs.keys() == {function_of(slug) for slug in CHAPTERS}
    for name, (given, expected) in pairs.items():
        shown = [getattr(bugs, f"{kind}_{name}")(*given) for kind in ("wrong", "right")]
        for found, known in zip(shown, expected, strict=True):
            np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-12, err_msg=name)
        assert np.abs(np.asarray(shown[1] - shown[0])).max() > 0.01, name


# --- what is said -------------------------------------------------------------------------------


def told(shows, hides, n: int = 3) -> tuple[str | None, str | None]:
    """What is said of a pair of tables of scores, as it comes from another process."""
    value = decode(encode((shows, hides)))
    trial = Trial(call(n), Record((value,)), Record(), ("n",))
    return BUG.shows_the_bug(trial).message, BUG.hides_the_bug(trial).message


GOOD = np.diag([5.0, 0.0, 0.0])
TURNED = np.array([[0.0, 1.0, 2.0], [1.0, 2.0, 0.0], [2.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("shows", "hides", "first", "second"),
    [
        (GOOD, TURNED, None, None),
        (TURNED, np.diag([5, 1, 1]), "agree on it; both give 0.09, 0.245, 0.665, 0.245, …", "at ["),
        (GOOD * 1e-3, GOOD * 1e-3, "by 0.0006 at most; a test with a tolerance", "are alike"),
        (GOOD * 1e-9, TURNED, "differ by 6e-10 at most; that is rounding", None),
        (GOOD[:2], TURNED[0], "expected shape (3, 3), got (2, 3)", "got (3,)"),
        (GOOD * np.nan, GOOD + np.inf, "not finite", "not finite"),
        (GOOD * 21, -GOOD * 21, "larger than 100", "smaller than -100"),
        (5.0, None, "got 5.0", "got None"),
        (GOOD.tolist(), object(), "got a list of 3", "got an object of type object"),
        ((GOOD, GOOD), {"x": GOOD}, "got a tuple of 2", "got an object of type dict"),
        (torch.tensor(GOOD), torch.tensor(TURNED).half(), None, None),
        (GOOD > 0, TURNED.astype(np.uint8), None, None),
    ],
)  # fmt: skip
def test_the_message_says_what_is_wrong_with_an_input(shows, hides, first, second):
    for message, words in zip(told(shows, hides), (first, second), strict=True):
        assert (message is None) == (words is None), message
        assert words is None or words in message


@pytest.mark.parametrize("value", [None, GOOD, (GOOD,), (GOOD, GOOD, GOOD), "text", {}, 1e400])
def test_what_is_no_pair_is_told(value):
    trial = Trial(call(3), Record((decode(encode(value)),)), Record(), ("n",))
    assert "expected a pair (shows, hides), got" in BUG.shows_the_bug(trial).message


# --- hostile data -------------------------------------------------------------------------------

HOSTILE = [
    Array(np.zeros((0, 0))),
    Array(np.zeros((LONGEST + 1, 4))),
    Array(np.broadcast_to(np.float64(1), (1 << 20, 1 << 20))),  # no bytes, but endless rows
    Array(np.full((4, 4), 2**64 - 1, np.uint64), dtype="uint64"),
    Array(np.full((4, 4), -(2**63)), dtype="int64"),
    Array(np.full((4, 4), 1e308)),
    Array(np.zeros((1,) * 32)),
    Opaque("Tensor"),
    {"shape": (4, 4)},
    10**30,
    "(4, 4)",
]  # fmt: skip


@pytest.mark.parametrize("slug", CHAPTERS)
@pytest.mark.parametrize("thing", HOSTILE, ids=lambda thing: type(thing).__name__)
def test_hostile_inputs_reach_no_function(slug, thing, monkeypatch):
    def caught(*given):
        pytest.fail("a function ran on it")

    for kind in ("wrong", "right"):
        monkeypatch.setattr(bugs, f"{kind}_{function_of(slug)}", caught)
    exercise = BUGS[slug]
    runs = exercise.runs(b"seed")
    for value in (thing, (thing, thing), ((thing,) * 3,) * 2, ((thing,) * 2,) * 2):
        records = [[Record((value,)) for _ in row] for row in runs]
        verdict = decide(exercise, runs, records, records)
        assert (verdict.verdict, verdict.score) == (WRONG, 0)
        assert all("cannot be judged" not in aspect.message for aspect in verdict.aspects)


def test_lengths_that_an_answer_chooses_have_to_fit_each_other():
    named = {e.name: s for s, e in BUGS.items()}
    bug: Bug = sys.modules[
        f"attention_by_hand.exercises.{named['bug_in_scaling']}.bug_in_scaling"
    ].BUG
    value = tuple(map(Array, (np.ones((2, 4)), np.ones((3, 4)), np.ones((5, 1)))))
    trial = Trial(call(4), Record(((value, value),)), Record(), ("d_k",))
    assert (
        "value: expected shape (n_k, d_v), n_q = 2, n_k = 3, got (5, 1)"
        in bug.shows_the_bug(trial).message
    )


# --- check, and what comes back for the wrong function -------------------------------------------


@pytest.mark.parametrize("slug", CHAPTERS)
def test_check_judges_without_any_record_on_file(slug, monkeypatch):
    def unread(slug):
        raise FileNotFoundError(slug)

    monkeypatch.setattr("autograder.student.expected.expected_of", unread)
    name = BUGS[slug].name
    assert verdict_on(reference(slug, name), name).verdict == CORRECT
    wrong = banks(slug)[name].mistakes["exchanged"]
    verdict = verdict_on(wrong, name)
    assert (verdict.verdict, verdict.score) == (WRONG, 0)
    assert all(aspect.hint for aspect in verdict.aspects)


def test_half_an_answer_earns_its_part():
    for slug in CHAPTERS:
        name = BUGS[slug].name
        score = {
            m: verdict_on(banks(slug)[name].mistakes[m], name).score
            for m in ("shown_twice", "hidden_twice")
        }
        assert score == {"shown_twice": 1.0, "hidden_twice": 0.5}
    assert find_exercise(name)[1].points == 1.5


@pytest.mark.parametrize(("steps", "hides"), [(8, True), (4000, False)])
def test_rounding_of_large_inputs_tells_nothing_apart(steps, hides):
    numbers = np.float32([90.1, 90.7, 91.6])
    scores = np.stack([np.roll(numbers, i) for i in range(3)])
    scores[1, 0] += steps * np.spacing(scores[1, 0])
    shows, hides_it = told(GOOD, scores)
    assert shows is None and (hides_it is None) == hides


def test_rounding_of_large_results_of_moderate_inputs_tells_nothing_apart():
    """Results are some 10⁶ here: inputs to 1,000, and a kernel mirrored but for rounding."""
    bug = next(e for e in exercises_of("recurrence_convolution") if e.name == "bug_in_convolution")
    step = np.arange(5, dtype=np.float32) - 2
    kernel = np.float32(1000) * np.exp(-(step**2) / 9)
    for shift, passes in ((np.float32(1e-4), True), (np.float32(3.0), False)):
        kernel[0] += shift
        x = np.linspace(-999, 999, 20, dtype=np.float32)[None, :, None]
        both = (x, kernel[None, None])
        trial = Trial(call(1, 1, 5), Record((decode(encode((both, both))),)), Record())
        assert bug.aspects[1].judge([trial]).passed == passes
