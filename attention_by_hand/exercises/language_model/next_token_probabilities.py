"""`next_token_probabilities`: temperature, top-k, top-p."""

from collections.abc import Sequence

import numpy as np

from autograder.student.authoring import Array, Declaration, Draw, Run, call, tensor

EXERCISE = Declaration(
    "next_token_probabilities",
    "What may come next",
    ("logits", "temperature", "top_k", "top_p"),
)


def _logits(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    """Logits of which no two in a row are nearly equal."""
    *batch, vocab = shape
    rows = int(np.prod(batch, dtype=int))
    places = np.stack([draw.permutation(vocab) for _ in range(rows)])
    spread = 4.0 / vocab * (places + draw.uniform(-0.3, 0.3, rows, vocab)) - 2.0
    return tensor(spread.reshape(shape), dtype)


def _cut(draw: Draw, logits: Array, temperature: float = 1.0, top_k: int | None = None) -> float:
    """A top_p at which every row is cut, not too near to any sum of its shares."""
    rows = -np.sort(-logits.data.astype(float) / temperature, axis=-1)[..., :top_k]
    shares = np.exp(rows - rows.max(axis=-1, keepdims=True))
    sums = np.cumsum(shares / shares.sum(axis=-1, keepdims=True), axis=-1).ravel()
    tried = [draw.number(0.35, 0.9) for _ in range(200)]
    return max(tried[:20], key=lambda p: np.abs(sums - p).min())


@EXERCISE.equals("the temperature", 0.6)
def _runs(draw: Draw) -> list[Run]:
    """Divide the logits by the temperature, then take the softmax over the last axis. Below 1 the
    likely tokens gain, above 1 all become more alike."""
    return [
        call(_logits(draw, 6)),
        call(_logits(draw, 3, 8), 0.5),
        call(logits=_logits(draw, 2, 3, 5), temperature=2.5, top_k=None, top_p=None),
        call(_logits(draw, 2, 70), 1.7),
        call(_logits(draw, 3, 1), 0.7),
    ]


@EXERCISE.equals("top-k", 0.5)
def _top_k(draw: Draw) -> list[Run]:
    """Keep the k largest of each row, give all others exactly 0, and divide by what is left: the
    rest sums to 1 again. Every token stays at its own place."""
    return [
        call(_logits(draw, 3, 8), 1.0, 3),
        call(_logits(draw, 6), top_k=1),
        call(_logits(draw, 2, 3, 9), 0.6, 5),
        call(_logits(draw, 2, 70), 1.4, top_k=40),
    ]


@EXERCISE.equals("top-p", 0.6)
def _top_p(draw: Draw) -> list[Run]:
    """Sort, likeliest first, and add up: a token stays if the tokens before it have not reached
    top_p yet. So the one that crosses the line stays, and at least one does."""
    three, five = _logits(draw, 3, 8), _logits(draw, 2, 3, 6)
    sharp, wide = _logits(draw, 4, 5), _logits(draw, 2, 70)
    by_hand = tensor(np.log([[0.5, 0.3, 0.15, 0.05], [0.05, 0.04, 0.06, 0.85]]), "float32")
    return [
        call(three, top_p=_cut(draw, three)),
        call(five, 0.5, None, _cut(draw, five, 0.5)),
        call(sharp, top_p=0.05),
        call(wide, 1.5, top_p=_cut(draw, wide, 1.5)),
        call(by_hand, 1.0, None, 0.7),
    ]


@EXERCISE.equals("temperature, then top-k, then top-p", 1.2)
def _all_three(draw: Draw) -> list[Run]:
    """The shares that top-p adds up are those of what top-k has left, renormalised, at the given
    temperature."""
    # Of the two kept, the first has 0.4 / 0.65, not 0.4. No two are equal: ties are judged below.
    by_hand = tensor(np.log([[0.4, 0.25, 0.12, 0.05, 0.1, 0.08]]), "float32")
    runs = [call(by_hand, 1.0, 2, 0.6), call(by_hand, 2.0, 3, 0.62)]
    for temperature, k in ((0.7, 3), (1.6, 6), (1.0, 4)):
        logits = _logits(draw, 3, 9)
        runs.append(call(logits, temperature, k, _cut(draw, logits, temperature, k)))
    return runs


@EXERCISE.equals("temperature 0", 0.4)
def _greedy(draw: Draw) -> list[Run]:
    """No division by 0: all goes to the likeliest token, to the first one where several are equally
    likely."""
    return [
        call(_logits(draw, 3, 7), 0.0),
        call(tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]], "float32"), 0.0),
        call(_logits(draw, 2, 3, 5), temperature=0.0, top_k=3, top_p=0.9),
        call(draw.tensor(2, 6, scale=1e4), 0.0),
        call(tensor([[1.0, 1.0005, 0.5, 1.0]], "float32"), 0.0),
    ]


@EXERCISE.equals("equal logits: the lower ids stay", 0.35)
def _tied(draw: Draw) -> list[Run]:
    """Where the k-th and the next are equally likely, exactly k stay, those with the lower ids. A
    comparison with the k-th value would keep them all. The same holds for top-p."""
    few = tensor(draw.integers(0, 2, 4, 9), "float32")
    flat = tensor(np.zeros((2, 8)), "float32")
    rising = tensor([[0.0, 1.0, 1.0, 1.0, 2.0, 1.0]], "float32")
    return [
        call(few, 1.0, 4),
        call(flat, 0.8, 3),
        call(rising, 1.0, 3),
        call(flat, top_p=0.55),
        call(tensor(np.zeros((1, 4)), "float32"), top_p=0.5),  # reached exactly, by two
        call(rising, 1.0, None, 0.6),
        call(tensor(np.zeros((1, 100)), "float32"), 1.0, 37),
    ]


@EXERCISE.equals("all may stay", 0.25)
def _all_stay(draw: Draw) -> list[Run]:
    """A top_k beyond the vocabulary keeps everything, and so does top_p = 1. A vocabulary may hold
    one token."""
    return [
        call(_logits(draw, 3, 5), 1.3, 50),
        call(_logits(draw, 3, 5), 1.3, 5),
        call(_logits(draw, 3, 5), top_p=1.0),
        call(_logits(draw, 2, 1), 0.5, 1, 0.3),
        call(_logits(draw, 2, 6), 1.0, 9, 1.0),
    ]


def _named(run: Run) -> Sequence[object]:
    step = run.steps[0]
    named = dict(zip(("logits", "temperature", "top_k", "top_p"), step.args, strict=False))
    given = {"temperature": 1.0, "top_k": None, "top_p": None, **named, **step.kwargs}
    wrong = {
        "temperature": given["temperature"] < 0,
        "top_k": given["top_k"] is not None and given["top_k"] < 1,
        "top_p": given["top_p"] is not None and not 0 < given["top_p"] <= 1,
    }
    return [given[name] for name, is_wrong in wrong.items() if is_wrong]


@EXERCISE.raises("numbers that make no sense", 0.4, ValueError, naming=_named)
def _refused(draw: Draw) -> list[Run]:
    """A temperature below 0, a top_k below 1, a top_p of 0 or less or above 1: raise a ValueError
    that names the number.
    """
    return [
        call(_logits(draw, 2, 5), -0.5),
        call(_logits(draw, 2, 5), 1.0, 0),
        call(_logits(draw, 2, 5), top_k=-3),
        call(_logits(draw, 2, 5), top_p=1.5),
        call(_logits(draw, 2, 5), 1.0, None, -0.25),
        call(_logits(draw, 2, 5), top_p=0.0),
        call(_logits(draw, 2, 5), 0.0, -7),
    ]


@EXERCISE.equals("logits of ±10,000, and −∞", 0.25)
def _large(draw: Draw) -> list[Run]:
    """torch.softmax stays finite. A token whose logit is −∞ is one that may not come: it has
    probability 0."""
    barred = _logits(draw, 2, 6)
    barred.data[:, [1, 4]] = -np.inf
    return [
        call(draw.tensor(2, 6, scale=1e4), 0.8),
        call(tensor(1000.0 + _logits(draw, 3, 6).data, "float32"), 1.0, 4),
        call(barred, 1.2),
        call(barred, 1.0, 5),
    ]


@EXERCISE.keeps_dtypes(0.15)
def _double(draw: Draw) -> list[Run]:
    """float64 logits give float64 probabilities, float32 logits float32."""
    logits = _logits(draw, 2, 6, dtype="float64")
    cut = _cut(draw, logits, 0.9, 4)
    return [call(logits, 0.9), call(logits, 0.9, 4), call(logits, 0.9, 4, cut), call(logits, 0.0)]


EXERCISE.leaves_inputs_alone(0.15, _runs, _top_k, _all_three, _greedy)


@EXERCISE.equals("non-contiguous views", 0.05)
def _strided(draw: Draw) -> list[Run]:
    """reshape works on any view."""
    return [call(_logits(draw, 2, 3, 6), 0.7, 4, 0.8).as_views()]


EXERCISE.leaves_state_alone(0.1, _runs, _all_three)
EXERCISE.follows_its_inputs(_runs, _top_k, _all_three, _greedy)
